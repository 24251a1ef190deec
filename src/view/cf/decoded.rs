//! The decoded elements of a variable, as bytes.

use crate::array::{Bytes, CancelToken};
use crate::error::{Error, Result};
use crate::model::Datatype;
use crate::model::datatype::Class;
use crate::model::shape::product;
use crate::view::View;
use crate::view::cf::decoding::Decoding;
use crate::view::cf::variable::Variable;
use crate::view::elements::Elements;
use crate::view::npy::{self, Npy};
use crate::wire::{to_u64, to_usize};

/// Decodes the elements that a range touches when it is read.
struct Decoded {
    content: Box<dyn View>,
    decoding: Decoding,
    count: u64,
    /// Bytes of an element as it is stored.
    stored_size: u64,
    /// Bytes of a decoded element.
    size: u64,
}

/// Bytes of stored elements that are decoded at a time.
const BATCH: u64 = 256 << 10;

/// The NumPy file of `variable`, or of a selection from it, the elements of which are `stored`;
/// `None` where NumPy has no such type.
///
/// # Errors
/// `Limit` where it has more bytes than a file can.
pub(crate) fn npy(variable: Variable, stored: Elements) -> Result<Option<Npy>> {
    let decoding = variable.decoding;
    let stored = decoding.joined(stored)?;
    let Some((descr, size)) = decoding.numpy_type(&stored.datatype) else {
        return Ok(None);
    };
    let Some(dims) = stored.dims else {
        return Ok(None);
    };
    let content: Box<dyn View> = match decoding.is_plain() {
        true => stored.content,
        false => Box::new(Decoded {
            count: product(&dims)?,
            stored_size: stored.datatype.size.into(),
            size: size.into(),
            content: stored.content,
            decoding,
        }),
    };
    let class = Class::Opaque { tag: Vec::new() };
    let elements = Elements {
        datatype: Datatype { size, class },
        dims: Some(dims),
        content,
    };
    Npy::of_type(&descr, elements)
}

/// Bytes of that file of the whole variable, without a look at its elements; `None` where there is
/// none.
///
/// # Errors
/// As [`npy`].
pub(crate) fn npy_length(variable: &Variable) -> Result<Option<u64>> {
    let dims = variable.array.shape.dims();
    let joined = variable
        .decoding
        .joined_type(&variable.array.datatype, dims)?;
    match variable.decoding.numpy_type(&joined) {
        Some((descr, size)) => npy::length_of_type(&descr, size, &variable.dims()),
        None => Ok(None),
    }
}

impl View for Decoded {
    fn length(&self) -> Option<u64> {
        Some(self.count.saturating_mul(self.size))
    }

    fn read_at(&self, offset: u64, length: usize) -> Result<Bytes> {
        self.read_for(offset, length, &CancelToken::default())
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let all = self.count.saturating_mul(self.size);
        let end = offset.saturating_add(to_u64(length)).min(all);
        if offset >= end {
            return Ok(Bytes::from(Vec::new()));
        }
        let batch = (BATCH / self.stored_size.max(1)).max(1);
        let (mut first, last) = (offset / self.size, end.div_ceil(self.size));
        let before = to_usize(offset - first * self.size)?;
        let mut out = Vec::with_capacity(to_usize((last - first) * self.size)?);
        while first < last {
            let count = batch.min(last - first);
            let stored = to_usize(count * self.stored_size)?;
            let place = first * self.stored_size;
            let bytes = self.content.read_for(place, stored, cancel)?;
            if bytes.len() != stored {
                return Err(Error::corrupt("array: fewer elements than its shape", None));
            }
            for element in bytes.chunks_exact(to_usize(self.stored_size)?) {
                self.decoding.decode(element, &mut out)?;
            }
            first += count;
        }
        out.truncate(before + to_usize(end - offset)?);
        out.drain(..before);
        Ok(out.into())
    }

    fn is_given_up(&self) -> bool {
        self.content.is_given_up()
    }
}
