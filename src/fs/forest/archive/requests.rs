//! The kernel's requests for a directory of files. Each is handled here, or by the data file that
//! it concerns.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use nix::errno::Errno;

use crate::fs::errno::{refusal, stale};
use crate::fs::filesystem::Filesystem;
use crate::fs::forest::archive::entries::{EntryKind, ORIGINAL, VIEWS, is_entry};
use crate::fs::forest::archive::look::LIFETIME;
use crate::fs::forest::archive::members::Member;
use crate::fs::forest::archive::{
    Archive, Content, ERROR, ORIGINALS, STORE, STORE_TARGET, TOLD, Target, VIEW_NAMES, gone, lasts,
    numbered, own_fault,
};
use crate::fs::name;
use crate::fs::nodes::xattr;
use crate::fs::options::Options;
use crate::fs::requests::{Detail, Ino, Requests, TakeWithAttributes, Version, Whence};
use crate::fs::stat::Entry;
use crate::fs::state::handle::{Caching, Handle, Opened};
use crate::fs::state::inode::ROOT;
use crate::fs::state::traffic::Traffic;
use crate::view::View;

impl Requests for Archive {
    fn options(&self) -> &Options {
        &self.options
    }

    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn capacity(&self) -> (u64, u64) {
        self.root.capacity()
    }

    fn lifetime(&self) -> Duration {
        LIFETIME
    }

    fn file_of(&self, ino: Ino) -> Option<u64> {
        if is_entry(ino) {
            return Some(ino);
        }
        self.inner.get(ino).map(|(member, _)| member.entry)
    }

    fn lookup_for(&self, parent: Ino, name: &[u8], cancel: &CancelToken) -> Result<Entry> {
        name::refuse_long(name)?;
        match self.target(parent)? {
            Target::Views if name == ORIGINALS => self.fixed(ORIGINAL),
            Target::Views if name == STORE => self.store_link(),
            Target::Views => {
                let mut told = TOLD.iter();
                match told.find(|told| told.name == name) {
                    Some(told) => self.told(told),
                    None => self.enter_joined(name),
                }
            }
            Target::Told(_) | Target::Store => Err(refusal(Errno::ENOTDIR, "lookup")),
            Target::Entry(place, path) => match place.kind {
                EntryKind::Directory => self.enter(parent, (&path, place.is_original), name),
                EntryKind::DataFile | EntryKind::Joined => {
                    let member = self.member(parent, place, &path);
                    match self.lookup_inside((&member, ROOT), name, cancel) {
                        Err(error) if own_fault(&error) && self.look.was_mistaken(&path) => {
                            Err(stale())
                        }
                        // The data file itself reports its error.
                        Err(error) if lasts(&error) => Err(Error::NotFound),
                        found => found,
                    }
                }
                _ => Err(refusal(Errno::ENOTDIR, "lookup")),
            },
            Target::Inner(member, local) => self.lookup_inside((&member, local), name, cancel),
        }
    }

    fn why_absent(&self, parent: Ino, name: &[u8]) -> Option<String> {
        let cancel = CancelToken::default();
        let why = match self.target(parent).ok()? {
            Target::Entry(place, path) if place.kind.has_objects() => {
                let member = self.member(parent, place, &path);
                let ask = |file: &Filesystem| Ok(file.why_absent(ROOT, name));
                self.members.ask(&member, &cancel, ask)
            }
            Target::Inner(member, local) => {
                let ask = |file: &Filesystem| Ok(file.why_absent(local, name));
                self.members.ask(&member, &cancel, ask)
            }
            _ => Ok(None),
        };
        why.unwrap_or_else(|error| Some(error.to_string()))
    }

    fn why_nowhere(&self, link: Ino, object: bool) -> Option<String> {
        let Target::Inner(member, local) = self.target(link).ok()? else {
            return None;
        };
        let ask = |file: &Filesystem| Ok(file.why_nowhere(local, object));
        self.members
            .ask(&member, &CancelToken::default(), ask)
            .ok()?
    }

    fn forget(&self, ino: Ino, count: u64) {
        if is_entry(ino) {
            return self.entries.forget(ino, count);
        }
        if let Some((member, local, is_forgotten)) = self.inner.forget(ino, count) {
            member.inodes().forget(local, count);
            if is_forgotten {
                self.members.leave(member.entry);
            }
        }
    }

