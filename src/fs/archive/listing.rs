//! What is in a directory of an archive, and in a data file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::fs::archive::entries::{Place, number, number_within};
use crate::fs::archive::members::Member;
use crate::fs::archive::{Archive, Content, Target, numbered, shown_name};
use crate::fs::errno::{refusal, stale};
use crate::fs::handle::Handle;
use crate::fs::inode::ROOT;
use crate::fs::requests::{Ino, Take, TakeWithAttributes};
use crate::fs::stat::{DirEntry, Entry, Kind};
use crate::memory::lock::lock;
use crate::source::beneath;

use nix::errno::Errno;

/// An entry of a directory that is listed.
struct Shown<'a> {
    name: &'a [u8],
    ino: Ino,
    kind: Kind,
    next: u64,
}

impl<'a> Shown<'a> {
    fn entry(&self) -> DirEntry<'a> {
        DirEntry {
            name: self.name,
            ino: self.ino,
            kind: self.kind,
            next: self.next,
        }
    }
}

impl Archive {
    /// Hands the entries of an open directory from `cookie` on to `take`.
    pub(super) fn list(&self, handle: Handle, cookie: u64, take: &mut Take<'_>) -> Result<()> {
        let open = self.opened(handle)?;
        match &open.content {
            Content::Inner {
                member,
                local,
                is_directory: true,
            } => self.ask_open(handle, (member, *local, true), |filesystem, own| {
                filesystem.readdir(own, cookie, &mut |entry| {
                    let ino = self.listed_number(member, *local, &entry);
                    take(DirEntry { ino, ..entry })
                })
            }),
            Content::Directory { ino, names } => {
                let names = lock(names);
                self.list_directory(*ino, &names, cookie, &mut |shown| take(shown.entry()))
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
    ) -> Result<()> {
        let open = self.opened(handle)?;
        match &open.content {
            Content::Inner {
                member,
                local,
                is_directory: true,
            } => self.ask_open(handle, (member, *local, true), |filesystem, own| {
                filesystem.readdir_plus(own, cookie, &mut |listed, entry| {
                    self.take_inner(member, *local, &listed, entry, take)
                })
            }),
            Content::Directory { ino, names } => {
                let names = lock(names);
                self.list_directory(*ino, &names, cookie, &mut |shown| {
                    self.take_entry(*ino, shown, take)
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

    /// Hands an entry of a directory on, with its attributes.
    fn take_entry(
        &self,
        parent: Ino,
        shown: &Shown<'_>,
        take: &mut TakeWithAttributes<'_>,
    ) -> bool {
        if matches!(shown.name, b"." | b"..") {
            return take(shown.entry(), None);
        }
        let Ok(Target::Entry(place, path)) = self.target(parent) else {
            return take(shown.entry(), None);
        };
        match self.enter(parent, (&path, place.is_original), shown.name) {
            Ok(entry) => {
                let listed = DirEntry {
                    ino: entry.ino,
                    kind: entry.attributes.kind,
                    ..shown.entry()
                };
                let is_full = take(listed, Some(&entry));
                if is_full {
                    self.entries.forget(entry.ino, 1);
                }
                is_full
            }
            Err(_) => take(shown.entry(), None),
        }
    }

    fn list_directory(
        &self,
        ino: Ino,
        names: &std::os::fd::OwnedFd,
        cookie: u64,
        take: &mut dyn FnMut(&Shown<'_>) -> bool,
    ) -> Result<()> {
        let (place, path) = self.entries.get(ino).ok_or_else(stale)?;
        let listed = beneath::list(names, cookie, &mut |listed| {
            let name = shown_name(ino, listed.name);
            let shown = match listed.name {
                b"." => Some((ino, Kind::Directory)),
                b".." => Some((place.parent, Kind::Directory)),
                _ => self
                    .listed_kind(&path, place, listed)
                    .map(|kind| (number(ino, listed.name), kind)),
            };
            shown.is_some_and(|(ino, kind)| {
                take(&Shown {
                    name: &name,
                    ino,
                    kind,
                    next: listed.next,
                })
            })
        });
        listed.map_err(|error| crate::error::Error::io(&error, path.display().to_string()))
    }

    /// The kind of a name; `None` where it is nothing that is shown. The kernel has a kind for what
    /// is not known, the library between it and this has none: so the first bytes of a file tell.
    fn listed_kind(
        &self,
        directory: &Path,
        place: Place,
        listed: &beneath::Listed<'_>,
    ) -> Option<Kind> {
        if listed.is_directory {
            return Some(Kind::Directory);
        }
        let path = directory.join(OsStr::from_bytes(listed.name));
        let found = self.found(&path, place.is_original, None).ok()?;
        Some(found.kind.shown())
    }

    fn list_fixed(
        &self,
        ino: Ino,
        names: &[(&'static [u8], Ino)],
        cookie: u64,
        take: &mut dyn FnMut(&Shown<'_>) -> bool,
    ) -> Result<()> {
        let parent = self
            .entries
            .get(ino)
            .map_or(ROOT, |(place, _)| place.parent);
        let dots: [(&[u8], Ino); 2] = [(b".", ino), (b"..", parent)];
        let all = dots.iter().chain(names).zip(1..);
        for (&(name, ino), next) in all.skip_while(|(_, next)| *next <= cookie) {
            let kind = Kind::Directory;
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
