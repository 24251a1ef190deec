//! Texts as rows of characters, padded with zeros.
//!
//! A text of fixed length becomes as many characters as it has bytes. Texts of variable length
//! become rows of the length of the longest text, so they are all read once to find that length.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::Container;
use h5fs_reader::model::datatype::{Charset, Class, Datatype, StringPadding};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::converted::Conversion;
use crate::elements::{Elements, formatting_cost};
use crate::limits;
use crate::text_files::bounds::TextLengthLimits;

/// Number of texts of a variable whose lengths are read without a slot for heavy work.
const FEW_TEXTS: u64 = 4096;

/// Returns the number of characters for each text of `datatype`. Returns `None` if the texts must be
/// read to find the number.
pub(super) fn fixed_width(datatype: &Datatype) -> Option<u64> {
    match &datatype.class {
        Class::VariableString { .. } => None,
        _ => Some(u64::from(datatype.size).max(1)),
    }
}

/// Returns whether the texts of a datatype are in UTF-8.
pub(super) fn is_utf8(datatype: &Datatype) -> bool {
    match &datatype.class {
        Class::String { charset, .. } | Class::VariableString { charset, .. } => {
            *charset == Charset::Utf8
        }
        _ => matches!(datatype.class, Class::Ucs4(_)),
    }
}

/// Reads all texts of variable length in `elements`. Returns the length of the longest one in bytes,
/// at least 1.
///
/// # Errors
/// `Limit` for too many texts, or for a text that is too long. Fails if a text cannot be read.
pub(super) fn longest_text(
    elements: &Elements,
    container: &dyn Container,
    bounds: &TextLengthLimits,
) -> Result<u64> {
    let count = elements.dims.as_deref().map_or(Ok(0), product)?;
    let cost = count.saturating_mul(formatting_cost(&elements.datatype));
    let cost = cost.saturating_add(elements.content.chunk_values());
    let what = "texts of a netCDF variable";
    Error::check_limit(cost, limits::COUNTED_VALUES, what)?;
    if count > FEW_TEXTS {
        bounds.cancel().require_heavy_slot()?;
    }
    let size = to_usize(elements.datatype.size.into())?.max(1);
    let ends_at_nul = matches!(
        elements.datatype.class,
        Class::VariableString {
            padding: StringPadding::NullTerminated,
            ..
        }
    );
    let (mut longest, mut first) = (1, 0);
    while first < count {
        let next = first + elements.batch_elements().min(count - first);
        let batch = elements.read(first, next - first, bounds.cancel())?;
        container.prefetch_variable_length(&batch, size);
        for element in batch.chunks_exact(size) {
            let length = if ends_at_nul {
                container.text_length(element)?
            } else {
                container.variable_length_bytes(element, 1)?.unwrap_or(0)
            };
            longest = length.max(longest);
        }
        Error::check_limit(
            longest,
            to_u64(limits::NETCDF_TEXT),
            "bytes of a netCDF text",
        )?;
        first = bounds.cancel().next_batch(first, next)?;
        bounds.add_bytes(0)?;
    }
    Ok(longest)
}

/// The conversion of a stored text to a row of characters.
pub(super) struct TextConversion {
    writer: ValueWriter,
    container: Arc<dyn Container>,
    /// Number of characters of a row.
    width: usize,
}

impl TextConversion {
    /// Creates the conversion of texts of `datatype` to rows of `width` characters. `container`
    /// follows the pointers of variable-length texts.
    ///
    /// # Errors
    /// `Limit` if a row is longer than memory can be.
    pub(super) fn new(
        datatype: &Datatype,
        container: Arc<dyn Container>,
        width: u64,
    ) -> Result<Self> {
        Ok(TextConversion {
            writer: ValueWriter::new(datatype)?,
            container,
            width: to_usize(width)?,
        })
    }
}

impl Conversion for TextConversion {
    fn convert(&self, element: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let most = self.width.max(limits::NETCDF_TEXT);
        let context = TextContext::new(&*self.container, &|_| Ok(None), most);
        let mut text = Vec::new();
        self.writer.write_text(element, &context, &mut text)?;
        if text.len() > self.width {
            return Err(Error::corrupt("text: longer than before", None));
        }
        text.resize(self.width, 0);
        out.extend_from_slice(&text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::array::CancelToken;
    use h5fs_reader::testing::{Heap, type_of};

    use crate::text_files::text::InMemoryContent;

    fn variable(padding: StringPadding) -> Datatype {
        let charset = Charset::Utf8;
        type_of(1, Class::VariableString { padding, charset })
    }

    fn longest(texts: Vec<Vec<u8>>, padding: StringPadding) -> Result<u64> {
        let pointers: Vec<u8> = (0..=texts.len()).map(|number| number as u8).collect();
        let elements = Elements {
            datatype: variable(padding),
            dims: Some(vec![to_u64(pointers.len())]),
            content: Box::new(InMemoryContent::new(pointers)),
        };
        let bounds = TextLengthLimits::new(CancelToken::default(), u64::MAX);
        longest_text(&elements, &Heap(texts), &bounds)
    }

    #[test]
    fn the_longest_text_counts() {
        let texts = || vec![b"ab".to_vec(), b"abc\0defgh".to_vec(), Vec::new()];
        assert_eq!(longest(texts(), StringPadding::NullTerminated), Ok(3));
        assert_eq!(longest(texts(), StringPadding::NullPadded), Ok(9));
        assert_eq!(longest(Vec::new(), StringPadding::NullTerminated), Ok(1));
    }

    #[test]
    fn a_text_has_a_limit() {
        let texts = |length| vec![vec![b'x'; length]];
        let most = limits::NETCDF_TEXT;
        assert_eq!(
            longest(texts(most), StringPadding::NullPadded),
            Ok(to_u64(most))
        );
        let longer = longest(texts(most + 1), StringPadding::NullPadded);
        assert!(matches!(longer, Err(Error::Limit { .. })));
    }

    #[test]
    fn rows_are_padded_with_zeros() {
        let row = |datatype: &Datatype, element: &[u8]| {
            let heap = Heap(vec!["\u{e9}a".as_bytes().to_vec()]);
            let conversion = TextConversion::new(datatype, Arc::new(heap), 4).unwrap();
            let mut out = Vec::new();
            conversion.convert(element, &mut out).map(|()| out)
        };
        let charset = Charset::Ascii;
        let spaces = Class::String {
            padding: StringPadding::SpacePadded,
            charset,
        };
        assert_eq!(row(&type_of(4, spaces), b"a b ").unwrap(), b"a b\0");
        let pointer = variable(StringPadding::NullTerminated);
        assert_eq!(row(&pointer, &[0]).unwrap(), "\u{e9}a\0".as_bytes());
        assert_eq!(row(&pointer, &[7]).unwrap(), [0; 4]);
        let wide = Class::String {
            padding: StringPadding::NullPadded,
            charset,
        };
        assert!(row(&type_of(5, wide), b"abcde").is_err());
    }
}