    fn getattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Entry> {
        match self.target(ino)? {
            Target::Views => self.fixed(VIEWS),
            Target::Told(told) => self.told(told),
            Target::Store => self.store_link(),
            Target::Entry(place, _) if place.kind == EntryKind::Joined => self.fixed(ino),
            Target::Entry(place, path) => {
                let found = self.found(&path, place.is_original, Some(place));
                let found = found.map_err(gone)?;
                if found.kind != place.kind {
                    return Err(stale());
                }
                Ok(self.look.entry(ino, &found, (&path, place.is_original)))
            }
            Target::Inner(member, local) => {
                let entry = self
                    .members
                    .ask(&member, cancel, |file| file.getattr_for(local, cancel));
                Ok(numbered(entry.map_err(gone)?, ino))
            }
        }
    }

    fn readlink_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<u8>> {
        match self.target(ino)? {
            Target::Store => Ok(STORE_TARGET.to_vec()),
            Target::Entry(place, path) if place.kind == EntryKind::Symlink => self
                .look
                .link_text((&path, place.is_original))
                .map_err(gone),
            Target::Inner(member, local) => self
                .members
                .ask(&member, cancel, |file| file.readlink_for(local, cancel)),
            _ => Err(refusal(Errno::EINVAL, "readlink")),
        }
    }

    fn listxattr_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Vec<Vec<u8>>> {
        match self.target(ino)? {
            Target::Entry(place, path) if place.kind.has_objects() => {
                let listed = self.ask_data_file((ino, place, &path), cancel, |root| {
                    root.listxattr_for(ROOT, cancel)
                });
                match listed {
                    Ok(listed) => listed,
                    Err(error) if own_fault(&error) => Ok(vec![ERROR.to_vec()]),
                    Err(error) => Err(error),
                }
            }
            Target::Inner(member, local) => self
                .members
                .ask(&member, cancel, |file| file.listxattr_for(local, cancel)),
            _ => Ok(Vec::new()),
        }
    }

    fn getxattr_for(&self, ino: Ino, name: &[u8], cancel: &CancelToken) -> Result<Vec<u8>> {
        xattr::user_name(name)?;
        match self.target(ino)? {
            Target::Entry(place, path) if place.kind.has_objects() => {
                let value = self.ask_data_file((ino, place, &path), cancel, |root| {
                    root.getxattr_for(ROOT, name, cancel)
                });
                match value {
                    Ok(value) => value,
                    Err(error) if own_fault(&error) && name == ERROR => {
                        Ok(error.to_string().into_bytes())
                    }
                    Err(error) if own_fault(&error) => Err(xattr::absent()),
                    Err(error) => Err(error),
                }
            }
            Target::Inner(member, local) => self.members.ask(&member, cancel, |file| {
                file.getxattr_for(local, name, cancel)
            }),
            _ => Err(xattr::absent()),
        }
    }

    fn open_file_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened> {
        match self.target(ino)? {
            Target::Entry(place, path) => match place.kind {
                EntryKind::File => self.open_ordinary(ino, place, &path),
                EntryKind::Symlink => Err(refusal(Errno::ELOOP, "open")),
                _ => Err(refusal(Errno::EISDIR, "open")),
            },
            Target::Views => Err(refusal(Errno::EISDIR, "open")),
            Target::Store => Err(refusal(Errno::ELOOP, "open")),
            Target::Told(told) => {
                let text = self.moments.opened(ino, || (told.text)(self));
                self.insert(Content::Text(text), Caching::Never)
            }
            Target::Inner(member, local) => self.open_inner((&member, local, false), cancel),
        }
    }

