//! Directories, listed from any place on.

use std::sync::atomic::Ordering;
use std::time::Instant;

use nix::errno::Errno;

use crate::error::Result;
use crate::fs::errno::refusal;
use crate::fs::handle::{self, Caching, Cursor, Listing, Open, Opened};
use crate::fs::inode::{self, What};
use crate::fs::live::Live;
use crate::fs::mirror::Shown;
use crate::fs::namespace::{Directory, Found};
use crate::fs::{DirEntry, Entry, Filesystem, Handle, Ino, Kind, kind_of, lock};
use crate::limits;
use crate::model::{Link, NodeId};

/// `.` and `..`, the first two entries of every directory.
pub(super) const DOTS: u64 = 2;

/// An entry of a listing.
pub(super) enum Listed<'a> {
    /// What stands in no file: `.` and `..`, views.
    Fixed { name: &'static [u8], ino: Ino },
    /// Another file's directory.
    Other { name: Box<[u8]>, ino: Ino },
    /// An ASDF block.
    Block { name: Vec<u8>, ino: Ino },
    /// What stands in a tree of views.
    View(&'a Shown),
    /// A link of a group.
    Found(&'a Directory<'a>, Found),
}

/// An entry of which no more is told.
fn bare(name: &[u8], ino: Ino, kind: Kind, next: u64) -> DirEntry<'_> {
    DirEntry {
        name,
        ino,
        kind,
        next,
    }
}

impl Filesystem {
    /// Opens a directory.
    pub fn opendir(&self, ino: Ino) -> Result<Opened> {
        let (live, entry) = self.standing(ino)?;
        if kind_of(entry.what) != Kind::Directory {
            return Err(refusal(Errno::ENOTDIR, "opendir"));
        }
        let was_unsure = self.inodes.set_unsure(ino, false);
        // The root has one number in all states of the source.
        let relisted = self.relisted.load(Ordering::Acquire);
        let is_of_now = ino != inode::ROOT || relisted == live.generation;
        let is_external = entry.what == What::External;
        let caching = match is_of_now && !is_external && !was_unsure && live.is_settled() {
            true => Caching::Lasting,
            false => Caching::WhileOpen,
        };
        // Each listing of it has the effort of a request.
        let (live, _) = live.for_request();
        let open = Open::directory(ino, live);
        let opened = open.and_then(|open| self.handles.insert(open, caching));
        if opened.is_err() && was_unsure {
            self.inodes.set_unsure(ino, true);
        }
        opened
    }

    /// Has the kernel not keep what an open directory lists: something of it cannot be read now.
    pub(super) fn mark_unsure(&self, ino: Ino, listing: &mut Listing) {
        listing.is_unsure = true;
        self.inodes.set_unsure(ino, true);
    }

