//! The file that an NDL document describes, and access to it.

use std::sync::Arc;

use h5fs_reader::array::Engine;
use h5fs_reader::model::Container;

use crate::json::SharedPaths;

/// The file that an NDL document describes, with an engine that reads its arrays and a function
/// that finds paths.
pub struct NdlSource {
    /// The file.
    pub container: Arc<dyn Container>,
    /// The engine that reads the values of arrays.
    pub engine: Arc<Engine>,
    /// The function that finds canonical paths.
    pub paths: SharedPaths,
}
