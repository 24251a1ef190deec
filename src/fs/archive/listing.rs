//! What is in a directory of an archive, and in a data file.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::error::Result;
use crate::fs::archive::entries::{Place, number, number_within};
use crate::fs::archive::members::Member;
use crate::fs::archive::top::shown_name;
use crate::fs::archive::{Archive, Content, Fixed, numbered};
use crate::fs::errno::{refusal, stale};
use crate::fs::handle::Handle;
use crate::fs::inode::ROOT;
use crate::fs::requests::{Ino, Requests, Take, TakeWithAttributes};
use crate::fs::stat::{DirEntry, Entry, Kind};
use crate::memory::cancel::CancelToken;
use crate::memory::lock::lock;
use crate::source::directory::{Listed, Names};

use nix::errno::Errno;

/// A directory that is listed.
struct Directory {
    ino: Ino,
    place: Place,
    /// From the root of the archive.
    path: PathBuf,
}

/// An entry of a directory that is listed.
struct Shown<'a> {
    name: Cow<'a, [u8]>,
    ino: Ino,
    kind: Kind,
    next: u64,
}

impl Shown<'_> {
    fn entry(&self) -> DirEntry<'_> {
        DirEntry {
            name: &self.name,
            ino: self.ino,
            kind: self.kind,
            next: self.next,
        }
    }
}

