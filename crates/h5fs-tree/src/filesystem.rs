//! The tree of one file, independent of a mount: each request of the kernel is a method.
//!
//! Each lookup increments the lookup count of the inode that it returns. The caller must release
//! the lookup with [`forget`](Requests::forget).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::detect;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::model::Container;
use h5fs_reader::source::identity::Identity;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_view::view::View;
use nix::errno::Errno;

use crate::data_files::file_state::{FileState, OpenedFile};
use crate::data_files::missing_source;
use crate::data_files::mount::{LastSeenState, Mount, SharedResources};
use crate::data_files::open_inode::{HandleContent, OpenInode};
use crate::data_files::opening::{container_opener, open_source, refuse_unsupported_acl};
use crate::data_files::other_files::OtherFiles;
use crate::data_files::pins::OpenDocument;
use crate::data_files::unread_source::UnreadSource;
use crate::data_files::watch::SourceWatch;
use crate::errno::{refusal_error, stale_error, too_long_error};
use crate::node_table;
use crate::nodes::node::{Defect, FsNode, TargetInode};
use crate::nodes::xattr;
use crate::options::Options;
use crate::requests::{
    AttributesCallback, Ino, ListingDetail, ObjectAnswer, ObjectQuery, Requests, SeekKind, Version,
};
use crate::stat::{DirEntry, FileKind, LookupEntry, SourceAttributes};
use crate::state::errors::RecentErrors;
use crate::state::handle::{Caching, Handle, OpenedHandle};
use crate::state::inode::{self, Inode, NodeType};
use crate::state::listing::{DOT_ENTRIES, ListedAttributes, ListingCallback, ListingEntry};
use crate::state::traffic::RequestCounters;
use crate::views;

/// The tree of one file, as a mount shows it.
pub struct Filesystem {
    pub(super) mount: Mount,
}

impl Filesystem {
    /// Opens the file at `source`.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, its format is unknown, or its root is damaged.
    pub fn open(source: &Path, options: &Options) -> Result<Self> {
        Self::from_source(UnreadSource::open(source)?, options)
    }

    /// Creates the tree of an open file.
    ///
    /// # Errors
    /// Fails if the format is unknown or the root is damaged.
    pub fn from_source(source: UnreadSource, options: &Options) -> Result<Self> {
        let watch = source.watch;
        refuse_unsupported_acl(&*watch.file(), options)?;
        if !options.force {
            detect::refuse_locked(&*watch.file())?;
        }
        let others = OtherFiles::new(watch.path(), container_opener(options));
        let opened = open_source(
            watch.file(),
            &watch,
            &others,
            options,
            &CancelToken::default(),
        )?;
        Ok(Self::build(opened, options, others, Some(watch)))
    }

    /// Creates the tree of an open file that is not watched for changes and cannot reference other
    /// files.
    pub fn new(container: Arc<dyn Container>, origin: SourceAttributes, options: &Options) -> Self {
        let others = OtherFiles::new(&origin.path, container_opener(options));
        let opened = OpenedFile {
            container,
            origin: Arc::new(origin),
            neighbours: Arc::new(Neighbours::unavailable()),
            state: None,
            watch: None,
            shown_name: [].into(),
        };
        Self::build(opened, options, others, None)
    }

    pub(super) fn build(
        opened: OpenedFile,
        options: &Options,
        others: OtherFiles,
        watch: Option<SourceWatch>,
    ) -> Self {
        Filesystem {
            mount: Mount::new(opened, options, others, watch, views::FACTS, None),
        }
    }

    /// Creates the tree of one data file of a mounted directory. `shared` contains the resources
    /// that all data files share, the generation of this data file, and its list of errors.
    pub(super) fn from_member(
        opened: OpenedFile,
        options: &Options,
        others: OtherFiles,
        watch: SourceWatch,
        shared: (SharedResources, u32, RecentErrors),
    ) -> Self {
        let (watch, shared) = (Some(watch), Some(shared));
        Filesystem {
            mount: Mount::new(opened, options, others, watch, views::FACTS, shared),
        }
    }

