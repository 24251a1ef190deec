//! Many files as one: the data files of a directory as if they were one file, a [`Container`] over
//! containers.
//!
//! | file | content |
//! |---|---|
//! | `members` | all members, scanned by several threads; which of them are open |
//! | `members/opener` | how members are opened |
//! | `members/{walk, links}` | the objects of a member, and where its links lead |
//! | `members/{scan, skeleton, content}` | what is read of a member: its dimensions, its small values |
//! | `members/{convention, conventions}` | what conventions say of arrays: rows of tables, categories, references |
//! | `members/kept` | the same, kept in a file for the next time |
//! | `place` | along which dimensions the members of a kind are joined, and where each lies |
//! | `place/{kind, coordinate, position, extra}` | which members are joined with which; the values of a dimension; blocks one behind the other; a dimension that no member has |
//! | `variable` | what becomes of a variable of several members |
//! | `variable/{compared, form, common_type, gathered}` | its members side by side; what its numbers are; the type that holds all; the elements of what stands in memory |
//! | `variable/agreement` | whether members at one place have the same elements |
//! | `variable/{family, relatives}` | times that are recoded together |
//! | `variable/{related, names}` | elements that depend on other arrays; lists of names as one |
//! | `files`, `tables` | the file of each row; columns of tables, and what is absent with others |
//! | `paths` | paths of objects; what is certain, and what is told |
//! | `instants` | times in one unit |
//! | `made`, `mapped`, `recoding` | an array that is made of those of members |
//! | `scales` | the attributes by which arrays name their dimensions |
//! | `tree`, `container` | the groups and arrays of the joined file; how it answers |
//! | `choice` | `joined[tas_*.nc,join=time]` |
//!
//! What is not certain is absent and told, never guessed: two members that say different things of a
//! variable leave it out, and the attribute `_h5fs_absent` of its group names it. A member that
//! cannot be read is left out and told. A place without a member is fill; what cannot be read of a
//! member is an error.
//!
//! [`Container`]: crate::model::Container

pub(crate) mod choice;
mod container;
mod files;
mod instants;
mod made;
mod mapped;
pub(crate) mod members;
mod paths;
mod place;
mod recoding;
mod scales;
mod tables;
#[cfg(test)]
mod testing;
mod tree;
mod variable;

use std::sync::Arc;

use crate::array::Engine;
use crate::error::Result;
use crate::joined::choice::Choice;
use crate::joined::container::Joined;
pub(crate) use crate::joined::members::Scanning;
pub(crate) use crate::joined::members::kept::frames as kept;
use crate::joined::members::{Members, OpenMember};
pub(crate) use crate::joined::paths::Told;

/// Joins the members that `open` opens, as `choice` says. Returns the joined file, and what is not in it.
///
/// # Errors
/// Fails if a member cannot be read now, what is kept of all takes too much memory, or the request is
/// cancelled.
pub(crate) fn join(
    engine: &Arc<Engine>,
    open: Box<dyn OpenMember>,
    choice: &Choice,
    scanning: &Scanning<'_>,
) -> Result<(Arc<Joined>, Vec<Told>)> {
    let mut told = Vec::new();
    if open.names().is_empty() {
        told.push(Told {
            what: "/".to_owned(),
            reason: "no data file is there, or none matches".to_owned(),
        });
    }
    let members = Members::scan(engine, open, scanning, &mut told)?;
    let tree = tree::Tree::of(&members, choice, &mut told)?;
    Ok((Arc::new(Joined::new(members, tree)), told))
}
