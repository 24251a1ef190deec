//! What the attributes of an array say about it as a picture: which axis its colours stand along,
//! where its first pixel is shown, what its numbers look like.
//!
//! HDF5 Image and Palette Specification 1.2, sections 3 and 4 (`CLASS`, `IMAGE_SUBCLASS`,
//! `INTERLACE_MODE`, `IMAGE_WHITE_IS_ZERO`, `DISPLAY_ORIGIN`, `PALETTE`); NeXus (`interpretation`);
//! labels of dimensions (H5DS, `DIMENSION_LABELS`). ASDF has none of it.

use crate::model::NodeId;
use crate::model::selector::Selector;

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

impl Interlace {
    /// How many axes stand behind that of the colours.
    pub(crate) fn behind(self) -> usize {
        match self {
            Interlace::Pixel => 0,
            Interlace::Line => 1,
            Interlace::Plane => 2,
        }
    }

    pub(super) fn named(mode: &[u8]) -> Option<Self> {
        match mode {
            b"INTERLACE_PIXEL" => Some(Interlace::Pixel),
            b"INTERLACE_LINE" => Some(Interlace::Line),
            b"INTERLACE_PLANE" => Some(Interlace::Plane),
            _ => None,
        }
    }

    /// Whether an array of `dims` can have three or four colours there.
    pub(super) fn fits(self, dims: &[u64]) -> bool {
        let colours = dims.iter().rev().nth(self.behind());
        dims.len() > 2 && matches!(colours, Some(3 | 4))
    }
}

impl Origin {
    pub(super) fn named(corner: &[u8]) -> Self {
        Origin {
            is_below: matches!(corner, b"LL" | b"LR"),
            is_right: matches!(corner, b"UR" | b"LR"),
        }
    }
}

impl Appearance {
    /// Whether its numbers are colours, or stand for those of a palette.
    pub(crate) fn is_in_colours(&self) -> bool {
        self.interlace.is_some() || self.palette.is_some()
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
