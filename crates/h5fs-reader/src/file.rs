//! Files, groups and datasets: the interface for other programs.
//!
//! [`File::open`] opens a file, and [`File::get`] finds an object by its path. A [`Group`] lists
//! its links, a [`Dataset`] reads its elements, and both have attributes. Elements and attributes
//! are [`Values`]: bytes in the encoding of the file, with their datatype and shape.
//!
//! All values share the open file, which closes when the last of them is dropped. All types can be
//! used from several threads.

mod options;
mod values;

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

pub use options::OpenOptions;
pub use values::Values;

use crate::array::{CancelToken, Engine, Reader, SelectedElements};
use crate::error::{Error, Result};
use crate::memory::request_budget::RequestBudget;
use crate::model::attribute::AttributeContent;
use crate::model::selection::Selection;
use crate::model::selector::Selector;
use crate::model::{Array, Container, Link, LinkStream, Node, NodeId, NodeKind, Shape, paths};
use crate::wire::{to_u64, to_usize};

/// Number of bytes that one step of a read requests from the array engine.
const STEP: usize = 4 << 20;

/// An open HDF5 or ASDF file.
#[derive(Clone)]
pub struct File(Arc<OpenFile>);

struct OpenFile {
    container: Arc<dyn Container>,
    engine: Arc<Engine>,
    /// Maximum number of bytes of one read.
    read_bytes: u64,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("File").finish_non_exhaustive()
    }
}

impl File {
    /// Opens the file at `path` with the default options.
    ///
    /// # Errors
    /// Fails as [`OpenOptions::open`] does.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Returns the default options, to be changed before opening a file.
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }

    /// Returns the root group. In ASDF, the root group is the root of the tree.
    ///
    /// # Errors
    /// Fails if the root cannot be read.
    pub fn root(&self) -> Result<Group> {
        match self.object(self.0.container.root())? {
            Object::Group(group) => Ok(group),
            Object::Dataset(_) | Object::Other(_) => Err(Error::NotFound),
        }
    }

    /// Returns the object at `path`, such as `/run/temperature`. Follows soft links.
    ///
    /// # Errors
    /// - `NotFound` if the object does not exist
    /// - `Unsupported` if the path leads into another file
    /// - `Limit` for a cycle of links
    pub fn get(&self, path: impl AsRef<[u8]>) -> Result<Object> {
        self.find(self.0.container.root(), path.as_ref())
    }

    /// Returns the container of the model that describes the whole file, for uses that this
    /// interface does not cover.
    pub fn container(&self) -> &Arc<dyn Container> {
        &self.0.container
    }

    fn find(&self, from: NodeId, path: &[u8]) -> Result<Object> {
        let found = paths::resolve_path(&*self.container_for_request(), from, path)?;
        self.object(found.ok_or(Error::NotFound)?)
    }

    fn object(&self, id: NodeId) -> Result<Object> {
        let node = self.container_for_request().node(id)?;
        let file = self.clone();
        Ok(match &node.kind {
            NodeKind::Group => Object::Group(Group { file, node }),
            NodeKind::Array(array) => Object::Dataset(Dataset {
                array: Arc::clone(array),
                file,
                node,
            }),
            NodeKind::CommittedDatatype(_) | NodeKind::Scalar(_) => Object::Other(node),
        })
    }

    /// Returns the container of the file with a new metadata budget for one request.
    fn container_for_request(&self) -> Arc<dyn Container> {
        Arc::clone(&self.0.container).for_request(&RequestBudget::for_request())
    }

    fn attributes(&self, node: NodeId) -> Result<Vec<(Vec<u8>, Result<Values>)>> {
        let mut found = Vec::new();
        self.container_for_request()
            .attributes(node, &mut |attribute| {
                let values = attribute.content.map(|content| self.values(content));
                found.push((attribute.name, values));
                ControlFlow::Continue(())
            })?;
        Ok(found)
    }

    fn attribute(&self, node: NodeId, name: &[u8]) -> Result<Option<Values>> {
        let attribute = self.container_for_request().attribute(node, name)?;
        let content = attribute.map(|attribute| attribute.content).transpose()?;
        Ok(content.map(|content| self.values(content)))
    }

    fn values(&self, content: AttributeContent) -> Values {
        Values {
            datatype: content.datatype,
            shape: dims(&content.shape),
            bytes: content.elements.to_vec(),
            container: Arc::clone(&self.0.container),
        }
    }
}

/// Returns the lengths of the dimensions of a shape. A null dataspace has one dimension of length
/// 0.
fn dims(shape: &Shape) -> Vec<u64> {
    match shape {
        Shape::Null => vec![0],
        _ => shape.dims().to_vec(),
    }
}

/// An object of a file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Object {
    /// HDF5: a group. ASDF: a mapping or a sequence.
    Group(Group),
    /// HDF5: a dataset. ASDF: an ndarray.
    Dataset(Dataset),
    /// HDF5: a committed datatype. ASDF: a scalar of the tree.
    Other(Arc<Node>),
}

impl Object {
    /// Returns the group, or `None` if the object is not a group.
    pub fn into_group(self) -> Option<Group> {
        match self {
            Object::Group(group) => Some(group),
            Object::Dataset(_) | Object::Other(_) => None,
        }
    }

    /// Returns the dataset, or `None` if the object is not a dataset.
    pub fn into_dataset(self) -> Option<Dataset> {
        match self {
            Object::Dataset(dataset) => Some(dataset),
            Object::Group(_) | Object::Other(_) => None,
        }
    }
}

