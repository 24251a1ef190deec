//! Arrays as pictures, and NumPy and FITS files, which have a header before the elements.

pub mod appearance;
pub mod fits;
pub mod frames;
pub mod georeference;
pub mod image;
pub(crate) mod palette;
pub mod picture_style;
pub mod png;
pub mod shaded;
pub mod tiff;
