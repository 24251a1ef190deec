//! The missing elements of an array, which are marked by a mask (in ASDF, the `mask` of an
//! ndarray).

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::number::{self, FloatValue, Integer};
use h5fs_reader::wire::to_usize;

use crate::elements::Elements;

/// The rule that says which elements of an array, or of a selection from it, are missing.
pub enum MissingValues {
    /// Elements that are equal to this number are missing.
    EqualTo(f64),
    /// Elements are missing where the mask is not zero.
    Masked(Mask),
}

/// A mask array. One element of the mask may apply to several elements of the array (broadcasting).
pub struct Mask {
    elements: Elements,
    /// For each dimension of the array, slowest first: the length of the dimension, and the
    /// distance between two neighbours in the mask, in elements. The distance is 0 where the mask
    /// is broadcast.
    steps: Vec<(u64, u64)>,
    /// Whether the mask has one element for each element of the array.
    is_same_shape: bool,
}

impl MissingValues {
    /// Creates the rule that elements equal to the number in `text` are missing.
    ///
    /// # Errors
    /// Fails as `parse_mask_number` does.
    pub fn from_number_text(text: &[u8]) -> Result<Self> {
        parse_mask_number(text).map(MissingValues::EqualTo)
    }

    /// Creates the rule that elements marked by `mask` are missing, for an array of dimensions
    /// `dims`. The mask is broadcast as in NumPy: in dimensions of length 1, and in leading
    /// dimensions that the mask does not have.
    ///
    /// # Errors
    /// `Corrupt` if the dimensions cannot be broadcast.
    pub fn from_mask(mask: Elements, dims: &[u64]) -> Result<Self> {
        let unfit = || Error::corrupt("mask: its shape does not match its array", None);
        let lengths = mask.dims.as_deref().unwrap_or_default();
        let lacking = dims.len().checked_sub(lengths.len()).ok_or_else(unfit)?;
        let mut steps: Vec<_> = dims.iter().map(|&dim| (dim, 0)).collect();
        let mut apart = 1_u64;
        for (step, &length) in steps[lacking..].iter_mut().zip(lengths).rev() {
            match length {
                1 => {}
                length if length == step.0 => step.1 = apart,
                _ => return Err(unfit()),
            }
            apart = apart.saturating_mul(length);
        }
        Ok(MissingValues::Masked(Mask {
            is_same_shape: *dims == *lengths,
            elements: mask,
            steps,
        }))
    }

    /// Returns, for each of `count` elements of `datatype` starting at element `first`, whether the
    /// element is missing. `bytes` are the stored bytes of these elements.
    ///
    /// # Errors
    /// Fails if the mask cannot be read.
    pub(crate) fn find_missing(
        &self,
        datatype: &Datatype,
        first: u64,
        count: u64,
        bytes: &[u8],
        cancel: &CancelToken,
    ) -> Result<Vec<bool>> {
        match self {
            MissingValues::EqualTo(value) => {
                let size = to_usize(datatype.size.into())?;
                let elements = bytes.chunks_exact(size.max(1));
                let is_equal = |element| is_equal(datatype, element, *value);
                Ok(elements.map(is_equal).collect())
            }
            MissingValues::Masked(mask) => mask.read_mask(first, count, cancel),
        }
    }
}

impl Mask {
    fn read_mask(&self, first: u64, count: u64, cancel: &CancelToken) -> Result<Vec<bool>> {
        let size = to_usize(self.elements.datatype.size.into())?.max(1);
        if self.is_same_shape {
            let bytes = self.elements.read(first, count, cancel)?;
            return Ok(bytes.chunks_exact(size).map(is_nonzero).collect());
        }
        let each = first..first + count;
        each.map(|number| {
            let bytes = self.elements.read(self.mask_element(number), 1, cancel)?;
            Ok(is_nonzero(&bytes))
        })
        .collect()
    }

    /// Returns the number of the mask element that applies to element `number` of the array.
    fn mask_element(&self, number: u64) -> u64 {
        let mut rest = number;
        let mut place = 0;
        for (length, apart) in self.steps.iter().rev() {
            place += rest % length * apart;
            rest /= length;
        }
        place
    }
}

