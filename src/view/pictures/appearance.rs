//! What the attributes of an array say about it as a picture: which axis its colours stand along,
//! where its first pixel is shown, what its numbers look like.
//!
//! HDF5 Image and Palette Specification 1.2, sections 3 and 4 (`CLASS`, `IMAGE_SUBCLASS`,
//! `INTERLACE_MODE`, `IMAGE_WHITE_IS_ZERO`, `DISPLAY_ORIGIN`, `PALETTE`); NeXus (`interpretation`);
//! labels of dimensions (H5DS, `DIMENSION_LABELS`). ASDF has none of it.

use std::sync::Arc;

use crate::array::Engine;
use crate::error::{Error, Result};
use crate::model::attribute_value::{integers, target_at, text, texts};
use crate::model::selector::Selector;
use crate::model::{Container, Node, NodeId};
use crate::view::elements::dimensions::{is_scale, listed_at};
use crate::view::elements::opened;
use crate::view::pictures::image::{Image, Kind, Pixel};
use crate::view::pictures::palette::Palette;

/// What the attributes of an array say about it as a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Appearance {
    /// Where the numbers of a pixel stand; `None` where a pixel is one number.
    pub(crate) interlace: Option<Interlace>,
    pub(crate) origin: Origin,
    /// Whether its class is `IMAGE`.
    pub(crate) is_image: bool,
    /// Whether 0 is white.
    pub(crate) is_white_zero: bool,
    /// The array of the colours that its numbers stand for.
    pub(crate) palette: Option<NodeId>,
}

/// The axis along which the numbers of a pixel stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interlace {
    /// The last one: behind rows and columns.
    Pixel,
    /// Between rows and columns.
    Line,
    /// Before rows and columns.
    Plane,
}

/// The corner in which the first pixel is shown: the upper left one, if it is neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) is_below: bool,
    pub(crate) is_right: bool,
}

/// What a picture is to look like, with all that it takes to draw it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    pub(crate) appearance: Appearance,
    pub(crate) palette: Option<Palette>,
}

impl Look {
    /// That of the part that a selector picks from an array, of the whole where it is empty.
    ///
    /// # Errors
    /// Fails if it cannot be read.
    pub(crate) fn of(
        container: &dyn Container,
        engine: &Arc<Engine>,
        node: &Node,
        selector: &[u8],
    ) -> Result<Self> {
        let appearance = Appearance::of(container, node)?;
        Self::of_part((container, engine), node, appearance, selector)
    }

    /// The same, if the whole array looks like this.
    ///
    /// # Errors
    /// Fails as [`of`](Self::of) does.
    pub(crate) fn of_part(
        (container, engine): (&dyn Container, &Arc<Engine>),
        node: &Node,
        whole: Appearance,
        selector: &[u8],
    ) -> Result<Self> {
        let rank = numbers(node)?.map_or(0, |(_, dims)| dims.len());
        let appearance = whole.of_part(selector, rank);
        let palette = appearance.palette;
        let palette = palette.map(|palette| Palette::read(container, engine, palette));
        Ok(Look {
            appearance,
            palette: palette.transpose()?,
        })
    }
}

impl Interlace {
    /// How many axes stand behind that of the colours.
    pub(crate) fn behind(self) -> usize {
        match self {
            Interlace::Pixel => 0,
            Interlace::Line => 1,
            Interlace::Plane => 2,
        }
    }

    fn named(mode: &[u8]) -> Option<Self> {
        match mode {
            b"INTERLACE_PIXEL" => Some(Interlace::Pixel),
            b"INTERLACE_LINE" => Some(Interlace::Line),
            b"INTERLACE_PLANE" => Some(Interlace::Plane),
            _ => None,
        }
    }

    /// Whether an array of `dims` can have three or four colours there.
    fn fits(self, dims: &[u64]) -> bool {
        let colours = dims.iter().rev().nth(self.behind());
        dims.len() > 2 && matches!(colours, Some(3 | 4))
    }
}

impl Origin {
    fn named(corner: &[u8]) -> Self {
        Origin {
            is_below: matches!(corner, b"LL" | b"LR"),
            is_right: matches!(corner, b"UR" | b"LR"),
        }
    }
}

impl Appearance {
    /// What the attributes of `node` say, if it is an array of numbers with rows and columns.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read that may say something else.
    pub(crate) fn of(container: &dyn Container, node: &Node) -> Result<Self> {
        let mut appearance = Appearance::default();
        let Some((pixel, dims)) = numbers(node)?.filter(|(_, dims)| dims.len() > 1) else {
            return Ok(appearance);
        };
        let id = node.id;
        let class = text(container, id, b"CLASS")?;
        appearance.is_image = class.is_some_and(|class| class == b"IMAGE");
        appearance.interlace = interlace(container, id, pixel, &dims, appearance.is_image)?;
        if !appearance.is_image {
            return Ok(appearance);
        }
        let corner = text(container, id, b"DISPLAY_ORIGIN")?;
        appearance.origin = corner.map_or(Origin::default(), |corner| Origin::named(&corner));
        if appearance.interlace.is_none() {
            appearance.is_white_zero = is_set(container, id, b"IMAGE_WHITE_IS_ZERO")?;
            if (pixel.kind, pixel.bytes) == (Kind::Unsigned, 1) {
                appearance.palette = palette(container, id)?;
            }
        }
        Ok(appearance)
    }

    /// That of a part that a selector picks from an array of `rank` dimensions: one without all axes
    /// of the pictures has no colours, and no corner.
    pub(crate) fn of_part(self, selector: &[u8], rank: usize) -> Self {
        if self.has_axes(selector, rank) {
            return self;
        }
        Appearance {
            interlace: None,
            origin: Origin::default(),
            ..self
        }
    }

