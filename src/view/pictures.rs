//! Arrays as pictures, and NumPy and FITS files, which have a header before the elements.

pub(crate) mod appearance;
pub(crate) mod fits;
pub(crate) mod framed;
pub(crate) mod frames;
pub(crate) mod image;
pub(crate) mod npy;
pub(crate) mod palette;
pub(crate) mod picture_style;
pub(crate) mod png;
pub(crate) mod shaded;
pub(crate) mod tiff;
