//! Divides the coordinates of members into blocks, and orders the blocks.

use std::cmp::Ordering;

use crate::paths::OmissionResult;
use crate::placing::coordinate::{CoordinateSummary, OrderedValue};

/// The blocks into which a joined dimension is divided.
pub(crate) struct CoordinateBlocks {
    pub(crate) lengths: Vec<u64>,
    /// For each member of the kind, the index of its block. `None` if the member lacks the
    /// dimension.
    pub(crate) member_blocks: Vec<Option<usize>>,
    /// The first two members whose coordinates overlap, by their positions in the kind.
    pub(crate) overlapping_members: Option<(usize, usize)>,
}

/// Orders the members by their first coordinates, and divides the dimension into blocks. The order
/// is descending if the coordinates of all members descend. Members with the same coordinates, as
/// decided by `are_same`, have the same block.
///
/// # Errors
/// Fails as `are_same` does.
pub(crate) fn order_by_coordinate(
    summaries: &[Option<CoordinateSummary>],
    are_same: impl Fn(usize, usize) -> OmissionResult<bool>,
) -> OmissionResult<CoordinateBlocks> {
    let all = summaries.iter().enumerate();
    let mut order: Vec<(usize, &CoordinateSummary)> = all
        .filter_map(|(at, summary)| Some((at, summary.as_ref()?)))
        .collect();
    let falls = are_all_descending(&order);
    order.sort_by(|(a, a_lie), (b, b_lie)| compare(a_lie, b_lie, falls).then_with(|| a.cmp(b)));
    let mut blocks = CoordinateBlocks {
        lengths: Vec::new(),
        member_blocks: vec![None; summaries.len()],
        overlapping_members: None,
    };
    let mut last: Option<(usize, &CoordinateSummary)> = None;
    for (at, summary) in order {
        let is_known = match last {
            Some((other, _)) => are_same(other, at)?,
            None => false,
        };
        if !is_known {
            if let Some((other, before)) = last
                && blocks.overlapping_members.is_none()
                && are_overlapping(before, summary, falls)
            {
                blocks.overlapping_members = Some((other, at));
            }
            blocks.lengths.push(summary.length);
            last = Some((at, summary));
        }
        blocks.member_blocks[at] = blocks.lengths.len().checked_sub(1);
    }
    Ok(blocks)
}

/// Returns whether the coordinates of every member with more than one coordinate descend. Returns
/// false if there is no such member.
fn are_all_descending(order: &[(usize, &CoordinateSummary)]) -> bool {
    let mut long = order
        .iter()
        .filter(|(_, summary)| summary.length > 1)
        .peekable();
    long.peek().is_some()
        && long.all(|(_, summary)| {
            let ends = summary.first_and_last.as_ref();
            ends.is_some_and(|(first, last)| first.compare(last) == Ordering::Greater)
        })
}

fn compare(a: &CoordinateSummary, b: &CoordinateSummary, falls: bool) -> Ordering {
    let (Some(a), Some(b)) = (&a.first_and_last, &b.first_and_last) else {
        return a.first_and_last.is_some().cmp(&b.first_and_last.is_some());
    };
    let order = OrderedValue::compare(&a.0, &b.0).then_with(|| a.1.compare(&b.1));
    if falls { order.reverse() } else { order }
}

fn are_overlapping(before: &CoordinateSummary, own: &CoordinateSummary, falls: bool) -> bool {
    let (Some((lowest, highest)), Some((low, high))) = (&before.min_and_max, &own.min_and_max)
    else {
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
            first_and_last: Some((first, last)),
            min_and_max: Some(range),
            is_text: false,
            has_nan: false,
        })
    }

    #[test]
    fn blocks_follow_each_other_by_their_values() {
        let summaries = [
            summarize(10, 12, 3),
            None,
            summarize(0, 4, 5),
            summarize(10, 12, 3),
        ];
        let blocks =
            order_by_coordinate(&summaries, |a, b| Ok(summaries[a] == summaries[b])).unwrap();
        assert_eq!(blocks.lengths, [5, 3]);
        assert_eq!(blocks.member_blocks, [Some(1), None, Some(0), Some(1)]);
        assert_eq!(blocks.overlapping_members, None);
    }

    #[test]
    fn descending_blocks_and_overlaps_are_detected() {
        let summaries = [summarize(4, 0, 5), summarize(9, 5, 5)];
        let blocks = order_by_coordinate(&summaries, |_, _| Ok(false)).unwrap();
        assert_eq!(
            (blocks.member_blocks, blocks.overlapping_members),
            (vec![Some(1), Some(0)], None)
        );
        let summaries = [summarize(0, 4, 5), summarize(4, 6, 3)];
        let blocks = order_by_coordinate(&summaries, |_, _| Ok(false)).unwrap();
        assert_eq!(blocks.overlapping_members, Some((0, 1)));
    }
}
