//! Links: a name in a group, and its target.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::allocation_size;
use crate::model::NodeId;
use crate::wire::{Count, to_u64, to_usize};

/// A name in a group, with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name's bytes as in the file, valid UTF-8 or not.
    pub name: Vec<u8>,
    /// The target of the link.
    pub target: LinkTarget,
    /// The link's position in the creation order, if the file stores it. ASDF: its position in the
    /// text.
    pub order: Option<u64>,
    /// Whether the link itself declares that its target is a group, which helps if the target
    /// cannot be read. HDF5: entries of old-style groups declare this. ASDF: never.
    pub is_to_group: bool,
}

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// A node of this file.
    Hard(NodeId),
    /// HDF5: a soft link, a path from the link's own group or, with a leading `/`, from the root.
    /// Bytes as in the file. `..` is an ordinary name.
    Soft(Vec<u8>),
    /// HDF5: an external link, a path from the root of another file.
    External {
        /// The file's name, bytes as in the file.
        file: Vec<u8>,
        /// The object's path in the other file.
        path: Vec<u8>,
    },
    /// ASDF: an alias of a node that has another path, which
    /// [`alias_path`](crate::model::Container::alias_path) returns.
    Alias(NodeId),
    /// ASDF: a `$ref`, a path from the root of this file or another.
    /// [`alias_path`](crate::model::Container::alias_path) returns the path.
    Reference {
        /// The other file's name from the URI, unescaped. `None` for this file.
        file: Option<Vec<u8>>,
        /// The node of the `$ref` itself.
        node: NodeId,
    },
    /// HDF5: a user-defined link of a class (65–255), which only the application that created it
    /// can follow.
    UserDefined(u8),
    /// The link exists, but its target cannot be read.
    Damaged(Error),
}

impl Link {
    /// Returns the cost of examining the link in a search through many links. A short link costs 1,
    /// a link with a long name or target costs more.
    pub fn cost(&self) -> usize {
        let target = match &self.target {
            LinkTarget::Soft(path) => path.len(),
            LinkTarget::External { file, path } => file.len().plus(path.len()),
            LinkTarget::Reference { file, .. } => file.as_ref().map_or(0, Vec::len),
            // The reader may have searched this many bytes for the target.
            LinkTarget::Damaged(_) => limits::LINK_TEXT,
            _ => 0,
        };
        let text = self.name.len().plus(target);
        (text / limits::SEARCHED_TEXT).plus_one()
    }

    /// Returns the approximate memory in bytes that the link takes.
    pub fn weight(&self) -> u64 {
        let target = match &self.target {
            LinkTarget::Soft(path) => allocation_size(path.len()),
            LinkTarget::External { file, path } => {
                u64::sum([file.len(), path.len()].map(allocation_size))
            }
            _ => 0,
        };
        u64::sum([
            to_u64(size_of::<Link>()),
            allocation_size(self.name.len()),
            target,
        ])
    }
}

impl LinkTarget {
    /// Returns the name of the other file that contains the target, or `None` if the target is in
    /// this file or unknown.
    pub fn other_file_name(&self) -> Option<&[u8]> {
        match self {
            LinkTarget::External { file, .. } => Some(file),
            LinkTarget::Reference { file, .. } => file.as_deref(),
            _ => None,
        }
    }
}

/// A stream of the links of one group in index order, with bounded memory.
pub trait LinkStream: Send {
    /// Returns the position of the next link, which is the number of links before it.
    fn position(&self) -> u64;

    /// Makes the link at `position` the next one. A position after the last link is the end of the
    /// stream.
    fn seek(&mut self, position: u64) -> Result<()>;

    /// Returns the next link, or `None` after the last.
    ///
    /// # Errors
    /// Fails if the index is damaged at the next link, or if earlier links could not be read and
    /// were skipped. The stream is then at its end, and further calls return the same error.
    fn next(&mut self) -> Result<Option<Link>>;

    /// Returns whether the links of the stream are already in display order: by name, or by
    /// creation order.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Returns the approximate memory in bytes that the stream takes.
    fn weight(&self) -> u64 {
        0
    }
}

/// A link stream whose links are in memory.
pub struct LinksInMemory {
    links: Arc<Vec<Link>>,
    /// Memory in bytes of the links, which is freed when the last owner of the links is dropped.
    weight: u64,
    position: u64,
    /// The error that explains why some links are missing.
    failure: Option<Error>,
    is_in_order: bool,
}

impl LinksInMemory {
    /// Creates a stream of links in index order. `failure` is the error that explains why some
    /// links are missing.
    pub fn new(links: Arc<Vec<Link>>, failure: Option<Error>) -> Self {
        LinksInMemory {
            weight: links.iter().map(Link::weight).sum(),
            links,
            position: 0,
            failure,
            is_in_order: false,
        }
    }

    /// Creates a stream of links in display order.
    pub fn in_display_order(links: Vec<Link>, failure: Option<Error>) -> Self {
        LinksInMemory {
            is_in_order: true,
            ..Self::new(Arc::new(links), failure)
        }
    }
}

impl LinkStream for LinksInMemory {
    fn position(&self) -> u64 {
        self.position
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        self.position = position.min(to_u64(self.links.len()));
        Ok(())
    }

    fn next(&mut self) -> Result<Option<Link>> {
        let link = self.links.get(to_usize(self.position)?).cloned();
        if link.is_some() {
            self.position = self.position.plus_one();
            return Ok(link);
        }
        self.failure.clone().map_or(Ok(None), Err)
    }

    fn is_in_order(&self) -> bool {
        self.is_in_order
    }

    fn weight(&self) -> u64 {
        self.weight
    }
}
