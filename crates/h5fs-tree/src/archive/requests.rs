//! The kernel's requests for a directory of files. A request about an inode within a data file is
//! passed to the filesystem of that data file.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_view::view::View;
use nix::errno::Errno;

use crate::archive::entries::{EntryKind, ORIGINAL, VIEWS, is_entry};
use crate::archive::entry_inspector::LIFETIME;
use crate::archive::members::ArchiveMember;
use crate::archive::{
    Archive, ArchiveContent, ERROR_ATTRIBUTE, InodeTarget, ORIGINALS, STATUS_FILES, STORE,
    STORE_TARGET, VIEW_NAMES, is_caused_by_content, is_permanent, stale_if_missing,
    with_inode_number,
};
use crate::errno::{refusal_error, stale_error};
use crate::filesystem::Filesystem;
use crate::name;
use crate::nodes::xattr;
use crate::options::Options;
use crate::requests::{
    AttributesCallback, Ino, ListingDetail, ObjectAnswer, ObjectQuery, Requests, SeekKind, Version,
};
use crate::stat::LookupEntry;
use crate::state::handle::{Caching, Handle, OpenedHandle};
use crate::state::inode::ROOT;
use crate::state::traffic::RequestCounters;

impl Requests for Archive {
    fn options(&self) -> &Options {
        &self.options
    }

    fn traffic(&self) -> &RequestCounters {
        &self.traffic
    }

    fn total_and_free_bytes(&self) -> (u64, u64) {
        self.root.total_and_free_bytes()
    }

    fn cache_lifetime(&self) -> Duration {
        LIFETIME
    }

    fn data_file_number(&self, ino: Ino) -> Option<u64> {
        if is_entry(ino) {
            return Some(ino);
        }
        self.member_inodes.get(ino).map(|(member, _)| member.entry)
    }

    fn lookup_with_cancel(
        &self,
        parent: Ino,
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<LookupEntry> {
        name::check_name_length(name)?;
        match self.inode_target(parent)? {
            InodeTarget::Views if name == ORIGINALS => self.fixed_entry(ORIGINAL),
            InodeTarget::Views if name == STORE => self.store_link(),
            InodeTarget::Views => {
                let mut told = STATUS_FILES.iter();
                match told.find(|told| told.name == name) {
                    Some(told) => self.status_entry(told),
                    None => self.lookup_joined(name),
                }
            }
            InodeTarget::Status(_) | InodeTarget::StoreLink => {
                Err(refusal_error(Errno::ENOTDIR, "lookup"))
            }
            InodeTarget::Entry(place, path) => match place.kind {
                EntryKind::Directory => self.lookup_entry(parent, (&path, place.is_original), name),
                EntryKind::DataFile | EntryKind::Joined => {
                    let member = self.member(parent, place, &path);
                    match self.lookup_in_member((&member, ROOT), name, cancel) {
                        Err(error)
                            if is_caused_by_content(&error)
                                && self.inspector.is_ordinary_by_content(&path) =>
                        {
                            Err(stale_error())
                        }
                        // The data file itself reports its error.
                        Err(error) if is_permanent(&error) => Err(Error::NotFound),
                        found => found,
                    }
                }
                _ => Err(refusal_error(Errno::ENOTDIR, "lookup")),
            },
            InodeTarget::InMember(member, local) => {
                self.lookup_in_member((&member, local), name, cancel)
            }
        }
    }

    fn absence_reason(&self, parent: Ino, name: &[u8]) -> Option<String> {
        let cancel = CancelToken::default();
        let why = match self.inode_target(parent).ok()? {
            InodeTarget::Entry(place, path) if place.kind.has_objects() => {
                let member = self.member(parent, place, &path);
                let ask = |file: &Filesystem| Ok(file.absence_reason(ROOT, name));
                self.members.with_member(&member, &cancel, ask)
            }
            InodeTarget::InMember(member, local) => {
                let ask = |file: &Filesystem| Ok(file.absence_reason(local, name));
                self.members.with_member(&member, &cancel, ask)
            }
            _ => Ok(None),
        };
        why.unwrap_or_else(|error| Some(error.to_string()))
    }

    fn dangling_reason(&self, link: Ino, object: bool) -> Option<String> {
        let InodeTarget::InMember(member, local) = self.inode_target(link).ok()? else {
            return None;
        };
        let ask = |file: &Filesystem| Ok(file.dangling_reason(local, object));
        self.members
            .with_member(&member, &CancelToken::default(), ask)
            .ok()?
    }

    fn forget(&self, ino: Ino, count: u64) {
        if is_entry(ino) {
            return self.entries.forget(ino, count);
        }
        if let Some((member, local, is_forgotten)) = self.member_inodes.forget(ino, count) {
            member.inodes().forget(local, count);
            if is_forgotten {
                self.members.remove_use(member.entry);
            }
        }
    }

    fn getattr_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<LookupEntry> {
        match self.inode_target(ino)? {
            InodeTarget::Views => self.fixed_entry(VIEWS),
            InodeTarget::Status(told) => self.status_entry(told),
            InodeTarget::StoreLink => self.store_link(),
            InodeTarget::Entry(place, _) if place.kind == EntryKind::Joined => {
                self.fixed_entry(ino)
            }
            InodeTarget::Entry(place, path) => {
                let found = self.inspect(&path, place.is_original, Some(place));
                let found = found.map_err(stale_if_missing)?;
                if found.kind != place.kind {
                    return Err(stale_error());
                }
                Ok(self
                    .inspector
                    .lookup_reply(ino, &found, (&path, place.is_original)))
            }
            InodeTarget::InMember(member, local) => {
                let entry = self.members.with_member(&member, cancel, |file| {
                    file.getattr_with_cancel(local, cancel)
                });
                Ok(with_inode_number(entry.map_err(stale_if_missing)?, ino))
            }
        }
    }

    fn readlink_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>> {
        match self.inode_target(ino)? {
            InodeTarget::StoreLink => Ok(STORE_TARGET.to_vec()),
            InodeTarget::Entry(place, path) if place.kind == EntryKind::Symlink => self
                .inspector
                .link_text((&path, place.is_original))
                .map_err(stale_if_missing),
            InodeTarget::InMember(member, local) => {
                self.members.with_member(&member, cancel, |file| {
                    file.readlink_with_cancel(local, cancel)
                })
            }
            _ => Err(refusal_error(Errno::EINVAL, "readlink")),
        }
    }

    fn listxattr_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        match self.inode_target(ino)? {
            InodeTarget::Entry(place, path) if place.kind.has_objects() => {
                let listed = self.with_data_file((ino, place, &path), cancel, |root| {
                    root.listxattr_with_cancel(ROOT, cancel)
                });
                match listed {
                    Ok(listed) => listed,
                    Err(error) if is_caused_by_content(&error) => {
                        Ok(vec![ERROR_ATTRIBUTE.to_vec()])
                    }
                    Err(error) => Err(error),
                }
            }
            InodeTarget::InMember(member, local) => {
                self.members.with_member(&member, cancel, |file| {
                    file.listxattr_with_cancel(local, cancel)
                })
            }
            _ => Ok(Vec::new()),
        }
    }

