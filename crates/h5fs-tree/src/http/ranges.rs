//! Parses requests for byte ranges; RFC 9110, section 14.

use std::ops::Range;

use crate::limits;

/// The part of a content that a request selects by byte ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestedRanges {
    /// The whole content: no range was requested, or none that is valid.
    Whole,
    /// Ranges of the content: at least one, none of them empty.
    Ranges(Vec<Range<u64>>),
    /// All requested ranges are outside the content, or there are too many (status 416).
    Unsatisfiable,
}

/// Parses the header field `Range` for a content of `length` bytes.
pub(super) fn parse_ranges(field: &str, length: u64) -> RequestedRanges {
    let Some((unit, set)) = field.split_once('=') else {
        return RequestedRanges::Whole;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return RequestedRanges::Whole;
    }
    let specs = set
        .split(',')
        .map(str::trim)
        .filter(|spec| !spec.is_empty());
    let Some(specs) = specs.map(RangeSpec::parse).collect::<Option<Vec<_>>>() else {
        return RequestedRanges::Whole;
    };
    if specs.is_empty() {
        return RequestedRanges::Whole;
    }
    if specs.len() > limits::HTTP_RANGES {
        return RequestedRanges::Unsatisfiable;
    }
    let there = specs.iter().filter_map(|spec| spec.resolve(length));
    let there = merge_ranges(there.collect());
    if there.is_empty() {
        RequestedRanges::Unsatisfiable
    } else {
        RequestedRanges::Ranges(there)
    }
}

/// A byte range as written in a request, before it is applied to a content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeSpec {
    /// From a first byte to a last byte, or to the end.
    From(u64, Option<u64>),
    /// The last bytes of the content; the value is their number.
    Last(u64),
}

impl RangeSpec {
    /// Parses a range. Returns `None` if the syntax is invalid.
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-')?;
        match (first, last) {
            ("", last) => Some(RangeSpec::Last(parse_number(last)?)),
            (first, "") => Some(RangeSpec::From(parse_number(first)?, None)),
            (first, last) => {
                let (first, last) = (parse_number(first)?, parse_number(last)?);
                (first <= last).then_some(RangeSpec::From(first, Some(last)))
            }
        }
    }

    /// Applies the range to a content of `length` bytes. Returns `None` if no byte of the content
    /// is in the range.
    fn resolve(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            RangeSpec::From(first, last) => {
                let end = last.map_or(length, |last| last.saturating_add(1));
                first..end.min(length)
            }
            RangeSpec::Last(count) => length.saturating_sub(count)..length,
        };
        (!range.is_empty()).then_some(range)
    }
}

/// Parses a decimal number. A number above `u64::MAX` becomes `u64::MAX`.
fn parse_number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Merges ranges, so that no byte is sent twice. Disjoint ranges keep their order.
fn merge_ranges(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut sorted = ranges.clone();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    if joined.len() == ranges.len() {
        ranges
    } else {
        joined
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values were derived by hand from RFC 9110, 14.1.1 to 14.2.
    #[test]
    fn ranges_are_those_of_the_rfc() {
        let of_ten = |field: &str| parse_ranges(field, 10);
        let one = |range: Range<u64>| RequestedRanges::Ranges([range].into());
        for (field, expected) in [
            ("bytes=0-0", one(0..1)),
            ("bytes=0-4", one(0..5)),
            ("bytes=5-9", one(5..10)),
            ("bytes=9-", one(9..10)),
            ("bytes=0-", one(0..10)),
            ("bytes=-1", one(9..10)),
            ("bytes=-10", one(0..10)),
            ("bytes=-11", one(0..10)),
            ("bytes=3-99", one(3..10)),
            ("bytes=3-18446744073709551615", one(3..10)),
            ("bytes=3-99999999999999999999999", one(3..10)),
            ("BYTES=1-2", one(1..3)),
            ("bytes= 1-2 , ", one(1..3)),
            ("bytes=0-1,5-6", RequestedRanges::Ranges(vec![0..2, 5..7])),
            ("bytes=5-6,0-1", RequestedRanges::Ranges(vec![5..7, 0..2])),
            ("bytes=0-4,2-6", one(0..7)),
            ("bytes=0-1,2-3", one(0..4)),
            ("bytes=0-0,-1", RequestedRanges::Ranges(vec![0..1, 9..10])),
            ("bytes=0-1,50-60", one(0..2)),
            ("bytes=10-", RequestedRanges::Unsatisfiable),
            ("bytes=10-20", RequestedRanges::Unsatisfiable),
            ("bytes=-0", RequestedRanges::Unsatisfiable),
            (
                "bytes=99999999999999999999-",
                RequestedRanges::Unsatisfiable,
            ),
            ("bytes=5-3", RequestedRanges::Whole),
            ("bytes=a-b", RequestedRanges::Whole),
            ("bytes=", RequestedRanges::Whole),
            ("bytes=-", RequestedRanges::Whole),
            ("bytes=1", RequestedRanges::Whole),
            ("bytes=1-2-3", RequestedRanges::Whole),
            ("bytes=+1-2", RequestedRanges::Whole),
            ("lines=0-1", RequestedRanges::Whole),
            ("bytes 0-1", RequestedRanges::Whole),
        ] {
            assert_eq!(of_ten(field), expected, "{field}");
        }
        assert_eq!(parse_ranges("bytes=0-", 0), RequestedRanges::Unsatisfiable);
        assert_eq!(parse_ranges("bytes=-5", 0), RequestedRanges::Unsatisfiable);
    }

    proptest::proptest! {
        #[test]
        fn ranges_lie_within_and_apart(field in "bytes=([0-9]{0,3}-[0-9]{0,3},? ?){0,8}", length in 0_u64..400) {
            if let RequestedRanges::Ranges(ranges) = parse_ranges(&field, length) {
                let mut bytes = std::collections::BTreeSet::new();
                for range in &ranges {
                    proptest::prop_assert!(range.start < range.end && range.end <= length);
                    // No byte is sent twice.
                    proptest::prop_assert!(range.clone().all(|byte| bytes.insert(byte)));
                }
            }
        }
    }

    #[test]
    fn ranges_are_bounded() {
        let field = |count: usize| {
            let ranges: Vec<_> = (0..count).map(|n| format!("{0}-{0}", 2 * n)).collect();
            format!("bytes={}", ranges.join(","))
        };
        let most = parse_ranges(&field(limits::HTTP_RANGES), 10_000);
        assert!(matches!(most, RequestedRanges::Ranges(all) if all.len() == limits::HTTP_RANGES));
        let more = parse_ranges(&field(limits::HTTP_RANGES + 1), 10_000);
        assert_eq!(more, RequestedRanges::Unsatisfiable);
    }
}
