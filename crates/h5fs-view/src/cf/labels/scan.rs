//! One pass over the values of a coordinate, which finds the positions that labels select.

use std::cmp::Ordering;

use h5fs_conventions::stored_type::ExactNumber;
use h5fs_conventions::time::period::TimeResolution;
use h5fs_reader::wire::to_u64;

use crate::cf::labels::label::{CoordinateValue, Label};
use crate::limits;

/// The state of a pass over a coordinate.
#[derive(Default)]
pub(super) struct CoordinateScan {
    /// Number of values so far.
    pub(super) count: u64,
    has_missing: bool,
    has_ascent: bool,
    has_descent: bool,
    has_repetition: bool,
    previous: Option<CoordinateValue>,
    /// The finest resolution of a time.
    finest: Option<TimeResolution>,
}

/// The order of a coordinate's values. Values may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CoordinateOrder {
    Ascending,
    Descending,
    /// No order, or some values are missing.
    Unsorted,
}

/// The values that one label matches.
pub(super) struct LabelMatches {
    pub(super) label: Label,
    /// Number of values before the label.
    pub(super) below: u64,
    /// Number of values after the label.
    pub(super) above: u64,
    pub(super) positions: MatchedPositions,
}

/// The positions of the values that equal a label or are in its period.
#[derive(Default)]
pub(super) struct MatchedPositions {
    pub(super) count: u64,
    first: u64,
    last: u64,
    /// The first positions, at most [`limits::SELECTED_PLACES`].
    listed: Vec<u64>,
}

/// The search for the value that is nearest to a label.
pub(super) struct NearestValue {
    pub(super) label: Label,
    pub(super) is_single: bool,
    /// The position, the value and the distance of the nearest value so far.
    nearest: Option<(u64, CoordinateValue, ExactNumber)>,
}

impl CoordinateScan {
    /// Adds the next value of the coordinate, or `None` for a missing value.
    pub(super) fn add(&mut self, value: Option<CoordinateValue>) {
        self.count += 1;
        let Some(value) = value else {
            self.has_missing = true;
            return;
        };
        if let CoordinateValue::Time(instant) = value {
            let own = TimeResolution::from_instant(instant);
            self.finest = Some(self.finest.map_or(own, |finest| finest.min(own)));
        }
        if let Some(previous) = &self.previous {
            match previous.compare(&value) {
                Ordering::Less => self.has_ascent = true,
                Ordering::Greater => self.has_descent = true,
                Ordering::Equal => self.has_repetition = true,
            }
        }
        self.previous = Some(value);
    }

    /// Returns the order of the values. As in pandas, a coordinate with missing values has none.
    pub(super) fn order(&self) -> CoordinateOrder {
        if self.has_missing || self.has_ascent && self.has_descent {
            CoordinateOrder::Unsorted
        } else if self.has_descent {
            CoordinateOrder::Descending
        } else {
            CoordinateOrder::Ascending
        }
    }

    /// Returns whether neighbouring values are equal.
    pub(super) fn has_repetition(&self) -> bool {
        self.has_repetition
    }

    /// Returns whether a label of the resolution `resolution` stands for a period of the
    /// coordinate's times, and not for one time.
    pub(super) fn is_period(&self, resolution: Option<TimeResolution>) -> bool {
        // Without any time, pandas has the resolution of a day.
        resolution > Some(self.finest.unwrap_or(TimeResolution::Day))
    }
}

impl LabelMatches {
    pub(super) fn new(label: Label) -> Self {
        LabelMatches {
            label,
            below: 0,
            above: 0,
            positions: MatchedPositions::default(),
        }
    }

    /// Compares the label with the value at `position`.
    pub(super) fn add(&mut self, position: u64, value: &CoordinateValue) {
        if value.compare(&self.label.low) == Ordering::Less {
            self.below += 1;
        } else if value.compare(&self.label.high) == Ordering::Greater {
            self.above += 1;
        } else {
            self.positions.add(position);
        }
    }
}

impl MatchedPositions {
    fn add(&mut self, position: u64) {
        if self.count == 0 {
            self.first = position;
        }
        self.last = position;
        self.count += 1;
        if self.listed.len() < limits::SELECTED_PLACES {
            self.listed.push(position);
        }
    }

    /// Returns the first and the last position if all positions between them match.
    pub(super) fn contiguous(&self) -> Option<(u64, u64)> {
        let is_contiguous = self.count > 0 && self.last - self.first == self.count - 1;
        is_contiguous.then_some((self.first, self.last))
    }

    /// Returns all positions, or `None` if there are more than [`limits::SELECTED_PLACES`].
    pub(super) fn listed(&self) -> Option<&[u64]> {
        (to_u64(self.listed.len()) == self.count).then_some(&self.listed)
    }
}

impl NearestValue {
    pub(super) fn new(label: Label, is_single: bool) -> Self {
        NearestValue {
            label,
            is_single,
            nearest: None,
        }
    }

    /// Compares the value at `position`. Of two values at the same distance, the larger one is the
    /// nearest, as in pandas.
    pub(super) fn add(&mut self, position: u64, value: &CoordinateValue) {
        let distance = match value.compare(&self.label.low) {
            Ordering::Equal => Some(ExactNumber::Integer(0)),
            _ => value.distance(&self.label.low, self.is_single),
        };
        let Some(distance) = distance.filter(|distance| !distance.is_nan()) else {
            return;
        };
        let is_nearer = match &self.nearest {
            None => true,
            Some((_, best, least)) => match distance.compare(*least) {
                Some(Ordering::Equal) => value.compare(best) == Ordering::Greater,
                order => order == Some(Ordering::Less),
            },
        };
        if is_nearer {
            self.nearest = Some((position, value.clone(), distance));
        }
    }

    /// Returns the position of the nearest value.
    pub(super) fn position(&self) -> Option<u64> {
        self.nearest.as_ref().map(|(position, ..)| *position)
    }
}
