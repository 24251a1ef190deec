//! Checkpoints of a sequential scan, for content whose format does not record which item starts at
//! which position.

use crate::wire::{Count, to_u64};

/// A thinned list of checkpoints, about evenly spaced. Whenever the list is full, every second
/// checkpoint is dropped.
#[derive(Debug)]
pub struct CheckpointList<P> {
    /// The checkpoints, each with its position, in ascending order of position.
    checkpoints: Vec<(u64, P)>,
    /// Minimum distance between the positions of two checkpoints.
    min_distance: u64,
    /// Exclusive upper bound of the number of checkpoints.
    capacity: usize,
}

impl<P> CheckpointList<P> {
    /// Creates a list of fewer than `most` checkpoints, at least `apart` positions from each other.
    pub fn new(most: usize, apart: u64) -> Self {
        CheckpointList {
            checkpoints: Vec::new(),
            min_distance: apart,
            capacity: most,
        }
    }

    /// Records that the scan reached `position`, with the state that `place` returns. Does nothing
    /// if the last checkpoint is too near.
    pub fn record(&mut self, position: u64, place: impl FnOnce() -> P) {
        let next = self
            .checkpoints
            .last()
            .map(|(last, _)| last.plus(self.min_distance));
        if next.is_some_and(|next| position < next) {
            return;
        }
        self.checkpoints.push((position, place()));
        if self.checkpoints.len() >= self.capacity {
            let mut is_kept = false;
            self.checkpoints.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
            self.min_distance = self.min_distance.times(2);
        }
    }

    /// Returns the memory in bytes of the list, without the memory that the recorded states point
    /// to.
    pub fn weight(&self) -> u64 {
        to_u64(self.checkpoints.capacity().times(size_of::<(u64, P)>()))
    }

    /// Returns the recorded states without their positions.
    pub(crate) fn into_states(self) -> impl Iterator<Item = P> {
        self.checkpoints.into_iter().map(|(_, place)| place)
    }

    /// Returns the last state that was recorded at or before `position`, and the position at which
    /// it was recorded. Returns `None` if there is no such state.
    pub fn last_at_or_before(&self, position: u64) -> Option<(u64, &P)> {
        let behind = self.checkpoints.partition_point(|(at, _)| *at <= position);
        let (at, place) = self.checkpoints.get(behind.checked_sub(1)?)?;
        Some((*at, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_few_and_evenly_spaced() {
        let mut marks = CheckpointList::new(2048, 128);
        assert!(marks.last_at_or_before(5).is_none());
        for position in (0..1_000_000).step_by(8) {
            marks.record(position, || position);
        }
        assert!(marks.checkpoints.len() < 2048);
        for position in (0..1_000_000).step_by(999) {
            let (at, place) = marks.last_at_or_before(position).unwrap();
            assert_eq!(at, *place);
            assert!(
                at <= position && position - at < 2 * 1_000_000 / 1024,
                "{at} before {position}"
            );
        }
    }
}
