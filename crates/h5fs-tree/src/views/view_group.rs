//! The directories of a tree of views. They correspond to the directories of the file's own tree,
//! and contain views in place of objects.
//!
//! The name of a view is the shown name of its object plus the suffix of its form. If a group's
//! name ends in a suffix of the tree, the dot is escaped as `%2E`. In the tree of attributes, an
//! `@` at the start of a name is escaped as `%40` instead. A name that becomes longer than 255
//! bytes is shortened.
//!
//! A link to an object that has a view is shown as a symbolic link to the view. A link into another
//! file leads to the same tree of views of that file. Links that lead nowhere are omitted.

use std::sync::Arc;

use h5fs_conventions::dimensions::NON_COORDINATE_PREFIX;
use h5fs_reader::error::{Error, Result, ignore_permanent};
use h5fs_reader::model::{Link, LinkTarget, Node, NodeId, NodeKind};
use h5fs_reader::wire::to_u64;
use h5fs_view::elements::references::References;
use h5fs_view::pictures::frames::PictureStack;
use h5fs_view::zarr::store_entry::DOCUMENT;

use crate::data_files::file_state::FileState;
use crate::data_files::mount::Mount;
use crate::data_files::other_files::ShownLocation;
use crate::limits;
use crate::name;
use crate::names::link_resolution::{LinkedObject, is_link_loop, resolve_link_target};
use crate::names::namespace::{LinkEntry, Namespace, ShownGroup};
use crate::names::symlink;
use crate::state::inode::{self, Inode, NodeType, TreeNumber};
use crate::views::store_object::{StorePresence, store_presence};
use crate::views::trees;
use crate::views::trees::view_tree::{TreeShape, ViewForm, ViewTree};

/// A directory of a tree of views.
pub(crate) struct ViewGroup<'a> {
    pub(crate) file: &'a Arc<FileState>,
    pub(crate) tree: &'static ViewTree,
    /// Tree number, in this file, of the tree's directories.
    number: TreeNumber,
    mount: &'a Mount,
    /// The group that the directory shows, or another object that has a directory in this tree.
    pub(crate) object: NodeId,
    /// The group's directory in the file's own tree.
    source: ShownGroup<'a>,
}

/// The path to which a link other than a hard link leads.
struct LinkPath {
    start: PathStart,
    names: Vec<Vec<u8>>,
}

/// The directory where the path of a link starts.
#[derive(Debug, PartialEq, Eq)]
enum PathStart {
    /// The group that contains the link.
    Here,
    Root,
    /// The root of another file.
    Other(ShownLocation),
}

/// An entry of a directory of views.
#[derive(Clone)]
pub(crate) struct ViewEntry {
    /// Inode number, before hash collisions are resolved.
    pub(crate) ino: u64,
    pub(crate) inode: Inode,
    /// Text of the symbolic link, if the entry is one.
    pub(crate) link_text: Option<Vec<u8>>,
    /// Whether the kernel may cache the entry until the file changes. False for links to other
    /// files, because these may change at any time.
    pub(crate) is_cacheable: bool,
}

impl<'a> ViewGroup<'a> {
    /// Creates the directory of `object` in a tree of views. `number` is the tree number, in this
    /// file, of the tree's directories or of its files.
    ///
    /// # Errors
    /// `NotFound` if the number does not belong to a tree of views; `Limit` if all tree numbers are
    /// in use.
    pub(crate) fn new(
        mount: &'a Mount,
        file: &'a Arc<FileState>,
        number: TreeNumber,
        object: NodeId,
    ) -> Result<Self> {
        let in_source = mount.other_files.tree_number_in_source(number);
        let tree = trees::tree_with_number(in_source).ok_or(Error::NotFound)?;
        Ok(ViewGroup {
            file,
            tree,
            number: mount.other_files.tree_number(file, tree.number)?,
            mount,
            object,
            source: mount.namespace(file).directory(object),
        })
    }

