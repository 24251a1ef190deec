//! Splits the operands of a command line into sources and paths.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::Stdio;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Location;

use crate::cli::args::Operands;
use crate::cli::inspect::joined_names::split_pattern;
use crate::cli::inspect::parallel::ChildArguments;
use crate::cli::text::printable::printable_bytes;

/// The sources that a command line names, and the paths in these sources.
pub(in crate::cli) struct NamedSources {
    pub(in crate::cli) sources: Vec<Location>,
    pub(in crate::cli) paths: Vec<OsString>,
}

impl NamedSources {
    /// Splits the operands. If the second word names a path in the first source, this word and all
    /// later words are paths. Otherwise more sources follow, up to the first word that names no
    /// file or directory. The rest are paths.
    ///
    /// # Errors
    /// `Usage` for an invalid URL, and for a path with `..` in joined files.
    pub(in crate::cli) fn parse(operands: &Operands) -> Result<Self> {
        if let Some((directory, files)) = Location::path(&operands.source).and_then(split_pattern) {
            let beneath = |path: &OsString| {
                let path = path.as_bytes();
                if path.split(|&byte| byte == b'/').any(|name| name == b"..") {
                    let path = printable_bytes(path);
                    return Err(Error::Usage(format!(
                        "{path}: `..` leads outside the source"
                    )));
                }
                let path = path.strip_prefix(b"/").unwrap_or(path);
                Ok(OsString::from_vec([&files, &b"/"[..], path].concat()))
            };
            let paths = operands
                .more
                .iter()
                .map(beneath)
                .collect::<Result<Vec<_>>>()?;
            return Ok(NamedSources {
                sources: vec![Location::Path(directory)],
                paths: if paths.is_empty() {
                    vec![OsString::from_vec(files)]
                } else {
                    paths
                },
            });
        }
        let mut sources = vec![operands.source.clone()];
        let mut rest = &operands.more[..];
        let second = rest.first().filter(|word| !operands.one && is_source(word));
        let is_path = second.is_none_or(|word| has_path(operands, word));
        while let Some((word, behind)) = rest.split_first()
            && !is_path
            && is_source(word)
        {
            sources.push(Location::parse(word.clone())?);
            rest = behind;
        }
        let paths = rest.to_vec();
        Ok(NamedSources { sources, paths })
    }
}

/// Returns whether a word may name a source: a URL, or an existing file or directory.
fn is_source(word: &OsString) -> bool {
    let location = Location::parse(word.clone());
    location.is_ok_and(|location| location.path().is_none_or(Path::exists))
}

/// Returns whether the source contains this path. A sandboxed process opens the source to find out.
fn has_path(operands: &Operands, path: &OsString) -> bool {
    let mut arguments = ChildArguments::for_command("ls", &operands.how);
    arguments.flag("--directory");
    arguments.flag("--one");
    arguments.paths.push(path.clone());
    let status = arguments.command(&operands.source).and_then(|mut command| {
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.map_err(|error| Error::from_io(&error, "starting `h5fs`"))
    });
    status.is_ok_and(|status| status.success())
}
