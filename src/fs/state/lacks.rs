//! Other files, and objects in them, that an object or a link names and that are missing, or may
//! not be opened.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use crate::error::{Result, quoted};
use crate::fs::forest::other_files::Unshown;
use crate::fs::names::follow::follow_to;
use crate::fs::nodes::node::{Find, Finding, Target};
use crate::limits;
use crate::model::array::{Mappings, Storage, VirtualSource};
use crate::model::{Array, LinkTarget};

/// Hands on what is wrong with the sources of a virtual array, each once, and with theirs.
pub(in crate::fs) fn examine_sources(array: &Arc<Array>, find: &mut Find<'_>) {
    Sources {
        find,
        hasher: RandomState::new(),
        known: HashSet::new(),
    }
    .examine(array, 0);
}

struct Sources<'f, 'd> {
    find: &'f mut Find<'d>,
    hasher: RandomState,
    /// Hashes of the names of those that were looked at.
    known: HashSet<u64>,
}

impl Sources<'_, '_> {
    fn examine(&mut self, array: &Array, depth: usize) {
        if let Ok(Storage::Virtual(mappings)) = &array.storage
            && depth < limits::VIRTUAL_DEPTH
        {
            self.examine_all(mappings, depth);
        }
    }

    fn examine_all(&mut self, mappings: &Mappings, depth: usize) {
        let mut last: Option<Arc<dyn VirtualSource>> = None;
        for mapping in mappings.iter() {
            let source = mapping.source;
            let is_same = last.is_some_and(|last| Arc::ptr_eq(&last, &source));
            last = Some(Arc::clone(&source));
            let is_full = self.known.len() >= limits::VIRTUAL_MAPPINGS;
            let number = self.hasher.hash_one(source.name());
            if is_same || is_full || !self.known.insert(number) {
                continue;
            }
            let name = || format!("virtual source {}", source.name());
            match source.open() {
                Ok(Some(opened)) => self.examine(&opened.array, depth + 1),
                Ok(None) => {
                    (self.find)(Finding::Missing(format!(
                        "{}: missing; its elements are fill values",
                        name()
                    )));
                }
                Err(error) => (self.find)(Finding::Part(name(), error)),
            }
        }
    }
}

/// Hands on why a link into another file leads nowhere.
///
/// # Errors
/// Fails if the link itself cannot be read.
pub(in crate::fs) fn examine_link(target: &Target<'_>, find: &mut Find<'_>) -> Result<()> {
    let link = target.directory().find(&target.inode.name)?.target;
    if link.other_file().is_some()
        && let Some(finding) = finding(target, &link)?
    {
        find(finding);
    }
    Ok(())
}

/// Why a link leads nowhere, in words.
///
/// # Errors
/// Fails if the link itself cannot be read.
pub(in crate::fs) fn why_nowhere(target: &Target<'_>) -> Result<Option<String>> {
    let link = target.directory().find(&target.inode.name)?.target;
    Ok(finding(target, &link)?.map(|finding| match finding {
        Finding::Missing(text) => text,
        Finding::Part(part, error) => format!("{part}: {error}"),
        Finding::Attribute(name, error) => format!("{}: {error}", quoted(name)),
    }))
}

/// Why a link leads nowhere.
fn finding(target: &Target<'_>, link: &LinkTarget) -> Result<Option<Finding<'static>>> {
    match link {
        LinkTarget::Hard(_) => return Ok(None),
        LinkTarget::UserDefined(class) => {
            let text = format!("user-defined link of class {class}: only its maker can follow it");
            return Ok(Some(Finding::Missing(text)));
        }
        _ => {}
    }
    let name = name(target, link)?;
    let others = &target.mount.others;
    let unshown = link
        .other_file()
        .map(|file| others.unshown(target.file, file));
    Ok(match unshown.flatten() {
        Some(Unshown::Missing) => Some(Finding::Missing(format!("{name}: no such file"))),
        Some(Unshown::Refused(error)) => Some(Finding::Part(name, error)),
        None => match follow_to(target.mount, target.file, target.inode.node, link) {
            Ok(Some(_)) => None,
            Ok(None) => Some(Finding::Missing(format!("{name}: no such object"))),
            Err(error) => Some(Finding::Part(name, error)),
        },
    })
}

/// Takes down, once, why a link into another file leads nowhere.
pub(in crate::fs) fn note_link(target: &Target<'_>, link: &LinkTarget) -> Result<()> {
    let Some(file) = link.other_file() else {
        return Ok(());
    };
    let reason = match target.mount.others.unshown(target.file, file) {
        Some(Unshown::Missing) => "no such file".to_owned(),
        Some(Unshown::Refused(error)) => error.to_string(),
        None => return Ok(()),
    };
    let reason = format!("{}: {reason}", name(target, link)?);
    let states = target.file.neighbours.states();
    states.lacks(
        &target.mount.object_name(target.file, target.inode),
        &reason,
    );
    Ok(())
}

/// What a link is called in a message.
fn name(target: &Target<'_>, link: &LinkTarget) -> Result<String> {
    let path = match link {
        LinkTarget::Soft(path) => path.clone(),
        _ => target.directory().path_there(link)?,
    };
    let file = link.other_file().map(|file| format!("{}:", quoted(file)));
    Ok(format!(
        "link to {}{}",
        file.unwrap_or_default(),
        quoted(&path)
    ))
}
