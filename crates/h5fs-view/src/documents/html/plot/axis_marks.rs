//! The marks on the horizontal axis of a line plot: round numbers or dates.

use h5fs_conventions::stored_type::ExactNumber;
use h5fs_conventions::time::TimeUnits;

use crate::documents::html::plot::axis_lines::{AxisLines, AxisMark};

/// Maximum index of the last element of an array whose elements all have marks. In a longer array,
/// only round indices have marks.
const LAST_MARKED_INDEX: u64 = 5;

/// The marks on the horizontal axis of a line plot.
#[derive(Debug, PartialEq)]
pub(super) struct AxisMarks {
    pub(super) marks: Vec<AxisMark>,
    pub(super) has_times: bool,
    /// The common day of all marks, if their texts are only times of day.
    pub(super) common_day: Option<String>,
}

impl AxisMarks {
    /// Returns marks for the indices of an array of `count` elements.
    pub(super) fn for_indices(count: u64) -> Self {
        let last = count.saturating_sub(1);
        if last > LAST_MARKED_INDEX {
            return Self::for_numbers(0.0, last as f64);
        }
        let marks = (0..=last).map(|index| AxisMark {
            relative_position: index as f64 / last.max(1) as f64,
            text: index.to_string(),
        });
        AxisMarks {
            marks: marks.collect(),
            has_times: false,
            common_day: None,
        }
    }

    /// Returns marks at round numbers in the range from `least` to `most`.
    pub(super) fn for_numbers(least: f64, most: f64) -> Self {
        let lines = AxisLines::choose(least, most);
        let values = lines.line_values().into_iter();
        let marks = values.map(|value| AxisMark {
            relative_position: (value / 2.0 - least / 2.0) / (most / 2.0 - least / 2.0),
            text: lines.format_value(value),
        });
        AxisMarks {
            marks: marks.filter(is_within).collect(),
            has_times: false,
            common_day: None,
        }
    }

    /// Returns marks at round times in the range from `least` to `most`, which are numbers in the
    /// units `units`. Returns `None` if the numbers are not times, or if fewer than two round times
    /// are in the range.
    pub(super) fn for_times(units: &TimeUnits, least: f64, most: f64) -> Option<Self> {
        let time = |number| {
            units
                .convert_to_ticks(ExactNumber::Real(number))
                .ok()
                .flatten()
        };
        let (first, last) = (time(least)?, time(most)?);
        let round = units.round_times(first, last);
        let width = i128::from(last) - i128::from(first);
        let marks: Vec<AxisMark> = round
            .times
            .into_iter()
            .map(|(time, text)| AxisMark {
                relative_position: (i128::from(time) - i128::from(first)) as f64 / width as f64,
                text,
            })
            .collect();
        (marks.len() > 1).then_some(AxisMarks {
            marks,
            has_times: true,
            common_day: round.common_day,
        })
    }
}

/// Returns whether a mark is between the left and the right end of the drawing.
fn is_within(mark: &AxisMark) -> bool {
    (-1e-9..=1.0 + 1e-9).contains(&mark.relative_position)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(below: &AxisMarks) -> Vec<(f64, &str)> {
        let marks = below.marks.iter();
        marks
            .map(|mark| (mark.relative_position, &*mark.text))
            .collect()
    }

    #[test]
    fn round_numbers_stand_below() {
        let below = AxisMarks::for_numbers(0.5, 4.5);
        let expected = [(0.125, "1"), (0.375, "2"), (0.625, "3"), (0.875, "4")];
        assert_eq!(marks(&below), expected);
        let whole = AxisMarks::for_numbers(0.0, 8.0);
        assert_eq!(marks(&whole)[4], (1.0, "8"));
        assert!(!AxisMarks::for_numbers(f64::MIN, f64::MAX).marks.is_empty());
    }

    #[test]
    fn indices_are_whole() {
        assert_eq!(marks(&AxisMarks::for_indices(2)), [(0.0, "0"), (1.0, "1")]);
        assert_eq!(marks(&AxisMarks::for_indices(6))[2], (0.4, "2"));
        assert_eq!(marks(&AxisMarks::for_indices(7))[1], (1.0 / 3.0, "2"));
        let texts: Vec<String> = AxisMarks::for_indices(100)
            .marks
            .into_iter()
            .map(|mark| mark.text)
            .collect();
        assert_eq!(texts, ["0", "20", "40", "60", "80"]);
    }

    /// Calculated by hand: noon is the middle of a day.
    #[test]
    fn times_stand_below() {
        let hours = TimeUnits::parse(b"hours since 2000-02-28", None).unwrap();
        let below = AxisMarks::for_times(&hours, 0.0, 48.0).unwrap();
        let expected = [
            (0.0, "2000-02-28 00:00"),
            (0.25, "2000-02-28 12:00"),
            (0.5, "2000-02-29 00:00"),
            (0.75, "2000-02-29 12:00"),
            (1.0, "2000-03-01 00:00"),
        ];
        assert_eq!(marks(&below), expected);
        assert!(AxisMarks::for_times(&hours, 0.0, 1e-9).is_none());
        assert!(AxisMarks::for_times(&hours, 0.0, 1e300).is_none());
    }
}
