//! A directory whose entries have numbers, by which a listing goes on where it has stopped.

use std::time::Instant;

use crate::error::Result;
use crate::fs::nodes::node::Target;
use crate::fs::stat::Kind;
use crate::fs::state::listing::{DOTS, Listable, Listed, Visit};
use crate::limits;

/// Entries with numbers in a row from the one that was asked for on, if any are there, and the
/// number at which the search goes on; `None` at the end of the directory.
pub(in crate::fs) type Found<E> = Option<(Vec<E>, u64)>;

/// An entry that was found.
pub(in crate::fs) trait Show {
    /// Hands it, in `directory`, to `visit`; whether there was no room.
    fn show(&self, directory: &Target<'_>, next: u64, visit: &mut Visit<'_>) -> bool;
}

/// An entry of whose attributes only a lookup tells: there may be a thousand million of them.
pub(in crate::fs) struct Plain {
    pub(in crate::fs) name: Vec<u8>,
    pub(in crate::fs) ino: u64,
    pub(in crate::fs) kind: Kind,
}

impl Show for Plain {
    fn show(&self, _: &Target<'_>, next: u64, visit: &mut Visit<'_>) -> bool {
        let listed = Listed {
            name: &self.name,
            ino: self.ino,
            kind: self.kind,
            stat: &|| Listable::Unknown(self.kind),
        };
        visit(&listed, next)
    }
}

/// Hands the entries of `directory` from `first` on to `visit`, as `find` finds those at a number or
/// behind it.
///
/// Where many numbers in a row have no entry, the answer is one more `.`, which every program
/// passes over: the listing goes on behind it, while an empty answer would be the end of the
/// directory.
///
/// # Errors
/// Fails if `find` does before it has found any. After that, the next call comes back here.
pub(in crate::fs) fn list<E: Show>(
    directory: &Target<'_>,
    first: u64,
    visit: &mut Visit<'_>,
    mut find: impl FnMut(u64) -> Result<Found<E>>,
) -> Result<()> {
    let started = Instant::now();
    let mut at = first - DOTS;
    let mut is_any = false;
    loop {
        directory.file.effort.renew();
        let (entries, behind) = match find(at) {
            Ok(Some(found)) => found,
            Err(error) if !is_any => return Err(error),
            Ok(None) | Err(_) => return Ok(()),
        };
        let last = entries.len().saturating_sub(1);
        for (place, entry) in entries.iter().enumerate() {
            at = if place == last { behind } else { at + 1 };
            if entry.show(directory, at + DOTS, visit) {
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
        let stat = || directory.mount.dot(directory.ino);
        visit(&Listed::dot(b".", directory.ino, &stat), at + DOTS);
    }
    Ok(())
}

/// Hands the entries of `directory` from `first` on to `visit`, of which there are `count`, with
/// the numbers from 0 on.
///
/// # Errors
/// Fails if `entry` does for the first one.
pub(in crate::fs) fn list_all<E: Show>(
    directory: &Target<'_>,
    first: u64,
    visit: &mut Visit<'_>,
    count: u64,
    entry: impl Fn(u64) -> Result<E>,
) -> Result<()> {
    list(directory, first, visit, |number| {
        let entry = (number < count).then(|| entry(number)).transpose()?;
        Ok(entry.map(|entry| (vec![entry], number + 1)))
    })
}
