//! A name in a group, and where it leads.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::piece;
use crate::model::NodeId;
use crate::wire::{Count, to_u64, to_usize};

/// A name in a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Bytes as in the file: any bytes, valid UTF-8 or not.
    pub name: Vec<u8>,
    /// Where it leads.
    pub target: LinkTarget,
    /// Its place in the order in which the links were made, where the file says so. ASDF: its place
    /// in the text.
    pub order: Option<u64>,
    /// Whether it is said to lead to a group: which object it leads to may be all that can be read.
    /// HDF5: the entries of old-style groups say so. ASDF: no.
    pub is_to_group: bool,
}

/// Where a link leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkTarget {
    /// To a node of this file.
    Hard(NodeId),
    /// HDF5: soft link, a path from the link's own group or, with a leading `/`, from the root.
    /// Bytes as in the file; `..` is an ordinary name there.
    Soft(Vec<u8>),
    /// HDF5: external link, a path from the root of another file.
    External {
        /// The file's name, bytes as in the file.
        file: Vec<u8>,
        /// The object's path in it.
        path: Vec<u8>,
    },
    /// ASDF: alias of the node, whose own place is elsewhere;
    /// [`names`](crate::model::Container::names) says where.
    Alias(NodeId),
    /// ASDF: `$ref`, a path from the root of this file or another;
    /// [`names`](crate::model::Container::names) has it.
    Reference {
        /// Another file's name as the URI gives it, unescaped; `None` for this file.
        file: Option<Vec<u8>>,
        /// The node that is the `$ref`.
        node: NodeId,
    },
    /// HDF5: user-defined link of a class (65–255) that only its maker can follow.
    UserDefined(u8),
    /// The link is there, but what says where it leads cannot be read.
    Damaged(Error),
}

impl Link {
    /// The effort of passing it in a search through many links; that of a short one is 1.
    pub fn cost(&self) -> usize {
        let target = match &self.target {
            LinkTarget::Soft(path) => path.len(),
            LinkTarget::External { file, path } => file.len().with_more(path.len()),
            LinkTarget::Reference { file, .. } => file.as_ref().map_or(0, Vec::len),
            // It may have been looked for that far.
            LinkTarget::Damaged(_) => limits::LINK_TEXT,
            _ => 0,
        };
        let text = self.name.len().with_more(target);
        (text / limits::SEARCHED_TEXT).one_more()
    }

    /// Bytes of memory that it takes, about.
    pub fn weight(&self) -> u64 {
        let target = match &self.target {
            LinkTarget::Soft(path) => piece(path.len()),
            LinkTarget::External { file, path } => {
                u64::together([file.len(), path.len()].map(piece))
            }
            _ => 0,
        };
        u64::together([to_u64(size_of::<Link>()), piece(self.name.len()), target])
    }
}

impl LinkTarget {
    /// The name of the other file that it leads into.
    pub fn other_file(&self) -> Option<&[u8]> {
        match self {
            LinkTarget::External { file, .. } => Some(file),
            LinkTarget::Reference { file, .. } => file.as_deref(),
            _ => None,
        }
    }
}

/// The links of one group, in index order, one at a time, with bounded memory.
pub trait LinkStream: Send {
    /// The number of links before the next one.
    fn position(&self) -> u64;

    /// Makes the link at `position` the next one; past the last one, the stream is at its end.
    fn seek(&mut self, position: u64) -> Result<()>;

    /// The next link, `None` after the last.
    ///
    /// # Errors
    /// Fails if the index is damaged here, or links before could not be read and were passed over;
    /// the stream is then at its end, and says the same again.
    fn next(&mut self) -> Result<Option<Link>>;

    /// Whether the index has them in the order in which people are shown them: by name, or as they
    /// were made.
    fn is_in_order(&self) -> bool {
        false
    }

    /// Bytes of memory that it keeps for itself, about.
    fn weight(&self) -> u64 {
        0
    }
}

/// Links that are in memory.
pub struct LinksInMemory {
    links: Arc<Vec<Link>>,
    /// Bytes of the links, which this may be the last to hold.
    weight: u64,
    position: u64,
    /// Why some are not there.
    failure: Option<Error>,
    is_in_order: bool,
}

impl LinksInMemory {
    /// Links as their group has them, and why some of them are not there.
    pub fn new(links: Arc<Vec<Link>>, failure: Option<Error>) -> Self {
        LinksInMemory {
            weight: links.iter().map(Link::weight).sum(),
            links,
            position: 0,
            failure,
            is_in_order: false,
        }
    }

    /// The same of links that stand in the order in which people are shown them.
    pub fn in_order(links: Vec<Link>, failure: Option<Error>) -> Self {
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
            self.position = self.position.one_more();
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
