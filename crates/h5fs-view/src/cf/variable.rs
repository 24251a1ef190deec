//! The variables of a netCDF-4 file, and arrays of other HDF5 files with the attributes of a
//! variable.

use std::sync::Arc;

use h5fs_conventions::attributes;
use h5fs_conventions::dimensions::{self, PathFinder};
use h5fs_conventions::packing::{Packing, PackingAttributes};
use h5fs_conventions::stored_type::StoredType;
use h5fs_conventions::time::TimeUnits;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::attribute_value::{attribute_exists, attribute_text};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::selector::Selector;
use h5fs_reader::model::value::ValueWriter;
use h5fs_reader::model::{Array, Container, Node, NodeId, Shape};

use crate::cf::decoding::Decoding;
use crate::cf::siblings::GroupVariableCache;

/// A variable of the netCDF conventions: an array with named dimensions, and a rule that decodes
/// its elements.
#[derive(Debug)]
pub struct Variable {
    pub(super) node: NodeId,
    pub(super) array: Arc<Array>,
    /// The dimension scale of each dimension of the decoded elements, if it has one.
    pub(super) scales: Vec<Option<NodeId>>,
    pub(super) decoding: Decoding,
}

impl Variable {
    /// Returns the variable of an array of numbers or texts. `path` finds the path of the array.
    /// The array must be in a netCDF file, have a dimension scale, or have an attribute that
    /// defines the meaning of its numbers. Returns `None` for any other object, and for a scale
    /// that is only a dimension and has no values.
    ///
    /// # Errors
    /// Fails if an attribute cannot be used or read.
    pub fn from_node(
        container: &dyn Container,
        node: &Node,
        path: &PathFinder<'_>,
    ) -> Result<Option<Self>> {
        Self::from_node_with_siblings(container, node, path, &GroupVariableCache::default())
    }

    /// Like [`from_node`](Self::from_node), but uses the cached searches in `siblings`.
    ///
    /// # Errors
    /// Fails as [`from_node`](Self::from_node) does.
    pub(super) fn from_node_with_siblings(
        container: &dyn Container,
        node: &Node,
        path: &PathFinder<'_>,
        siblings: &GroupVariableCache,
    ) -> Result<Option<Self>> {
        let root = container.root();
        let is_of_netcdf = || attribute_exists(container, root, b"_NCProperties");
        Self::from_node_if(container, node, path, siblings, &is_of_netcdf)
    }

    /// Returns the variable of an array that another variable references, for example in
    /// `coordinates`; `None` if the array cannot be a variable.
    ///
    /// # Errors
    /// Fails as [`from_node`](Self::from_node) does.
    pub(super) fn from_reference(
        container: &dyn Container,
        node: &Node,
        path: &PathFinder<'_>,
        siblings: &GroupVariableCache,
    ) -> Result<Option<Self>> {
        Self::from_node_if(container, node, path, siblings, &|| Ok(true))
    }

    fn from_node_if(
        container: &dyn Container,
        node: &Node,
        path: &PathFinder<'_>,
        siblings: &GroupVariableCache,
        is_expected: &dyn Fn() -> Result<bool>,
    ) -> Result<Option<Self>> {
        let Some(array) = node.array().filter(|array| array.shape != Shape::Null) else {
            return Ok(None);
        };
        let is_text = matches!(
            array.datatype.class,
            Class::String { .. } | Class::VariableString { .. }
        );
        let stored = StoredType::new(&array.datatype);
        if !is_text && stored.is_none() {
            return Ok(None);
        }
        let is_scale = dimensions::is_scale(container, node.id)?;
        if is_scale && dimensions::is_only_dimension(container, node.id)? {
            return Ok(None);
        }
        let rank = array.shape.dims().len();
        let scales = dimensions::scales(container, node.id, rank, path, is_scale)?;
        let (decoding, is_marked) = match stored {
            Some(stored) => {
                let units = siblings.time_units(container, node.id, &scales, path)?;
                number_decoding(container, node.id, stored, units)?
            }
            None => (
                text_decoding(container, array, &scales, path, siblings)?,
                false,
            ),
        };
        if !is_marked && !is_scale && scales.iter().all(Option::is_none) && !is_expected()? {
            return Ok(None);
        }
        let rank = decoding.decoded_dims(array.shape.dims()).len();
        Ok(Some(Variable {
            node: node.id,
            array: Arc::clone(array),
            scales: scales[..rank].to_vec(),
            decoding,
        }))
    }

    /// Checks that a selection includes the dimension of characters as its last dimension, if the
    /// variable has one.
    ///
    /// # Errors
    /// `NotFound` if the selection has a single index in the dimension of characters.
    pub fn check_selection(&self, selector: Option<&Selector>) -> Result<()> {
        let rank = self.array.shape.dims().len();
        match (&self.decoding, selector) {
            (Decoding::Characters, Some(selector)) => {
                let last = selector.dimensions(rank)?.pop();
                let is_there = last.is_some_and(|last| last + 1 == rank);
                is_there.then_some(()).ok_or(Error::NotFound)
            }
            _ => Ok(()),
        }
    }

    /// Returns the dimensions of the decoded elements.
    pub(super) fn dims(&self) -> Vec<u64> {
        self.decoding.decoded_dims(self.array.shape.dims())
    }
}

/// Returns the decoding of numbers, and whether the array has an attribute that defines it (such as
/// `scale_factor`).
fn number_decoding(
    container: &dyn Container,
    node: NodeId,
    stored: StoredType,
    units: Option<TimeUnits>,
) -> Result<(Decoding, bool)> {
    let attributes = attributes::read_packing(container, node)?;
    let packing = Packing::new(stored, &attributes);
    if let Some(units) = units {
        return Ok((Decoding::Times(packing, units), true));
    }
    if attribute_text(container, node, b"dtype")?.is_some_and(|dtype| dtype == b"bool") {
        return Ok((Decoding::Booleans(packing), true));
    }
    let is_marked = attributes != PackingAttributes::default();
    Ok((Decoding::Numbers(packing), is_marked))
}

/// Returns the decoding of strings. netCDF stores characters as strings of one byte. They form
/// texts if their last dimension is the length of texts.
fn text_decoding(
    container: &dyn Container,
    array: &Array,
    scales: &[Option<NodeId>],
    path: &PathFinder<'_>,
    siblings: &GroupVariableCache,
) -> Result<Decoding> {
    let are_characters = array.datatype.size == 1
        && matches!(array.datatype.class, Class::String { .. })
        && match scales.last() {
            Some(Some(scale)) => siblings.is_text_length(container, *scale, path)?,
            Some(None) => true,
            None => false,
        };
    Ok(if are_characters {
        Decoding::Characters
    } else {
        Decoding::Texts(ValueWriter::new(&array.datatype)?)
    })
}