    fn opendir_for(&self, ino: Ino, cancel: &CancelToken) -> Result<Opened> {
        match self.target(ino)? {
            Target::Views => {
                let names = VIEW_NAMES;
                self.insert(Content::Fixed { ino, names }, Caching::WhileOpen)
            }
            Target::Told(_) | Target::Store => Err(refusal(Errno::ENOTDIR, "opendir")),
            Target::Entry(place, path) => match place.kind {
                EntryKind::Directory => {
                    let names = self.root.list(&path).map_err(gone);
                    let names = names.inspect_err(|error| self.note(&path, error))?;
                    let names = Mutex::new(names);
                    self.insert(Content::Directory { ino, names }, Caching::WhileOpen)
                }
                EntryKind::DataFile | EntryKind::Joined => {
                    let member = self.member(ino, place, &path);
                    let opened = self.open_inner((&member, ROOT, true), cancel);
                    match opened.map_err(|error| self.unopened(&path, error)) {
                        Err(error) if lasts(&error) => {
                            let names = &[];
                            self.insert(Content::Fixed { ino, names }, Caching::WhileOpen)
                        }
                        opened => opened,
                    }
                }
                _ => Err(refusal(Errno::ENOTDIR, "opendir")),
            },
            Target::Inner(member, local) => self.open_inner((&member, local, true), cancel),
        }
    }

    fn is_ordered(&self, directory: Ino) -> bool {
        let found = self.target(directory);
        !matches!(found, Ok(Target::Entry(place, _)) if place.kind == EntryKind::Directory)
    }

    fn list_for(
        &self,
        handle: Handle,
        cookie: u64,
        detail: Detail,
        take: &mut TakeWithAttributes<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        self.list(handle, cookie, (detail, take), cancel)
    }

    fn read_for(
        &self,
        handle: Handle,
        offset: u64,
        length: usize,
        cancel: &CancelToken,
    ) -> Result<Bytes> {
        let open = self.handles.get(handle)?;
        match &open.content {
            Content::File(file) => file.read(offset, length),
            Content::Text(text) => text.read_at(offset, length),
            Content::Inner(inner) if !inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem| {
                    filesystem.read_for(handle, offset, length, cancel)
                })
            }
            _ => Err(refusal(Errno::EISDIR, "read")),
        }
    }

    fn is_unordered(&self, handle: Handle) -> bool {
        let Ok(open) = self.handles.get(handle) else {
            return false;
        };
        let Content::Inner(inner) = &open.content else {
            return false;
        };
        let ask = |filesystem: &Filesystem| Ok(filesystem.is_unordered(handle));
        let asked = self.ask_open(handle, inner, &CancelToken::default(), ask);
        asked.unwrap_or(false)
    }

    fn version_of(&self, handle: Handle, cancel: &CancelToken) -> Result<Version> {
        let open = self.handles.get(handle)?;
        match &open.content {
            Content::File(file) => file.version(),
            Content::Text(text) => Ok(Version {
                length: text.length(),
                identity: None,
                generation: 0,
            }),
            Content::Inner(inner) if !inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem| {
                    filesystem.version_of(handle, cancel)
                })
            }
            _ => Err(refusal(Errno::EISDIR, "read")),
        }
    }

    fn read_now(&self, handle: Handle, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let open = self.handles.get(handle)?;
        let Content::Inner(inner) = &open.content else {
            return Ok(None);
        };
        match inner.member.open_already() {
            Some(opened) if !inner.is_directory && opened.filesystem.has_open(handle) => {
                opened.filesystem.read_now(handle, offset, length)
            }
            _ => Ok(None),
        }
    }

    fn lseek_for(
        &self,
        handle: Handle,
        offset: u64,
        whence: Whence,
        cancel: &CancelToken,
    ) -> Result<u64> {
        let open = self.handles.get(handle)?;
        match &open.content {
            Content::File(file) => file.seek(offset, whence),
            Content::Inner(inner) if !inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem| {
                    filesystem.lseek_for(handle, offset, whence, cancel)
                })
            }
            _ => Err(refusal(Errno::EISDIR, "seek")),
        }
    }

    fn release(&self, handle: Handle) {
        if let Some(open) = self.handles.remove(handle)
            && let Content::Inner(inner) = &open.content
        {
            inner.member.release(handle);
            self.members.leave(inner.member.entry);
        }
    }
}

impl Archive {
    fn lookup_inside(
        &self,
        (member, local): (&Arc<Member>, Ino),
        name: &[u8],
        cancel: &CancelToken,
    ) -> Result<Entry> {
        let entry = self
            .members
            .ask(member, cancel, |file| file.lookup_for(local, name, cancel))?;
        let ino = self.enter_inner(member, entry.ino);
        Ok(numbered(entry, ino))
    }
}
