//! An NDL document while it is written: its lines, its state, and the callback for damaged objects.

use std::collections::BTreeMap;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::ndl::Syntax;

use crate::documents::ndl::dimensions::NdlCoordinate;
use crate::documents::ndl::lines::{MapWriter, comment_text};
use crate::documents::ndl::progress::{DocumentState, WriteStep};
use crate::documents::ndl::source::NdlSource;
use crate::limits;

/// The options of an NDL document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NdlOptions {
    /// Maximum number of elements of an array whose values the document includes. Dimension
    /// coordinates have a limit of their own, `limits::NDL_VALUES`.
    pub values: u64,
    /// The syntax of the document: YAML or JSON.
    pub syntax: Syntax,
}

/// An NDL document during one call that writes a part of the document.
pub(super) struct NdlDocument<'a> {
    pub(super) source: &'a NdlSource,
    pub(super) options: NdlOptions,
    /// A callback that receives the path of each object that cannot be read, and the error.
    pub(super) on_damaged: &'a mut dyn FnMut(&[u8], &Error),
    /// The path of the object that the document describes.
    pub(super) top_path: &'a [u8],
    pub(super) lines: MapWriter<'a>,
    /// Length of the output in bytes after which writing pauses.
    pub(super) pause_bytes: usize,
    pub(super) progress: &'a mut DocumentState,
}

impl NdlDocument<'_> {
    pub(super) fn is_full(&self) -> bool {
        self.lines.length() >= self.pause_bytes
    }

    pub(super) fn push_step(&mut self, step: WriteStep) {
        self.progress.steps.push(step);
    }

    /// Returns the value in `found`. For an error, writes the error as a comment, reports it to the
    /// callback, and returns the default value. `name` is the name of the attribute, member or
    /// property that was read.
    pub(super) fn value_or_report<T: Default>(&mut self, name: &[u8], found: Result<T>) -> T {
        found.unwrap_or_else(|error| {
            self.report_unreadable_part(name, &error);
            T::default()
        })
    }

    /// Reports that the member `name` of the current group cannot be read: to the callback, and in
    /// a comment of the document.
    pub(super) fn report_unreadable(&mut self, name: &[u8], error: &Error) {
        (self.on_damaged)(&join_path(&self.progress.path, name), error);
        self.comment_on_damage(name, error);
    }

    /// Reports that the part `part` of the current object, such as an attribute, cannot be read: to
    /// the callback, and in a comment of the document.
    pub(super) fn report_unreadable_part(&mut self, part: &[u8], error: &Error) {
        (self.on_damaged)(&self.progress.object, error);
        self.comment_on_damage(part, error);
    }

    fn comment_on_damage(&mut self, name: &[u8], error: &Error) {
        let reason = comment_text(error.to_string().as_bytes());
        let comment = format!("{}: cannot be read: {reason}", comment_text(name));
        self.lines.write_comment(&comment);
    }

    /// Records that the document must also contain `coordinate`, if the coordinate is not below the
    /// described object.
    pub(super) fn record_needed_coordinate(&mut self, coordinate: &NdlCoordinate) {
        // Memory of one entry of the map: two allocations, and a share of a node of the tree.
        const ENTRY: usize = 128;
        let path = &coordinate.path;
        let below = match self.top_path {
            b"/" => true,
            top => path
                .strip_prefix(top)
                .is_some_and(|rest| rest.starts_with(b"/")),
        };
        if !below {
            let (group, name) = split_path(path);
            let bytes = &mut self.progress.needed_names_bytes;
            let beside = self.progress.needed_coordinates.entry(group.to_vec());
            let beside = beside.or_insert_with(|| {
                *bytes += group.len() + ENTRY;
                BTreeMap::new()
            });
            if beside.insert(name.to_vec(), coordinate.node).is_none() {
                *bytes += name.len() + ENTRY;
            }
        }
    }

    /// Returns whether the names of the recorded coordinates exceed the limit of a document.
    pub(super) fn has_too_many_needed(&self) -> bool {
        self.progress.needed_names_bytes > limits::NDL_NAMES
    }
}

/// Returns the path of the member `name` of the group at path `group`.
pub(super) fn join_path(group: &[u8], name: &[u8]) -> Vec<u8> {
    match group {
        b"/" => [b"/", name].concat(),
        group => [group, name].join(&b'/'),
    }
}

/// Splits the path of an object into the path of its group and the object's name.
pub(super) fn split_path(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let (group, name) = path.split_at(slash);
    let group = if group.is_empty() { b"/" } else { group };
    (group, name.strip_prefix(b"/").unwrap_or(name))
}