    fn namespace(&self) -> Namespace<'a> {
        self.source.namespace
    }

    /// Returns the number, in this file, of the tree of views whose number in the source is
    /// `in_source`. Each file has tree numbers of its own.
    ///
    /// # Errors
    /// `Limit` if all tree numbers are in use.
    pub(crate) fn tree_number(&self, in_source: TreeNumber) -> Result<TreeNumber> {
        self.mount.other_files.tree_number(self.file, in_source)
    }

    /// Returns the inode number of the element with the index `element` of the object. It belongs
    /// to the tree of views whose number in the source is `in_source`.
    ///
    /// # Errors
    /// `Limit` if all tree numbers are in use.
    pub(crate) fn element_number(&self, in_source: TreeNumber, element: u64) -> Result<u64> {
        let (tree, generation) = (self.tree_number(in_source)?, self.file.generation);
        Ok(inode::element_number(
            generation,
            tree,
            self.object,
            element,
        ))
    }

    fn node_number(&self, tree: TreeNumber, node: NodeId) -> u64 {
        inode::node_number(self.file.generation, tree, node)
    }

    /// Returns the inode number of the entry `shown`, for entries whose inode number is a hash of
    /// the name and not derived from an object.
    pub(crate) fn link_number(&self, shown: &[u8]) -> u64 {
        inode::link_number(self.file.generation, self.number, self.object, shown)
    }

    /// Returns whether the directory belongs to a group, so that it contains the members of the
    /// group.
    ///
    /// # Errors
    /// Fails if the object cannot be read now.
    pub(crate) fn is_group_directory(&self) -> Result<bool> {
        let node = ignore_permanent(self.file.container.node(self.object))?;
        Ok(node.is_some_and(|node| matches!(node.kind, NodeKind::Group)))
    }

    /// Returns whether the directory belongs to an array, or to an object that the tree shows as an
    /// array.
    ///
    /// # Errors
    /// Fails if the object cannot be read now.
    pub(crate) fn is_array_directory(&self) -> Result<bool> {
        let node = ignore_permanent(self.file.container.node(self.object))?;
        Ok(node.is_some_and(|node| node.array().is_some()))
    }

    /// Returns the entry `shown` of this directory.
    pub(crate) fn find(&self, shown: &[u8]) -> Result<ViewEntry> {
        let forms = match self.source_entry(shown) {
            Ok(found) => self.entries_of_object(&found)?,
            Err(Error::NotFound) => self.files_of_own_group()?,
            Err(error) => return Err(error),
        };
        let mut forms = forms.into_iter();
        match forms.find(|form| *form.inode.name == *shown) {
            Some(form) => Ok(form),
            None => self.find_variable(shown),
        }
    }

    /// Returns the entry `shown` of a Zarr store for a variable that netCDF has renamed, because a
    /// dimension has the same name.
    fn find_variable(&self, shown: &[u8]) -> Result<ViewEntry> {
        let name = [NON_COORDINATE_PREFIX, &*self.tree.group_name(shown)].concat();
        if self.tree.store().is_none() || name.len() > limits::NAME_BYTES {
            return Err(Error::NotFound);
        }
        let entry = self.entry_in_store(&self.source.find(&name)?)?;
        let entry = entry.filter(|(entry, _)| *entry.inode.name == *shown);
        entry.map(|(entry, _)| entry).ok_or(Error::NotFound)
    }

    /// Returns the name in a Zarr store of the array that the file's own tree shows as `name`: the
    /// variable's original name, unless another object has that name.
    fn variable_name(&self, name: &[u8]) -> Result<Vec<u8>> {
        let plain = name.strip_prefix(NON_COORDINATE_PREFIX).unwrap_or_default();
        let is_free = || match self.source.find(plain) {
            Ok(found) => self.entry_in_store(&found).map(|entry| entry.is_none()),
            Err(Error::NotFound) => Ok(true),
            Err(error) => Err(error),
        };
        let is_name = !matches!(plain, b"" | b"." | b"..");
        Ok(self.directory_name(if is_name && is_free()? { plain } else { name }))
    }

    /// Returns the files that show this directory's own group. Outside Zarr stores, only the root
    /// has such files. In a Zarr store, every group has its metadata document.
    ///
    /// # Errors
    /// Fails if the root cannot be read now.
    pub(crate) fn files_of_own_group(&self) -> Result<Vec<ViewEntry>> {
        if self.tree.store().is_some() {
            return self.document_entry().map(|document| vec![document]);
        }
        let Some(name) = self.tree.root_name.filter(|_| self.is_root()) else {
            return Ok(Vec::new());
        };
        let mut files = Vec::new();
        let node = self.file.container.node(self.object)?;
        for form in self.tree.forms {
            let shown = [name, form.suffix].concat();
            if form.size(self.file, &node)?.is_some() && self.source_entry(&shown).is_err() {
                files.push(self.form_entry(Some(form), &node, shown, None)?);
            }
        }
        Ok(files)
    }

    /// Returns the entry of the metadata document of this group in a Zarr store.
    fn document_entry(&self) -> Result<ViewEntry> {
        let number = self.tree_number(self.tree.number + 1)?;
        let generation = self.file.generation;
        Ok(ViewEntry {
            ino: inode::link_number(generation, number, self.object, DOCUMENT),
            inode: self.inode(NodeType::StoreFile, self.object, DOCUMENT.to_vec()),
            link_text: None,
            is_cacheable: true,
        })
    }

    /// Returns the entry of the file's own tree for the object that the view `shown` shows.
    pub(crate) fn source_entry(&self, shown: &[u8]) -> Result<LinkEntry> {
        name::check_name_length(shown)?;
        let names = self.object_names(shown).map(|(_, name)| name);
        for name in names.chain([self.tree.group_name(shown)]) {
            match self.source.find(&name) {
                Ok(found) if self.is_entry_name(shown, &found) => return Ok(found),
                Ok(_) | Err(Error::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        if name::is_shortened(shown) {
            return self.find_shortened(shown);
        }
        Err(Error::NotFound)
    }

    fn is_entry_name(&self, shown: &[u8], found: &LinkEntry) -> bool {
        self.is_shown_as(&found.inode.name, shown)
    }

    /// Returns whether the object that the file's own tree shows as `name` has an entry `shown` in
    /// this directory.
    fn is_shown_as(&self, name: &[u8], shown: &[u8]) -> bool {
        let mut files = self.tree.forms.iter();
        files.any(|form| self.file_name(form, name) == shown) || self.directory_name(name) == shown
    }

    fn find_shortened(&self, shown: &[u8]) -> Result<LinkEntry> {
        let mut links = self.file.container.links(self.object)?;
        let mut left = limits::CUT_NAME_LINKS;
        while let Some(link) = links.next()? {
            let name = self.source.shown_name(&link);
            if self.is_shown_as(&name, shown) {
                return Ok(self.source.link_entry(link));
            }
            match left.checked_sub(link.cost()) {
                Some(after) => left = after,
                None => break,
            }
        }
        Err(Error::NotFound)
    }

    /// Iterates over the names that the object of the file `shown` may have in the file's own tree,
    /// each with the form of the file.
    pub(crate) fn object_names(
        &self,
        shown: &[u8],
    ) -> impl Iterator<Item = (&'static ViewForm, Vec<u8>)> {
        let forms = self.tree.forms.iter();
        forms.filter_map(|form| {
            let stem = shown.strip_suffix(form.suffix)?;
            Some((form, self.tree.object_name(stem, self.is_root())))
        })
    }

    fn is_root(&self) -> bool {
        self.object == self.file.container.root()
    }

    fn directory_name(&self, name: &[u8]) -> Vec<u8> {
        self.tree.directory_name(name)
    }

    fn file_name(&self, form: &ViewForm, name: &[u8]) -> Vec<u8> {
        self.tree.file_name(form, name, self.is_root())
    }

    /// Returns the entries of this directory for the entry `found` of the file's own tree: none, a
    /// directory, files, or both.
    ///
    /// # Errors
    /// Fails if the object cannot be read now.
    pub(crate) fn entries_of_object(&self, found: &LinkEntry) -> Result<Vec<ViewEntry>> {
        if self.tree.store().is_some() {
            let shown = self.entry_in_store(found)?;
            return Ok(shown.into_iter().map(|(entry, _)| entry).collect());
        }
        let Some(place) = self.linked_object(found)? else {
            return self.unreadable_entries(found);
        };
        let (file, node) = (&place.file, &place.node);
        let name = &*found.inode.name;
        let mut forms = Vec::new();
        let mut files = Vec::new();
        for form in self.tree.forms {
            if form.size(file, node)?.is_some() {
                files.push(form);
            }
        }
        // Without a suffix, the directory and the file would have the same name.
        let has_place = files.iter().all(|form| !form.suffix.is_empty());
        let way = self.link_path(&found.target)?;
        if has_place && self.has_directory(node) {
            let text = match &way {
                Some(way) => self.soft_link_text(way, None).map(Some),
                None => self.link_to_location(node, found, None),
            };
            if text.is_none() {
                // The link may lead to an object once all objects can be read.
                self.file.path_index().check_no_read_error()?;
            }
            let shown = self.directory_name(name);
            if let Some(text) = text {
                forms.push(self.form_entry(None, node, shown, text)?);
            }
        }
        for form in files {
            let text = match &way {
                Some(_) if place.link.is_none() => {
                    self.soft_link_text_to_group(&place, form).map(Some)
                }
                Some(way) => self.soft_link_text(way, Some(form)).map(Some),
                None if form.has_pages => self.link_to_location(node, found, Some(form)),
                None => Some(None),
            };
            let shown = self.file_name(form, name);
            if let Some(text) = text {
                forms.push(self.form_entry(Some(form), node, shown, text)?);
            }
        }
        for form in &mut forms {
            form.is_cacheable =
                file.tree == self.file.tree && found.target.other_file_name().is_none();
        }
        // An entry without an inode number of its own cannot be shown.
        forms.retain(|form| {
            form.inode.node_type == NodeType::ViewLink
                || inode::is_node_in_range(self.number, form.inode.node)
        });
        Ok(forms)
    }

    /// Returns the entry in a Zarr store for a link of this group, and the link's target object.
    /// Returns `None` if the store does not contain the object.
    ///
    /// # Errors
    /// Fails if the object cannot be read now.
    pub(crate) fn link_entry_in_store(&self, link: Link) -> Result<Option<(ViewEntry, Arc<Node>)>> {
        self.entry_in_store(&self.source.link_entry(link))
    }

    /// Returns the entry in a Zarr store for the entry `found` of the file's own tree, and the
    /// object. The entry is a directory of a group or an array, or a link to an array with several
    /// names. A group has only one directory, because Zarr readers follow links and a cycle would
    /// be endless.
    fn entry_in_store(&self, found: &LinkEntry) -> Result<Option<(ViewEntry, Arc<Node>)>> {
        if found.target.other_file_name().is_some() {
            return Ok(None);
        }
        let is_hard = matches!(found.target, LinkTarget::Hard(_));
        let (node, link) = match &found.target {
            LinkTarget::Hard(_) => match self.linked_object(found)? {
                Some(place) => (place.node, None),
                None => return Ok(None),
            },
            target => match self.link_target(target)? {
                Some(place) if !place.is_across_files => (place.node, place.link),
                _ => return Ok(None),
            },
        };
        let note = |error: &Error| {
            self.mount
                .record_error(self.file, found.ino, &found.inode, error);
        };
        let presence = ignore_permanent(store_presence(self.file, &node).inspect_err(note))?;
        let text = match presence.unwrap_or(StorePresence::Unsupported) {
            StorePresence::Group if found.inode.node_type == NodeType::Group => None,
            StorePresence::Array if is_hard => match self.link_to_location(&node, found, None) {
                Some(text) => text,
                None => return Ok(None),
            },
            StorePresence::Array => match self.link_text_to(link) {
                Some(text) => Some(text),
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let shown = match &text {
            None if node.array().is_some() && node.link_count <= 1 => {
                self.variable_name(&found.inode.name)?
            }
            _ => self.directory_name(&found.inode.name),
        };
        let entry = self.form_entry(None, &node, shown, text)?;
        let is_shown = entry.link_text.is_some() || inode::is_node_in_range(self.number, node.id);
        Ok(is_shown.then_some((entry, node)))
    }

    /// Returns the text of a symbolic link from this directory to an object in the Zarr store.
    /// `link` is the hard link to the object: the group that contains it, and its name as in the
    /// file. Returns `None` if the object is the root, if netCDF has renamed it, or if a path is
    /// unknown.
    fn link_text_to(&self, link: Option<(NodeId, Vec<u8>)>) -> Option<Vec<u8>> {
        let (group, name) = link?;
        // Only netCDF creates such names, and netCDF does not create links.
        if name.starts_with(NON_COORDINATE_PREFIX) {
            return None;
        }
        let shown = name::escape(&name, group == self.namespace().root());
        let mut way = self.group_path(group)?;
        way.push(self.directory_name(&shown).into());
        Some(symlink::relative_link_text(
            &self.group_path(self.object)?,
            &way,
        ))
    }

    /// Returns the entries for the unreadable object `found` of the file's own tree: the pages that
    /// report its error.
    fn unreadable_entries(&self, found: &LinkEntry) -> Result<Vec<ViewEntry>> {
        let is_object = found.inode.node_type == NodeType::Object;
        let forms = self.tree.forms.iter();
        let forms = forms.filter(|form| form.has_pages && is_object);
        let entry = |form: &ViewForm| {
            let node = form.node(self.file, found.inode.node)?;
            let shown = self.file_name(form, &found.inode.name);
            self.form_entry(Some(form), &node, shown, None)
        };
        forms.map(entry).collect()
    }

    /// Returns the entry that a listing shows for the object `found`, which cannot be read because
    /// of a temporary error.
    pub(crate) fn temporarily_unreadable_entry(&self, found: &LinkEntry) -> ViewEntry {
        let shown = self.directory_name(&found.inode.name);
        ViewEntry {
            ino: self.link_number(&shown),
            inode: self.inode(NodeType::Unreadable, self.object, shown),
            link_text: None,
            is_cacheable: true,
        }
    }

    /// Returns the maximum number of entries that this directory has for one entry of the file's
    /// own tree.
    pub(crate) fn max_entries(&self) -> u64 {
        to_u64(self.tree.forms.len()) + 1
    }

    /// Returns the target object of the link `found`, or `None` if the object cannot be read or the
    /// link leads nowhere.
    fn linked_object(&self, found: &LinkEntry) -> Result<Option<LinkedObject>> {
        let here = |node| LinkedObject {
            file: Arc::clone(self.file),
            node,
            link: None,
            is_across_files: false,
        };
        if let Some(node) = &found.object {
            return Ok(ignore_permanent(node.clone())?.map(here));
        }
        if let LinkTarget::Hard(node) = &found.target {
            return Ok(ignore_permanent(self.file.container.node(*node))?.map(here));
        }
        self.link_target(&found.target)
    }

    /// Returns the object to which a link with the target `target` leads, or `None` if the link
    /// leads nowhere. The link is not a hard link.
    fn link_target(&self, target: &LinkTarget) -> Result<Option<LinkedObject>> {
        match resolve_link_target(self.mount, self.file, self.object, target) {
            Err(error) if is_link_loop(&error) => Ok(None),
            place => Ok(ignore_permanent(place)?.flatten()),
        }
    }

    fn has_directory(&self, node: &Node) -> bool {
        match node.kind {
            NodeKind::Group => true,
            NodeKind::Scalar(_) => false,
            NodeKind::Array(ref array) => match self.tree.shape {
                TreeShape::References => References::is_reference_array(array),
                TreeShape::Frames => PictureStack::has_frames(&*self.file.container, node),
                shape => shape == TreeShape::Attributes,
            },
            NodeKind::CommittedDatatype(_) => self.tree.shape == TreeShape::Attributes,
        }
    }

    /// Returns the entry `shown` for the object `node`: a file of the form `form`, or a directory
    /// if `form` is `None`. If `text` is given, the entry is a symbolic link with this text.
    fn form_entry(
        &self,
        form: Option<&ViewForm>,
        node: &Node,
        shown: Vec<u8>,
        text: Option<Vec<u8>>,
    ) -> Result<ViewEntry> {
        let (ino, inode) = match (&text, form) {
            // The kernel caches a link's text by inode number, so the number depends on the text.
            (Some(text), _) => (
                self.link_number(&[&shown, &b"/"[..], text].concat()),
                self.inode(NodeType::ViewLink, self.object, shown),
            ),
            (None, Some(form)) => {
                let inode = self.inode(NodeType::View, node.id, shown);
                let tree = self.tree_number(form.number)?;
                (self.node_number(tree, node.id), Inode { tree, ..inode })
            }
            (None, None) => (
                self.node_number(self.number, node.id),
                self.inode(NodeType::ViewDirectory, node.id, shown),
            ),
        };
        let is_lasting = true;
        Ok(ViewEntry {
            ino,
            inode,
            link_text: text,
            is_cacheable: is_lasting,
        })
    }

    pub(crate) fn inode(&self, node_type: NodeType, node: NodeId, shown: Vec<u8>) -> Inode {
        Inode {
            node_type,
            generation: self.file.generation,
            tree: self.number,
            node,
            parent: self.node_number(self.number, self.object),
            name: shown.into(),
        }
    }

    /// Returns the text of a symbolic link to the view of `node`, if the object has several links
    /// and the view is at another link. The view is a directory, or a file of the form `form`. The
    /// inner `None` means that the view is at `found` itself. The outer `None` means that no
    /// symbolic link can lead to the view.
    fn link_to_location(
        &self,
        node: &Node,
        found: &LinkEntry,
        form: Option<&ViewForm>,
    ) -> Option<Option<Vec<u8>>> {
        let place = match node.kind {
            NodeKind::Group if found.inode.node_type == NodeType::Group => None,
            NodeKind::Group => Some(self.namespace().path(node.id)?),
            _ if node.link_count <= 1 => None,
            _ => match self.namespace().indexed_parent_and_name(node.id) {
                Some((group, name)) if group != self.object || *name != *found.inode.name => {
                    let mut names = self.namespace().path(group)?;
                    names.push(name);
                    Some(names)
                }
                _ => None,
            },
        };
        let Some(place) = place else {
            return Some(None);
        };
        let place = self.tree.shown_path(&place, form, true)?;
        let place: Vec<Box<[u8]>> = place.into_iter().map(Into::into).collect();
        let here = self.group_path(self.object)?;
        Some(Some(symlink::relative_link_text(&here, &place)))
    }

    /// Returns the path of the directory of `group` in this tree, as names from the tree's root.
    fn group_path(&self, group: NodeId) -> Option<Vec<Box<[u8]>>> {
        let names = self.namespace().path(group)?;
        let names = names.iter().map(|name| self.directory_name(name).into());
        Some(names.collect())
    }

    /// Returns the path to which a link other than a hard link leads, with names as in the file's
    /// own tree.
    fn link_path(&self, target: &LinkTarget) -> Result<Option<LinkPath>> {
        let names = match target {
            LinkTarget::Soft(path) => {
                let absolute = path.starts_with(b"/");
                let from_root = absolute || self.source.is_root();
                return Ok(Some(LinkPath {
                    start: if absolute {
                        PathStart::Root
                    } else {
                        PathStart::Here
                    },
                    names: symlink::shown_names(path, from_root).collect(),
                }));
            }
            LinkTarget::External { path, .. } => symlink::shown_names(path, true).collect(),
            LinkTarget::Alias(_) | LinkTarget::Reference { .. } => {
                let Some(names) = ignore_permanent(self.file.container.alias_path(target))? else {
                    return Ok(None);
                };
                symlink::escape_names(&names).collect()
            }
            _ => return Ok(None),
        };
        let from = match target.other_file_name() {
            None => PathStart::Root,
            Some(file) => match self.mount.other_files.shown_location(self.file, file) {
                Some(place) => PathStart::Other(place),
                None => return Ok(None),
            },
        };
        Ok(Some(LinkPath { start: from, names }))
    }

    /// Returns the text of a symbolic link from this directory to the object at the path `way` in
    /// this tree: to its file of the form `form`, or to its directory if `form` is `None`.
    fn soft_link_text(&self, way: &LinkPath, form: Option<&ViewForm>) -> Option<Vec<u8>> {
        let names = self.tree_names(way, form)?;
        let up = match &way.start {
            PathStart::Here => 0,
            PathStart::Root => self.source.path()?.len(),
            PathStart::Other(place) => {
                return self
                    .link_text_to_other_file(self.mount.other_files.location_path(place), names);
            }
        };
        let up = std::iter::repeat_n(b"..".to_vec(), up);
        Some(symlink::join_path(up.chain(names)))
    }

    /// Returns the text of a symbolic link to the file of the form `form` of the group at `place`,
    /// by the path of the group's directory. Links whose path has no names (`/`, `.`) need it.
    /// Returns `None` if the group has no file in this tree, for example a root in a tree without
    /// root files.
    fn soft_link_text_to_group(&self, place: &LinkedObject, form: &ViewForm) -> Option<Vec<u8>> {
        let path = self.mount.namespace(&place.file).path(place.node.id)?;
        let names = self.tree.shown_path(&path, Some(form), true)?;
        self.link_text_to_other_file(
            self.mount.other_files.file_location_path(&place.file),
            names,
        )
    }

    /// Returns the text of a symbolic link from this directory to a path in the same tree of
    /// another file. `way` is the path to the root of that file, and `names` are the names in the
    /// tree.
    fn link_text_to_other_file(&self, way: Vec<Box<[u8]>>, names: Vec<Vec<u8>>) -> Option<Vec<u8>> {
        let mut here = self.tree_root_path(self.mount.other_files.file_location_path(self.file));
        here.extend(self.group_path(self.object)?);
        let mut there = self.tree_root_path(way);
        there.extend(names.into_iter().map(Into::into));
        Some(symlink::relative_link_text(&here, &there))
    }

    /// Converts the names of the path `way` to names in this tree. Returns `None` if no file can
    /// have these names.
    fn tree_names(&self, way: &LinkPath, form: Option<&ViewForm>) -> Option<Vec<Vec<u8>>> {
        let from_root = way.start != PathStart::Here || self.is_root();
        self.tree.shown_path(&way.names, form, from_root)
    }

    /// Returns the path to the root of this tree in another file. `way` is the path to the root of
    /// that file.
    fn tree_root_path(&self, way: Vec<Box<[u8]>>) -> Vec<Box<[u8]>> {
        let tree = [name::VIEWS, self.tree.name].map(Into::into);
        way.into_iter().chain(tree).collect()
    }

    /// Returns the name of the file that shows the attribute `attribute` in the directory of its
    /// object.
    pub(crate) fn attribute_name(attribute: &[u8]) -> Vec<u8> {
        name::escape(&[b"@", attribute].concat(), false)
    }
}