/// Parses the number in the `mask` of an ndarray, which is a text in YAML's notation (`.nan`).
///
/// # Errors
/// `Corrupt` if the text is not a number.
pub(crate) fn parse_mask_number(text: &[u8]) -> Result<f64> {
    let number = str::from_utf8(text).ok().and_then(|text| {
        let text = text.trim();
        let word = text.strip_prefix('.').filter(|word| *word == "nan");
        word.unwrap_or(text).to_ascii_lowercase().parse().ok()
    });
    number.ok_or_else(|| Error::corrupt("mask: its text is not a number", None))
}

fn is_nonzero(element: &[u8]) -> bool {
    element.iter().any(|&byte| byte != 0)
}

/// Returns whether a stored number equals `value`. For a floating-point number, `value` is first
/// rounded to its format, and all NaNs are equal.
fn is_equal(datatype: &Datatype, element: &[u8], value: f64) -> bool {
    match &datatype.class {
        Class::Integer {
            order,
            signed,
            bits,
        } => {
            let stored = number::decode_integer(element, *order, *signed, *bits);
            let whole = value as i128;
            let is_whole = whole as f64 == value;
            is_whole
                && match stored {
                    Some(Integer::Signed(stored)) => stored == whole,
                    Some(Integer::Unsigned(stored)) => i128::try_from(stored) == Ok(whole),
                    None => false,
                }
        }
        Class::Float(format) => match number::float_value(element, format) {
            Some(FloatValue::Single(stored)) => {
                stored == value as f32 || stored.is_nan() && value.is_nan()
            }
            real => real
                .and_then(|real| real.as_f64())
                .is_some_and(|stored| stored == value || stored.is_nan() && value.is_nan()),
        },
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::text::InMemoryContent;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::int;

    fn mask(dims: &[u64], bytes: &[u8]) -> Elements {
        Elements {
            datatype: int(1),
            dims: Some(dims.to_vec()),
            content: Box::new(InMemoryContent::new(bytes.to_vec())),
        }
    }

    /// Expected: `numpy.broadcast_to(mask, (2, 3))[…]`.
    #[test]
    fn a_mask_is_broadcast_over_missing_dimensions() {
        let among = |dims: &[u64], bytes: &[u8]| {
            let missing = MissingValues::from_mask(mask(dims, bytes), &[2, 3]).unwrap();
            missing
                .find_missing(&int(1), 1, 4, &[], &CancelToken::default())
                .unwrap()
        };
        assert_eq!(
            among(&[2, 3], &[0, 1, 0, 0, 2, 0]),
            [true, false, false, true]
        );
        assert_eq!(among(&[3], &[0, 1, 0]), [true, false, false, true]);
        assert_eq!(among(&[2, 1], &[0, 1]), [false, false, true, true]);
        assert_eq!(among(&[], &[1]), [true; 4]);
        assert!(MissingValues::from_mask(mask(&[2], &[0, 0]), &[2, 3]).is_err());
        assert!(MissingValues::from_mask(mask(&[1, 1, 1], &[0]), &[2, 3]).is_err());
    }

    #[test]
    fn missing_values_are_compared_in_the_stored_type() {
        let single = Datatype::ieee(4, ByteOrder::Little);
        let among = |text: &str, datatype: &Datatype, bytes: &[u8]| {
            let missing = MissingValues::from_number_text(text.as_bytes()).unwrap();
            missing
                .find_missing(datatype, 0, 2, bytes, &CancelToken::default())
                .unwrap()
        };
        let bytes = [0.1_f32, f32::NAN].map(f32::to_le_bytes);
        assert_eq!(among("0.1", &single, bytes.as_flattened()), [true, false]);
        assert_eq!(among(".nan", &single, bytes.as_flattened()), [false, true]);
        assert_eq!(among("-1", &int(1), &[255, 1]), [true, false]);
        assert_eq!(among("0.5", &int(1), &[0, 1]), [false, false]);
        assert!(MissingValues::from_number_text(b"none").is_err());
    }
}