    /// Whether a part that a selector picks, the whole for an empty one, has all axes of the pictures.
    pub(crate) fn has_axes(self, selector: &[u8], rank: usize) -> bool {
        let axes = if self.interlace.is_some() { 3 } else { 2 };
        let own: Vec<usize> = (rank.saturating_sub(axes)..rank).collect();
        let selector = Selector::parse(selector);
        let kept = selector.map(|selector| selector.dimensions(rank).unwrap_or_default());
        kept.is_none_or(|kept| kept.ends_with(&own))
    }
}

/// The pictures of the object's array; `None` where it has none.
///
/// # Errors
/// Fails as [`Appearance::of`] does.
pub(crate) fn image_of(container: &dyn Container, node: &Node) -> Result<Option<Image>> {
    let Some(array) = node.array() else {
        return Ok(None);
    };
    let (datatype, dims) = opened(&array.datatype, &array.shape)?;
    let dims = dims.unwrap_or_default();
    if Image::of(&datatype, &dims, Appearance::default()).is_none() {
        return Ok(None);
    }
    let appearance = Appearance::of(container, node)?;
    Ok(Image::of(&datatype, &dims, appearance))
}

/// The type and the dimensions of an array of numbers.
fn numbers(node: &Node) -> Result<Option<(Pixel, Vec<u64>)>> {
    let Some(array) = node.array() else {
        return Ok(None);
    };
    let (datatype, dims) = opened(&array.datatype, &array.shape)?;
    Ok(Pixel::of(&datatype).zip(dims))
}

/// Where the colours of an array of `dims` stand.
fn interlace(
    container: &dyn Container,
    node: NodeId,
    pixel: Pixel,
    dims: &[u64],
    is_image: bool,
) -> Result<Option<Interlace>> {
    let mut modes = [Interlace::Pixel, Interlace::Line, Interlace::Plane].into_iter();
    if !modes.any(|mode| mode.fits(dims)) {
        return Ok(None);
    }
    let subclass = if is_image {
        text(container, node, b"IMAGE_SUBCLASS")?
    } else {
        None
    };
    if subclass
        .as_ref()
        .is_some_and(|class| class != b"IMAGE_TRUECOLOR")
    {
        return Ok(None);
    }
    let mode = text(container, node, b"INTERLACE_MODE")?;
    let mode = match mode.and_then(|mode| Interlace::named(&mode)) {
        Some(mode) => Some(mode),
        None if is_image || is_last_of_colours(container, node, pixel, dims)? => {
            Some(Interlace::Pixel)
        }
        None => None,
    };
    Ok(mode.filter(|mode| mode.fits(dims)))
}

/// Whether the last axis of what is no image by its class is one of colours.
fn is_last_of_colours(
    container: &dyn Container,
    node: NodeId,
    pixel: Pixel,
    dims: &[u64],
) -> Result<bool> {
    let last = dims.len() - 1;
    if let Some(meaning) = text(container, node, b"interpretation")? {
        return Ok(meaning.starts_with(b"rgb"));
    }
    let labels = texts(container, node, b"DIMENSION_LABELS")?.unwrap_or_default();
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
    let is_of_camera = pixel.kind == Kind::Unsigned && pixel.bytes <= 2;
    Ok(is_of_camera && listed_at(container, node, last)?.is_none() && !is_scale(container, node)?)
}

fn is_set(container: &dyn Container, node: NodeId, name: &[u8]) -> Result<bool> {
    let numbers = integers(container, node, name)?;
    Ok(numbers.is_some_and(|numbers| numbers.first().is_some_and(|&number| number != 0)))
}

/// The first palette of an image whose numbers stand for colours.
fn palette(container: &dyn Container, node: NodeId) -> Result<Option<NodeId>> {
    let subclass = text(container, node, b"IMAGE_SUBCLASS")?;
    match subclass.as_deref() {
        None | Some(b"IMAGE_INDEXED") => target_at(container, node, b"PALETTE", 0),
        Some(_) => Ok(None),
    }
}

/// Refuses what TIFF has no place for.
///
/// # Errors
/// `Unsupported` for colours between rows and columns.
pub(in crate::view) fn refuse_lines(image: &Image) -> Result<()> {
    match image.appearance.interlace {
        Some(Interlace::Line) => Err(Error::unsupported(
            "TIFF of colours that stand line by line (INTERLACE_LINE); png/ and npy/ have them",
            None,
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of an array of pictures in colours, five dimensions, with its first pixel below.
    #[test]
    fn a_part_without_all_axes_of_a_picture_has_no_colours() {
        let whole = Appearance {
            interlace: Some(Interlace::Plane),
            origin: Origin::named(b"LL"),
            ..Appearance::default()
        };
        let part = |selector: &[u8]| whole.of_part(selector, 5);
        for selector in [&b""[..], b"[0]", b"[0,1]", b"[:,:,:,::2]", b"[0,1,...]"] {
            assert_eq!(part(selector), whole, "{selector:?}");
        }
        for selector in [&b"[:,:,0]"[..], b"[...,0]", b"[0,1,2]", b"[:,:,:,3]"] {
            let plain = Appearance::default();
            assert_eq!(part(selector), plain, "{selector:?}");
        }
    }

    #[test]
    fn corners() {
        let corners = [&b"UL"[..], b"LL", b"UR", b"LR", b"no"].map(|corner| {
            let origin = Origin::named(corner);
            (origin.is_below, origin.is_right)
        });
        let expected = [
            (false, false),
            (true, false),
            (false, true),
            (true, true),
            (false, false),
        ];
        assert_eq!(corners, expected);
    }
}