    fn getxattr_with_cancel(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>> {
        xattr::strip_user_prefix(name)?;
        match self.inode_target(ino)? {
            InodeTarget::Entry(place, path) if place.kind.has_objects() => {
                let value = self.with_data_file((ino, place, &path), cancel, |root| {
                    root.getxattr_with_cancel(ROOT, name, cancel)
                });
                match value {
                    Ok(value) => value,
                    Err(error) if is_caused_by_content(&error) && name == ERROR_ATTRIBUTE => {
                        Ok(error.to_string().into_bytes())
                    }
                    Err(error) if is_caused_by_content(&error) => {
                        Err(xattr::missing_attribute_error())
                    }
                    Err(error) => Err(error),
                }
            }
            InodeTarget::InMember(member, local) => {
                self.members.with_member(&member, cancel, |file| {
                    file.getxattr_with_cancel(local, name, cancel)
                })
            }
            _ => Err(xattr::missing_attribute_error()),
        }
    }

    fn open_file_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle> {
        match self.inode_target(ino)? {
            InodeTarget::Entry(place, path) => match place.kind {
                EntryKind::File => self.open_ordinary(ino, (place, &path), cancel),
                EntryKind::Symlink => Err(refusal_error(Errno::ELOOP, "open")),
                _ => Err(refusal_error(Errno::EISDIR, "open")),
            },
            InodeTarget::Views => Err(refusal_error(Errno::EISDIR, "open")),
            InodeTarget::StoreLink => Err(refusal_error(Errno::ELOOP, "open")),
            InodeTarget::Status(told) => {
                let text = self.status_texts.text_for_open(ino, || (told.text)(self));
                self.insert(ArchiveContent::Text(text), Caching::Never)
            }
            InodeTarget::InMember(member, local) => {
                self.open_in_member((&member, local, false), cancel)
            }
        }
    }

    fn answer_query(
        &self,
        ino: Ino,
        query: &ObjectQuery,
        cancel: &CancelToken,
    ) -> Result<ObjectAnswer> {
        match self.inode_target(ino)? {
            InodeTarget::Entry(place, path) if place.kind.has_objects() => {
                self.with_data_file((ino, place, &path), cancel, |root| {
                    root.answer_query(ROOT, query, cancel)
                })?
            }
            InodeTarget::InMember(member, local) => {
                self.members.with_member(&member, cancel, |file| {
                    file.answer_query(local, query, cancel)
                })
            }
            _ => Err(Error::NotFound),
        }
    }

    fn opendir_with_cancel(&self, ino: Ino, cancel: &CancelToken) -> Result<OpenedHandle> {
        match self.inode_target(ino)? {
            InodeTarget::Views => {
                let names = VIEW_NAMES;
                self.insert(ArchiveContent::Fixed { ino, names }, Caching::WhileOpen)
            }
            InodeTarget::Status(_) | InodeTarget::StoreLink => {
                Err(refusal_error(Errno::ENOTDIR, "opendir"))
            }
            InodeTarget::Entry(place, path) => match place.kind {
                EntryKind::Directory => {
                    let names = self.root.list(&path).map_err(stale_if_missing);
                    let names = names.inspect_err(|error| self.record_error(&path, error))?;
                    let names = Mutex::new(names);
                    self.insert(ArchiveContent::Directory { ino, names }, Caching::WhileOpen)
                }
                EntryKind::DataFile | EntryKind::Joined => {
                    let member = self.member(ino, place, &path);
                    let opened = self.open_in_member((&member, ROOT, true), cancel);
                    match opened.map_err(|error| self.log_open_error(&path, error)) {
                        Err(error) if is_permanent(&error) => {
                            let names = &[];
                            self.insert(ArchiveContent::Fixed { ino, names }, Caching::WhileOpen)
                        }
                        opened => opened,
                    }
                }
                _ => Err(refusal_error(Errno::ENOTDIR, "opendir")),
            },
            InodeTarget::InMember(member, local) => {
                self.open_in_member((&member, local, true), cancel)
            }
        }
    }

    fn has_display_order(&self, directory: Ino) -> bool {
        let found = self.inode_target(directory);
        !matches!(found, Ok(InodeTarget::Entry(place, _)) if place.kind == EntryKind::Directory)
    }

    fn list_with_cancel(
        &self,
        handle: Handle,
        cookie: u64,
        detail: ListingDetail,
        take: &mut AttributesCallback<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        self.list(handle, cookie, (detail, take), cancel)
    }

    fn read_with_cancel(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let open = self.handles.get(handle)?;
        match &open.content {
            ArchiveContent::File(file) => file.read(offset, length),
            ArchiveContent::Text(text) => text.read_at(offset, length),
            ArchiveContent::InMember(inner) if !inner.is_directory => {
                self.with_open_member(handle, inner, cancel, |filesystem| {
                    filesystem.read_with_cancel(handle, offset, length, cancel)
                })
            }
            _ => Err(refusal_error(Errno::EISDIR, "read")),
        }
    }

    fn is_in_index_order(&self, handle: Handle) -> bool {
        let Ok(open) = self.handles.get(handle) else {
            return false;
        };
        let ArchiveContent::InMember(inner) = &open.content else {
            return false;
        };
        let ask = |filesystem: &Filesystem| Ok(filesystem.is_in_index_order(handle));
        let asked = self.with_open_member(handle, inner, &CancelToken::default(), ask);
        asked.unwrap_or(false)
    }

    fn content_version(&self, handle: Handle, cancel: &CancelToken) -> Result<Version> {
        let open = self.handles.get(handle)?;
        match &open.content {
            ArchiveContent::File(file) => file.version(self.root.path()),
            ArchiveContent::Text(text) => Ok(Version {
                length: text.length(),
                identity: None,
                generation: 0,
                state_tag: None,
                stored_in: None,
            }),
            ArchiveContent::InMember(inner) if !inner.is_directory => {
                self.with_open_member(handle, inner, cancel, |filesystem| {
                    filesystem.content_version(handle, cancel)
                })
            }
            _ => Err(refusal_error(Errno::EISDIR, "read")),
        }
    }

    fn try_read(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let open = self.handles.get(handle)?;
        let ArchiveContent::InMember(inner) = &open.content else {
            return Ok(None);
        };
        match inner.member.filesystem_if_open() {
            Some(opened) if !inner.is_directory && opened.filesystem.is_handle_open(handle) => {
                opened.filesystem.try_read(handle, offset, length)
            }
            _ => Ok(None),
        }
    }

    fn lseek_with_cancel(
        &self,
        handle: Handle,
        offset: u64,
        whence: SeekKind,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let open = self.handles.get(handle)?;
        match &open.content {
            ArchiveContent::File(file) => file.seek(offset, whence),
            ArchiveContent::InMember(inner) if !inner.is_directory => {
                self.with_open_member(handle, inner, cancel, |filesystem| {
                    filesystem.lseek_with_cancel(handle, offset, whence, cancel)
                })
            }
            _ => Err(refusal_error(Errno::EISDIR, "seek")),
        }
    }

    fn release(&self, handle: Handle) {
        if let Some(open) = self.handles.remove(handle)
            && let ArchiveContent::InMember(inner) = &open.content
        {
            inner.member.release(handle);
            self.members.remove_use(inner.member.entry);
        }
    }
}

impl Archive {
    fn lookup_in_member(
        &self,
        (member, local): (&Arc<ArchiveMember>, Ino),
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<LookupEntry> {
        let entry = self.members.with_member(member, cancel, |file| {
            file.lookup_with_cancel(local, name, cancel)
        })?;
        let ino = self.add_member_lookup(member, entry.ino);
        Ok(with_inode_number(entry, ino))
    }
}
