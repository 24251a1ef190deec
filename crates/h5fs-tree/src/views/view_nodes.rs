//! The nodes of the trees of views: directories, views of objects, symbolic links.

use std::ops::ControlFlow;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::memory::distinct::deduplicate_by_name;
use h5fs_reader::model::{Node, NodeId};
use h5fs_reader::wire::{to_u64, to_usize};
use h5fs_view::view::View;
use h5fs_view::zarr::store_entry::DOCUMENT;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::names::namespace::LinkEntry;
use crate::names::symlink;
use crate::nodes::indexed::{self, IndexedEntries, IndexedEntry};
use crate::nodes::node::{FsNode, ObjectDescription, TargetInode};
use crate::nodes::object;
use crate::stat::{FileKind, LookupEntry};
use crate::state::inode::{self, NodeType, TreeNumber};
use crate::state::listing::{
    AttributeNames, DOT_ENTRIES, ListedAttributes, ListingCallback, ListingEntry, ListingState,
};
use crate::views::attribute_file;
use crate::views::frame;
use crate::views::reference_link;
use crate::views::selection;
use crate::views::site::HtmlPageLocation;
use crate::views::store::{self, StoreFile};
use crate::views::trees;
use crate::views::trees::view_tree::{FileSize, TreeShape, ViewForm, ViewSubject};
use crate::views::view_group::{ViewEntry, ViewGroup};

/// A directory of a tree of views.
pub(crate) struct ViewDirectory;

/// A view of an object, as a regular file.
pub(crate) struct ViewFile;

/// A symbolic link in a tree of views.
pub(crate) struct ViewLink;

impl FsNode for ViewDirectory {
    fn kind(&self) -> FileKind {
        FileKind::Directory
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let node = ignore_permanent(target.file.container.node(target.inode.node))?;
        let entry = target.empty_entry(FileKind::Directory);
        Ok(match node {
            Some(node) => entry.with_modification_time_of(&node),
            None => entry.cacheable_if(false),
        })
    }

    fn lookup(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<LookupEntry> {
        let group = view_group(target)?;
        match group.tree.shape {
            TreeShape::Attributes if name.starts_with(b"@") => {
                return attribute_file::lookup_attribute_file(target, &group, name);
            }
            TreeShape::References if !group.is_group_directory()? => {
                return reference_link::lookup_element(target, &group, name);
            }
            TreeShape::Frames if !group.is_group_directory()? => {
                return frame::lookup_frame(target, &group, name);
            }
            TreeShape::Store(_) if name == DOCUMENT || group.is_array_directory()? => {
                return store::lookup_store_entry(target, name);
            }
            _ => {}
        }
        match group.find(name) {
            Err(Error::NotFound) => selection::lookup_selection(target, &group, name),
            found => lookup_view_entry(target.mount, target.file, &found?),
        }
    }

    fn absence_reason(&self, target: &TargetInode<'_>, name: &[u8]) -> Result<Option<String>> {
        selection::absence_reason(target, &view_group(target)?, name)
    }

    /// Returns true for Zarr stores. Their readers request many names that do not exist, and no
    /// link in a store leads to another file.
    fn is_absence_final(&self, target: &TargetInode<'_>) -> bool {
        view_group(target).is_ok_and(|group| group.tree.store().is_some())
    }

    fn list(
        &self,
        target: &TargetInode<'_>,
        listing: &mut ListingState,
        first: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let listed = list(target, listing, first, visit);
        listed.inspect_err(|error| target.record_error(error))
    }
}

impl FsNode for ViewFile {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let form = form(target)?;
        let node = form.node(target.file, target.inode.node)?;
        let entry = match form.size(target.file, &node)? {
            Some(FileSize::Exact(length)) => target.sized_entry(length),
            Some(FileSize::Counted) => {
                target.entry_with_length(self.open(target).map(|view| view.length()))?
            }
            None => target.sized_entry(0).cacheable_if(false),
        };
        Ok(entry
            .with_modification_time_of(&node)
            .cacheable_if(!node.has_transient_error()))
    }

    fn open(&self, target: &TargetInode<'_>) -> Result<Box<dyn View>> {
        let form = form(target)?;
        let node = form.node(target.file, target.inode.node)?;
        let found = viewed_object_entry(target, &node)?;
        let met = found
            .as_ref()
            .map(|(group, found)| (*group, &*found.inode.name));
        form.open(&ViewSubject {
            file: target.file,
            node: &node,
            form_number: target.inode.tree,
            selector: b"",
            path: viewed_path(target, &node, found.as_ref().map(|(_, found)| found))?,
            verify: &|node| object::verify_checksum(target.mount, target.file, node),
            site: Some(&HtmlPageLocation::new(
                target.mount,
                target.file,
                &node,
                met,
            )),
        })
    }

    /// Returns a description with the error of opening the file, because the file's size does not
    /// show that opening fails.
    fn describe_for_xattrs(&self, target: &TargetInode<'_>) -> Option<ObjectDescription> {
        Some(ObjectDescription::from_opening(self, target))
    }
}

