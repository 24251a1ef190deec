//! The sources of a document.

use std::sync::Arc;

use crate::array::Engine;
use crate::model::Container;
use crate::view::texts::json::SharedPaths;

/// The file, and the means to read its arrays and to find paths.
pub(crate) struct Source {
    /// The file.
    pub container: Arc<dyn Container>,
    /// Reads the values of arrays.
    pub engine: Arc<Engine>,
    /// Canonical paths.
    pub paths: SharedPaths,
}
