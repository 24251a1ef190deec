//! The value of elements that are not stored.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::Array;
use crate::model::array::{Fill, Storage};

/// The fill value of an array, as the bytes of one element. `None` if every byte is zero.
#[derive(Debug)]
pub(in crate::array) struct FillValue(Option<Arc<[u8]>>);

impl FillValue {
    /// Returns the fill value of `array`.
    ///
    /// # Errors
    /// `Corrupt` if the fill value is needed and its size differs from the element size.
    pub(in crate::array) fn from_array(array: &Array) -> Result<Self> {
        let size = array.datatype.size;
        let is_needed = matches!(
            array.storage,
            Ok(Storage::Fill | Storage::Chunked(_) | Storage::Virtual(_))
        );
        let element = match &array.fill {
            Fill::Value(element) if is_needed => element,
            _ => return Ok(FillValue(None)),
        };
        if element.len() as u64 != u64::from(size) {
            let what = format!("fill value of {} bytes, elements of {size}", element.len());
            return Err(Error::corrupt(what, None));
        }
        Ok(FillValue(
            (!array.fill.is_zero()).then(|| Arc::clone(element)),
        ))
    }

    /// Returns whether every byte of the fill value is zero.
    pub(in crate::array) fn is_zero(&self) -> bool {
        self.0.is_none()
    }

    /// Returns bytes `offset..end` of an array in which every element is the fill value.
    pub(in crate::array) fn filled_bytes(&self, offset: u64, end: u64) -> Vec<u8> {
        let mut bytes = vec![0; (end - offset) as usize];
        if !self.is_zero() {
            self.fill(offset, &mut bytes);
        }
        bytes
    }

    /// Writes the fill value to every element of `target`, which begins at byte `offset` of the
    /// array.
    pub(in crate::array) fn fill(&self, offset: u64, target: &mut [u8]) {
        let value = match self.0.as_deref() {
            None => return target.fill(0),
            Some([byte]) => return target.fill(*byte),
            Some(value) => value,
        };
        let phase = (offset % value.len() as u64) as usize;
        let head = target.len().min(value.len() - phase);
        let (first, rest) = target.split_at_mut(head);
        first.copy_from_slice(&value[phase..phase + head]);
        let mut rest = rest.chunks_exact_mut(value.len());
        for element in &mut rest {
            element.copy_from_slice(value);
        }
        let tail = rest.into_remainder();
        tail.copy_from_slice(&value[..tail.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_begins_inside_an_element() {
        let value = FillValue(Some(b"abc"[..].into()));
        assert_eq!(value.filled_bytes(5, 13), b"cabcabca");
        assert_eq!(value.filled_bytes(7, 8), b"b");
        assert_eq!(FillValue(None).filled_bytes(7, 9), [0, 0]);
    }
}