    /// Checks the source for changes, unless a recent check exists, and reopens the source if it
    /// has changed. `cancel` cancels waiting.
    ///
    /// # Errors
    /// [`Error::cancelled`] if `cancel` ends the request first.
    pub(super) fn refresh(&self, cancel: &CancelToken) -> Result<()> {
        self.mount.refresh(cancel)
    }

    /// Returns the identity and the generation of the source when it was last seen.
    pub(super) fn last_seen(&self) -> Option<LastSeenState> {
        self.mount.last_seen()
    }

    /// Returns the approximate memory of the open file in bytes.
    pub(super) fn weight(&self) -> u64 {
        self.mount.weight()
    }

    /// Returns the path, owner, mode and times copied from the source.
    pub fn origin(&self) -> Arc<SourceAttributes> {
        self.mount.origin()
    }

    /// Returns the inode number of the root.
    pub fn root(&self) -> Ino {
        inode::ROOT
    }

    /// Returns the error because of which only a part of the file can be shown, according to its
    /// root object.
    pub fn root_error(&self) -> Option<Error> {
        self.mount.root_error()
    }

    /// Returns the generation of the source, counted from 0. The generation increases when the
    /// source changes other than by growing. Returns `None` if the source has changed and cannot be
    /// reopened.
    pub fn generation(&self) -> Option<u32> {
        self.mount.generation()
    }

