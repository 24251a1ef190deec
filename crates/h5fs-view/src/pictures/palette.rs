//! The colours of palette indices (HDF5 Image and Palette Specification 1.2, section 4).

use std::sync::Arc;

use h5fs_reader::array::{CancelToken, Engine, Reader};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{Container, NodeId};

use crate::elements::Elements;
use crate::pictures::image::{PixelKind, PixelType};

/// Number of colours in a palette: one for each value of a byte.
const ENTRIES: usize = 256;

/// A palette: red, green and blue for each index. Indices without an entry in the file are black.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Palette(Box<[[u8; 3]; ENTRIES]>);

impl Palette {
    /// Reads the palette in the array `node`.
    ///
    /// # Errors
    /// `Unsupported` if the array does not contain bytes of red, green and blue. Fails if the array
    /// cannot be read.
    pub fn read(
        container: &dyn Container,
        engine: &Arc<Engine>,
        node: NodeId,
        cancel: &CancelToken,
    ) -> Result<Self> {
        let unfit = || {
            Error::unsupported(
                "a palette that does not consist of red, green and blue bytes",
                None,
            )
        };
        let model = attribute_text(container, node, b"PAL_COLORMODEL")?;
        let kind = attribute_text(container, node, b"PAL_TYPE")?;
        let is_plain = model.is_none_or(|model| model == b"RGB")
            && kind.is_none_or(|kind| kind == b"STANDARD8");
        let palette = container.node(node)?;
        let array = palette.array().filter(|_| is_plain).ok_or_else(unfit)?;
        if let Err(error) = &array.storage {
            return Err(error.clone());
        }
        let elements = Elements::from_reader(Arc::new(Reader::new(engine, Arc::clone(array))?))?;
        let pixel =
            PixelType::from_datatype(&elements.datatype).map(|pixel| (pixel.kind, pixel.bytes));
        match elements.dims.as_deref() {
            Some(&[entries @ 1..=256, 3]) if pixel == Some((PixelKind::Unsigned, 1)) => {
                let bytes = elements.read(0, entries * 3, cancel)?;
                Ok(Self::from_colours(bytes.as_chunks().0))
            }
            _ => Err(unfit()),
        }
    }

    fn from_colours(known: &[[u8; 3]]) -> Self {
        let mut entries = Box::new([[0; 3]; ENTRIES]);
        for (entry, colour) in entries.iter_mut().zip(known) {
            *entry = *colour;
        }
        Palette(entries)
    }

    /// Returns the palette as bytes: red, green and blue of each index.
    pub fn bytes(&self) -> &[u8] {
        self.0.as_flattened()
    }

    /// Returns the palette as a TIFF `ColorMap`: all red values, then all green, then all blue,
    /// with 16 bits each ("TIFF 6.0", section 5).
    pub(crate) fn tiff_color_map(&self) -> Vec<u16> {
        let plane = |colour: usize| {
            self.0
                .iter()
                .map(move |entry| u16::from(entry[colour]) * 257)
        };
        (0..3).flat_map(plane).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_colour_are_black() {
        let palette = Palette::from_colours(&[[255, 0, 1], [2, 3, 4]]);
        assert_eq!(palette.bytes()[..7], [255, 0, 1, 2, 3, 4, 0]);
        assert_eq!(palette.bytes().len(), 768);
        let planes = palette.tiff_color_map();
        assert_eq!((planes.len(), planes[0], planes[1]), (768, 65535, 514));
        assert_eq!((planes[256], planes[513]), (0, 1028));
    }
}
