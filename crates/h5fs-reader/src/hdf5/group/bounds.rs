//! The bounds of the names in a leaf of an old-style group's B-tree. A search for a name within the
//! bounds reaches that leaf.

use crate::error::Result;
use crate::hdf5::btree_v1::KeyPair;

/// The bounds of the names in the leaf that a listing has reached.
#[derive(Debug, Default)]
pub(crate) struct LeafBounds {
    /// For each level from the root down: the keys on both sides of the child on the path, and the
    /// narrowest bounds that this level and the levels above set.
    levels: Vec<(KeyPair, KeyPair)>,
    lower_bound: Option<Vec<u8>>,
    upper_bound: Vec<u8>,
}

impl LeafBounds {
    /// Sets the bounds to those of another leaf. `levels` contains, from the root down, the keys
    /// before and after each child on the path to that leaf. `text` reads the name at an offset in
    /// the group's local heap.
    ///
    /// # Errors
    /// Fails if `text` fails.
    pub(crate) fn move_to(
        &mut self,
        levels: &[KeyPair],
        text: impl Fn(u64) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let pairs = self.levels.iter().zip(levels);
        let same = pairs.take_while(|((keys, _), other)| keys == *other);
        self.levels.truncate(same.count());
        for keys in levels.get(self.levels.len()..).unwrap_or_default() {
            let closest = match self.levels.last() {
                Some((_, above)) => narrower_bounds(*above, *keys, &text)?,
                None => *keys,
            };
            self.levels.push((*keys, closest));
        }
        let Some((_, (after, last))) = self.levels.last() else {
            return Ok(());
        };
        self.lower_bound = after.map(&text).transpose()?;
        self.upper_bound = text(*last)?;
        Ok(())
    }

    /// Returns whether a search for `name` reaches this leaf.
    pub(crate) fn may_contain(&self, name: &[u8]) -> bool {
        let is_after = self.lower_bound.as_deref().is_none_or(|after| after < name);
        is_after && name <= self.upper_bound.as_slice()
    }
}

/// Returns the narrowest bounds that two pairs of keys set together: the lower key with the greater
/// name, and the upper key with the lesser name.
fn narrower_bounds(
    above: KeyPair,
    own: KeyPair,
    text: impl Fn(u64) -> Result<Vec<u8>>,
) -> Result<KeyPair> {
    let after = match (above.0, own.0) {
        (Some(above), Some(own)) if above != own && text(above)? > text(own)? => Some(above),
        (above, own) => own.or(above),
    };
    let last = if above.1 != own.1 && text(above.1)? < text(own.1)? {
        above.1
    } else {
        own.1
    };
    Ok((after, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a name of one letter, whose code is `offset`.
    fn text(offset: u64) -> Result<Vec<u8>> {
        Ok(vec![u8::try_from(offset).unwrap()])
    }

    const fn keys(after: u8, last: u8) -> KeyPair {
        (Some(after as u64), last as u64)
    }

    #[test]
    fn names_lie_between_the_closest_keys_of_all_levels() {
        let mut bounds = LeafBounds::default();
        let mut held = |levels: &[KeyPair]| -> Vec<u8> {
            bounds.move_to(levels, text).unwrap();
            (b'a'..=b'z')
                .filter(|&name| bounds.may_contain(&[name]))
                .collect()
        };
        assert_eq!(held(&[keys(b'c', b'f')]), b"def");
        assert_eq!(held(&[keys(b'c', b'f'), keys(b'd', b'e')]), b"e");
        assert_eq!(held(&[keys(b'c', b'f'), keys(b'a', b'z')]), b"def");
        assert_eq!(held(&[keys(b'c', b'f'), (None, u64::from(b'd'))]), b"d");
        assert_eq!(held(&[(None, u64::from(b'b')), keys(b'a', b'z')]), b"b");
        assert_eq!(held(&[keys(b'c', b'f'), keys(b'k', b'z')]), b"");
        assert_eq!(held(&[keys(b'x', b'z')]), b"yz");
    }
}
