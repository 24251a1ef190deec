//! Missing or forbidden files, and objects in them, that an object or a link references.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use h5fs_reader::error::{Result, quoted};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::model::array::{Mappings, Storage, VirtualSource};
use h5fs_reader::model::{Array, LinkTarget};

use crate::fs::forest::other_files::Unshown;
use crate::fs::names::follow::follow_to;
use crate::fs::nodes::node::{Find, Finding, Target};
use crate::limits;

/// Reports problems with the sources of a virtual array, recursively and each once.
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
    /// Hashes of the names of the sources examined so far.
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
            match source.open(&CancelToken::default()) {
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

/// Reports why a link into another file leads nowhere.
///
/// # Errors
/// Fails if the link itself cannot be read.
pub(in crate::fs) fn examine_link(target: &Target<'_>, find: &mut Find<'_>) -> Result<()> {
    let link = target.directory().find(&target.inode.name)?.target;
    if link.other_file().is_none() {
        return Ok(());
    }
    match unshown(target, &link)? {
        Some(finding) => find(finding),
        None => match absent(target, &link) {
            Ok(Some(finding)) => find(finding),
            Ok(None) => {}
            Err(error) => find(Finding::Part(name(target, &link)?, error)),
        },
    }
    Ok(())
}

/// Returns why a link leads nowhere, as text. The reason is a file that is not shown or, if
/// `object` is true, a missing object in that file.
///
/// # Errors
/// Fails if the link itself, or its target, cannot be read.
pub(in crate::fs) fn why_nowhere(target: &Target<'_>, object: bool) -> Result<Option<String>> {
    let link = target.directory().find(&target.inode.name)?.target;
    let finding = match unshown(target, &link)? {
        None if object => absent(target, &link)?,
        unshown => unshown,
    };
    Ok(finding.map(|finding| match finding {
        Finding::Missing(text) => text,
        Finding::Part(name, error) => format!("{name}: {error}"),
        Finding::Attribute(name, error) => format!("{}: {error}", quoted(name)),
    }))
}

/// Returns why the other file of a link is not shown.
fn unshown(target: &Target<'_>, link: &LinkTarget) -> Result<Option<Finding<'static>>> {
    let Some(file) = link.other_file() else {
        return Ok(None);
    };
    let name = || name(target, link);
    Ok(match target.mount.others.unshown(target.file, file) {
        Some(Unshown::Missing) => Some(Finding::Missing(format!("{}: no such file", name()?))),
        Some(Unshown::Refused(error)) => Some(Finding::Part(name()?, error)),
        None => None,
    })
}

/// Returns a finding if the target object of a link does not exist.
fn absent(target: &Target<'_>, link: &LinkTarget) -> Result<Option<Finding<'static>>> {
    let text = match link {
        LinkTarget::Hard(_) => return Ok(None),
        LinkTarget::UserDefined(class) => {
            format!(
                "user-defined link of class {class}: only the program that made it can follow it"
            )
        }
        _ => match follow_to(target.mount, target.file, target.inode.node, link)? {
            Some(_) => return Ok(None),
            None => format!("{}: no such object", name(target, link)?),
        },
    };
    Ok(Some(Finding::Missing(text)))
}

/// Records once why a link into another file leads nowhere.
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

/// Returns the name of a link for messages.
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
