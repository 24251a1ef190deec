//! Many files as one: a [`Container`] that joins the data files of a directory. The files are its
//! members.
//!
//! | module | content |
//! |---|---|
//! | `members` | scans the members in several threads, and caches open members |
//! | `members/opener` | the trait that lists and opens members |
//! | `members/far_opening` | remote members that threads are opening |
//! | `members/{walk, links}` | finds the objects of a member, and follows its links |
//! | `members/{scan, skeleton, content}` | reads the structure and small values of a member |
//! | `members/layout` | finds the dimensions that the variables of a member share |
//! | `members/{convention, conventions}` | the rules of AnnData, pandas and HDMF for arrays |
//! | `members/member_cache` | stores scans in a file for later joins |
//! | `placing` | chooses the joined dimensions, and the place of each member |
//! | `placing/member_kind` | divides members into kinds; members of one kind are joined |
//! | `placing/{coordinate, position}` | coordinates of a dimension; the order of its blocks |
//! | `placing/{placement, new_dimension}` | places of members; a dimension that no member has |
//! | `variable` | joins one variable of several members |
//! | `variable/{comparison, form}` | the variable in all members; its joined datatype |
//! | `variable/{common_type, in_memory}` | a common datatype; elements collected in memory |
//! | `variable/agreement` | compares the elements of members at the same place |
//! | `variable/refusal` | rejects variables because of the rules of a convention |
//! | `variable/{recoded_times, related_times}` | time variables that need the same units |
//! | `variable/{dependent, names}` | elements that depend on other arrays; merged lists of names |
//! | `files` | the column with the name of the file of each row |
//! | `tables` | columns of tables; arrays omitted because of other arrays |
//! | `paths` | paths of objects; results with a reason for an omission |
//! | `instants` | times in one unit |
//! | `joined_array` | an array of the joined file |
//! | `member_mapping`, `element_recoding` | maps and converts the elements of members |
//! | `scales` | the attributes that name the dimensions of an array |
//! | `tree`, `container` | the groups and arrays of the joined file; its [`Container`] |
//! | `choice` | parses names such as `joined[tas_*.nc,join=time]` |
//!
//! Joining never guesses. If two members contradict each other about a variable, the variable is
//! omitted, the reason is reported, and the attribute `_h5fs_absent` of its group names the
//! variable. A member that cannot be read is omitted and reported. Elements of a joined array that
//! no member covers are fill values. If a member cannot be read later, the read fails.
//!
//! [`Container`]: h5fs_reader::model::Container

#![forbid(unsafe_code)]

pub mod choice;
mod container;
mod element_recoding;
mod files;
mod instants;
mod joined_array;
pub mod limits;
mod member_mapping;
pub mod members;
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

use crate::choice::JoinChoice;
use crate::container::JoinedContainer;
pub use crate::members::ScanOptions;
pub use crate::members::member_cache::frames as kept;
use crate::members::{MemberFiles, Members};
pub use crate::paths::Omission;

/// Joins the files (members) that `open` lists and opens. `choice` selects files and the joined
/// dimension. Returns the joined file, and a report of everything that it omits.
///
/// # Errors
/// Fails if a member cannot be read at the moment, the scans of all members need too much memory,
/// or the request is cancelled.
pub fn join(
    engine: &Arc<Engine>,
    open: Box<dyn MemberFiles>,
    choice: &JoinChoice,
    scanning: &ScanOptions<'_>,
) -> Result<(Arc<JoinedContainer>, Vec<Omission>)> {
    let mut omissions = Vec::new();
    if open.member_paths().is_empty() {
        omissions.push(Omission {
            subject: "/".to_owned(),
            reason: "no data file exists, or none matches".to_owned(),
        });
    }
    let members = Members::scan(engine, open, scanning, &mut omissions)?;
    let tree = tree::Tree::join(&members, choice, &mut omissions)?;
    Ok((Arc::new(JoinedContainer::new(members, tree)), omissions))
}
