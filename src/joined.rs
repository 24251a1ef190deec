//! Many files as one: a [`Container`] that joins the data files of a directory. The files are its
//! members.
//!
//! | file | content |
//! |---|---|
//! | `members` | the members: scanned by several threads, and the cache of open ones |
//! | `members/opener` | the trait that opens members |
//! | `members/{walk, links}` | finds the objects of a member, and follows its links |
//! | `members/{scan, skeleton, content}` | the data read from a member: its structure and its small values |
//! | `members/{convention, conventions}` | what the conventions of AnnData, pandas and HDMF define for arrays: rows of tables, categories, references |
//! | `members/member_cache` | stores scans in a file for the next time |
//! | `place` | chooses the joined dimensions, and the place of each member |
//! | `place/{kind, coordinate, position, extra}` | members that are joined together; values of a dimension; order of blocks; a new dimension |
//! | `variable` | joins one variable of several members |
//! | `variable/{compared, form, common_type, gathered}` | the variable in all members; its joined type; a common type; elements in memory |
//! | `variable/agreement` | compares the elements of members at the same place |
//! | `variable/{family, relatives}` | time variables that must have the same units |
//! | `variable/{related, names}` | elements that depend on other arrays; merged lists of names |
//! | `files`, `tables` | a column with the file of each row; columns of tables; arrays that are omitted because of others |
//! | `paths` | paths of objects; results with a reason for an omission |
//! | `instants` | times in one unit |
//! | `made`, `mapped`, `recoding` | an array of the joined file, made from the arrays of members |
//! | `scales` | the attributes that name the dimensions of an array |
//! | `tree`, `container` | the groups and arrays of the joined file; its `Container` |
//! | `choice` | parses names such as `joined[tas_*.nc,join=time]` |
//!
//! Joining never guesses. If two members contradict each other about a variable, the variable is
//! omitted, the reason is reported, and the attribute `_h5fs_absent` of its group names the
//! variable. A member that cannot be read is omitted and reported. If no member covers a place, the
//! elements there are fill values. If a member cannot be read later, the read fails.
//!
//! [`Container`]: h5fs_reader::model::Container

pub(crate) mod choice;
mod container;
mod element_recoding;
mod files;
mod instants;
mod joined_array;
mod member_mapping;
pub(crate) mod members;
mod paths;
mod placing;
mod scales;
mod tables;
#[cfg(test)]
mod testing;
mod tree;
mod variable;

use std::sync::Arc;

use h5fs_reader::array::Engine;
use h5fs_reader::error::Result;

use crate::joined::choice::JoinChoice;
use crate::joined::container::JoinedContainer;
pub(crate) use crate::joined::members::ScanOptions;
pub(crate) use crate::joined::members::member_cache::frames as kept;
use crate::joined::members::{Members, OpenMember};
pub(crate) use crate::joined::paths::Omission;

/// Joins the members that `open` opens, as `choice` selects. Returns the joined file, and a report
/// of everything that is omitted.
///
/// # Errors
/// Fails if a member cannot be read now, the scans of all members need too much memory, or the
/// request is cancelled.
pub(crate) fn join(
    engine: &Arc<Engine>,
    open: Box<dyn OpenMember>,
    choice: &JoinChoice,
    scanning: &ScanOptions<'_>,
) -> Result<(Arc<JoinedContainer>, Vec<Omission>)> {
    let mut told = Vec::new();
    if open.member_paths().is_empty() {
        told.push(Omission {
            subject: "/".to_owned(),
            reason: "no data file exists, or none matches".to_owned(),
        });
    }
    let members = Members::scan(engine, open, scanning, &mut told)?;
    let tree = tree::Tree::join(&members, choice, &mut told)?;
    Ok((Arc::new(JoinedContainer::new(members, tree)), told))
}
