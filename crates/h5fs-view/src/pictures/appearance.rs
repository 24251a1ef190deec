//! The appearance of an array as a picture, as its attributes define it: the axis of its colours,
//! the corner of its first pixel, and the meaning of its numbers.
//!
//! Three specifications define these attributes; ASDF does not have any of them.
//! - HDF5 Image and Palette Specification 1.2, sections 3 and 4: `CLASS`, `IMAGE_SUBCLASS`,
//!   `INTERLACE_MODE`, `IMAGE_WHITE_IS_ZERO`, `DISPLAY_ORIGIN`, `PALETTE`
//! - NeXus: `interpretation`
//! - HDF5 Dimension Scales (H5DS): `DIMENSION_LABELS`

use h5fs_reader::model::NodeId;
use h5fs_reader::model::selector::Selector;

/// The appearance of an array as a picture.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Appearance {
    /// The axis of the samples of a pixel; `None` if a pixel is a single number.
    pub interlace: Option<Interlace>,
    /// The corner that contains the first pixel.
    pub origin: Origin,
    /// Whether the attribute `CLASS` is `IMAGE`.
    pub is_image: bool,
    /// Whether the number 0 is white.
    pub is_zero_white: bool,
    /// The node of the palette, if the numbers are palette indices.
    pub palette: Option<NodeId>,
}

/// The axis of the samples (colours) of a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interlace {
    /// The last axis, after rows and columns.
    Pixel,
    /// The axis between rows and columns.
    Line,
    /// The axis before rows and columns.
    Plane,
}

/// The corner of the displayed picture that contains the first pixel of the array: upper left,
/// unless a field is true.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// Whether the first row is at the bottom.
    pub is_bottom: bool,
    /// Whether the first column is at the right.
    pub is_right: bool,
}

impl Interlace {
    /// Returns the number of axes after the axis of the samples.
    pub(crate) fn axes_after_samples(self) -> usize {
        match self {
            Interlace::Pixel => 0,
            Interlace::Line => 1,
            Interlace::Plane => 2,
        }
    }

    pub(super) fn from_name(mode: &[u8]) -> Option<Self> {
        match mode {
            b"INTERLACE_PIXEL" => Some(Interlace::Pixel),
            b"INTERLACE_LINE" => Some(Interlace::Line),
            b"INTERLACE_PLANE" => Some(Interlace::Plane),
            _ => None,
        }
    }

    /// Returns whether an array with dimensions `dims` has more than two dimensions, and three or
    /// four samples on this mode's axis.
    pub(super) fn has_colour_samples(self, dims: &[u64]) -> bool {
        let colours = dims.iter().rev().nth(self.axes_after_samples());
        dims.len() > 2 && matches!(colours, Some(3 | 4))
    }
}

impl Origin {
    pub(super) fn from_name(corner: &[u8]) -> Self {
        Origin {
            is_bottom: matches!(corner, b"LL" | b"LR"),
            is_right: matches!(corner, b"UR" | b"LR"),
        }
    }
}

impl Appearance {
    /// Returns whether the numbers of the array are colours or palette indices, not measured
    /// values.
    pub(crate) fn has_colours(&self) -> bool {
        self.interlace.is_some() || self.palette.is_some()
    }

    /// Returns the appearance of the part that `selector` picks from an array of `rank` dimensions.
    /// If the selector drops an axis of the pictures, the part has no axis of samples, and its
    /// first pixel is in the upper left corner.
    pub fn for_part(self, selector: &[u8], rank: usize) -> Self {
        if self.has_axes(selector, rank) {
            return self;
        }
        Appearance {
            interlace: None,
            origin: Origin::default(),
            ..self
        }
    }

    /// Returns whether the part that `selector` picks from an array of `rank` dimensions keeps the
    /// rows, the columns, and the samples (if any) of the array's pictures. An empty selector picks
    /// the whole array.
    pub fn has_axes(self, selector: &[u8], rank: usize) -> bool {
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

    /// The array has five dimensions, and contains colour pictures whose first pixel is in a lower
    /// corner.
    #[test]
    fn a_part_without_all_axes_of_a_picture_has_no_colours() {
        let whole = Appearance {
            interlace: Some(Interlace::Plane),
            origin: Origin::from_name(b"LL"),
            ..Appearance::default()
        };
        let part = |selector: &[u8]| whole.for_part(selector, 5);
        for selector in [&b""[..], b"[0]", b"[0,1]", b"[:,:,:,::2]", b"[0,1,...]"] {
            assert_eq!(part(selector), whole, "{selector:?}");
        }
        for selector in [&b"[:,:,0]"[..], b"[...,0]", b"[0,1,2]", b"[:,:,:,3]"] {
            let plain = Appearance::default();
            assert_eq!(part(selector), plain, "{selector:?}");
        }
    }

    #[test]
    fn corners_determine_the_origin() {
        let corners = [&b"UL"[..], b"LL", b"UR", b"LR", b"no"].map(|corner| {
            let origin = Origin::from_name(corner);
            (origin.is_bottom, origin.is_right)
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
