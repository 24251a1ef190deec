//! Listings of directories whose entries are numbered, so that a listing can resume at a number.

use std::time::Instant;

use h5fs_reader::error::Result;

use crate::limits;
use crate::nodes::node::TargetInode;
use crate::stat::FileKind;
use crate::state::listing::{DOT_ENTRIES, ListedAttributes, ListingCallback, ListingEntry};

/// Entries with consecutive numbers from the requested number on, possibly none, and the number
/// where the search for further entries continues. `None` if no entries follow.
pub(crate) type IndexedEntries<E> = Option<(Vec<E>, u64)>;

/// An entry of a directory with numbered entries.
pub(crate) trait IndexedEntry {
    /// Passes this entry of `directory` to `visit`. `next` is the position after the entry. Returns
    /// whether `visit` refused the entry, because the reply has no room.
    fn visit(
        &self,
        directory: &TargetInode<'_>,
        next: u64,
        visit: &mut ListingCallback<'_>,
    ) -> bool;
}

/// An entry without attributes. Only a lookup determines the attributes, because a directory may
/// have a billion entries.
pub(crate) struct PlainEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) ino: u64,
    pub(crate) kind: FileKind,
}

impl IndexedEntry for PlainEntry {
    fn visit(&self, _: &TargetInode<'_>, next: u64, visit: &mut ListingCallback<'_>) -> bool {
        let listed = ListingEntry {
            name: &self.name,
            ino: self.ino,
            kind: self.kind,
            stat: &|| ListedAttributes::Unknown(self.kind),
        };
        visit(&listed, next)
    }
}

/// Passes the entries of `directory` from `first` to `visit`. `find` returns the entries from a
/// number on.
///
/// If a long range of numbers has no entry, the reply contains another `.`, which every program
/// ignores, and the listing can resume after it. An empty reply would mean the end of the
/// directory.
///
/// # Errors
/// Fails if `find` fails before any entry is found. After later errors, the next call resumes at
/// the failed number.
pub(crate) fn list<E: IndexedEntry>(
    directory: &TargetInode<'_>,
    first: u64,
    visit: &mut ListingCallback<'_>,
    mut find: impl FnMut(u64) -> Result<IndexedEntries<E>>,
) -> Result<()> {
    let started = Instant::now();
    let mut at = first - DOT_ENTRIES;
    let mut is_any = false;
    loop {
        directory.file.budget.renew();
        let (entries, behind) = match find(at) {
            Ok(Some(found)) => found,
            Err(error) if !is_any => return Err(error),
            Ok(None) | Err(_) => return Ok(()),
        };
        let last = entries.len().saturating_sub(1);
        for (place, entry) in entries.iter().enumerate() {
            at = if place == last { behind } else { at + 1 };
            if entry.visit(directory, at + DOT_ENTRIES, visit) {
                return Ok(());
            }
            is_any = true;
        }
        at = behind;
        if started.elapsed() > limits::LISTING_TIME {
            break;
        }
    }
    if !is_any {
        let stat = || directory.mount.dot_attributes(directory.ino);
        visit(
            &ListingEntry::dot_entry(b".", directory.ino, &stat),
            at + DOT_ENTRIES,
        );
    }
    Ok(())
}

/// Passes the entries of `directory` with the numbers `first` to `count - 1` to `visit`. `entry`
/// returns the entry with a number.
///
/// # Errors
/// Fails if `entry` fails for the first one.
pub(crate) fn list_all<E: IndexedEntry>(
    directory: &TargetInode<'_>,
    first: u64,
    visit: &mut ListingCallback<'_>,
    count: u64,
    entry: impl Fn(u64) -> Result<E>,
) -> Result<()> {
    list(directory, first, visit, |number| {
        let entry = (number < count).then(|| entry(number)).transpose()?;
        Ok(entry.map(|entry| (vec![entry], number + 1)))
    })
}
