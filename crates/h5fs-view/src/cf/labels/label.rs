//! The values of a coordinate, and the labels that a selector compares with them.

use std::cmp::Ordering;

use h5fs_conventions::packing::Packing;
use h5fs_conventions::stored_type::ExactNumber;
use h5fs_conventions::time::TimeUnits;
use h5fs_conventions::time::period::{Instant, TimeResolution};
use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::value::TextContext;

use crate::cf::decoding::Decoding;

/// A decoded value of a coordinate.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CoordinateValue {
    /// A number that is not NaN.
    Number(ExactNumber),
    Time(Instant),
    Text(Vec<u8>),
}

/// A value in a selector. A time such as `2020-03` stands for all times of a period.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) low: CoordinateValue,
    pub(super) high: CoordinateValue,
    /// The resolution of a time.
    pub(super) resolution: Option<TimeResolution>,
}

/// The kind of a coordinate's values.
pub(super) enum LabelKind<'a> {
    Numbers(&'a Packing),
    Times(&'a Packing, &'a TimeUnits),
    /// Texts, or the characters of texts.
    Texts(&'a Decoding),
}

impl CoordinateValue {
    /// Compares two values of the same coordinate.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let order = match (self, other) {
            (CoordinateValue::Number(a), CoordinateValue::Number(b)) => a.compare(*b),
            (CoordinateValue::Time(a), CoordinateValue::Time(b)) => Some(a.cmp(b)),
            (CoordinateValue::Text(a), CoordinateValue::Text(b)) => Some(a.cmp(b)),
            _ => None,
        };
        order.unwrap_or(Ordering::Equal)
    }

    /// Returns the distance between two numbers or times of the same coordinate, computed in the
    /// type of the coordinate, as pandas does.
    pub(super) fn distance(&self, other: &Self, is_single: bool) -> Option<ExactNumber> {
        match (self, other) {
            (CoordinateValue::Time(a), CoordinateValue::Time(b)) => {
                Some(ExactNumber::Integer((a - b).abs()))
            }
            (CoordinateValue::Number(a), CoordinateValue::Number(b)) => {
                let difference = a.as_integer().zip(b.as_integer());
                Some(match difference.and_then(|(a, b)| a.checked_sub(b)) {
                    Some(difference) => ExactNumber::Integer(difference.abs()),
                    // The difference of two numbers of single precision is rounded to it.
                    None if is_single => {
                        let difference = a.as_f64() as f32 - b.as_f64() as f32;
                        ExactNumber::Real(difference.abs().into())
                    }
                    None => ExactNumber::Real((a.as_f64() - b.as_f64()).abs()),
                })
            }
            _ => None,
        }
    }
}

impl<'a> LabelKind<'a> {
    /// Returns the kind of the values that `decoding` decodes; `None` for booleans, which have no
    /// labels.
    pub(super) fn new(decoding: &'a Decoding) -> Option<Self> {
        match decoding {
            Decoding::Numbers(packing) => Some(LabelKind::Numbers(packing)),
            Decoding::Times(packing, units) => Some(LabelKind::Times(packing, units)),
            Decoding::Texts(_) | Decoding::Characters => Some(LabelKind::Texts(decoding)),
            Decoding::Booleans(_) => None,
        }
    }

    /// Returns whether the decoded values are floating-point numbers of at most single precision.
    pub(super) fn is_single(&self) -> bool {
        match self {
            LabelKind::Numbers(packing) => {
                let datatype = packing.datatype();
                matches!(datatype.class, Class::Float(_)) && datatype.size <= 4
            }
            _ => false,
        }
    }

    /// Returns whether `datatype64` of NumPy lacks the calendar of the times. xarray then treats
    /// every text of a time as a period.
    pub(super) fn has_only_periods(&self) -> bool {
        matches!(self, LabelKind::Times(_, units) if units.datetime64_precision().is_none())
    }

    /// Decodes an element; `None` for a missing value.
    ///
    /// # Errors
    /// `Limit` for a time out of range. Fails if a text cannot be read.
    pub(super) fn decode(
        &self,
        element: &[u8],
        context: &TextContext<'_>,
    ) -> Result<Option<CoordinateValue>> {
        Ok(match self {
            LabelKind::Numbers(packing) => {
                let number = packing.decode_number(element);
                let number = number.filter(|number| !number.is_nan());
                number.map(CoordinateValue::Number)
            }
            LabelKind::Times(packing, units) => match packing.decode_number(element) {
                Some(number) => units.convert_to_instant(number)?.map(CoordinateValue::Time),
                None => None,
            },
            LabelKind::Texts(decoding) => {
                let mut text = Vec::new();
                decoding.write_text(element, context, &mut text)?;
                Some(CoordinateValue::Text(text))
            }
        })
    }

