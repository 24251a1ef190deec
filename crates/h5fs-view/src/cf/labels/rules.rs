//! The rules of xarray's `.sel`: the positions that labels select after a pass over a coordinate.

use crate::cf::labels::scan::{CoordinateOrder, CoordinateScan, LabelMatches, NearestValue};

/// The selected positions of one dimension.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LabelledPositions {
    /// One position. The dimension does not remain.
    Single(u64),
    /// The positions from the first number up to, but not including, the second one.
    Slice(u64, u64),
    /// These positions, which are not neighbours.
    List(Vec<u64>),
}

/// Why labels select nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// No value matches.
    Absent,
    /// More separate values match than a list can contain.
    TooManyPlaces,
    /// A range needs an order, or bounds that occur in one place.
    RangeWithoutOrder,
    /// A nearest value needs an order, and values that do not repeat.
    NearestWithoutOrder,
}

type RuleResult = Result<LabelledPositions, Refusal>;

/// Returns the positions of the values that a label matches. If `has_only_periods` is true, every
/// label is a period, which keeps the dimension.
pub(super) fn value_positions(
    scan: &CoordinateScan,
    matches: &LabelMatches,
    has_only_periods: bool,
) -> RuleResult {
    let found = &matches.positions;
    let is_period = has_only_periods || scan.is_period(matches.label.resolution);
    if found.count == 0 {
        // A period between two times is empty, and a period before or after all does not exist.
        let is_between = matches.below > 0 && matches.above > 0;
        let empty = LabelledPositions::Slice(0, 0);
        return (is_period && is_between)
            .then_some(empty)
            .ok_or(Refusal::Absent);
    }
    match found.contiguous() {
        Some((first, last)) if first == last && !is_period => Ok(LabelledPositions::Single(first)),
        Some((first, last)) => Ok(LabelledPositions::Slice(first, last + 1)),
        None => {
            let listed = found.listed().ok_or(Refusal::TooManyPlaces)?;
            Ok(LabelledPositions::List(listed.to_vec()))
        }
    }
}

/// Returns the position of the value that is nearest to a label.
pub(super) fn nearest_position(scan: &CoordinateScan, nearest: &NearestValue) -> RuleResult {
    if scan.order() == CoordinateOrder::Unsorted || scan.has_repetition() {
        return Err(Refusal::NearestWithoutOrder);
    }
    let position = nearest.position().ok_or(Refusal::Absent)?;
    Ok(LabelledPositions::Single(position))
}

/// Returns the positions from the first label to the last one. A missing label stands for an end of
/// the coordinate.
pub(super) fn range_positions(
    scan: &CoordinateScan,
    first: Option<&LabelMatches>,
    last: Option<&LabelMatches>,
) -> RuleResult {
    let count = scan.count;
    let (start, stop) = match scan.order() {
        CoordinateOrder::Ascending => (
            first.map_or(0, |first| first.below),
            last.map_or(count, |last| count - last.above),
        ),
        CoordinateOrder::Descending => (
            first.map_or(0, |first| first.above),
            last.map_or(count, |last| count - last.below),
        ),
        CoordinateOrder::Unsorted => {
            let first = first.map(unsorted_bound).transpose()?;
            let last = last.map(unsorted_bound).transpose()?;
            (
                first.map_or(0, |(first, _)| first),
                last.map_or(count, |(_, last)| last + 1),
            )
        }
    };
    Ok(LabelledPositions::Slice(start, stop.max(start)))
}

/// Returns the first and the last position of a bound in a coordinate without order.
fn unsorted_bound(bound: &LabelMatches) -> Result<(u64, u64), Refusal> {
    let is_period = bound.label.resolution.is_some();
    let positions = bound.positions.contiguous().filter(|_| !is_period);
    positions.ok_or(Refusal::RangeWithoutOrder)
}

#[cfg(test)]
mod tests {
    use h5fs_conventions::stored_type::ExactNumber;
    use h5fs_conventions::time::period::TimeResolution;

    use super::*;
    use crate::cf::labels::label::{CoordinateValue, Label};
    use crate::limits;

    const HOUR: i128 = 3600 * 1_000_000_000;

    fn number(number: f64) -> CoordinateValue {
        CoordinateValue::Number(ExactNumber::Real(number))
    }

