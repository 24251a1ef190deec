//! The object that a page is about.

use std::sync::Arc;

use crate::array::Engine;
use crate::error::Result;
use crate::model::{Array, Container, Node};
use crate::view::elements::Elements;
use crate::view::elements::missing::Missing;
use crate::view::texts::html::site::Site;
use crate::view::texts::json::SharedPaths;

/// Gives the elements that a selector picks.
pub(crate) type PartOf<'a> = dyn Fn(&str) -> Result<(Elements, Option<Missing>)> + 'a;

/// The object that a page is about.
pub(crate) struct Object<'a> {
    pub(crate) container: &'a Arc<dyn Container>,
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) node: &'a Node,
    /// Its path, names as in the file.
    pub(crate) path: &'a [u8],
    pub(crate) paths: SharedPaths,
    pub(crate) site: &'a dyn Site,
    /// The elements that a selector picks, all for an empty one, and which of them are missing.
    pub(crate) part: &'a PartOf<'a>,
    /// The first member of the group that is shown.
    pub(crate) first: u64,
}

/// The shape and the bytes of the chunks of an array that are decoded whole.
pub(super) fn decoded_chunk(array: &Array) -> Option<(&[u64], u64)> {
    let shape = array.chunk_shape.as_deref()?;
    if array.pipeline.0.is_empty() {
        return None;
    }
    let itemsize = u64::from(array.datatype.size);
    let bytes = shape.iter().copied().fold(itemsize, u64::saturating_mul);
    Some((shape, bytes))
}
