//! The data files that the sources of a command are, or have beneath them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::cli::complaint::complain;
use crate::cli::printable::printable_bytes;
use crate::detect;
use crate::source::file::FileSource;
use crate::source::location::Location;

/// The files that are named, and the data files beneath the directories that are.
pub(super) struct DataFiles {
    /// The last one comes next.
    ahead: Vec<Location>,
    /// How many of these are named, and not found in a directory.
    named: usize,
    pub(super) has_failed: bool,
}

impl DataFiles {
    pub(super) fn of(named: &[Location]) -> Self {
        DataFiles {
            ahead: named.iter().rev().cloned().collect(),
            named: named.len(),
            has_failed: false,
        }
    }

    /// Puts what is in `directory` ahead, in the order of the names.
    fn descend(&mut self, directory: &Path) {
        let listed = std::fs::read_dir(directory).and_then(|entries| {
            let paths = entries.map(|entry| entry.map(|entry| entry.path()));
            paths.collect::<std::io::Result<Vec<_>>>()
        });
        match listed {
            Ok(mut paths) => {
                paths.sort_by(|a, b| b.cmp(a));
                self.ahead.extend(paths.into_iter().map(Location::Path));
            }
            Err(error) => {
                self.has_failed = true;
                complain(&format!(
                    "{}: {error}",
                    printable_bytes(directory.as_os_str().as_bytes())
                ));
            }
        }
    }
}

impl Iterator for DataFiles {
    type Item = Location;

    fn next(&mut self) -> Option<Location> {
        while let Some(location) = self.ahead.pop() {
            let is_named = self.ahead.len() < self.named;
            if is_named {
                self.named = self.ahead.len();
            }
            let Some(path) = location.path() else {
                return Some(location);
            };
            let kind = match is_named {
                true => path.metadata(),
                false => path.symlink_metadata(),
            };
            match kind {
                Ok(there) if there.is_dir() => self.descend(path),
                Ok(there) if !is_named && (!there.is_file() || !is_data(path)) => {}
                // Why it cannot be opened, its own process says.
                _ => return Some(location),
            }
        }
        None
    }
}

fn is_data(path: &Path) -> bool {
    FileSource::open(path, None).is_ok_and(|source| detect::is_known(&source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_files_come_in_the_order_of_their_names() {
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
        let found: Vec<_> = DataFiles::of(&named).map(|file| file.name()).collect();
        let wanted = ["notes.txt", "b.asdf", "sub/a.asdf", "z.asdf", "none"];
        assert_eq!(found, wanted.map(|name| top.join(name)));
    }
}
