//! The parts of the source that a computed netCDF file leaves out, each with the reason.

use std::fmt::Display;

use h5fs_reader::error::{self, Error, quote};

use crate::limits;

/// The reason why a part of the source is not in the computed netCDF file.
#[derive(Debug)]
pub(super) enum Omission {
    /// The file leaves the part out, and its attribute `_h5fs_absent` says why.
    Absent(String),
    /// The part cannot be read at the moment, so the file cannot be opened.
    Temporary(Error),
}

/// The result of converting a part of the source to the classic netCDF data model.
pub(super) type Converted<T> = Result<T, Omission>;

impl Omission {
    pub(super) fn absent(reason: impl Into<String>) -> Self {
        Omission::Absent(reason.into())
    }
}

impl From<Error> for Omission {
    fn from(error: Error) -> Self {
        if error.is_transient() {
            Omission::Temporary(error)
        } else {
            Omission::Absent(error.to_string())
        }
    }
}

/// The lines of the attribute `_h5fs_absent`: one part per line, as `NAME: REASON`.
#[derive(Default)]
pub(super) struct AbsentParts {
    lines: Vec<String>,
}

impl AbsentParts {
    /// Records that the file leaves out the part called `name`.
    pub(super) fn add(&mut self, name: &[u8], reason: impl Display) {
        if self.lines.len() < limits::ZARR_ABSENT {
            self.lines.push(format!("{}: {reason}", line_name(name)));
        }
    }

    /// Returns the part, or records why the file leaves it out.
    ///
    /// # Errors
    /// Fails if the part cannot be read at the moment.
    pub(super) fn keep<T>(&mut self, name: &[u8], part: Converted<T>) -> error::Result<Option<T>> {
        match part {
            Ok(part) => Ok(Some(part)),
            Err(Omission::Temporary(error)) => Err(error),
            Err(Omission::Absent(reason)) => {
                self.add(name, reason);
                Ok(None)
            }
        }
    }

    /// Returns the error of a file that would have no other part.
    pub(super) fn into_error(self) -> Error {
        Error::unsupported(format!("netCDF: {}", self.lines.join("; ")), None)
    }

    /// Returns the value of the attribute `_h5fs_absent`, or `None` if nothing is absent.
    pub(super) fn text(&self) -> Option<Vec<u8>> {
        (!self.lines.is_empty()).then(|| self.lines.join("\n").into_bytes())
    }
}

/// Returns a name for a line. Bytes that are not text are escaped, and long names are truncated.
fn line_name(name: &[u8]) -> String {
    let is_short = name.len() <= limits::ERROR_TEXT;
    match std::str::from_utf8(name) {
        Ok(text) if is_short && !text.contains(char::is_control) => text.to_owned(),
        _ => quote(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::error::Cause;

    #[test]
    fn each_absent_part_has_a_line() {
        let mut absent = AbsentParts::default();
        assert_eq!(absent.text(), None);
        assert_eq!(absent.keep(b"a", Ok(1)), Ok(Some(1)));
        let damaged = Omission::from(Error::corrupt("chunk", None));
        assert_eq!(absent.keep::<()>(b"b", Err(damaged)), Ok(None));
        absent.add(b"c", "a group");
        absent.add("\u{e9}".as_bytes(), "null");
        absent.add(b"a\nb", "null");
        let expected = "b: chunk (corrupt)\nc: a group\n\u{e9}: null\na\\nb: null";
        assert_eq!(absent.text().unwrap(), expected.as_bytes());
        let passing = Error::from_cause(Cause::Unavailable, "disk");
        assert_eq!(
            absent.keep::<()>(b"d", Err(passing.clone().into())),
            Err(passing)
        );
    }
}