    /// Calls `answer` with the node that implements the inode `ino`, and the inode.
    pub(super) fn with_node<T>(
        &self,
        ino: Ino,
        cancel: &CancelToken,
        answer: impl FnOnce(&dyn FsNode, &TargetInode<'_>) -> Result<T>,
    ) -> Result<T> {
        cancel.check_cancelled()?;
        let (file, inode) = self.mount.find_inode(ino)?;
        let (file, _granted) = file.for_request(cancel);
        let answered = answer(
            node_table::node_for(&inode),
            &self.target_inode(&file, ino, &inode),
        );
        self.mount.log_missing_files(&file);
        // After a cancellation, the result may omit objects that could not be read for that reason.
        let answered = answered.and_then(|answer| {
            file.budget
                .cancel_token()
                .check_cancelled()
                .map(|()| answer)
        });
        answered.map_err(|error| file.convert_error(error))
    }

    fn target_inode<'a>(
        &'a self,
        file: &'a Arc<FileState>,
        ino: Ino,
        inode: &'a Inode,
    ) -> TargetInode<'a> {
        TargetInode {
            mount: &self.mount,
            file,
            ino,
            inode,
        }
    }

    /// Reads every attribute of the object `ino`, including attributes that are not shown, and
    /// searches for the files that the object references. Reports each defect to `find`.
    ///
    /// # Errors
    /// Fails if the object itself or its list of attributes is damaged.
    pub fn examine(&self, ino: Ino, find: &mut dyn FnMut(Defect<'_>)) -> Result<()> {
        // The budget is unlimited, because the kernel does not wait for this call.
        let (file, inode) = self.mount.find_inode(ino)?;
        let target = self.target_inode(&file, ino, &inode);
        node_table::node_for(&inode).examine(&target, find)
    }

    fn open_document(
        &self,
        file: &Arc<FileState>,
        (ino, inode): (Ino, &Inode),
        cancel: &CancelToken,
    ) -> Result<OpenDocument> {
        let view = self.open_content(file, (ino, inode), cancel)?;
        OpenDocument::new(Arc::clone(file), inode, view)
    }

    /// Opens the content of the regular file `inode` of the state `file`.
    fn open_content(
        &self,
        file: &Arc<FileState>,
        (ino, inode): (Ino, &Inode),
        cancel: &CancelToken,
    ) -> Result<Box<dyn View>> {
        let (file, _granted) = file.for_request(cancel);
        let target = self.target_inode(&file, ino, inode);
        let opened = node_table::node_for(inode).open(&target);
        opened
            .inspect_err(|error| target.record_error(error))
            .map_err(|error| file.convert_error(error))
    }

    /// Opens the regular file `ino` under the handle `handle`, which the caller has chosen.
    ///
    /// # Errors
    /// Fails as [`open_file_with_cancel`](Requests::open_file_with_cancel) does.
    fn open_file_under_handle(
        &self,
        handle: Handle,
        ino: Ino,
        cancel: &CancelToken,
    ) -> Result<OpenedHandle> {
        cancel.check_cancelled()?;
        let (file, inode) = self.mount.find_inode(ino)?;
        let document = match self.mount.pins.pinned_document(ino, &file, &inode)? {
            Some(document) => document,
            None => self.open_document(&file, (ino, &inode), cancel)?,
        };
        let caching = if document.file.is_growing() || document.view.changes_at_each_open() {
            Caching::Never
        } else if document.view.is_uncached() {
            Caching::SequentialOnly
        } else if file.is_cacheable() {
            Caching::UntilChanged
        } else {
            Caching::WhileOpen
        };
        let pinned = self.mount.pins.pin(ino, &inode, document);
        let open = OpenInode::file(ino, pinned)?;
        self.mount.handles.insert(handle, open, caching)
    }

    /// Opens the directory `ino` under the handle `handle`, which the caller has chosen.
    ///
    /// # Errors
    /// Fails as [`opendir_with_cancel`](Requests::opendir_with_cancel) does.
    fn open_directory_under_handle(
        &self,
        handle: Handle,
        ino: Ino,
        cancel: &CancelToken,
    ) -> Result<OpenedHandle> {
        cancel.check_cancelled()?;
        let mount = &self.mount;
        let (file, inode) = mount.find_inode(ino)?;
        // Without a source, the directory cannot be listed.
        mount.current_file()?;
        let node = node_table::node_for(&inode);
        if node.kind() != FileKind::Directory {
            return Err(refusal_error(Errno::ENOTDIR, "opendir"));
        }
        if matches!(inode.node_type, NodeType::Group | NodeType::ViewDirectory) {
            file.crawler.crawl_group(&file.container, inode.node);
        }
        let was_unsure = mount.inodes.set_incomplete(ino, false);
        // The root has the same inode number in all states of the source, so the kernel may have
        // cached a listing of an earlier state.
        let is_of_now = ino != inode::ROOT || mount.has_dropped_root_listings(file.generation);
        let is_lasting =
            is_of_now && node.is_listing_cacheable() && !was_unsure && file.is_cacheable();
        let caching = if is_lasting {
            Caching::UntilChanged
        } else {
            Caching::WhileOpen
        };
        // Each call that lists the directory gets the budget of one request.
        let (file, _) = file.for_request(&CancelToken::default());
        let open = OpenInode::directory(ino, file);
        let opened = open.and_then(|open| mount.handles.insert(handle, open, caching));
        if opened.is_err() && was_unsure {
            mount.inodes.set_incomplete(ino, true);
        }
        opened
    }

    /// Opens a file or directory under the handle `handle` of the mounted directory that contains
    /// this data file.
    ///
    /// # Errors
    /// Fails as [`open_file_with_cancel`](Requests::open_file_with_cancel) or
    /// [`opendir_with_cancel`](Requests::opendir_with_cancel) does.
    pub(super) fn open_under_handle(
        &self,
        handle: Handle,
        (ino, is_directory): (Ino, bool),
        cancel: &CancelToken,
    ) -> Result<OpenedHandle> {
        if is_directory {
            self.open_directory_under_handle(handle, ino, cancel)
        } else {
            self.open_file_under_handle(handle, ino, cancel)
        }
    }

    /// Returns whether `handle` is open in this tree. In a mounted directory, the data file may
    /// have been closed and reopened since the handle was opened.
    pub(super) fn is_handle_open(&self, handle: Handle) -> bool {
        self.mount.handles.contains(handle)
    }

    /// Passes an entry to `take`. If it is accepted with attributes, increments the lookup count of
    /// its inode. Returns whether `take` refused the entry, because the reply has no room.
    fn pass_entry(
        &self,
        listed: &ListingEntry<'_>,
        next: u64,
        detail: ListingDetail,
        take: &mut AttributesCallback<'_>,
    ) -> bool {
        let with = |ino, kind| DirEntry {
            name: listed.name,
            ino,
            kind: Some(kind),
            next,
        };
        if detail == ListingDetail::Names {
            return take(with(listed.ino, listed.kind), None);
        }
        match (listed.stat)() {
            ListedAttributes::Counted(entry) => {
                let is_full = take(with(entry.ino, entry.attributes.kind), Some(&entry));
                if is_full {
                    self.forget(entry.ino, 1);
                }
                is_full
            }
            ListedAttributes::Uncounted(entry) => {
                take(with(entry.ino, entry.attributes.kind), Some(&entry))
            }
            ListedAttributes::Unknown(kind) => take(with(listed.ino, kind), None),
        }
    }

    /// Passes entries to `visit` until the request is cancelled. Entries found after the
    /// cancellation are omitted, because their objects look unreadable without being damaged.
    fn list_until_cancelled(
        &self,
        open: &OpenInode,
        cookie: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let request = open.file.budget.cancel_token();
        let mut has_some = false;
        let listed = self.list_open_directory(open, cookie, &mut |listed, next| {
            let is_full = request.is_cancelled() || visit(listed, next);
            has_some |= !is_full;
            is_full
        });
        match listed {
            // An empty reply would mean the end of the directory.
            Ok(()) if !has_some => request.check_cancelled(),
            listed => listed,
        }
    }

    fn list_open_directory(
        &self,
        open: &OpenInode,
        cookie: u64,
        visit: &mut ListingCallback<'_>,
    ) -> Result<()> {
        let HandleContent::Directory(listing) = &open.content else {
            return Err(refusal_error(Errno::ENOTDIR, "readdir"));
        };
        let inode = self.mount.inode(&open.file, open.ino)?;
        let dots = [(&b"."[..], open.ino), (&b".."[..], inode.parent)];
        for (next, (name, ino)) in (1_u64..).zip(dots) {
            let stat = || self.mount.dot_attributes(ino);
            if cookie < next && visit(&ListingEntry::dot_entry(name, ino, &stat), next) {
                return Ok(());
            }
        }
        let target = self.target_inode(&open.file, open.ino, &inode);
        let first = cookie.max(DOT_ENTRIES);
        node_table::node_for(&inode).list(&target, &mut lock(listing), first, visit)
    }

    /// Returns the open file or directory of a handle. Fails if the file has changed since it was
    /// opened.
    fn open_inode(&self, handle: Handle, cancel: &CancelToken) -> Result<Arc<OpenInode>> {
        // The source is checked first, because an open file keeps its state in memory.
        let shown = self.mount.file_for_request(cancel);
        let open = self.mount.handles.get(handle)?;
        if shown.is_err() && self.is_status_text(&open) {
            return Ok(open);
        }
        let source = shown?;
        if open.file.generation != source.generation {
            return Err(stale_error());
        }
        let now = match open.file.tree {
            inode::SOURCE => source,
            tree if open.file.is_growing() => self.mount.other_files.file_of_tree(&source, tree)?,
            _ if open.file.is_changed() => return Err(stale_error()),
            _ => return Ok(open),
        };
        match &open.content {
            HandleContent::File(document) if !open.file.is_same_state(&now) => {
                let inode = self.mount.inode(&now, open.ino)?;
                if document.can_read_growth(&now, &inode)? {
                    self.follow_growth(handle, (open.ino, &inode), &now, cancel)
                } else {
                    Ok(open)
                }
            }
            _ => Ok(open),
        }
    }

    /// Returns whether the open file is a text about the mount itself (`status`, `errors` or
    /// `metrics` in `.h5fs`).
    fn is_status_text(&self, open: &OpenInode) -> bool {
        let inode = self.mount.inode(&open.file, open.ino);
        inode.is_ok_and(|inode| missing_source::is_status_text(&inode))
    }

    /// Binds `handle` to the current state of the file, so that reads return bytes that a writer
    /// has appended to the array.
    fn follow_growth(
        &self,
        handle: Handle,
        (ino, inode): (Ino, &Inode),
        file: &Arc<FileState>,
        cancel: &CancelToken,
    ) -> Result<Arc<OpenInode>> {
        let document = self.open_document(file, (ino, inode), cancel)?;
        let pinned = self.mount.pins.pin(ino, inode, document);
        self.mount
            .handles
            .replace(handle, OpenInode::file(ino, pinned)?)
    }

    fn file_view<'a>(&self, open: &'a OpenInode) -> Result<&'a dyn View> {
        match &open.content {
            HandleContent::File(document) => Ok(&*document.view),
            HandleContent::Directory(_) => Err(refusal_error(Errno::EISDIR, "read")),
        }
    }

    /// Converts the result of reading the open file to the reply.
    fn convert_read_result(&self, open: &OpenInode, read: Result<Bytes>) -> Result<Bytes> {
        open.account_memory()?;
        // Bytes of two states of the source must not mix, and a half-written structure must not be
        // reported as damaged.
        let mount = &self.mount;
        mount.log_missing_files(&open.file);
        let is_over = open.file.has_ended() || mount.is_changed_now() && !self.is_status_text(open);
        if is_over || !open.file.is_growing() && open.file.is_changed_now() {
            return Err(stale_error());
        }
        match &read {
            Ok(_) => mount.faults.remove_temporary(open.ino),
            Err(error) => {
                let inode = mount.inode(&open.file, open.ino)?;
                mount.record_error(&open.file, open.ino, &inode, error);
            }
        }
        read.map_err(|error| open.file.convert_error(error))
    }

    /// Returns the state of a growing file whose bytes the handle returns. Returns `None` if reads
    /// of the handle return bytes of later states too, or if the file does not grow.
    pub(super) fn pinned_state(&self, handle: Handle) -> Option<Identity> {
        let open = self.mount.handles.get(handle).ok()?;
        match &open.content {
            HandleContent::File(document) => document.pinned_state(),
            HandleContent::Directory(_) => None,
        }
    }
}

