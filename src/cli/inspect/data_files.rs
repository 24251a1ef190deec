//! The data files of a command: its sources, and the data files in sources that are directories or
//! prefixes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use h5fs_joined::choice::JoinChoice;
use h5fs_reader::detect;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::file::FileSource;
use h5fs_reader::source::location::Location;

use crate::cli::args::ReadingArguments;
use crate::cli::inspect::command_source;
use crate::cli::inspect::joined_names::{joined_name, split_pattern};
use crate::cli::inspect::prefix_files::{PrefixEntry, PrefixFiles};
use crate::cli::text::error_message::print_file_error;

/// An iterator over the data files that the command line names directly, or that are in the
/// directories and prefixes that it names.
pub(in crate::cli) struct DataFiles<'a> {
    how: &'a ReadingArguments,
    /// Stack of the locations that are not processed yet. The last location is the next one.
    ahead: Vec<PendingLocation>,
    /// Paths of directories and prefixes that could not be listed, each with the error, which has
    /// been printed.
    pub(in crate::cli) failed: Vec<(PathBuf, Error)>,
}

/// A location that may be a data file, a directory or a prefix.
enum PendingLocation {
    Named(Location),
    /// A path on this machine that was found in a directory. If there is a pattern, a file whose
    /// path does not match is skipped.
    Local(PathBuf, Option<Arc<MatchingFiles>>),
    /// A name that a server listed for a prefix.
    Remote(Arc<PrefixFiles>, PrefixEntry),
}

/// A directory, and the pattern that selects its files.
struct MatchingFiles {
    directory: PathBuf,
    choice: JoinChoice,
}

impl MatchingFiles {
    /// Parses a command-line word of the form `DIRECTORY[PATTERN]`.
    fn parse(word: &Path) -> Option<Self> {
        let (directory, files) = split_pattern(word)?;
        let choice = JoinChoice::parse(joined_name(OsStr::from_bytes(&files))?)?;
        Some(MatchingFiles { directory, choice })
    }

    fn is_match(&self, path: &Path) -> bool {
        let within = path.strip_prefix(&self.directory).unwrap_or(path);
        self.choice.includes_path(within.as_os_str().as_bytes())
    }
}

/// Returns whether a location has the form `DIRECTORY[PATTERN]`.
pub(in crate::cli) fn has_pattern(location: &Location) -> bool {
    location.path().and_then(MatchingFiles::parse).is_some()
}

impl PendingLocation {
    fn name(&self) -> PathBuf {
        match self {
            PendingLocation::Named(location) => location.name(),
            PendingLocation::Local(path, _) => path.clone(),
            PendingLocation::Remote(prefix, name) => prefix.url_path(&name.path),
        }
    }
}

impl<'a> DataFiles<'a> {
    pub(in crate::cli) fn new(named: &[Location], how: &'a ReadingArguments) -> Self {
        DataFiles {
            how,
            ahead: named
                .iter()
                .rev()
                .cloned()
                .map(PendingLocation::Named)
                .collect(),
            failed: Vec::new(),
        }
    }

    /// Returns the location if it is a data file. For a directory or a prefix, adds its content to
    /// the stack and returns `None`.
    fn expand(&mut self, next: &PendingLocation) -> Result<Option<Location>> {
        match next {
            PendingLocation::Named(Location::Url(url)) if url.is_prefix() => {
                let prefix = Arc::new(PrefixFiles::open(url, self.how)?);
                self.descend_remote(&prefix, Path::new(""))?;
            }
            PendingLocation::Named(Location::Path(path)) if path.is_dir() => {
                command_source::warn_directory(path, self.how);
                self.descend_local(path, None)?;
            }
            PendingLocation::Named(file) => match file.path().and_then(MatchingFiles::parse) {
                Some(chosen) => {
                    let directory = chosen.directory.clone();
                    self.descend_local(&directory, Some(&Arc::new(chosen)))?;
                }
                // If the file cannot be opened, its own process reports why.
                None => return Ok(Some(file.clone())),
            },
            PendingLocation::Local(path, chosen) => match path.symlink_metadata() {
                Ok(there) if there.is_dir() => self.descend_local(path, chosen.as_ref())?,
                _ if chosen.as_ref().is_some_and(|chosen| !chosen.is_match(path)) => {}
                Ok(there) if !there.is_file() || !is_data_file(path) => {}
                _ => return Ok(Some(Location::Path(path.clone()))),
            },
            PendingLocation::Remote(prefix, name) if name.is_directory => {
                self.descend_remote(prefix, &name.path)?;
            }
            PendingLocation::Remote(prefix, name) if prefix.is_data_file(&name.path) => {
                return prefix.location(&name.path).map(Some);
            }
            PendingLocation::Remote(..) => {}
        }
        Ok(None)
    }

