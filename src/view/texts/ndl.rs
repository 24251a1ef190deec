//! A file, or one of its objects, in the Ndarray Data Language 0.6.1: a YAML document of groups,
//! flat by path, each with its attributes, dimension coordinates and ndarrays; or the same as JSON,
//! without comments, with `null` for NaN and infinities.
//!
//! Values are given of attributes and of dimension coordinates, of other arrays on request, all
//! within limits. What the language cannot express is treated so:
//!
//! | in the file | in the document |
//! |---|---|
//! | datatypes without a word | [`ndl`](crate::model::ndl) says |
//! | null dataspace | shape `[0]`, and a comment |
//! | a finite bound over the present extent | the extent is the shape, the bound a comment |
//! | an unlimited dimension | `null`; the extent is `storage: shape` or `size`, as it asks |
//! | an object with several hard links | once, at its canonical path; a comment at the others |
//! | soft, external and user-defined links, ASDF aliases and references | comments |
//! | committed datatypes | comments |
//! | damaged parts | a comment with the reason; `value: null` |
//! | parts that cannot be read now | an error; in what a command prints, the same comment |
//! | a value over the limits | none; of an attribute, which must have one, `null`; a comment |
//! | ASDF scalar | attribute of its group; a number, a boolean, null, or text |
//! | ASDF sequence | group with members `0`, `1`, … |
//! | a scale with no elements, or with several dimensions | ndarray |
//! | compression | `filter`: a name, or name and parameters, `{deflate: {level: 4}}` |
//!
//! A document of one object holds its group's path and, so that it stands for itself, the dimension
//! coordinates that its shapes name; that of a group, all below it.

mod dimensions;
mod document;
mod group;
mod lines;
mod object;
mod progress;
mod source;
mod value;

pub(crate) use document::Options;
pub(crate) use progress::Progress;
pub(crate) use source::Source;

use crate::error::{Error, Result};
use crate::model::NodeId;
use crate::view::texts::streamed::ResumableText;
use crate::wire::to_u64;
use document::Document;
use lines::Lines;
use progress::{Section, Step};

/// The document of the object `node` at `path` (names as in the file); the root group and `/` for
/// that of the whole file.
pub(crate) struct Description {
    /// The file.
    pub source: Source,
    /// The object.
    pub node: NodeId,
    /// Its path.
    pub path: Vec<u8>,
    /// How much the document holds, and how it is written.
    pub options: Options,
}

impl ResumableText for Description {
    type Progress = Progress;

    fn begin(&self) -> Progress {
        Progress {
            steps: vec![Step::Begin],
            ..Progress::default()
        }
    }

    /// # Errors
    /// `NotFound` for what the language has no entity for (a committed datatype, a scalar of ASDF);
    /// `Limit` for too many objects; fails if the object cannot be read.
    fn write_on(&self, progress: &mut Progress, enough: usize, out: &mut Vec<u8>) -> Result<bool> {
        let mut unread = None;
        let mut damaged = |_: &[u8], error: &Error| {
            if error.is_passing() {
                unread.get_or_insert_with(|| error.clone());
            }
        };
        let written = self.write_part(progress, enough, out, &mut damaged);
        unread.map_or(written, Err)
    }

    fn own_bytes(&self) -> u64 {
        to_u64(self.path.capacity())
    }

    fn progress_bytes(&self, progress: &Progress) -> u64 {
        progress.weight()
    }
}

impl Description {
    /// Like [`write_on`](ResumableText::write_on). `damaged` is told what of which object (its
    /// path, names as in the file) cannot be read, which a comment in the document says, too.
    ///
    /// # Errors
    /// Fails as `write_on` does.
    pub(crate) fn write_part(
        &self,
        progress: &mut Progress,
        enough: usize,
        out: &mut Vec<u8>,
        damaged: &mut dyn FnMut(&[u8], &Error),
    ) -> Result<bool> {
        let mut document = Document {
            source: &self.source,
            options: self.options,
            damaged,
            top: &self.path,
            lines: Lines::new(out, self.options.syntax, progress.place),
            enough,
            progress,
        };
        let written = document.write_on(self.node);
        document.progress.place = document.lines.place();
        written
    }
}

impl Document<'_> {
    /// Takes step after step until enough is written; says whether there may be more.
    fn write_on(&mut self, top: NodeId) -> Result<bool> {
        while !self.is_full() {
            let Some(step) = self.progress.steps.pop() else {
                return Ok(false);
            };
            self.take(step, top)?;
        }
        Ok(true)
    }

    /// Takes a step.
    fn take(&mut self, step: Step, top: NodeId) -> Result<()> {
        match step {
            Step::Begin => return self.take_first(top),
            Step::Groups { above, list, next } => self.next_group(above, list, next),
            Step::Links {
                group,
                links,
                found,
            } => return self.sort_links(group, links, found),
            Step::Attributes(attributes) => self.write_attributes(attributes),
            Step::Arrays(section) => return self.next_array(section),
            Step::Beside => {
                let beside = self.progress.elsewhere.remove(&self.progress.path);
                let beside = beside.into_iter().flatten().collect();
                self.then(Step::Arrays(Section::coordinates(beside)));
            }
            Step::Close => self.lines.close(),
            Step::GroupEnd(names) => {
                if self.progress.is_empty {
                    self.lines.nothing();
                }
                self.lines.close();
                self.progress.names -= names;
            }
            Step::Elsewhere => {
                if let Some((group, coordinates)) = self.progress.elsewhere.pop_first() {
                    self.lines.open(&group);
                    self.progress.path = group;
                    self.then(Step::Elsewhere);
                    self.then(Step::Close);
                    let members = coordinates.into_iter().collect();
                    self.then(Step::Arrays(Section::coordinates(members)));
                }
            }
            Step::End => self.lines.end(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