impl Archive {
    /// Hands the entries of an open directory from `cookie` on to `take`.
    pub(super) fn list(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut Take<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let open = self.opened(handle)?;
        match &open.content {
            Content::Inner(inner) if inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem, own| {
                    let take = &mut |entry: DirEntry<'_>| {
                        let ino = self.listed_number(&inner.member, inner.local, &entry);
                        take(DirEntry { ino, ..entry })
                    };
                    filesystem.readdir_for(own, cookie, take, cancel)
                })
            }
            Content::Directory { ino, names } => {
                let mut names = lock(names);
                self.list_directory(*ino, &mut **names, cookie, &mut |directory, listed| {
                    let shown = self.shown(directory, listed);
                    shown.is_some_and(|shown| take(shown.entry()))
                })
            }
            Content::Fixed { ino, names } => {
                self.list_fixed(*ino, names, cookie, &mut |shown| take(shown.entry()))
            }
            _ => Err(refusal(Errno::ENOTDIR, "readdir")),
        }
    }

    /// As [`list`](Self::list), with attributes; each entry that is taken with some is counted.
    pub(super) fn list_with_attributes(
        &self,
        handle: Handle,
        cookie: u64,
        take: &mut TakeWithAttributes<'_>,
        cancel: &CancelToken,
    ) -> Result<()> {
        let open = self.opened(handle)?;
        match &open.content {
            Content::Inner(inner) if inner.is_directory => {
                self.ask_open(handle, inner, cancel, |filesystem, own| {
                    let take = &mut |listed: DirEntry<'_>, entry: Option<&Entry>| {
                        self.take_inner(&inner.member, inner.local, &listed, entry, take)
                    };
                    filesystem.readdir_plus_for(own, cookie, take, cancel)
                })
            }
            Content::Directory { ino, names } => {
                let mut names = lock(names);
                self.list_directory(*ino, &mut **names, cookie, &mut |directory, listed| {
                    self.take_entry(directory, listed, take)
                })
            }
            Content::Fixed { ino, names } => {
                self.list_fixed(*ino, names, cookie, &mut |shown| take(shown.entry(), None))
            }
            _ => Err(refusal(Errno::ENOTDIR, "readdir")),
        }
    }

    /// Hands an entry of a member's directory on, with its number in the mount.
    fn take_inner(
        &self,
        member: &Arc<Member>,
        directory: Ino,
        listed: &DirEntry<'_>,
        entry: Option<&Entry>,
        take: &mut TakeWithAttributes<'_>,
    ) -> bool {
        let ino = self.listed_number(member, directory, listed);
        let is_dot = matches!(listed.name, b"." | b"..");
        let Some(entry) = entry.filter(|_| !is_dot) else {
            return take(DirEntry { ino, ..*listed }, None);
        };
        let ino = self.enter_inner(member, entry.ino);
        let is_full = take(DirEntry { ino, ..*listed }, Some(&numbered(*entry, ino)));
        if is_full && let Some((_, _, true)) = self.inner.forget(ino, 1) {
            self.members.leave(member.entry);
        }
        is_full
    }

    /// The number of an entry of the directory `directory` of a member.
    fn listed_number(&self, member: &Member, directory: Ino, listed: &DirEntry<'_>) -> Ino {
        match (listed.name, listed.ino) {
            (b"..", _) if directory == ROOT => {
                let entry = self.entries.get(member.entry);
                entry.map_or(ROOT, |(place, _)| place.parent)
            }
            (_, ROOT) => member.entry,
            (_, local) => number_within(member.entry, local),
        }
    }

    /// Hands an entry of a directory on, with its attributes if it has some.
    fn take_entry(
        &self,
        directory: &Directory,
        listed: &Listed<'_>,
        take: &mut TakeWithAttributes<'_>,
    ) -> bool {
        let name = shown_name(directory.ino == ROOT, listed.name);
        let entry = match listed.name {
            b"." | b".." => None,
            _ => self.enter_listed(directory, listed),
        };
        let Some(entry) = entry else {
            let shown = self.shown(directory, listed);
            return shown.is_some_and(|shown| take(shown.entry(), None));
        };
        let shown = DirEntry {
            name: &name,
            ino: entry.ino,
            kind: entry.attributes.kind,
            next: listed.next,
        };
        let is_full = take(shown, Some(&entry));
        if is_full {
            self.entries.forget(entry.ino, 1);
        }
        is_full
    }

    /// Counts a lookup of a name that is listed, and describes it; `None` where it cannot be, or
    /// only by reading a file of a far directory.
    fn enter_listed(&self, directory: &Directory, listed: &Listed<'_>) -> Option<Entry> {
        let (ino, is_original) = (directory.ino, directory.place.is_original);
        let Some(there) = &listed.there else {
            let name = shown_name(ino == ROOT, listed.name);
            return self.enter(ino, (&directory.path, is_original), &name).ok();
        };
        let path = directory.path.join(OsStr::from_bytes(listed.name));
        let found = self.look.listed(&path, is_original, there)?;
        Some(self.enter_found((ino, is_original), listed.name, (&path, &found)))
    }

    /// Hands the names of an open directory from `cookie` on to `take` until it says that it is
    /// full.
    fn list_directory(
        &self,
        ino: Ino,
        names: &mut dyn Names,
        cookie: u64,
        take: &mut dyn FnMut(&Directory, &Listed<'_>) -> bool,
    ) -> Result<()> {
        let (place, path) = self.entries.get(ino).ok_or_else(stale)?;
        let directory = Directory { ino, place, path };
        names.visit(cookie, &mut |listed| take(&directory, listed))
    }

    /// A name as it is shown; `None` where it is nothing that is shown.
    fn shown<'a>(&self, directory: &Directory, listed: &Listed<'a>) -> Option<Shown<'a>> {
        let name = shown_name(directory.ino == ROOT, listed.name);
        let (ino, kind) = match listed.name {
            b"." => (directory.ino, Kind::Directory),
            b".." => (directory.place.parent, Kind::Directory),
            name => (
                number(directory.ino, name),
                self.listed_kind(directory, listed)?,
            ),
        };
        Some(Shown {
            name,
            ino,
            kind,
            next: listed.next,
        })
    }

    /// The kind of a name; `None` where it is nothing that is shown. The kernel has a kind for what
    /// is not known, the library between it and this has none: so the first bytes of a file tell.
    /// An object is not read for that, and counts as an ordinary file.
    fn listed_kind(&self, directory: &Directory, listed: &Listed<'_>) -> Option<Kind> {
        if listed.is_directory {
            return Some(Kind::Directory);
        }
        let path = directory.path.join(OsStr::from_bytes(listed.name));
        if let Some(there) = &listed.there {
            let found = self.look.listed(&path, directory.place.is_original, there);
            return Some(found.map_or(Kind::File, |found| found.kind.shown()));
        }
        let known = self.entries.known(directory.ino, listed.name);
        let found = self.found(&path, directory.place.is_original, known);
        found.ok().map(|found| found.kind.shown())
    }

    fn list_fixed(
        &self,
        ino: Ino,
        names: &[Fixed],
        cookie: u64,
        take: &mut dyn FnMut(&Shown<'_>) -> bool,
    ) -> Result<()> {
        let parent = self
            .entries
            .get(ino)
            .map_or(ROOT, |(place, _)| place.parent);
        let dots: [Fixed; 2] = [
            (b".", ino, Kind::Directory),
            (b"..", parent, Kind::Directory),
        ];
        let all = dots.iter().chain(names).zip(1..);
        for (&(name, ino, kind), next) in all.skip_while(|(_, next)| *next <= cookie) {
            let name = Cow::Borrowed(name);
            if take(&Shown {
                name,
                ino,
                kind,
                next,
            }) {
                break;
            }
        }
        Ok(())
    }
}
