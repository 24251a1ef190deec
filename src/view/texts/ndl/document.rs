//! A document while it is written: its lines, what it remembers, and what it says of damage.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::limits;
use crate::model::ndl::Syntax;
use crate::view::texts::ndl::dimensions::Coordinate;
use crate::view::texts::ndl::lines::{Lines, comment_text};
use crate::view::texts::ndl::progress::{Progress, Step};
use crate::view::texts::ndl::source::Source;

/// How much a document holds, and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Arrays of at most this many elements, besides dimension coordinates, have their values in
    /// it.
    pub values: u64,
    /// YAML or JSON.
    pub syntax: Syntax,
}

/// A document while a part of it is written.
pub(super) struct Document<'a> {
    pub(super) source: &'a Source,
    pub(super) options: Options,
    /// Is told what cannot be read.
    pub(super) damaged: &'a mut dyn FnMut(&[u8], &Error),
    /// The path of the object that the document is of.
    pub(super) top: &'a [u8],
    pub(super) lines: Lines<'a>,
    /// Bytes of lines after which the writing is left.
    pub(super) enough: usize,
    pub(super) progress: &'a mut Progress,
}

impl Document<'_> {
    pub(super) fn is_full(&self) -> bool {
        self.lines.length() >= self.enough
    }

    pub(super) fn then(&mut self, step: Step) {
        self.progress.steps.push(step);
    }

    /// The value that was found of a part or a member; after an error, which a comment tells,
    /// nothing.
    pub(super) fn told<T: Default>(&mut self, name: &[u8], found: Result<T>) -> T {
        found.unwrap_or_else(|error| {
            self.unreadable_part(name, &error);
            T::default()
        })
    }

    /// Notes that a member of the present group cannot be read.
    pub(super) fn unreadable(&mut self, name: &[u8], error: &Error) {
        (self.damaged)(&join(&self.progress.path, name), error);
        self.comment_on_damage(name, error);
    }

    /// The same of a part of the object that is written.
    pub(super) fn unreadable_part(&mut self, part: &[u8], error: &Error) {
        (self.damaged)(&self.progress.object, error);
        self.comment_on_damage(part, error);
    }

    fn comment_on_damage(&mut self, name: &[u8], error: &Error) {
        let reason = comment_text(error.to_string().as_bytes());
        let comment = format!("{}: cannot be read: {reason}", comment_text(name));
        self.lines.comment(&comment);
    }

    /// Notes that the document has to hold a coordinate.
    pub(super) fn need(&mut self, coordinate: &Coordinate) {
        // Of an entry of a map: its two pieces of memory, and its share of a node.
        const ENTRY: usize = 128;
        let path = &coordinate.path;
        let below = match self.top {
            b"/" => true,
            top => path
                .strip_prefix(top)
                .is_some_and(|rest| rest.starts_with(b"/")),
        };
        if !below {
            let (group, name) = split(path);
            let bytes = &mut self.progress.elsewhere_names;
            let beside = self.progress.elsewhere.entry(group.to_vec());
            let beside = beside.or_insert_with(|| {
                *bytes += group.len() + ENTRY;
                BTreeMap::new()
            });
            if beside.insert(name.to_vec(), coordinate.node).is_none() {
                *bytes += name.len() + ENTRY;
            }
        }
    }

    /// Whether the coordinates that stand outside are too many to be remembered.
    pub(super) fn needs_too_much(&self) -> bool {
        self.progress.elsewhere_names > limits::NDL_NAMES
    }
}

/// A member's path.
pub(super) fn join(group: &[u8], name: &[u8]) -> Vec<u8> {
    match group {
        b"/" => [b"/", name].concat(),
        group => [group, name].join(&b'/'),
    }
}

/// The path of the group and the name in it.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let (group, name) = path.split_at(slash);
    let group = if group.is_empty() { b"/" } else { group };
    (group, name.strip_prefix(b"/").unwrap_or(name))
}
