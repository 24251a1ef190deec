//! A file, or one object of a file, in the Ndarray Data Language 0.6.1. The document is YAML or
//! JSON. It has a flat list of groups by path, each with its attributes, dimension coordinates and
//! ndarrays. JSON has `null` for NaN and infinities, and does not have comments.
//!
//! The document includes the values of attributes and dimension coordinates, and on request those
//! of other arrays, within limits. Objects that the language cannot express are written as follows:
//!
//! | in the file | in the document |
//! |---|---|
//! | datatypes that the language does not have | see [`ndl`](h5fs_reader::model::ndl) |
//! | null dataspace | shape `[0]`, and a comment |
//! | a finite maximum above the current extent | the extent is the shape, the maximum a comment |
//! | an unlimited dimension | `null`; the current extent is `storage: shape` or `storage: size` |
//! | an object with several hard links | once, at its canonical path; a comment at the other links |
//! | soft, external and user-defined links, ASDF aliases and references | comments |
//! | committed datatypes | comments |
//! | damaged parts | a comment with the reason; `value: null` |
//! | parts that cannot be read at the moment | an error; in the output of a command, a comment as for damaged parts |
//! | a value over the limits | omitted, with a comment; `null` for an attribute, which must have a value |
//! | ASDF scalar | attribute of its group; a number, a boolean, null, or text |
//! | ASDF sequence | group with members `0`, `1`, … |
//! | a scale without elements, or with several dimensions | ndarray |
//! | compression | `filter`: a name, or name and parameters, `{deflate: {level: 4}}` |
//!
//! The document of a single object has the path of its group. It also has the dimension coordinates
//! that its shapes name, so that the document is complete. The document of a group has all objects
//! below the group.

mod dimensions;
mod document;
mod group;
mod lines;
mod object;
mod progress;
mod source;
mod value;

use h5fs_reader::array::CancelToken;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::NodeId;
use h5fs_reader::wire::to_u64;

pub use document::NdlOptions;
pub use progress::DocumentState;
pub use source::NdlSource;

use crate::text_files::streamed::ResumableText;
use document::NdlDocument;
use lines::MapWriter;
use progress::{ArraySection, WriteStep};

/// The NDL document of the object `node` at `path`, with names as in the file. For the root group
/// with the path `/`, the document describes the whole file.
pub struct NdlDescription {
    /// The file that contains the object.
    pub source: NdlSource,
    /// The object to describe.
    pub node: NodeId,
    /// The path of the object.
    pub path: Vec<u8>,
    /// The options of the document.
    pub options: NdlOptions,
}

impl ResumableText for NdlDescription {
    type ResumePoint = DocumentState;

    fn begin(&self) -> DocumentState {
        DocumentState {
            steps: vec![WriteStep::Begin],
            ..DocumentState::default()
        }
    }

    /// # Errors
    /// `NotFound` for an object that NDL cannot express (a committed datatype, an ASDF scalar);
    /// `Limit` for too many objects. Fails if the object cannot be read.
    fn write_from(
        &self,
        progress: &mut DocumentState,
        enough: usize,
        _: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let mut unread = None;
        let mut damaged = |_: &[u8], error: &Error| {
            if error.is_transient() {
                unread.get_or_insert_with(|| error.clone());
            }
        };
        let written = self.write_part(progress, enough, out, &mut damaged);
        unread.map_or(written, Err)
    }

    fn own_bytes(&self) -> u64 {
        to_u64(self.path.capacity())
    }

    fn progress_bytes(&self, progress: &DocumentState) -> u64 {
        progress.weight()
    }
}

impl NdlDescription {
    /// Does the same as [`write_from`](ResumableText::write_from), with a callback for unreadable
    /// parts. `damaged` receives the path of the object (names as in the file) and the error. The
    /// document has a comment with the same error.
    ///
    /// # Errors
    /// Fails as [`write_from`](ResumableText::write_from) does, but not because of a part that is
    /// passed to `damaged`.
    pub fn write_part(
        &self,
        progress: &mut DocumentState,
        enough: usize,
        out: &mut Vec<u8>,
        damaged: &mut dyn FnMut(&[u8], &Error),
    ) -> Result<bool> {
        let mut document = NdlDocument {
            source: &self.source,
            options: self.options,
            on_damaged: damaged,
            top_path: &self.path,
            lines: MapWriter::new(out, self.options.syntax, progress.place),
            pause_bytes: enough,
            progress,
        };
        let written = document.write_until_full(self.node);
        document.progress.place = document.lines.key_position();
        written
    }
}

impl NdlDocument<'_> {
    /// Executes steps until the output has `pause_bytes` bytes. Returns whether there may be more
    /// steps.
    fn write_until_full(&mut self, top: NodeId) -> Result<bool> {
        while !self.is_full() {
            let Some(step) = self.progress.steps.pop() else {
                return Ok(false);
            };
            self.execute(step, top)?;
        }
        Ok(true)
    }

    /// Executes one step of writing the document.
    fn execute(&mut self, step: WriteStep, top: NodeId) -> Result<()> {
        match step {
            WriteStep::Begin => return self.write_described_object(top),
            WriteStep::Groups { above, list, next } => self.write_next_group(above, list, next),
            WriteStep::Links {
                group,
                links,
                found,
            } => return self.sort_links(group, links, found),
            WriteStep::Attributes(attributes) => self.write_attributes(attributes),
            WriteStep::Arrays(section) => return self.write_next_array(section),
            WriteStep::NeededInGroup => {
                let beside = self.progress.needed_coordinates.remove(&self.progress.path);
                let beside = beside.into_iter().flatten().collect();
                self.push_step(WriteStep::Arrays(ArraySection::coordinates(beside)));
            }
            WriteStep::Close => self.lines.close_map(),
            WriteStep::GroupEnd(names) => {
                if self.progress.is_empty {
                    self.lines.write_empty_map();
                }
                self.lines.close_map();
                self.progress.names -= names;
            }
            WriteStep::NeededElsewhere => {
                if let Some((group, coordinates)) = self.progress.needed_coordinates.pop_first() {
                    self.lines.open_map(&group);
                    self.progress.path = group;
                    self.push_step(WriteStep::NeededElsewhere);
                    self.push_step(WriteStep::Close);
                    let members = coordinates.into_iter().collect();
                    self.push_step(WriteStep::Arrays(ArraySection::coordinates(members)));
                }
            }
            WriteStep::End => self.lines.end(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
