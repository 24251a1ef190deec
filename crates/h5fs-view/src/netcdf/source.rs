//! The source of a computed netCDF file, and the functions that open its arrays.

use std::sync::Arc;

use h5fs_reader::array::Engine;
use h5fs_reader::error::Result;
use h5fs_reader::model::value::NodePathResolver;
use h5fs_reader::model::{Array, Container, NodeId};

use crate::elements::Elements;
use crate::text_files::bounds::TextLengthLimits;

/// A function that opens all elements of an array.
pub type OpenArray<'a> = dyn Fn(NodeId, &Arc<Array>) -> Result<Elements> + 'a;

/// A function that returns the length of an array's longest text, from a cache or from the function
/// that it gets.
pub type TextWidth<'a> = dyn Fn(NodeId, &MeasureTexts<'_>) -> Result<u64> + 'a;

/// A function that reads all texts of an array, within bounds, and returns the length of the longest
/// one.
pub type MeasureTexts<'a> = dyn Fn(&TextLengthLimits) -> Result<u64> + 'a;

/// The source of a computed netCDF file: the mounted file, with the functions that read it.
pub struct NetcdfSource<'a> {
    /// The container, with each variable padded to the length of its dimensions.
    pub container: Arc<dyn Container>,
    /// The container as stored, whose arrays say which dimensions are unlimited.
    pub stored: &'a dyn Container,
    /// The engine that reads arrays.
    pub engine: &'a Arc<Engine>,
    /// A function that finds the path of an object.
    pub paths: &'a NodePathResolver<'a>,
    /// Opens the elements of an array.
    pub open: &'a OpenArray<'a>,
    /// Finds the length of the longest text of an array.
    pub text_width: &'a TextWidth<'a>,
}