/// A group: named links to objects.
#[derive(Debug, Clone)]
pub struct Group {
    file: File,
    node: Arc<Node>,
}

impl Group {
    /// Returns the description of the group in the model.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Returns the links of the group, in the order of the group's index in the file.
    ///
    /// # Errors
    /// Fails if the index of the group is damaged.
    pub fn links(&self) -> Result<Links> {
        let stream = self.file.container_for_request().links(self.node.id)?;
        Ok(Links {
            stream: Some(stream),
        })
    }

    /// Returns the object at a path below the group. Follows soft links.
    ///
    /// # Errors
    /// Fails as [`File::get`] does.
    pub fn get(&self, path: impl AsRef<[u8]>) -> Result<Object> {
        self.file.find(self.node.id, path.as_ref())
    }

    /// Returns the array that the members of an ASDF group form together, such as a masked array.
    /// Returns `None` for any other group.
    pub fn assembled_dataset(&self) -> Option<Dataset> {
        let array = self.node.assembled_array.as_ref()?;
        Some(Dataset {
            file: self.file.clone(),
            node: Arc::clone(&self.node),
            array: Arc::clone(array),
        })
    }

    /// Returns the attribute called `name`, or `None` if it does not exist.
    ///
    /// # Errors
    /// Fails if the attribute cannot be read.
    pub fn attribute(&self, name: impl AsRef<[u8]>) -> Result<Option<Values>> {
        self.file.attribute(self.node.id, name.as_ref())
    }

    /// Returns the names and values of all attributes, in the order in which the file stores them.
    ///
    /// # Errors
    /// Fails if the list of attributes is damaged. The value of a damaged attribute is its error.
    pub fn attributes(&self) -> Result<Vec<(Vec<u8>, Result<Values>)>> {
        self.file.attributes(self.node.id)
    }
}

/// An iterator over the links of a group, which ends after an error.
pub struct Links {
    stream: Option<Box<dyn LinkStream>>,
}

impl Iterator for Links {
    type Item = Result<Link>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.stream.as_mut()?.next().transpose();
        if !matches!(next, Some(Ok(_))) {
            self.stream = None;
        }
        next
    }
}

/// A dataset: an array of elements of one type.
#[derive(Debug, Clone)]
pub struct Dataset {
    file: File,
    node: Arc<Node>,
    array: Arc<Array>,
}

impl Dataset {
    /// Returns the description of the dataset in the model.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Returns the description of the array: datatype, shape, chunks, filters and fill value.
    pub fn array(&self) -> &Arc<Array> {
        &self.array
    }

    /// Returns the dimensions, slowest first. Empty for a scalar.
    pub fn shape(&self) -> Vec<u64> {
        dims(&self.array.shape)
    }

    /// Reads all elements.
    ///
    /// # Errors
    /// `Limit` for more bytes than [`OpenOptions::read_bytes`]. Otherwise fails if the elements
    /// cannot be read.
    pub fn read(&self) -> Result<Values> {
        if self.array.shape == Shape::Null {
            return Ok(Values {
                datatype: self.array.datatype.clone(),
                shape: vec![0],
                bytes: Vec::new(),
                container: Arc::clone(&self.file.0.container),
            });
        }
        self.read_selection(&Selection::all_elements(
            &self.array.datatype,
            self.array.shape.dims(),
        )?)
    }

    /// Reads the elements that a selector picks, with the rules of NumPy's indexing:
    /// `[0, 10:20, ::2]`, `[..., [1, 5]]`, or `["x"]` for a field of compound elements.
    ///
    /// # Errors
    /// `Usage` for a text that is no selector, and `NotFound` for a part that does not exist.
    /// Otherwise fails as [`read`](Self::read) does.
    pub fn select(&self, selector: impl AsRef<[u8]>) -> Result<Values> {
        let text = selector.as_ref();
        let selector = Selector::parse(text).ok_or_else(|| {
            let text = String::from_utf8_lossy(text);
            Error::Usage(format!("`{text}` is no selector"))
        })?;
        self.read_selection(&selector.select(&self.array.datatype, &self.array.shape)?)
    }

    /// Returns the attribute called `name`, or `None` if it does not exist.
    ///
    /// # Errors
    /// Fails if the attribute cannot be read.
    pub fn attribute(&self, name: impl AsRef<[u8]>) -> Result<Option<Values>> {
        self.file.attribute(self.node.id, name.as_ref())
    }

    /// Returns the names and values of all attributes, in the order in which the file stores them.
    ///
    /// # Errors
    /// Fails if the list of attributes is damaged. The value of a damaged attribute is its error.
    pub fn attributes(&self) -> Result<Vec<(Vec<u8>, Result<Values>)>> {
        self.file.attributes(self.node.id)
    }

    fn read_selection(&self, selection: &Selection) -> Result<Values> {
        let most = self.file.0.read_bytes;
        let length = selection.byte_length()?;
        Error::check_limit(length, most, "bytes of a read")?;
        let reader = Reader::new(&self.file.0.engine, Arc::clone(&self.array))?;
        let selected = SelectedElements::new(Arc::new(reader), selection)?;
        let length = to_usize(length)?;
        let mut bytes = Vec::new();
        while bytes.len() < length {
            let part = selected.read(to_u64(bytes.len()), STEP, &CancelToken::default())?;
            if part.is_empty() {
                return Err(Error::corrupt("an array ends early", None));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(Values {
            datatype: selection.datatype.clone(),
            shape: selection.dims(),
            bytes,
            container: Arc::clone(&self.file.0.container),
        })
    }
}

#[cfg(test)]
mod tests;