    fn label(value: f64) -> Label {
        Label {
            low: number(value),
            high: number(value),
            resolution: None,
        }
    }

    /// A coordinate; NaN stands for a missing value.
    fn numbers(values: &[f64]) -> Vec<Option<CoordinateValue>> {
        let values = values
            .iter()
            .map(|&value| (!value.is_nan()).then(|| number(value)));
        values.collect()
    }

    fn scan(
        values: &[Option<CoordinateValue>],
        mut visit: impl FnMut(u64, &CoordinateValue),
    ) -> CoordinateScan {
        let mut scan = CoordinateScan::default();
        for value in values {
            if let Some(value) = value {
                visit(scan.count, value);
            }
            scan.add(value.clone());
        }
        scan
    }

    fn matched(values: &[Option<CoordinateValue>], label: Label) -> (CoordinateScan, LabelMatches) {
        let mut matches = LabelMatches::new(label);
        let scan = scan(values, |position, value| matches.add(position, value));
        (scan, matches)
    }

    fn value(values: &[f64], of: f64) -> RuleResult {
        let (scan, matches) = matched(&numbers(values), label(of));
        value_positions(&scan, &matches, false)
    }

    fn nearest(values: &[f64], of: f64) -> RuleResult {
        let mut nearest = NearestValue::new(label(of), false);
        let scan = scan(&numbers(values), |position, value| {
            nearest.add(position, value);
        });
        nearest_position(&scan, &nearest)
    }

    fn range(values: &[f64], first: f64, last: f64) -> RuleResult {
        let values = numbers(values);
        let bound = |of: f64| (!of.is_nan()).then(|| matched(&values, label(of)).1);
        let (first, last) = (bound(first), bound(last));
        range_positions(&scan(&values, |_, _| {}), first.as_ref(), last.as_ref())
    }

    const NAN: f64 = f64::NAN;

    #[test]
    fn values_match_exactly() {
        assert_eq!(
            value(&[1.0, 2.5, 4.0], 2.5),
            Ok(LabelledPositions::Single(1))
        );
        assert_eq!(value(&[1.0, 2.5, 4.0], 3.0), Err(Refusal::Absent));
        assert_eq!(value(&[], 3.0), Err(Refusal::Absent));
        assert_eq!(
            value(&[NAN, 3.0, NAN], 3.0),
            Ok(LabelledPositions::Single(1))
        );
        assert_eq!(
            value(&[1.0, 2.0, 2.0, 3.0], 2.0),
            Ok(LabelledPositions::Slice(1, 3))
        );
        let scattered = LabelledPositions::List(vec![0, 2]);
        assert_eq!(value(&[2.0, 1.0, 2.0, 3.0], 2.0), Ok(scattered));
    }

    #[test]
    fn positions_that_are_not_neighbours_are_bounded() {
        let alternating = |count: usize| [1.0, 2.0].repeat(count);
        let most = limits::SELECTED_PLACES;
        assert!(matches!(
            value(&alternating(most), 1.0),
            Ok(LabelledPositions::List(_))
        ));
        assert_eq!(
            value(&alternating(most + 1), 1.0),
            Err(Refusal::TooManyPlaces)
        );
        let all = value(&vec![1.0; most + 1], 1.0);
        assert_eq!(all, Ok(LabelledPositions::Slice(0, most as u64 + 1)));
    }

    /// Expected: pandas' `Index.get_indexer(…, method="nearest")`.
    #[test]
    fn the_larger_of_two_nearest_values_is_selected() {
        for (values, of, position) in [
            ([0.0, 10.0, 20.0], 15.0, 2),
            ([0.0, 10.0, 20.0], 5.0, 1),
            ([0.0, 10.0, 20.0], 4.9, 0),
            ([20.0, 10.0, 0.0], 15.0, 0),
            ([20.0, 10.0, 0.0], 5.0, 1),
            ([20.0, 10.0, 0.0], -5.0, 2),
            ([0.0, 10.0, f64::INFINITY], 1e300, 1),
            ([0.0, 10.0, f64::INFINITY], f64::INFINITY, 2),
        ] {
            let found = nearest(&values, of);
            assert_eq!(
                found,
                Ok(LabelledPositions::Single(position)),
                "{values:?}: {of}"
            );
        }
        for values in [&[0.0, 2.0, 1.0][..], &[1.0, 1.0], &[1.0, NAN], &[NAN]] {
            assert_eq!(nearest(values, 1.0), Err(Refusal::NearestWithoutOrder));
        }
        assert_eq!(nearest(&[], 1.0), Err(Refusal::Absent));
    }

