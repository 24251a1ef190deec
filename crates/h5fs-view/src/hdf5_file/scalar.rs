//! A scalar of an ASDF tree as a dataset of the computed file.

use h5fs_reader::model::datatype::{ByteOrder, Charset, Class, StringPadding};
use h5fs_reader::model::{Datatype, Scalar, ScalarValue, Shape};

/// A dataset of one element, whose bytes are part of the metadata.
pub(super) struct ScalarDataset {
    pub(super) datatype: Datatype,
    pub(super) shape: Shape,
    pub(super) element: Vec<u8>,
}

impl ScalarDataset {
    /// Returns the dataset for a scalar: an integer of 64 bits, a double, a complex number of two
    /// doubles, h5py's boolean, or a string. Dates, binary data and larger integers are strings.
    /// The dataset of null is empty.
    pub(super) fn from_scalar(scalar: &Scalar) -> Self {
        let text = || Self::text(scalar.text.as_bytes());
        let double = || Datatype::ieee(8, ByteOrder::Little);
        match &scalar.value {
            ScalarValue::Null => ScalarDataset {
                shape: Shape::Null,
                ..Self::single(double(), Vec::new())
            },
            ScalarValue::Bool(value) => {
                let boolean = Datatype {
                    size: 1,
                    class: Class::Bool,
                };
                Self::single(boolean, vec![(*value).into()])
            }
            ScalarValue::Int(digits) => match (digits.parse::<i64>(), digits.parse::<u64>()) {
                (Ok(number), _) => Self::single(
                    Datatype::integer(8, true, ByteOrder::Little),
                    number.to_le_bytes().to_vec(),
                ),
                (_, Ok(number)) => Self::single(
                    Datatype::integer(8, false, ByteOrder::Little),
                    number.to_le_bytes().to_vec(),
                ),
                _ => Self::text(digits.as_bytes()),
            },
            ScalarValue::Float(number) => Self::single(double(), number.to_le_bytes().to_vec()),
            ScalarValue::Complex(real, imaginary) => {
                let complex = Datatype {
                    size: 16,
                    class: Class::Complex(Box::new(double())),
                };
                let parts = [real.to_le_bytes(), imaginary.to_le_bytes()].concat();
                Self::single(complex, parts)
            }
            ScalarValue::Timestamp | ScalarValue::Binary | ScalarValue::String => text(),
        }
    }

    /// Returns the dataset of a text, which has at least one byte.
    fn text(text: &[u8]) -> Self {
        let element = if text.is_empty() { b"\0" } else { text }.to_vec();
        Self::single(text_datatype(element.len()), element)
    }

    fn single(datatype: Datatype, element: Vec<u8>) -> Self {
        ScalarDataset {
            datatype,
            shape: Shape::fixed(Vec::new()),
            element,
        }
    }
}

/// Returns the type of a UTF-8 text of `length` bytes.
pub(super) fn text_datatype(length: usize) -> Datatype {
    Datatype {
        size: u32::try_from(length).unwrap_or(u32::MAX),
        class: Class::String {
            padding: StringPadding::NullPadded,
            charset: Charset::Utf8,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(text: &str, value: ScalarValue) -> ScalarDataset {
        let text = text.to_owned();
        ScalarDataset::from_scalar(&Scalar { text, value })
    }

    #[test]
    fn a_scalar_has_the_type_of_its_value() {
        let number = dataset("-2", ScalarValue::Int("-2".to_owned()));
        assert_eq!(number.element, (-2_i64).to_le_bytes());
        let large = "18446744073709551615";
        let number = dataset(large, ScalarValue::Int(large.to_owned()));
        assert_eq!(number.element, [0xff; 8]);
        let larger = "18446744073709551616";
        let number = dataset(larger, ScalarValue::Int(larger.to_owned()));
        assert_eq!(number.element, larger.as_bytes());
        assert_eq!(dataset("true", ScalarValue::Bool(true)).element, [1]);
        assert_eq!(dataset("", ScalarValue::Null).shape, Shape::Null);
        assert_eq!(dataset("", ScalarValue::String).element, b"\0");
    }
}
