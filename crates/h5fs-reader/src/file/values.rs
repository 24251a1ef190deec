//! Elements with their datatype and shape.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::model::Container;
use crate::model::attribute_value::decode_strings;
use crate::model::datatype::{Class, Datatype};
use crate::model::number::{self, Integer};
use crate::wire::to_usize;

/// The elements that were read from a dataset, a selection or an attribute.
#[derive(Clone)]
#[non_exhaustive]
pub struct Values {
    /// The type of one element.
    pub datatype: Datatype,
    /// The dimensions, slowest first. Empty for a single element.
    pub shape: Vec<u64>,
    /// The elements in the encoding of the file, in C order.
    pub bytes: Vec<u8>,
    /// The file that contains the targets of variable-length elements.
    pub(super) container: Arc<dyn Container>,
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Values");
        debug.field("datatype", &self.datatype);
        debug.field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl Values {
    /// Returns the elements of an integer or floating-point type, each as the nearest 64-bit float.
    ///
    /// # Errors
    /// `Unsupported` for another type, or for a number out of the range of a 64-bit float.
    pub fn numbers(&self) -> Result<Vec<f64>> {
        let elements = self.elements()?;
        let numbers: Option<Vec<f64>> = match &self.datatype.class {
            Class::Integer {
                order,
                signed,
                bits,
            } => elements
                .map(|element| number::decode_integer(element, *order, *signed, *bits).map(nearest))
                .collect(),
            Class::Float(format) => elements
                .map(|element| number::float_value(element, format)?.as_f64())
                .collect(),
            _ => None,
        };
        numbers.ok_or_else(|| Error::unsupported("numbers of this datatype", None))
    }

    /// Returns the elements of a string type.
    ///
    /// # Errors
    /// `Unsupported` for another type or for text that is not UTF-8. `Limit` for texts that take
    /// more than [`limits::ATTRIBUTE_TEXT`](crate::limits::ATTRIBUTE_TEXT) bytes together.
    pub fn texts(&self) -> Result<Vec<String>> {
        let (Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_)) =
            self.datatype.class
        else {
            return Err(Error::unsupported("texts of this datatype", None));
        };
        let texts = decode_strings(&*self.container, &self.datatype, &self.bytes)?;
        let as_utf8 = |text| {
            String::from_utf8(text)
                .map_err(|_| Error::unsupported("a text that is not UTF-8", None))
        };
        texts.into_iter().map(as_utf8).collect()
    }

    fn elements(&self) -> Result<impl Iterator<Item = &[u8]>> {
        let size = to_usize(self.datatype.size.into())?;
        Ok(self.bytes.chunks_exact(size.max(1)))
    }
}

#[expect(
    clippy::as_conversions,
    reason = "rounds to the nearest float, which no other conversion does"
)]
fn nearest(number: Integer) -> f64 {
    match number {
        Integer::Signed(number) => number as f64,
        Integer::Unsigned(number) => number as f64,
    }
}
