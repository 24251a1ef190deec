//! What documents are made from.

use std::sync::Arc;

use crate::array::Engine;
use crate::model::Container;
use crate::view::json::SharedPaths;

/// What a document is made from.
pub(crate) struct Source {
    /// The file.
    pub container: Arc<dyn Container>,
    /// Reads the values of arrays.
    pub engine: Arc<Engine>,
    /// Canonical paths.
    pub paths: SharedPaths,
}
