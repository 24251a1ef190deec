//! Directory listings of an archive, including the directories within data files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::archive::entries::{
    EntryKind, EntryProperties, entry_inode_number, member_inode_number,
};
use crate::archive::members::ArchiveMember;
use crate::archive::root_names::shown_name;
use crate::archive::{Archive, ArchiveContent, FixedEntry, with_inode_number};
use crate::errno::{refusal_error, stale_error};
use crate::requests::{AttributesCallback, Ino, ListingDetail, Requests};
use crate::stat::{DirEntry, FileKind, LookupEntry};
use crate::state::handle::Handle;
use crate::state::inode::ROOT;

use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::directory::ListedEntry;
use nix::errno::Errno;

/// A directory that is being listed.
struct ListedDirectory {
    ino: Ino,
    place: EntryProperties,
    /// Path from the root of the archive.
    path: PathBuf,
}

impl Archive {
    /// Passes the entries of an open directory to `take`, from the position `cookie` on. Increments
    /// the lookup count of each entry that `take` accepts with attributes.
    pub(super) fn list(
        &self,
        handle: Handle,
        cookie: u64,
        (detail, take): (ListingDetail, &mut AttributesCallback<'_>),
        cancel: &CancelToken,
    ) -> Result<()> {
        let open = self.handles.get(handle)?;
        match &open.content {
            ArchiveContent::InMember(inner) if inner.is_directory => {
                self.with_open_member(handle, inner, cancel, |filesystem| {
                    let take = &mut |listed: DirEntry<'_>, entry: Option<&LookupEntry>| {
                        self.pass_member_entry(&inner.member, inner.local_ino, &listed, entry, take)
                    };
                    filesystem.list_with_cancel(handle, cookie, detail, take, cancel)
                })
            }
            ArchiveContent::Directory { ino, names } => {
                let (place, path) = self.entries.get(*ino).ok_or_else(stale_error)?;
                let directory = ListedDirectory {
                    ino: *ino,
                    place,
                    path,
                };
                lock(names).visit(cookie, &mut |listed| {
                    self.pass_entry(&directory, listed, detail, take)
                })
            }
            ArchiveContent::Fixed { ino, names } => {
                self.list_fixed(*ino, names, cookie, take);
                Ok(())
            }
            _ => Err(refusal_error(Errno::ENOTDIR, "readdir")),
        }
    }

    /// Passes an entry of a directory within a data file to `take`, with its inode number in the
    /// mount.
    fn pass_member_entry(
        &self,
        member: &Arc<ArchiveMember>,
        directory: Ino,
        listed: &DirEntry<'_>,
        entry: Option<&LookupEntry>,
        take: &mut AttributesCallback<'_>,
    ) -> bool {
        let ino = self.listed_inode_number(member, directory, listed);
        let is_dot = matches!(listed.name, b"." | b"..");
        let Some(entry) = entry.filter(|_| !is_dot) else {
            return take(DirEntry { ino, ..*listed }, None);
        };
        let ino = self.add_member_lookup(member, entry.ino);
        let is_full = take(
            DirEntry { ino, ..*listed },
            Some(&with_inode_number(*entry, ino)),
        );
        if is_full && let Some((_, _, true)) = self.member_inodes.forget(ino, 1) {
            self.members.remove_use(member.entry);
        }
        is_full
    }

    /// Returns the inode number in the mount for the entry `listed` of a directory within a data
    /// file.
    fn listed_inode_number(
        &self,
        member: &ArchiveMember,
        directory: Ino,
        listed: &DirEntry<'_>,
    ) -> Ino {
        match (listed.name, listed.ino) {
            (b"..", _) if directory == ROOT => {
                let entry = self.entries.get(member.entry);
                entry.map_or(ROOT, |(place, _)| place.parent)
            }
            (_, ROOT) => member.entry,
            (_, local) => member_inode_number(member.entry, local),
        }
    }