impl FsNode for ViewLink {
    fn kind(&self) -> FileKind {
        FileKind::Symlink
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        let shown = view_group(target)?.find(&target.inode.name)?;
        let is_lasting = shown.is_cacheable;
        Ok(target
            .link_entry(text(shown)?.len())
            .cacheable_if(is_lasting))
    }

    fn readlink(&self, target: &TargetInode<'_>) -> Result<Vec<u8>> {
        text(view_group(target)?.find(&target.inode.name)?)
    }
}

/// Returns the text of the symbolic link `link`.
fn text(link: ViewEntry) -> Result<Vec<u8>> {
    symlink::check_length(Some(link.link_text.ok_or(Error::NotFound)?))
}

/// Returns the form of the file that the target is.
fn form(target: &TargetInode<'_>) -> Result<&'static ViewForm> {
    form_with_number(target.mount, target.inode.tree).ok_or(Error::NotFound)
}

/// Returns the directory of the tree of views that is the target or contains the target.
fn view_group<'a>(target: &TargetInode<'a>) -> Result<ViewGroup<'a>> {
    let inode = target.inode;
    ViewGroup::new(target.mount, target.file, inode.tree, inode.node)
}

/// Returns the form whose files have the tree number `number` in the file that contains them.
fn form_with_number(mount: &Mount, number: TreeNumber) -> Option<&'static ViewForm> {
    trees::form_with_number(mount.other_files.tree_number_in_source(number))
}

/// Increments the lookup count of the entry `shown`, other than an attribute, and returns its
/// attributes.
fn lookup_view_entry(
    mount: &Mount,
    file: &Arc<FileState>,
    shown: &ViewEntry,
) -> Result<LookupEntry> {
    TargetInode::add_lookup(
        mount,
        file,
        shown.ino,
        &shown.inode,
        |target| match &shown.link_text {
            Some(text) => Ok(target
                .link_entry(text.len())
                .cacheable_if(shown.is_cacheable)),
            None if shown.inode.node_type == NodeType::View => ViewFile.stat(target),
            None if shown.inode.node_type == NodeType::StoreFile => StoreFile.stat(target),
            None => ViewDirectory.stat(target),
        },
    )
}

fn kind_of(shown: &ViewEntry) -> FileKind {
    match shown.inode.node_type {
        NodeType::ViewDirectory | NodeType::Unreadable => FileKind::Directory,
        NodeType::ViewLink => FileKind::Symlink,
        _ => FileKind::File,
    }
}

/// Returns the attributes of the entry `shown` in a listing of `directory`, unless they are
/// expensive.
fn listed_attributes(directory: &TargetInode<'_>, shown: &ViewEntry) -> ListedAttributes {
    let mount = directory.mount;
    let kind = kind_of(shown);
    if matches!(
        shown.inode.node_type,
        NodeType::Attribute | NodeType::Unreadable
    ) {
        return ListedAttributes::Unknown(kind);
    }
    let (file, inode) = (directory.file, &shown.inode);
    // The document of a group contains the documents of all objects below it.
    if inode.node_type == NodeType::StoreFile {
        return ListedAttributes::Unknown(kind);
    }
    if inode.node_type == NodeType::View && is_size_counted(mount, file, inode.node, inode.tree) {
        return ListedAttributes::Unknown(kind);
    }
    // The listing belongs to the state when the directory was opened. If the file has grown since
    // then, the kernel gets the current attributes.
    let now = mount.last_shown_state(directory.file);
    let entry = match now.filter(|now| now.generation == shown.inode.generation) {
        Some(now) if now.is_growing() => {
            let (now, _granted) = now.for_request(&file.budget.cancel_token());
            lookup_view_entry(mount, &now, shown).ok()
        }
        Some(_) => lookup_view_entry(mount, directory.file, shown).ok(),
        None => None,
    };
    entry.map_or(ListedAttributes::Unknown(kind), ListedAttributes::Counted)
}

/// Returns whether the size of the object's file with the form `form` is known only after its bytes
/// are counted.
pub(crate) fn is_size_counted(
    mount: &Mount,
    file: &FileState,
    object: NodeId,
    form: TreeNumber,
) -> bool {
    let node = file.container.node(object);
    let form = form_with_number(mount, form);
    let size = form
        .zip(node.ok())
        .map(|(form, node)| form.shown_size(file, &node));
    size == Some(Ok(Some(FileSize::Counted)))
}

/// Returns the entry of the file's own tree for the object that the target shows, and the group of
/// the entry. Returns `None` for the root.
fn viewed_object_entry(
    target: &TargetInode<'_>,
    node: &Node,
) -> Result<Option<(NodeId, LinkEntry)>> {
    let (file, inode) = (target.file, target.inode);
    if node.id == file.container.root() {
        return Ok(None);
    }
    let parent = inode::node_with_number(file.generation, inode.parent).ok_or(Error::NotFound)?;
    let group = ViewGroup::new(target.mount, file, inode.tree, parent)?;
    let found = group.source_entry(&inode.name)?;
    Ok(Some((parent, found)))
}