    /// Expected: pandas' `Index.slice_indexer`.
    #[test]
    fn ranges_follow_the_order_of_the_coordinate() {
        let slice = |start, stop| Ok(LabelledPositions::Slice(start, stop));
        let (up, down) = (&[0.0, 10.0, 20.0, 30.0], &[30.0, 20.0, 10.0, 0.0]);
        assert_eq!(range(up, 10.0, 20.0), slice(1, 3));
        assert_eq!(range(up, 9.0, 29.0), slice(1, 3));
        assert_eq!(range(up, NAN, 10.0), slice(0, 2));
        assert_eq!(range(up, 11.0, NAN), slice(2, 4));
        assert_eq!(range(up, NAN, NAN), slice(0, 4));
        assert_eq!(range(up, 20.0, 10.0), slice(2, 2));
        assert_eq!(range(up, 40.0, 50.0), slice(4, 4));
        assert_eq!(range(down, 20.0, 10.0), slice(1, 3));
        assert_eq!(range(down, 25.0, 5.0), slice(1, 3));
        assert_eq!(range(down, 10.0, 20.0), slice(2, 2));
        assert_eq!(range(&[1.0, 2.0, 2.0, 3.0], 2.0, 2.0), slice(1, 3));
        assert_eq!(range(&[], 1.0, 2.0), slice(0, 0));
    }

    #[test]
    fn ranges_without_order_need_bounds_in_one_place() {
        let slice = |start, stop| Ok(LabelledPositions::Slice(start, stop));
        let mixed = &[3.0, 1.0, 2.0, 2.0, 0.0, 3.0];
        assert_eq!(range(mixed, 1.0, 2.0), slice(1, 4));
        assert_eq!(range(mixed, NAN, 0.0), slice(0, 5));
        assert_eq!(range(mixed, 0.0, 1.0), slice(4, 4));
        assert_eq!(range(mixed, 3.0, 0.0), Err(Refusal::RangeWithoutOrder));
        assert_eq!(range(mixed, 1.0, 2.5), Err(Refusal::RangeWithoutOrder));
        assert_eq!(range(&[1.0, NAN, 3.0], 1.0, 3.0), slice(0, 3));
        assert_eq!(
            range(&[1.0, NAN, 3.0], 1.0, 2.0),
            Err(Refusal::RangeWithoutOrder)
        );
    }

    /// Expected: pandas' `DatetimeIndex.get_loc`, and xarray's `CFTimeIndex` for other calendars.
    #[test]
    fn times_less_precise_than_the_coordinate_are_periods() {
        let day = |number: i128| (number * 24 * HOUR, (number + 1) * 24 * HOUR - 1);
        let select = |hours: &[i128], (low, high), has_only_periods| {
            let times = hours
                .iter()
                .map(|hour| Some(CoordinateValue::Time(hour * HOUR)));
            let label = Label {
                low: CoordinateValue::Time(low),
                high: CoordinateValue::Time(high),
                resolution: Some(TimeResolution::Day),
            };
            let (scan, matches) = matched(&times.collect::<Vec<_>>(), label);
            value_positions(&scan, &matches, has_only_periods)
        };
        let (daily, hourly) = (&[0, 24, 72], &[0, 6, 24, 30, 72]);
        assert_eq!(
            select(daily, day(1), false),
            Ok(LabelledPositions::Single(1))
        );
        assert_eq!(
            select(daily, day(1), true),
            Ok(LabelledPositions::Slice(1, 2))
        );
        assert_eq!(
            select(hourly, day(1), false),
            Ok(LabelledPositions::Slice(2, 4))
        );
        assert_eq!(
            select(hourly, day(3), false),
            Ok(LabelledPositions::Slice(4, 5))
        );
        assert_eq!(
            select(hourly, day(2), false),
            Ok(LabelledPositions::Slice(0, 0))
        );
        assert_eq!(select(daily, day(2), false), Err(Refusal::Absent));
        assert_eq!(select(hourly, day(4), false), Err(Refusal::Absent));
        assert_eq!(select(hourly, day(-1), false), Err(Refusal::Absent));
    }
}
