//! The content of the files of a mount. Each content has a length and a `read_for`.
//!
//! Each open file has its own view, so a view may contain state that depends on the previous reads
//! of this open file. Examples are a prefetch stream, and the position in a text that is generated
//! from front to back.
//!
//! # Layers
//!
//! A file imports only from layers below its own. `tests/integration/layering.rs` checks this.
//!
//! | layer | modules | content |
//! |---|---|---|
//! | 8 | [`documents`] | documents about objects: attributes, NDL, ASDF as JSON, HTML pages |
//! | 8 | [`netcdf`] | a group as a netCDF classic file |
//! | 7 | [`pictures`], [`parquet`] | PNG, TIFF and FITS; Parquet |
//! | 6 | [`cf`] | variables decoded by the netCDF conventions, with their coordinates |
//! | 5 | [`table`] | tables of pandas, AnnData, HDMF, astropy, and groups of columns |
//! | 4 | [`csv`], [`npy`] | rows of cells; the format of NumPy |
//! | 3 | [`json`], [`framed`], [`zarr`] | elements as JSON; a header before elements; a file as a Zarr store |
//! | 3 | [`hdf5_file`] | a computed HDF5 file |
//! | 2 | [`elements`] | the elements of an array: a datatype, dimensions and bytes |
//! | 1 | [`text_files`] | texts in memory, and texts that are generated while they are read |
//! | 0 | [`view`], [`limits`] | the trait of all contents; the limits of this crate |

#![forbid(unsafe_code)]

pub mod cf;
pub mod csv;
pub mod documents;
pub mod elements;
pub mod framed;
pub mod hdf5_file;
pub mod json;
pub mod limits;
pub mod netcdf;
pub mod npy;
pub mod parquet;
pub mod pictures;
pub mod table;
pub mod text_files;
pub mod view;
pub mod zarr;

#[cfg(test)]
mod cancellation;