    /// Passes an entry of a directory to `take`, with attributes if `detail` requests them and they
    /// are available. Returns whether `take` had no room for the entry. An entry that is not shown
    /// is skipped.
    fn pass_entry(
        &self,
        directory: &ListedDirectory,
        listed: &ListedEntry<'_>,
        detail: ListingDetail,
        take: &mut AttributesCallback<'_>,
    ) -> bool {
        let name = shown_name(directory.ino == ROOT, listed.name);
        let is_dot = matches!(listed.name, b"." | b"..");
        let entry = if detail == ListingDetail::Names || is_dot {
            None
        } else {
            self.lookup_listed(directory, listed)
        };
        let shown = |ino, kind| DirEntry {
            name: &name,
            ino,
            kind,
            next: listed.next,
        };
        let Some(entry) = entry else {
            let described = self.describe_listed(directory, listed);
            return described.is_some_and(|(ino, kind)| take(shown(ino, kind), None));
        };
        let is_full = take(shown(entry.ino, Some(entry.attributes.kind)), Some(&entry));
        if is_full {
            self.entries.forget(entry.ino, 1);
        }
        is_full
    }

    /// Increments the lookup count of a listed name, and returns its entry. Returns `None` if the
    /// entry cannot be read, or if that would read a file of a remote directory.
    fn lookup_listed(
        &self,
        directory: &ListedDirectory,
        listed: &ListedEntry<'_>,
    ) -> Option<LookupEntry> {
        let (ino, is_original) = (directory.ino, directory.place.is_original);
        let Some(there) = &listed.info else {
            if self.inspector.is_remote() {
                return None;
            }
            let name = shown_name(ino == ROOT, listed.name);
            return self
                .lookup_entry(ino, (&directory.path, is_original), &name)
                .ok();
        };
        let path = directory.path.join(OsStr::from_bytes(listed.name));
        let found = self.inspector.inspect_listed(&path, is_original, there)?;
        Some(self.add_entry_lookup((ino, is_original), listed.name, (&path, &found)))
    }

    /// Returns the inode number of a listed name, and the kind of file, if known. Returns `None` if
    /// the name is not shown.
    fn describe_listed(
        &self,
        directory: &ListedDirectory,
        listed: &ListedEntry<'_>,
    ) -> Option<(Ino, Option<FileKind>)> {
        Some(match listed.name {
            b"." => (directory.ino, Some(FileKind::Directory)),
            b".." => (directory.place.parent, Some(FileKind::Directory)),
            name => (
                entry_inode_number(directory.ino, name),
                self.listed_kind(directory, listed)?,
            ),
        })
    }

    /// Returns the kind of file of a listed name. The outer `None` means that the name is not
    /// shown. The inner `None` means that the kind is unknown, because a listing does not read
    /// files of a remote directory. The first bytes of a local file determine its kind.
    fn listed_kind(
        &self,
        directory: &ListedDirectory,
        listed: &ListedEntry<'_>,
    ) -> Option<Option<FileKind>> {
        if listed.is_directory {
            return Some(Some(FileKind::Directory));
        }
        let path = directory.path.join(OsStr::from_bytes(listed.name));
        let is_original = directory.place.is_original;
        let known = self.entries.known_properties(directory.ino, listed.name);
        if let Some(there) = &listed.info {
            let found = self.inspector.inspect_listed(&path, is_original, there);
            return Some(found.map(|found| found.kind.file_kind()));
        }
        if self.inspector.is_remote() {
            let seen = known.map(|known| known.kind);
            let kind = seen.or_else(|| self.inspector.kind_by_name(&path, is_original));
            return Some(kind.map(EntryKind::file_kind));
        }
        let found = self.inspect(&path, is_original, known);
        found.ok().map(|found| Some(found.kind.file_kind()))
    }

    fn list_fixed(
        &self,
        ino: Ino,
        names: &[FixedEntry],
        cookie: u64,
        take: &mut AttributesCallback<'_>,
    ) {
        let place = self.entries.get(ino).map(|(place, _)| place);
        let parent = place.map_or(ROOT, |place| place.parent);
        let dots: [FixedEntry; 2] = [
            (b".", ino, FileKind::Directory),
            (b"..", parent, FileKind::Directory),
        ];
        let all = dots.iter().chain(names).zip(1..);
        for (&(name, ino, kind), next) in all.skip_while(|(_, next)| *next <= cookie) {
            let entry = DirEntry {
                name,
                ino,
                kind: Some(kind),
                next,
            };
            if take(entry, None) {
                break;
            }
        }
    }
}
