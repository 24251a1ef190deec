//! The tags of a tree during composition. The text of each different tag is stored once, and nodes
//! contain its number.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;

use granit_parser::Tag;

use crate::error::{Error, Result};
use crate::limits;
use crate::wire::{Count, to_u64};

/// All different tags of the tree so far.
pub(super) struct Tags {
    /// The texts in the order of their numbers, which begin at 1.
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, NonZero<u16>>,
    /// Number of bytes that all further tags in the tree's text may have together, counting each
    /// repetition.
    occurrence_bytes_left: usize,
    /// Number of bytes that all further tags with new texts may have together.
    distinct_bytes_left: usize,
}

impl Tags {
    pub(super) fn new() -> Self {
        Tags {
            texts: Vec::new(),
            numbers: HashMap::new(),
            occurrence_bytes_left: limits::TREE_TAGS_WRITTEN,
            distinct_bytes_left: limits::TREE_TAGS,
        }
    }

    /// Returns the number of a tag. Returns `None` for `!`, which means the absence of a tag.
    ///
    /// # Errors
    /// `Limit` for too many tags, or too much text in them.
    pub(super) fn number(&mut self, tag: &Tag) -> Result<Option<NonZero<u16>>> {
        let length = tag.handle().len().plus(tag.suffix().len());
        let (left, most) = (&mut self.occurrence_bytes_left, limits::TREE_TAGS_WRITTEN);
        spend(left, length, "bytes of the tree's tags", most)?;
        let full = format!("{}{}", tag.handle(), tag.suffix());
        if full == "!" || full.is_empty() {
            return Ok(None);
        }
        if let Some(&number) = self.numbers.get(&*full) {
            return Ok(Some(number));
        }
        let cost = length.plus(limits::TREE_TAG);
        let (left, most) = (&mut self.distinct_bytes_left, limits::TREE_TAGS);
        spend(left, cost, "bytes of the tree's different tags", most)?;
        self.add_text(full.into()).map(Some)
    }

    fn add_text(&mut self, full: Arc<str>) -> Result<NonZero<u16>> {
        self.texts.push(Arc::clone(&full));
        let number = u16::try_from(self.texts.len()).ok().and_then(NonZero::new);
        let most = u64::from(u16::MAX);
        let number = number.ok_or_else(|| Error::limit("number of the tree's tags", most))?;
        self.numbers.insert(full, number);
        Ok(number)
    }

    /// Returns the text of the tag with this number.
    pub(super) fn text(&self, number: NonZero<u16>) -> Option<&str> {
        let place = usize::from(number.get()).checked_sub(1)?;
        self.texts.get(place).map(|text| &**text)
    }

    /// Returns the texts of all tags in the order of their numbers.
    pub(super) fn into_texts(self) -> Vec<Arc<str>> {
        self.texts
    }
}

/// Subtracts `bytes` from the remaining bytes, `left`. Fails with a `Limit` error if too few
/// remain. The error names `what` is limited, and the limit `most`.
fn spend(left: &mut usize, bytes: usize, what: &'static str, most: usize) -> Result<()> {
    *left = left
        .checked_sub(bytes)
        .ok_or_else(|| Error::limit(what, to_u64(most)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::yaml::compose::compose;
    use crate::asdf::yaml::{Document, NodeIndex};

    #[test]
    fn tags_are_resolved_by_their_handles() {
        let text = "%YAML 1.1\n%TAG ! tag:stsci.edu:asdf/\n%TAG !e! tag:e.org:\n\
                    --- !core/asdf-1.1.0\n\
                    [!e!x 1, !<tag:v.org:y> 2, ! 12, !!str 3, 4]\n";
        let document = compose(text.as_bytes(), 0).unwrap();
        let tags: Vec<_> = document
            .items(NodeIndex::ROOT)
            .unwrap()
            .iter()
            .map(|&item| document.tag(item).map(|tag| &**tag))
            .collect();
        assert_eq!(
            &**document.tag(NodeIndex::ROOT).unwrap(),
            "tag:stsci.edu:asdf/core/asdf-1.1.0"
        );
        let text = Some("tag:yaml.org,2002:str");
        assert_eq!(
            tags,
            [Some("tag:e.org:x"), Some("tag:v.org:y"), None, text, None]
        );
    }

    fn tagged(prefix: usize, suffixes: impl Iterator<Item = usize>) -> Result<Document> {
        let items: String = suffixes
            .map(|suffix| format!("- !e!a{suffix} 1\n"))
            .collect();
        let prefix = "x".repeat(prefix);
        compose(format!("%TAG !e! tag:{prefix}\n---\n{items}").as_bytes(), 0)
    }

    #[test]
    fn tags_are_bounded() {
        assert_eq!(tagged(60, 0..2000).unwrap().tags.len(), 2000);
        assert_eq!(
            tagged(60, std::iter::repeat_n(7, 20_000))
                .unwrap()
                .tags
                .len(),
            1
        );
        let most = |error| matches!(error, Error::Limit { .. });
        assert!(tagged(990, 0..2000).is_err_and(most));
        let error = tagged(900, std::iter::repeat_n(7, 40_000)).unwrap_err();
        assert!(most(error.clone()), "{error}");
    }
}