    /// Hands the entries of an open directory from `cookie` on (0: from the first) to `visit` until it
    /// says that it is full; that entry is not taken.
    ///
    /// # Errors
    /// As the index is damaged at `cookie`; where it is damaged further on, the next call says so.
    pub fn readdir(
        &self,
        handle: Handle,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>) -> bool,
    ) -> Result<()> {
        self.list(handle, cookie, &mut |listed, next| {
            let (name, ino, kind) = match listed {
                Listed::Fixed { name, ino } => (*name, *ino, self.kind_of_fixed(*ino)),
                Listed::Other { name, ino } => (&**name, *ino, Kind::Directory),
                Listed::Block { name, ino } => (&**name, *ino, Kind::File),
                Listed::View(shown) => (&*shown.entry.name, shown.ino, kind_of(shown.entry.what)),
                Listed::Found(_, found) => {
                    (&*found.entry.name, found.ino, kind_of(found.entry.what))
                }
            };
            visit(DirEntry {
                name,
                ino,
                kind,
                next,
            })
        })
    }

    /// Like [`readdir`](Self::readdir), with what `stat` tells; each entry that is taken is counted,
    /// except `.` and `..`. What only a lookup tells has nothing.
    pub fn readdir_plus(
        &self,
        handle: Handle,
        cookie: u64,
        visit: &mut dyn FnMut(DirEntry<'_>, Option<&Entry>) -> bool,
    ) -> Result<()> {
        self.list(handle, cookie, &mut |listed, next| {
            let (name, entry) = match listed {
                Listed::Fixed { name, ino } => match self.standing(*ino) {
                    Ok((live, _)) if matches!(*name, b"." | b"..") => {
                        (*name, self.directory_entry(&live, *ino))
                    }
                    _ => (*name, self.getattr(*ino)),
                },
                Listed::Other { name, ino } => {
                    return visit(bare(name, *ino, Kind::Directory, next), None);
                }
                Listed::Block { name, ino } => {
                    return visit(bare(name, *ino, Kind::File, next), None);
                }
                Listed::View(shown) => {
                    let name = &*shown.entry.name;
                    // The listing is of the state that it was opened in.
                    let generation = shown.entry.generation;
                    let entry = self.live().ok();
                    let entry = entry.filter(|live| live.generation == generation);
                    let entry = entry.and_then(|live| self.enter_listed(&live, shown));
                    if let Some(entry) = entry {
                        (name, Ok(entry))
                    } else {
                        let (ino, kind) = (shown.ino, kind_of(shown.entry.what));
                        return visit(
                            DirEntry {
                                name,
                                ino,
                                kind,
                                next,
                            },
                            None,
                        );
                    }
                }
                Listed::Found(directory, found) => {
                    let name = &*found.entry.name;
                    match self.enter(directory, found, false) {
                        Ok(entry) => (name, Ok(entry)),
                        Err(_) => {
                            return visit(bare(name, found.ino, Kind::Directory, next), None);
                        }
                    }
                }
            };
            let Ok(entry) = entry else {
                let Listed::Fixed { name, ino } = listed else {
                    return false;
                };
                return visit(bare(name, *ino, self.kind_of_fixed(*ino), next), None);
            };
            let listed_entry = DirEntry {
                name,
                ino: entry.ino,
                kind: entry.attributes.kind,
                next,
            };
            let full = visit(listed_entry, Some(&entry));
            if full && matches!(listed, Listed::Found(..) | Listed::View(_)) {
                self.forget(entry.ino, 1);
            }
            full
        })
    }

    fn list(
        &self,
        handle: Handle,
        cookie: u64,
        visit: &mut dyn FnMut(&Listed<'_>, u64) -> bool,
    ) -> Result<()> {
        let open = self.opened(handle)?;
        let _granted = open.live.effort.granted();
        let listed = self.list_open(&open, cookie, visit);
        // What is let go of here, the next call finds again.
        let _ = open.settle();
        listed
    }

    fn list_open(
        &self,
        open: &Open,
        cookie: u64,
        visit: &mut dyn FnMut(&Listed<'_>, u64) -> bool,
    ) -> Result<()> {
        let live = &open.live;
        let handle::What::Directory(listing) = &open.what else {
            return Err(refusal(Errno::ENOTDIR, "readdir"));
        };
        let entry = self.entry(live, open.ino)?;
        let dots = [(&b"."[..], open.ino), (&b".."[..], entry.parent)];
        for (next, (name, ino)) in (1_u64..).zip(dots) {
            if cookie < next && visit(&Listed::Fixed { name, ino }, next) {
                return Ok(());
            }
        }
        let first = cookie.max(DOTS);
        match entry.what {
            What::Views => {
                let views = (DOTS..)
                    .zip(self.views(live))
                    .skip_while(|(at, _)| *at < first);
                for (at, (name, ino)) in views {
                    if visit(&Listed::Fixed { name, ino }, at + 1) {
                        break;
                    }
                }
                return Ok(());
            }
            What::External => {
                self.list_others(live, first, visit);
                return Ok(());
            }
            What::Blocks => return self.list_blocks(live, first, visit),
            What::Mirror => {
                let listed =
                    self.list_view(live, (open.ino, &entry), &mut lock(listing), first, visit);
                return listed.inspect_err(|error| {
                    self.note(&self.space(live), open.ino, &entry, error);
                });
            }
            _ => {}
        }
        let directory = self.space(live).directory(entry.node);
        let mut listing = lock(listing);
        let mut at = first;
        let started = Instant::now();
        // What takes long is handed out in parts; only an empty answer would be the end.
        while at == first || started.elapsed() <= limits::LISTING_TIME {
            live.effort.renew();
            match self.fetch(live, entry.node, &mut listing.cursor, at - DOTS) {
                Ok(Some((link, behind))) => {
                    let found = directory.show(link);
                    if found.entry.what == What::Unread {
                        self.mark_unsure(open.ino, &mut listing);
                    }
                    let listed = Listed::Found(&directory, found);
                    at = behind.saturating_add(DOTS);
                    if visit(&listed, at) {
                        return Ok(());
                    }
                }
                Ok(None) => return Ok(()),
                // What came before it is handed out first; the next call comes back here.
                Err(_) if at > first => return Ok(()),
                Err(error) => {
                    self.note(&self.space(live), open.ino, &entry, &error);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn list_others(
        &self,
        live: &Live,
        first: u64,
        visit: &mut dyn FnMut(&Listed<'_>, u64) -> bool,
    ) {
        for at in first.. {
            let Some(name) = self.others.listed(at - DOTS) else {
                return;
            };
            let root = live.container.root();
            let ino = inode::of_link(live.generation, inode::FIRST_FILE, root, &name);
            if visit(&Listed::Other { name, ino }, at + 1) {
                return;
            }
        }
    }

    fn kind_of_fixed(&self, ino: Ino) -> Kind {
        let entry = self.inodes.get(ino);
        entry.map_or(Kind::Directory, |entry| kind_of(entry.what))
    }

    /// The first link of `group` at or after `position`, and the position behind it.
    pub(super) fn fetch(
        &self,
        live: &Live,
        group: NodeId,
        cursor: &mut Option<Cursor>,
        position: u64,
    ) -> Result<Option<(Link, u64)>> {
        let cursor = match cursor {
            Some(cursor) => cursor,
            None => cursor.insert(Cursor::new(live.container.links(group)?)),
        };
        let found = cursor.at(position)?;
        Ok(found.map(|(link, behind)| (link.clone(), behind)))
    }
}
