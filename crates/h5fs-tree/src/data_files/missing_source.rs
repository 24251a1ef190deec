//! The state of a mount whose source can no longer be opened. Only files about the mount itself can
//! then be read.
//!
//! All requests fail, except for the root's attributes, `.h5fs` and the texts about the mount in
//! it. The operator can thus read why the other files are stale.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::SystemTime;

use h5fs_reader::array::Engine;
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::{
    Attribute, Container, Link, LinkStream, Node, NodeId, NodeKind, Reference, datatype,
};
use h5fs_reader::source::neighbours::Neighbours;
use nix::errno::Errno;

use crate::data_files::file_state::{FileState, OpenedFile};
use crate::data_files::indexes::FilePathIndex;
use crate::errno::stale_error;
use crate::stat::SourceAttributes;
use crate::state::errors::timestamp_of;
use crate::state::inode::{self, Inode, NodeType};

/// A record of why and since when the source cannot be opened.
pub(crate) struct MissingSource {
    /// A stand-in for the file: a root without content, with the last known owner, mode and
    /// generation of the source.
    pub(crate) file: Arc<FileState>,
    reason: Error,
    since: SystemTime,
}

impl MissingSource {
    /// Records that the source cannot be opened from now on, because of the error `why`.
    pub(crate) fn new(
        generation: u32,
        root: NodeId,
        origin: Arc<SourceAttributes>,
        why: Error,
    ) -> Self {
        let opened = OpenedFile {
            container: Arc::new(EmptyContainer(root)),
            origin,
            neighbours: Arc::new(Neighbours::unavailable()),
            state: None,
            watch: None,
            shown_name: [].into(),
        };
        let index = Arc::new(FilePathIndex::new(&Arc::default()));
        let engine = Engine::new(0, 1);
        MissingSource {
            file: Arc::new(FileState::new(
                generation,
                inode::SOURCE,
                opened,
                engine,
                index,
            )),
            reason: why,
            since: SystemTime::now(),
        }
    }

    /// Replaces the reason by the error of the latest attempt to open the source.
    pub(crate) fn set_reason(&mut self, why: Error) {
        self.reason = why;
    }

    /// Returns the line for `.h5fs/status` that says why and since when the source is missing.
    pub(crate) fn status_line(&self) -> String {
        stale_status_line(&self.reason, self.since)
    }
}

/// Returns the line for `.h5fs/status` of a source that has been missing since `since`, because of
/// the error `why`.
pub(crate) fn stale_status_line(why: &Error, since: SystemTime) -> String {
    let since = timestamp_of(since);
    let gone =
        |name: &dyn fmt::Debug| format!("stale: the source is gone ({name:?} since {since})");
    match why {
        Error::NotFound => gone(&Errno::ENOENT),
        Error::Io {
            cause: Cause::System(number),
            ..
        } => gone(&Errno::from_raw(*number)),
        why => format!("stale: the source has changed (since {since}): {why}"),
    }
}

/// Returns the line for `.h5fs/status` of a source whose server has not responded since `since`.
pub(crate) fn unanswered_status_line(since: SystemTime) -> String {
    let since = timestamp_of(since);
    format!("stale: the server does not answer (since {since})")
}

/// Returns whether the inode belongs to the mount itself and not to the source: the root, `.h5fs`,
/// or a text about the mount. Such inodes are served even if the source is missing.
pub(crate) fn is_mount_inode(ino: u64, inode: &Inode) -> bool {
    let is_directory = ino == inode::ROOT || inode.node_type == NodeType::Views;
    is_directory || is_status_text(inode)
}

/// Returns whether `inode` is `status`, `errors` or `metrics` in `.h5fs`.
pub(crate) fn is_status_text(inode: &Inode) -> bool {
    const TEXTS: [&[u8]; 3] = [b"status", b"errors", b"metrics"];
    inode.node_type == NodeType::ViewsEntry && TEXTS.contains(&&*inode.name)
}

/// The container of a missing source: a root group, with this node ID, without members.
struct EmptyContainer(NodeId);

impl Container for EmptyContainer {
    fn for_request(self: Arc<Self>, _: &RequestBudget) -> Arc<dyn Container> {
        self
    }

    fn root(&self) -> NodeId {
        self.0
    }

    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        if id != self.0 {
            return Err(stale_error());
        }
        let node = Node::damaged(id, stale_error());
        let kind = NodeKind::Group;
        Ok(Arc::new(Node { kind, ..node }))
    }

    fn link(&self, _: NodeId, _: &[u8]) -> Result<Option<Link>> {
        Err(stale_error())
    }

    fn links(&self, _: NodeId) -> Result<Box<dyn LinkStream>> {
        Err(stale_error())
    }

    fn attributes(&self, _: NodeId, _: &mut dyn FnMut(Attribute) -> ControlFlow<()>) -> Result<()> {
        Err(stale_error())
    }

    fn attribute(&self, _: NodeId, _: &[u8]) -> Result<Option<Attribute>> {
        Err(stale_error())
    }

    fn variable_length_bytes(&self, _: &[u8], _: u64) -> Result<Option<u64>> {
        Err(stale_error())
    }

    fn read_variable_length(&self, _: &[u8], _: u64, _: Range<u64>) -> Result<Option<Vec<u8>>> {
        Err(stale_error())
    }

    fn text_length(&self, _: &[u8]) -> Result<u64> {
        Err(stale_error())
    }

    fn reference(&self, _: datatype::ReferenceKind, _: &[u8]) -> Result<Reference> {
        Err(stale_error())
    }
}
