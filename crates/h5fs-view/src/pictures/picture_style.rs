//! Reading the appearance of an array from its attributes in the file.

use std::sync::Arc;

use h5fs_conventions::dimensions::{is_scale, scale_from_list};
use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::{
    attribute_integers, attribute_text, attribute_texts, reference_target_at,
};
use h5fs_reader::model::{Container, Node, NodeId};

use crate::elements::element_type;
use crate::pictures::appearance::{Appearance, Interlace, Origin};
use crate::pictures::georeference::GeoReference;
use crate::pictures::image::{Image, PixelKind, PixelType};
use crate::pictures::palette::Palette;

/// The appearance of a picture, together with its palette.
#[derive(Debug, Clone, Default)]
pub struct PictureStyle {
    /// The meaning of the samples, and the corner of the first pixel.
    pub appearance: Appearance,
    /// The colours of the pixels' numbers; `None` if the numbers are no indices of colours.
    pub palette: Option<Palette>,
    /// Where the pixels are on the earth, if this was read.
    pub georeference: Option<GeoReference>,
}

impl PictureStyle {
    /// Reads the appearance of the part that `selector` picks from an array. An empty selector
    /// picks the whole array.
    ///
    /// # Errors
    /// Fails if the attributes or the palette cannot be read.
    pub fn read(
        container: &dyn Container,
        engine: &Arc<Engine>,
        node: &Node,
        selector: &[u8],
        cancel: &CancelToken,
    ) -> Result<Self> {
        let appearance = read_appearance(container, node)?;
        Self::read_part((container, engine), node, appearance, selector, cancel)
    }

    /// Like [`read`](Self::read), if the appearance `whole` of the whole array is already known.
    ///
    /// # Errors
    /// Fails as [`read`](Self::read) does.
    pub fn read_part(
        (container, engine): (&dyn Container, &Arc<Engine>),
        node: &Node,
        whole: Appearance,
        selector: &[u8],
        cancel: &CancelToken,
    ) -> Result<Self> {
        let rank = number_type(node)?.map_or(0, |(_, dims)| dims.len());
        let appearance = whole.for_part(selector, rank);
        let palette = appearance.palette;
        let palette = palette.map(|palette| Palette::read(container, engine, palette, cancel));
        Ok(PictureStyle {
            appearance,
            palette: palette.transpose()?,
            georeference: None,
        })
    }
}

/// Reads the appearance of `node` if it is an array of numbers with rows and columns. Any other
/// node has the default appearance.
///
/// # Errors
/// Fails if an attribute cannot be read, because it may change the appearance.
pub(crate) fn read_appearance(container: &dyn Container, node: &Node) -> Result<Appearance> {
    let mut appearance = Appearance::default();
    let Some((pixel, dims)) = number_type(node)?.filter(|(_, dims)| dims.len() > 1) else {
        return Ok(appearance);
    };
    let id = node.id;
    let class = attribute_text(container, id, b"CLASS")?;
    appearance.is_image = class.is_some_and(|class| class == b"IMAGE");
    appearance.interlace = interlace(container, id, pixel, &dims, appearance.is_image)?;
    if !appearance.is_image {
        return Ok(appearance);
    }
    let corner = attribute_text(container, id, b"DISPLAY_ORIGIN")?;
    appearance.origin = corner.map_or(Origin::default(), |corner| Origin::from_name(&corner));
    if appearance.interlace.is_none() {
        appearance.is_zero_white = is_set(container, id, b"IMAGE_WHITE_IS_ZERO")?;
        if (pixel.kind, pixel.bytes) == (PixelKind::Unsigned, 1) {
            appearance.palette = palette(container, id)?;
        }
    }
    Ok(appearance)
}

/// Returns the pictures of the array `node`. Returns `None` for any other node, and for an array
/// that cannot be drawn.
///
/// # Errors
/// Fails as `read_appearance` does.
pub fn read_image(container: &dyn Container, node: &Node) -> Result<Option<Image>> {
    let Some(array) = node.array() else {
        return Ok(None);
    };
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    let dims = dims.unwrap_or_default();
    if Image::from_datatype(&datatype, &dims, Appearance::default()).is_none() {
        return Ok(None);
    }
    let appearance = read_appearance(container, node)?;
    Ok(Image::from_datatype(&datatype, &dims, appearance))
}

/// Returns the number type and the dimensions of `node`; `None` if it is not an array of numbers.
fn number_type(node: &Node) -> Result<Option<(PixelType, Vec<u64>)>> {
    let Some(array) = node.array() else {
        return Ok(None);
    };
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    Ok(PixelType::from_datatype(&datatype).zip(dims))
}

/// Returns the axis of the colours of an array with dimensions `dims`; `None` if a pixel is a
/// single number.
fn interlace(
    container: &dyn Container,
    node: NodeId,
    pixel: PixelType,
    dims: &[u64],
    is_image: bool,
) -> Result<Option<Interlace>> {
    let mut modes = [Interlace::Pixel, Interlace::Line, Interlace::Plane].into_iter();
    if !modes.any(|mode| mode.has_colour_samples(dims)) {
        return Ok(None);
    }
    let subclass = if is_image {
        attribute_text(container, node, b"IMAGE_SUBCLASS")?
    } else {
        None
    };
    if subclass
        .as_ref()
        .is_some_and(|class| class != b"IMAGE_TRUECOLOR")
    {
        return Ok(None);
    }
    let mode = attribute_text(container, node, b"INTERLACE_MODE")?;
    let mode = match mode.and_then(|mode| Interlace::from_name(&mode)) {
        Some(mode) => Some(mode),
        None if is_image || is_last_axis_of_colours(container, node, pixel, dims)? => {
            Some(Interlace::Pixel)
        }
        None => None,
    };
    Ok(mode.filter(|mode| mode.has_colour_samples(dims)))
}

/// Returns whether the last axis of an array without `CLASS` = `IMAGE` consists of colours.
fn is_last_axis_of_colours(
    container: &dyn Container,
    node: NodeId,
    pixel: PixelType,
    dims: &[u64],
) -> Result<bool> {
    let last = dims.len() - 1;
    if let Some(meaning) = attribute_text(container, node, b"interpretation")? {
        return Ok(meaning.starts_with(b"rgb"));
    }
    let labels = attribute_texts(container, node, b"DIMENSION_LABELS")?.unwrap_or_default();
    if let Some(label) = labels.get(last).filter(|label| !label.is_empty()) {
        let label = label.to_ascii_lowercase();
        let names: [&[u8]; 8] = [
            b"c",
            b"channel",
            b"channels",
            b"color",
            b"colour",
            b"rgb",
            b"rgba",
            b"s",
        ];
        return Ok(names.contains(&&*label));
    }
    let is_of_camera = pixel.kind == PixelKind::Unsigned && pixel.bytes <= 2;
    Ok(is_of_camera
        && scale_from_list(container, node, last)?.is_none()
        && !is_scale(container, node)?)
}

fn is_set(container: &dyn Container, node: NodeId, name: &[u8]) -> Result<bool> {
    let numbers = attribute_integers(container, node, name)?;
    Ok(numbers.is_some_and(|numbers| numbers.first().is_some_and(|&number| number != 0)))
}

/// Returns the node of an image's first palette, if its numbers are palette indices.
fn palette(container: &dyn Container, node: NodeId) -> Result<Option<NodeId>> {
    let subclass = attribute_text(container, node, b"IMAGE_SUBCLASS")?;
    match subclass.as_deref() {
        None | Some(b"IMAGE_INDEXED") => reference_target_at(container, node, b"PALETTE", 0),
        Some(_) => Ok(None),
    }
}