/// Time for which the kernel may cache metadata of an unchanged source. When the source changes,
/// the mount makes the kernel drop the metadata earlier.
const METADATA_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

impl Requests for Filesystem {
    fn options(&self) -> &Options {
        &self.mount.options
    }

    fn traffic(&self) -> &RequestCounters {
        &self.mount.traffic
    }

    fn total_and_free_bytes(&self) -> (u64, u64) {
        // All of the size counts as free, because monitoring tools would report a disk without free
        // bytes.
        let size = self.origin().size;
        (size, size)
    }

    fn cache_lifetime(&self) -> Duration {
        METADATA_LIFETIME
    }

    fn lookup_with_cancel(
        &self,
        parent: Ino,
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<LookupEntry> {
        let mut counted = None;
        let found = self.with_node(parent, cancel, |node, target| {
            let entry = node.lookup(target, name)?;
            counted = Some(entry.ino);
            Ok(entry)
        });
        if let (Err(_), Some(ino)) = (&found, counted) {
            self.forget(ino, 1);
        }
        found
    }

    fn absence_reason(&self, parent: Ino, name: &[u8]) -> Option<String> {
        let why = self.with_node(parent, &CancelToken::default(), |node, target| {
            node.absence_reason(target, name)
        });
        why.ok().flatten()
    }

    fn dangling_reason(&self, link: Ino, object: bool) -> Option<String> {
        let why = self.with_node(link, &CancelToken::default(), |node, target| {
            node.dangling_reason(target, object)
        });
        why.ok().flatten()
    }

    fn is_absence_final(&self, parent: Ino) -> bool {
        let lacks = self.with_node(parent, &CancelToken::default(), |node, target| {
            Ok(target.file.is_cacheable() && node.is_absence_final(target))
        });
        lacks.unwrap_or(false)
    }

    fn forget(&self, ino: Ino, count: u64) {
        self.mount.inodes.forget(ino, count);
    }

    fn getattr_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<LookupEntry> {
        self.with_node(ino, cancel, |node, target| {
            let entry = match target.pinned_entry()? {
                Some(entry) => entry,
                None => node.stat(target)?,
            };
            entry.is_sized.then_some(entry).ok_or_else(too_long_error)
        })
    }

    fn readlink_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>> {
        self.with_node(ino, cancel, |node, target| node.readlink(target))
    }

    fn listxattr_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        self.with_node(ino, cancel, |node, target| {
            match node.describe_for_xattrs(target) {
                Some(described) => xattr::described_object(target, &described).list(),
                None => Ok(Vec::new()),
            }
        })
    }

