//! Divides the coordinates of members into blocks, and orders the blocks.

use std::cmp::Ordering;

use crate::joined::paths::OrReason;
use crate::joined::placing::coordinate::{CoordinateSummary, OrderedValue};

/// The blocks into which a joined dimension is divided.
pub(in crate::joined) struct ValueBlocks {
    pub(in crate::joined) lengths: Vec<u64>,
    /// For each member of the kind, the index of its block. `None` if the member lacks the
    /// dimension.
    pub(in crate::joined) of: Vec<Option<usize>>,
    /// The first two members whose coordinates overlap, by their positions in the kind.
    pub(in crate::joined) overlap: Option<(usize, usize)>,
}

/// Orders the members by their first coordinates. The order is descending if the coordinates of all
/// members descend. Members with the same coordinates, as decided by `are_same`, have the same
/// block.
///
/// # Errors
/// Fails as `are_same` does.
pub(in crate::joined) fn by_coordinate(
    lies: &[Option<CoordinateSummary>],
    are_same: impl Fn(usize, usize) -> OrReason<bool>,
) -> OrReason<ValueBlocks> {
    let all = lies.iter().enumerate();
    let mut order: Vec<(usize, &CoordinateSummary)> = all
        .filter_map(|(at, lie)| Some((at, lie.as_ref()?)))
        .collect();
    let falls = do_all_fall(&order);
    order.sort_by(|(a, a_lie), (b, b_lie)| compare(a_lie, b_lie, falls).then_with(|| a.cmp(b)));
    let mut blocks = ValueBlocks {
        lengths: Vec::new(),
        of: vec![None; lies.len()],
        overlap: None,
    };
    let mut last: Option<(usize, &CoordinateSummary)> = None;
    for (at, lie) in order {
        let is_known = match last {
            Some((other, _)) => are_same(other, at)?,
            None => false,
        };
        if !is_known {
            if let Some((other, before)) = last
                && blocks.overlap.is_none()
                && do_overlap(before, lie, falls)
            {
                blocks.overlap = Some((other, at));
            }
            blocks.lengths.push(lie.length);
            last = Some((at, lie));
        }
        blocks.of[at] = blocks.lengths.len().checked_sub(1);
    }
    Ok(blocks)
}

/// Returns whether the coordinates of every member with more than one coordinate descend. Returns
/// false if there is no such member.
fn do_all_fall(order: &[(usize, &CoordinateSummary)]) -> bool {
    let mut long = order.iter().filter(|(_, lie)| lie.length > 1).peekable();
    long.peek().is_some()
        && long.all(|(_, lie)| {
            let ends = lie.ends.as_ref();
            ends.is_some_and(|(first, last)| first.compare(last) == Ordering::Greater)
        })
}

fn compare(a: &CoordinateSummary, b: &CoordinateSummary, falls: bool) -> Ordering {
    let (Some(a), Some(b)) = (&a.ends, &b.ends) else {
        return a.ends.is_some().cmp(&b.ends.is_some());
    };
    let order = OrderedValue::compare(&a.0, &b.0).then_with(|| a.1.compare(&b.1));
    if falls { order.reverse() } else { order }
}

fn do_overlap(before: &CoordinateSummary, own: &CoordinateSummary, falls: bool) -> bool {
    let (Some((lowest, highest)), Some((low, high))) = (&before.range, &own.range) else {
        return false;
    };
    match falls {
        _ if own.is_text => false,
        true => high.compare(lowest) != Ordering::Less,
        false => low.compare(highest) != Ordering::Greater,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarize(first: i128, last: i128, length: u64) -> Option<CoordinateSummary> {
        let [first, last] = [first, last].map(OrderedValue::Integer);
        let range = if first.compare(&last) == Ordering::Greater {
            (last.clone(), first.clone())
        } else {
            (first.clone(), last.clone())
        };
        Some(CoordinateSummary {
            length,
            ends: Some((first, last)),
            range: Some(range),
            is_text: false,
            has_nan: false,
        })
    }

    #[test]
    fn blocks_follow_each_other_by_their_values() {
        let lies = [
            summarize(10, 12, 3),
            None,
            summarize(0, 4, 5),
            summarize(10, 12, 3),
        ];
        let blocks = by_coordinate(&lies, |a, b| Ok(lies[a] == lies[b])).unwrap();
        assert_eq!(blocks.lengths, [5, 3]);
        assert_eq!(blocks.of, [Some(1), None, Some(0), Some(1)]);
        assert_eq!(blocks.overlap, None);
    }

    #[test]
    fn falling_blocks_fall_and_overlaps_are_found() {
        let lies = [summarize(4, 0, 5), summarize(9, 5, 5)];
        let blocks = by_coordinate(&lies, |_, _| Ok(false)).unwrap();
        assert_eq!((blocks.of, blocks.overlap), (vec![Some(1), Some(0)], None));
        let lies = [summarize(0, 4, 5), summarize(4, 6, 3)];
        let blocks = by_coordinate(&lies, |_, _| Ok(false)).unwrap();
        assert_eq!(blocks.overlap, Some((0, 1)));
    }
}
