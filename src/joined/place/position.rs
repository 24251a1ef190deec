//! Blocks of values, one behind the other.

use std::cmp::Ordering;

use crate::joined::Sure;
use crate::joined::members::Members;
use crate::joined::place::coordinate::{Coordinate, Step, Values};
use crate::joined::place::kind::Kind;

/// A member's place in the kind, its values, and the first and last of them.
type Ordered<'c> = (usize, &'c Coordinate, Option<(Step, Step)>);

/// The blocks of values along a dimension.
pub(in crate::joined) struct Blocks {
    pub(in crate::joined) lengths: Vec<u64>,
    /// The block of each member of the kind that has the dimension.
    pub(in crate::joined) of: Vec<Option<usize>>,
    /// Which members overlap, in words.
    pub(in crate::joined) overlaps: Option<String>,
}

/// Puts the values of all members one behind the other by their first, falling ones by falling
/// values; those of the same values have one block.
///
/// # Errors
/// Fails if a value is no number.
pub(in crate::joined) fn by_coordinate(
    members: &Members,
    kind: &Kind,
    values: &[Option<Coordinate>],
    key: &[u8],
) -> Sure<Blocks> {
    let name = |place: usize| {
        members.list[kind.members[place]]
            .name
            .escape_ascii()
            .to_string()
    };
    let mut order: Vec<Ordered<'_>> = Vec::new();
    for (place, own) in values.iter().enumerate() {
        let Some(own) = own else { continue };
        if matches!(&own.values, Values::Reals(values) if values.iter().any(|value| value.is_nan()))
        {
            return Err(format!(
                "{} of {}: it has NaN",
                key.escape_ascii(),
                name(place)
            ));
        }
        order.push((place, own, own.values.ends()));
    }
    let falls = do_all_fall(&order);
    order.sort_by(|(a, _, a_ends), (b, _, b_ends)| {
        compare(a_ends.as_ref(), b_ends.as_ref(), falls).then_with(|| a.cmp(b))
    });
    let mut blocks = Blocks {
        lengths: Vec::new(),
        of: vec![None; values.len()],
        overlaps: None,
    };
    let mut last: Option<(usize, &Coordinate)> = None;
    for (place, own, _) in order {
        if last.is_none_or(|(_, before)| !before.is_same(own)) {
            if let Some((other, before)) = last
                && blocks.overlaps.is_none()
                && do_overlap(before, own, falls)
            {
                blocks.overlaps = Some(format!("{} and {} overlap", name(other), name(place)));
            }
            blocks.lengths.push(own.length());
            last = Some((place, own));
        }
        blocks.of[place] = blocks.lengths.len().checked_sub(1);
    }
    Ok(blocks)
}

/// Whether all that have more than one value fall, and there are some.
fn do_all_fall(order: &[Ordered<'_>]) -> bool {
    let mut long = order
        .iter()
        .filter(|(_, own, _)| own.length() > 1)
        .peekable();
    long.peek().is_some()
        && long.all(|(_, _, ends)| {
            ends.as_ref()
                .is_some_and(|(first, last)| first.compare(last) == Ordering::Greater)
        })
}

fn compare(a: Option<&(Step, Step)>, b: Option<&(Step, Step)>, falls: bool) -> Ordering {
    let (Some(a), Some(b)) = (a, b) else {
        return a.is_some().cmp(&b.is_some());
    };
    let order = a.0.compare(&b.0).then_with(|| a.1.compare(&b.1));
    if falls { order.reverse() } else { order }
}

fn do_overlap(before: &Coordinate, own: &Coordinate, falls: bool) -> bool {
    let (Some((lowest, highest)), Some((low, high))) = (before.values.range(), own.values.range())
    else {
        return false;
    };
    match own.values {
        Values::Texts(_) => false,
        _ if falls => high.compare(&lowest) != Ordering::Less,
        _ => low.compare(&highest) != Ordering::Greater,
    }
}
