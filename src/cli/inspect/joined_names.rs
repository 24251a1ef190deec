//! Command-line names for the joined files of a directory: `DIRECTORY[PATTERN]`, or a path that
//! starts with `.h5fs/joined`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use h5fs_joined::choice::JoinChoice;
use h5fs_reader::model::ndl::Syntax;
use h5fs_view::documents::ndl::NdlOptions;

/// Path of the directory in which all files of a source are joined.
pub(in crate::cli) const JOINED_PATH: &str = ".h5fs/joined";

/// Splits `DIRECTORY[PATTERN]` into the directory and the path of the joined files below it.
/// Returns `None` if `word` has another form, or if a file is called exactly `word`.
pub(in crate::cli) fn split_pattern(word: &Path) -> Option<(PathBuf, Vec<u8>)> {
    let bytes = word.as_os_str().as_bytes();
    let inside = bytes.strip_suffix(b"]")?;
    if word.symlink_metadata().is_ok() {
        return None;
    }
    // The directory's name may contain brackets as well.
    let mut begins = inside.iter().enumerate().rev();
    let (begin, directory) = begins.find_map(|(begin, &byte)| {
        let directory = Path::new(OsStr::from_bytes(bytes.get(..begin)?));
        (byte == b'[' && directory.is_dir()).then_some((begin, directory))
    })?;
    let choice = bytes.get(begin..)?;
    let choice = choice.iter().flat_map(|byte| match byte {
        b'/' => &b"%2F"[..],
        byte => std::slice::from_ref(byte),
    });
    let files = JOINED_PATH
        .as_bytes()
        .iter()
        .chain(choice)
        .copied()
        .collect();
    Some((directory.to_path_buf(), files))
}

/// Returns whether a path leads to joined files.
pub(in crate::cli) fn is_joined_path(path: &OsStr) -> bool {
    joined_name(path).is_some()
}

/// Returns the name of the joined directory in a path to joined files, for example `joined[*.h5]`.
/// Returns `None` for any other path.
pub(in crate::cli) fn joined_name(path: &OsStr) -> Option<&[u8]> {
    let path = path.as_bytes();
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let name = path
        .strip_prefix(b".h5fs/")?
        .split(|&byte| byte == b'/')
        .next()?;
    JoinChoice::parse(name).map(|_| name)
}

/// Returns the path of the file with the Ndarray Data Language description of the object at `path`.
/// Returns `None` if `path` does not lead to joined files.
pub(in crate::cli) fn document_path(path: &OsStr, options: NdlOptions) -> Option<OsString> {
    let path = Some(path).filter(|path| is_joined_path(path))?.as_bytes();
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let ending = match options.syntax {
        Syntax::Yaml => "yaml",
        Syntax::Json => "json",
    };
    // The name of the joined files is the second component.
    let mut slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let (files, object) = match slashes.nth(1) {
        Some((end, _)) => path.split_at(end),
        None => (path, &b""[..]),
    };
    let object = object.strip_prefix(b"/").unwrap_or(object);
    let object = object.strip_suffix(b"/").unwrap_or(object);
    let name = match (object, options.syntax) {
        (b"", Syntax::Yaml) => b"ndl.yaml".to_vec(),
        (b"", Syntax::Json) => b"tree.json".to_vec(),
        _ => [b"ndl/", object, b".", ending.as_bytes()].concat(),
    };
    Some(OsString::from_vec([files, b"/.h5fs/", &name].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_a_pattern_is_split() {
        let home = tempfile::tempdir().unwrap();
        let word = |text: &str| home.path().join(text);
        std::fs::create_dir(word("a")).unwrap();
        std::fs::create_dir(word("b[1]")).unwrap();
        let (directory, files) = split_pattern(&word("a[r?/*.nc,join=time]")).unwrap();
        assert_eq!(directory, word("a"));
        assert_eq!(files, b".h5fs/joined[r?%2F*.nc,join=time]");
        let (directory, files) = split_pattern(&word("b[1][*.nc]")).unwrap();
        assert_eq!(
            (directory, &files[..]),
            (word("b[1]"), &b".h5fs/joined[*.nc]"[..])
        );
        for none in ["a", "b[1]", "c[*]", "a[*", "a]"] {
            assert_eq!(split_pattern(&word(none)), None, "{none}");
        }
        std::fs::create_dir(word("b")).unwrap();
        assert_eq!(split_pattern(&word("b[1][*.nc]")).unwrap().0, word("b[1]"));
        let (directory, files) = split_pattern(&word("a[[1]*.nc]")).unwrap();
        assert_eq!(
            (directory, &files[..]),
            (word("a"), &b".h5fs/joined[[1]*.nc]"[..])
        );
    }

    #[test]
    fn joined_paths_are_recognized() {
        for is in [".h5fs/joined", "/.h5fs/joined/v", ".h5fs/joined[*]/v"] {
            assert!(is_joined_path(is.as_ref()), "{is}");
        }
        for other in [
            ".h5fs/joined.zarr/v",
            ".h5fs/joined2",
            "joined",
            ".h5fs/joined[]",
            "a/.h5fs/joined",
        ] {
            assert!(!is_joined_path(other.as_ref()), "{other}");
        }
    }

    #[test]
    fn joined_document_paths_are_found() {
        let of = |path: &str, syntax| {
            let options = NdlOptions {
                syntax,
                ..NdlOptions::default()
            };
            document_path(path.as_ref(), options).map(|path| path.into_string().unwrap())
        };
        let all = of("/.h5fs/joined", Syntax::Json);
        assert_eq!(all.as_deref(), Some(".h5fs/joined/.h5fs/tree.json"));
        let one = of(".h5fs/joined[*.nc]/g/x", Syntax::Yaml);
        assert_eq!(
            one.as_deref(),
            Some(".h5fs/joined[*.nc]/.h5fs/ndl/g/x.yaml")
        );
        assert_eq!(of("a.nc/x", Syntax::Yaml), None);
    }
}