    /// Adds the content of a directory to the stack, so that it is processed in the order of the
    /// names.
    fn descend_local(
        &mut self,
        directory: &Path,
        chosen: Option<&Arc<MatchingFiles>>,
    ) -> Result<()> {
        let listed = std::fs::read_dir(directory).and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<io::Result<Vec<_>>>()
        });
        let failed = |error| Error::from_io(&error, directory.display().to_string());
        let mut paths = listed.map_err(failed)?;
        paths.sort_by(|a, b| b.cmp(a));
        let near = |path| PendingLocation::Local(path, chosen.cloned());
        self.ahead.extend(paths.into_iter().map(near));
        Ok(())
    }

    fn descend_remote(&mut self, prefix: &Arc<PrefixFiles>, directory: &Path) -> Result<()> {
        let names = prefix.list(directory)?.into_iter().rev();
        let ahead = names.map(|name| PendingLocation::Remote(Arc::clone(prefix), name));
        self.ahead.extend(ahead);
        Ok(())
    }
}

impl Iterator for DataFiles<'_> {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        while let Some(next) = self.ahead.pop() {
            match self.expand(&next) {
                Ok(Some(file)) => return Some(file),
                Ok(None) => {}
                Err(error) => {
                    print_file_error(next.name().as_os_str().as_bytes(), &error);
                    self.failed.push((next.name(), error));
                }
            }
        }
        None
    }
}

/// Returns whether a file is a data file, judged by its content. If the file cannot be opened, its
/// name decides, so that the command reports the error.
fn is_data_file(path: &Path) -> bool {
    match FileSource::open(path, None) {
        Ok(source) => detect::has_known_signature(&source),
        Err(_) => detect::has_data_file_extension(path.as_os_str().as_bytes()),
    }
}

/// Splits `path` in a directory or a prefix after its first file. Returns the location of the file,
/// and the path within the file. Returns `None` if no component of `path` is a file.
///
/// # Errors
/// Fails with the error of the prefix's server.
pub(in crate::cli) fn split_at_file(
    directory: &Location,
    path: &OsString,
    how: &ReadingArguments,
) -> Result<Option<(Location, OsString)>> {
    match directory {
        Location::Url(url) if url.is_prefix() => {
            PrefixFiles::open(url, how)?.split_at_file(Path::new(path))
        }
        Location::Path(directory) if directory.is_dir() => Ok(first_file_on_path(directory, path)),
        _ => Ok(None),
    }
}

fn first_file_on_path(directory: &Path, path: &OsString) -> Option<(Location, OsString)> {
    let mut file = directory.to_path_buf();
    let mut names = Path::new(path).components();
    for name in names.by_ref() {
        file.push(name);
        if file.is_file() {
            return Some((Location::Path(file), names.as_path().into()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::RemoteFlags;

    fn reading() -> ReadingArguments {
        ReadingArguments {
            jobs: None,
            sandbox: true,
            force: false,
            strict: false,
            partial: false,
            quiet: false,
            remote: RemoteFlags::default(),
        }
    }

    #[test]
    fn data_files_are_sorted_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        std::fs::create_dir(top.join("sub")).unwrap();
        for name in ["b.asdf", "sub/a.asdf", "z.asdf"] {
            std::fs::write(top.join(name), "#ASDF 1.0.0\n").unwrap();
        }
        std::fs::write(top.join("notes.txt"), "no data").unwrap();
        std::os::unix::fs::symlink("b.asdf", top.join("link.asdf")).unwrap();
        let named = [top.join("notes.txt"), top.to_path_buf(), top.join("none")];
        let named = named.map(Location::Path);
        let how = reading();
        let found: Vec<_> = DataFiles::new(&named, &how)
            .map(|file| file.name())
            .collect();
        let wanted = ["notes.txt", "b.asdf", "sub/a.asdf", "z.asdf", "none"];
        assert_eq!(found, wanted.map(|name| top.join(name)));
    }

    #[test]
    fn a_path_leads_through_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        std::fs::create_dir(top.join("sub")).unwrap();
        std::fs::write(top.join("sub/a.h5"), "").unwrap();
        let found = first_file_on_path(top, &"sub/a.h5/entry/x".into());
        let file = Location::Path(top.join("sub/a.h5"));
        assert_eq!(found, Some((file, "entry/x".into())));
        assert_eq!(first_file_on_path(top, &"sub/b.h5".into()), None);
    }
}