    fn getxattr_with_cancel(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>> {
        let name = xattr::strip_user_prefix(name)?;
        self.with_node(ino, cancel, |node, target| {
            match node.describe_for_xattrs(target) {
                Some(described) => xattr::described_object(target, &described).get(name),
                None => Err(xattr::missing_attribute_error()),
            }
        })
    }

    fn open_file_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle> {
        self.open_file_under_handle(self.mount.handles.new_handle(), ino, cancel)
    }

    fn answer_query(
        &self,
        ino: Ino,
        query: &ObjectQuery,
        cancel: &CancelToken,
    ) -> Result<ObjectAnswer> {
        self.with_node(ino, cancel, |_, target| {
            views::h5grove::answer(target, query)
        })
    }

    fn opendir_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle> {
        self.open_directory_under_handle(self.mount.handles.new_handle(), ino, cancel)
    }

    fn has_display_order(&self, _directory: Ino) -> bool {
        true
    }

    fn list_with_cancel(
        &self,
        handle: Handle,
        cookie: u64,
        detail: ListingDetail,
        take: &mut AttributesCallback<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let open = self.open_inode(handle, cancel)?;
        let _granted = open.file.grant_budget(cancel);
        let listed = self.list_until_cancelled(&open, cookie, &mut |listed, next| {
            self.pass_entry(listed, next, detail, take)
        });
        // An error only means that the listing's memory was freed. The next call restores it.
        let _ = open.account_memory();
        listed.map_err(|error| open.file.convert_error(error))
    }

    fn read_with_cancel(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        cancel.check_cancelled()?;
        let open = self.open_inode(handle, cancel)?;
        let cancel = open.file.token_until_end(cancel);
        let read = self.file_view(&open)?.read_for(offset, length, &cancel);
        self.convert_read_result(&open, read)
    }

    fn is_in_index_order(&self, handle: Handle) -> bool {
        let open = self.open_inode(handle, &CancelToken::default());
        open.is_ok_and(|open| match &open.content {
            HandleContent::Directory(listing) => lock(listing).is_in_index_order,
            _ => false,
        })
    }

    fn content_version(&self, handle: Handle, cancel: &CancelToken) -> Result<Version> {
        let open = self.open_inode(handle, cancel)?;
        let file = &open.file;
        let is_fixed = file.is_cacheable() && !self.is_status_text(&open);
        Ok(Version {
            length: self.file_view(&open)?.length(),
            identity: file.identity().filter(|_| is_fixed),
            generation: file.generation,
            state_tag: file.state_tag(),
            stored_in: None,
        })
    }

    fn try_read(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let open = self.open_inode(handle, &CancelToken::default())?;
        match self.file_view(&open)?.read_now(offset, length).transpose() {
            Some(read) => self.convert_read_result(&open, read).map(Some),
            None => Ok(None),
        }
    }

    fn lseek_with_cancel(
        &self,
        handle: Handle,
        offset: u64,
        whence: SeekKind,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let open = self.open_inode(handle, cancel)?;
        let view = self.file_view(&open)?;
        let none = || refusal_error(Errno::ENXIO, "seek");
        if offset >= view.length() {
            return Err(none());
        }
        match whence {
            SeekKind::Data => view.data_at(offset)?.ok_or_else(none),
            SeekKind::Hole => view.hole_at(offset),
        }
    }

    fn release(&self, handle: Handle) {
        let Some(open) = self.mount.handles.remove(handle) else {
            return;
        };
        if let HandleContent::Directory(listing) = &open.content
            && lock(listing).is_incomplete
        {
            // If the directory was opened again in the meantime, the kernel may have cached this
            // listing.
            self.mount.inodes.set_incomplete(open.ino, true);
        }
    }
}