    /// Parses a label.
    ///
    /// # Errors
    /// Fails with the reason if no coordinate of this kind can have the value.
    pub(super) fn parse_label(&self, text: &[u8]) -> std::result::Result<Label, String> {
        let shown = || String::from_utf8_lossy(text);
        let of_value = |value: CoordinateValue| Label {
            low: value.clone(),
            high: value,
            resolution: None,
        };
        match self {
            LabelKind::Numbers(_) => {
                let number = self.parse_number(text);
                let number = number.ok_or_else(|| format!("`{}` is not a number", shown()))?;
                Ok(of_value(CoordinateValue::Number(number)))
            }
            LabelKind::Times(_, units) => {
                let period = units.parse_period(text);
                let calendar = units.calendar_name();
                let period = period.ok_or_else(|| {
                    format!(
                        "`{}` is not a time of the calendar {calendar}, such as 2020-03 or \
                         2020-03-05T12:30",
                        shown()
                    )
                })?;
                Ok(Label {
                    low: CoordinateValue::Time(period.first),
                    high: CoordinateValue::Time(period.last),
                    resolution: Some(period.resolution),
                })
            }
            LabelKind::Texts(_) => Ok(of_value(CoordinateValue::Text(text.to_vec()))),
        }
    }

    /// Parses a number, and rounds it to the type of the coordinate as xarray does. Returns `None`
    /// for NaN, which no value equals, and for a text that is not a number.
    fn parse_number(&self, text: &[u8]) -> Option<ExactNumber> {
        let text = str::from_utf8(text).ok()?;
        let integer = text.parse().ok().map(ExactNumber::Integer);
        let number = integer.or_else(|| text.parse().ok().map(ExactNumber::Real))?;
        let number = match self {
            _ if self.is_single() => ExactNumber::Real(f64::from(number.as_f64() as f32)),
            _ => number,
        };
        (!number.is_nan()).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use h5fs_conventions::packing::PackingAttributes;
    use h5fs_conventions::stored_type::StoredType;
    use h5fs_reader::model::Datatype;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::int;

    use super::*;

    fn packing(datatype: &Datatype) -> Packing {
        let stored = StoredType::new(datatype).unwrap();
        Packing::new(stored, &PackingAttributes::default())
    }

    fn number(datatype: &Datatype, text: &str) -> Option<ExactNumber> {
        LabelKind::Numbers(&packing(datatype)).parse_number(text.as_bytes())
    }

    #[test]
    fn numbers_are_rounded_to_single_precision_only() {
        let (single, double) = (
            Datatype::ieee(4, ByteOrder::Big),
            Datatype::ieee(8, ByteOrder::Little),
        );
        let rounded = f64::from(0.1_f32);
        assert_eq!(number(&single, "0.1"), Some(ExactNumber::Real(rounded)));
        assert_eq!(number(&single, "60"), Some(ExactNumber::Real(60.0)));
        assert_eq!(number(&double, "0.1"), Some(ExactNumber::Real(0.1)));
        assert_eq!(number(&int(8), "-60"), Some(ExactNumber::Integer(-60)));
        assert_eq!(number(&int(8), "1e3"), Some(ExactNumber::Real(1000.0)));
        let large = i128::from(i64::MAX);
        assert_eq!(
            number(&int(8), &large.to_string()),
            Some(ExactNumber::Integer(large))
        );
        for text in ["nan", "NaN", "", "1,5", "north", "0x10", "1 "] {
            assert_eq!(number(&double, text), None, "{text}");
        }
    }

    #[test]
    fn single_distances_are_rounded() {
        let value = |number: f32| CoordinateValue::Number(ExactNumber::Real(number.into()));
        let (a, b) = (value(0.3), value(0.1));
        let exact = f64::from(0.3_f32) - f64::from(0.1_f32);
        assert_eq!(a.distance(&b, false), Some(ExactNumber::Real(exact)));
        let single = f64::from(0.3_f32 - 0.1_f32);
        assert_eq!(b.distance(&a, true), Some(ExactNumber::Real(single)));
        let time = CoordinateValue::Time;
        assert_eq!(
            time(3).distance(&time(-4), false),
            Some(ExactNumber::Integer(7))
        );
        let text = |text: &str| CoordinateValue::Text(text.as_bytes().to_vec());
        assert_eq!(text("a").distance(&text("b"), false), None);
    }
}
