//! Reports files that an object or a link references but that are missing or may not be opened, and
//! missing objects in such files.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use h5fs_reader::error::{Result, quote};
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::model::array::{Mappings, Storage, VirtualSource};
use h5fs_reader::model::{Array, LinkTarget};

use crate::data_files::other_files::HiddenReason;
use crate::limits;
use crate::names::link_resolution::resolve_link_target;
use crate::nodes::node::{Defect, DefectCallback, TargetInode};

/// Reports missing files and datasets from which the virtual dataset `array` takes its elements.
/// Examines sources of sources too, each once.
pub(crate) fn report_missing_sources(array: &Arc<Array>, find: &mut DefectCallback<'_>) {
    SourceChecker {
        find,
        hasher: RandomState::new(),
        known: HashSet::new(),
    }
    .examine(array, 0);
}

struct SourceChecker<'f, 'd> {
    find: &'f mut DefectCallback<'d>,
    hasher: RandomState,
    /// Hashes of the names of the source files and datasets examined so far.
    known: HashSet<u64>,
}

impl SourceChecker<'_, '_> {
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
                    (self.find)(Defect::Missing(format!(
                        "{}: missing; its elements are fill values",
                        name()
                    )));
                }
                Err(error) => (self.find)(Defect::Part(name(), error)),
            }
        }
    }
}

/// Reports the reason to `find` if a link into another file leads nowhere.
///
/// # Errors
/// Fails if the link itself cannot be read.
pub(crate) fn report_dangling_link(
    target: &TargetInode<'_>,
    find: &mut DefectCallback<'_>,
) -> Result<()> {
    let link = target.directory().find(&target.inode.name)?.target;
    if link.other_file_name().is_none() {
        return Ok(());
    }
    match hidden_file_defect(target, &link)? {
        Some(finding) => find(finding),
        None => match missing_object_defect(target, &link) {
            Ok(Some(finding)) => find(finding),
            Ok(None) => {}
            Err(error) => find(Defect::Part(missing_name(target, &link)?, error)),
        },
    }
    Ok(())
}

/// Returns the reason why a link leads nowhere, as a text. The reason is a file that is not shown
/// or, if `object` is true, a missing object in that file.
///
/// # Errors
/// Fails if the link itself, or its target, cannot be read.
pub(crate) fn dangling_reason(target: &TargetInode<'_>, object: bool) -> Result<Option<String>> {
    let link = target.directory().find(&target.inode.name)?.target;
    let finding = match hidden_file_defect(target, &link)? {
        None if object => missing_object_defect(target, &link)?,
        unshown => unshown,
    };
    Ok(finding.map(|finding| match finding {
        Defect::Missing(text) => text,
        Defect::Part(name, error) => format!("{name}: {error}"),
        Defect::Attribute(name, error) => format!("{}: {error}", quote(name)),
    }))
}

/// Returns a defect with the reason if the file to which the link leads is not shown.
fn hidden_file_defect(
    target: &TargetInode<'_>,
    link: &LinkTarget,
) -> Result<Option<Defect<'static>>> {
    let Some(file) = link.other_file_name() else {
        return Ok(None);
    };
    let name = || missing_name(target, link);
    Ok(
        match target.mount.other_files.hidden_reason(target.file, file) {
            Some(HiddenReason::Missing) => {
                Some(Defect::Missing(format!("{}: no such file", name()?)))
            }
            Some(HiddenReason::Refused(error)) => Some(Defect::Part(name()?, error)),
            None => None,
        },
    )
}

/// Returns a defect if the object to which the link leads does not exist in its file.
fn missing_object_defect(
    target: &TargetInode<'_>,
    link: &LinkTarget,
) -> Result<Option<Defect<'static>>> {
    let text = match link {
        LinkTarget::Hard(_) => return Ok(None),
        LinkTarget::UserDefined(class) => {
            format!(
                "user-defined link of class {class}: only the program that made it can follow it"
            )
        }
        _ => match resolve_link_target(target.mount, target.file, target.inode.node, link)? {
            Some(_) => return Ok(None),
            None => format!("{}: no such object", missing_name(target, link)?),
        },
    };
    Ok(Some(Defect::Missing(text)))
}

/// Logs and records the reason why a link into another file leads nowhere, once for each link.
pub(crate) fn record_dangling(target: &TargetInode<'_>, link: &LinkTarget) -> Result<()> {
    let Some(file) = link.other_file_name() else {
        return Ok(());
    };
    let reason = match target.mount.other_files.hidden_reason(target.file, file) {
        Some(HiddenReason::Missing) => "no such file".to_owned(),
        Some(HiddenReason::Refused(error)) => error.to_string(),
        None => return Ok(()),
    };
    let reason = format!("{}: {reason}", missing_name(target, link)?);
    let states = target.file.neighbours.states();
    states.record_absent_file(
        &target.mount.object_name(target.file, target.inode),
        &reason,
    );
    Ok(())
}

/// Returns the file and the object path that a link contains, as a text for messages.
fn missing_name(target: &TargetInode<'_>, link: &LinkTarget) -> Result<String> {
    let path = match link {
        LinkTarget::Soft(path) => path.clone(),
        _ => target.directory().external_object_path(link)?,
    };
    let file = link
        .other_file_name()
        .map(|file| format!("{}:", quote(file)));
    Ok(format!(
        "link to {}{}",
        file.unwrap_or_default(),
        quote(&path)
    ))
}
