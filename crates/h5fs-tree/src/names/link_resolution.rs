//! Resolves a link to its target object. The path to the target may contain links of every type,
//! also into other files.

use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::paths::split_path_reversed;
use h5fs_reader::model::{LinkTarget, Node, NodeId};
use nix::errno::Errno;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::data_files::other_files::{OtherFileEntry, ShownLocation};
use crate::errno::{self, refusal_error, stale_error};
use crate::limits;

/// The target object of a link.
pub(crate) struct LinkedObject {
    /// The state of the file that contains the object.
    pub(crate) file: Arc<FileState>,
    pub(crate) node: Arc<Node>,
    /// The group and the name, as in the file, of the hard link to the object. `None` if the object
    /// is the root.
    pub(crate) link: Option<(NodeId, Vec<u8>)>,
    /// Whether the path to the object contains a link into another file.
    pub(crate) is_across_files: bool,
}

/// Returns the object that the link `name` of `group` leads to. Returns `None` if the link or its
/// target does not exist, or if the target is in a file that the mount does not show.
///
/// # Errors
/// `ELOOP` for an endless chain of links. Fails if the object, or a link on the path to it, cannot
/// be read.
pub(crate) fn resolve_link(
    mount: &Mount,
    file: &Arc<FileState>,
    group: NodeId,
    name: &[u8],
) -> Result<Option<LinkedObject>> {
    LinkResolution::new(mount, file, group, vec![name.to_vec()]).resolve()
}

/// Returns the object that a link in `group` with the target `target` leads to, like
/// [`resolve_link`].
///
/// # Errors
/// Fails as [`resolve_link`] does.
pub(crate) fn resolve_link_target(
    mount: &Mount,
    file: &Arc<FileState>,
    group: NodeId,
    target: &LinkTarget,
) -> Result<Option<LinkedObject>> {
    let mut way = LinkResolution::new(mount, file, group, Vec::new());
    match way.follow_link(target)? {
        Some(()) => way.resolve(),
        None => Ok(None),
    }
}

/// Returns whether the error is `ELOOP`, an endless chain of links.
pub(crate) fn is_link_loop(error: &Error) -> bool {
    errno::from_error(error) == Errno::ELOOP as i32
}

/// The state of resolving a path: the current group, and the remaining names in reverse order.
struct LinkResolution<'a> {
    mount: &'a Mount,
    file: Arc<FileState>,
    group: NodeId,
    names: Vec<Vec<u8>>,
    link: Option<(NodeId, Vec<u8>)>,
    is_across_files: bool,
}

impl<'a> LinkResolution<'a> {
    fn new(mount: &'a Mount, file: &Arc<FileState>, here: NodeId, names: Vec<Vec<u8>>) -> Self {
        LinkResolution {
            mount,
            file: Arc::clone(file),
            group: here,
            names,
            link: None,
            is_across_files: false,
        }
    }

    /// Resolves all remaining names. Returns `None` if one does not exist.
    fn resolve(mut self) -> Result<Option<LinkedObject>> {
        let mut hops = 0..limits::SYMLINK_HOPS;
        for left in (0..=limits::TREE_LEVELS).rev() {
            if self.names.len() > left {
                break;
            }
            let Some(name) = self.names.pop() else {
                return self.finish().map(Some);
            };
            let Some(link) = self.file.container.link(self.group, &name)? else {
                return Ok(None);
            };
            if let LinkTarget::Hard(node) = link.target {
                self.link = Some((self.group, name));
                self.group = node;
            } else if hops.next().is_none() {
                break;
            } else if self.follow_link(&link.target)?.is_none() {
                return Ok(None);
            }
        }
        Err(refusal_error(Errno::ELOOP, "link"))
    }

    /// Moves to the group or file to which a soft or external link leads, and adds the names in the
    /// link to the remaining names. Returns `None` if the target does not exist.
    fn follow_link(&mut self, target: &LinkTarget) -> Result<Option<()>> {
        let names = match target {
            LinkTarget::Soft(path) | LinkTarget::External { path, .. } => split_path_reversed(path),
            LinkTarget::Alias(_) | LinkTarget::Reference { .. } => {
                let names = self.file.container.alias_path(target)?;
                names.into_iter().rev().collect()
            }
            LinkTarget::Hard(_) | LinkTarget::UserDefined(_) => return Ok(None),
            LinkTarget::Damaged(error) => return Err(error.clone()),
        };
        if let Some(name) = target.other_file_name() {
            let Some(file) = open_other_file(self.mount, &self.file, name)? else {
                return Ok(None);
            };
            self.file = file;
            self.is_across_files = true;
        }
        if !matches!(target, LinkTarget::Soft(path) if !path.starts_with(b"/")) {
            self.group = self.file.container.root();
            self.link = None;
        }
        self.names.extend(names);
        Ok(Some(()))
    }

    fn finish(self) -> Result<LinkedObject> {
        Ok(LinkedObject {
            node: self.file.container.node(self.group)?,
            file: self.file,
            link: self.link,
            is_across_files: self.is_across_files,
        })
    }
}

/// Opens the file that `file` references by the name `name`. Reads of the opened file count against
/// the budget of the request that uses `file`. Returns `None` if the mount does not show the
/// referenced file.
fn open_other_file(mount: &Mount, file: &FileState, name: &[u8]) -> Result<Option<Arc<FileState>>> {
    let source = mount.current_file()?;
    if source.generation != file.generation {
        return Err(stale_error());
    }
    match mount.other_files.entry(&source, file, name) {
        Ok(None | Some(OtherFileEntry::Spelling(ShownLocation::Root))) => {
            Ok(Some(source.with_budget_of(file)))
        }
        Ok(Some(OtherFileEntry::File(other))) => Ok(Some(other.with_budget_of(file))),
        // The name has just changed.
        Ok(Some(OtherFileEntry::Spelling(_))) => Err(stale_error()),
        Err(Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}