/// Returns the path of the object that the target shows, with names as in the file.
fn viewed_path(
    target: &TargetInode<'_>,
    node: &Node,
    found: Option<&LinkEntry>,
) -> Result<Vec<u8>> {
    let Some(found) = found else {
        return Ok(b"/".to_vec());
    };
    if node.link_count > 1
        && let Some(path) = target.file.path_index().checked_path(node.id)?
    {
        return Ok(path);
    }
    let path = target.namespace().file_path(&found.inode, node.link_count);
    // A deeply nested object has no path.
    Ok(path.unwrap_or_default())
}

/// Passes the entries of the directory to `visit`: attribute files, then the files that show the
/// directory's own group, then the entries for its links.
fn list(
    target: &TargetInode<'_>,
    listing: &mut ListingState,
    first: u64,
    visit: &mut ListingCallback<'_>,
) -> Result<()> {
    let group = view_group(target)?;
    match group.tree.shape {
        TreeShape::References if !group.is_group_directory()? => {
            return reference_link::list(target, &group, first, visit);
        }
        TreeShape::Frames if !group.is_group_directory()? => {
            return frame::list(target, &group, first, visit);
        }
        TreeShape::Store(_) if group.is_array_directory()? => {
            return store::list(target, listing, first, visit);
        }
        _ => {}
    }
    let (begin, mount) = (first - DOT_ENTRIES, target.mount);
    let attributes = listing.attribute_names(first == DOT_ENTRIES, || attribute_names(&group));
    if attributes.is_temporary_error() {
        mount.mark_incomplete(target.ino, listing);
    }
    let names = &attributes.names;
    let root_files = group.files_of_own_group()?;
    let before = to_u64(names.len() + root_files.len());
    let is_of_group = group.is_group_directory();
    indexed::list(target, first, visit, |at| {
        let place = to_usize(at)?;
        if let Some(name) = names.get(place) {
            return Ok(Some((
                vec![attribute_file::attribute_entry(&group, name)],
                at + 1,
            )));
        }
        if let Some(file) = root_files.get(place - names.len()) {
            return Ok(Some((vec![file.clone()], at + 1)));
        }
        let found = if is_of_group.clone()? {
            entries_of_link(target, &group, listing, at - before)?
        } else {
            None
        };
        match (&attributes.error, found) {
            (_, Some((entries, behind))) => Ok(Some((entries, before + behind))),
            // The previous entries are returned first, and the next call resumes here.
            (Some(error), None) if at == begin => Err(error.clone()),
            (_, None) => Ok(None),
        }
    })
}

/// Returns the entries of one link from the listing position `at` on, and the position of the next
/// link. Each link occupies as many positions as a link can have entries.
fn entries_of_link(
    target: &TargetInode<'_>,
    group: &ViewGroup<'_>,
    listing: &mut ListingState,
    at: u64,
) -> Result<IndexedEntries<ViewEntry>> {
    let places = group.max_entries();
    let link = listing.link_at(
        &*target.file.container,
        group.object,
        at / places,
        target.mount.options.ordered,
    )?;
    let Some((link, behind)) = link else {
        return Ok(None);
    };
    let found = target.directory().link_entry(link);
    let forms = group.entries_of_object(&found);
    let is_lasting = |forms: &Vec<ViewEntry>| forms.iter().all(|form| form.is_cacheable);
    if !forms.as_ref().is_ok_and(is_lasting) || found.target.other_file_name().is_some() {
        target.mount.mark_incomplete(target.ino, listing);
    }
    let mut forms = forms.unwrap_or_else(|_| vec![group.temporarily_unreadable_entry(&found)]);
    forms.drain(..to_usize(at % places)?.min(forms.len()));
    Ok(Some((forms, places * behind)))
}

impl IndexedEntry for ViewEntry {
    fn visit(
        &self,
        directory: &TargetInode<'_>,
        next: u64,
        visit: &mut ListingCallback<'_>,
    ) -> bool {
        let listed = ListingEntry {
            name: &self.inode.name,
            ino: self.ino,
            kind: kind_of(self),
            stat: &|| listed_attributes(directory, self),
        };
        visit(&listed, next)
    }
}

fn attribute_names(group: &ViewGroup<'_>) -> AttributeNames {
    let mut found = AttributeNames::default();
    if group.tree.shape == TreeShape::Attributes {
        let names = &mut found.names;
        let listed = group
            .file
            .container
            .attributes(group.object, &mut |attribute| {
                names.push(ViewGroup::attribute_name(&attribute.name));
                ControlFlow::Continue(())
            });
        deduplicate_by_name(names, |name| name);
        found.error = listed.err();
    }
    found.with_measured_memory()
}
