//! Texts of symbolic links. All are relative, so that they resolve inside the mount regardless of
//! the mount point.
//!
//! In the path of a soft link (HDF5 3.0, IV.A.2.g), `..` is an ordinary name; `.` and empty names
//! are skipped.

use h5fs_reader::error::Result;
use nix::errno::Errno;

use crate::errno::refusal_error;
use crate::limits;
use crate::name;

/// Returns the text of a symbolic link, unless it is too long.
///
/// # Errors
/// `ENAMETOOLONG` if the text is too long for the kernel. `None` stands for a text that was not
/// generated because it would be too long.
pub(crate) fn check_length(text: Option<Vec<u8>>) -> Result<Vec<u8>> {
    text.filter(|text| text.len() <= limits::SYMLINK_BYTES)
        .ok_or_else(|| refusal_error(Errno::ENAMETOOLONG, "text of a symbolic link"))
}

/// Returns the relative path from the directory `from` to the directory `to`, both given as names
/// from the root.
pub(crate) fn relative_link_text(from: &[Box<[u8]>], to: &[Box<[u8]>]) -> Vec<u8> {
    let shared = from.iter().zip(to).take_while(|(a, b)| a == b).count();
    let up = from.iter().skip(shared).map(|_| b"..".to_vec());
    let down = to.iter().skip(shared).map(|name| name.to_vec());
    join_path(up.chain(down))
}

/// Returns the text for a soft link with the absolute path `path`, as a relative path. The link's
/// directory is `depth` names below the root of its file.
pub(crate) fn text_of_absolute_path(depth: usize, path: &[u8]) -> Vec<u8> {
    let up = std::iter::repeat_n(b"..".to_vec(), depth);
    join_path(up.chain(shown_names(path, true)))
}

/// Returns the text for a soft link with the relative path `path`. `at_root` says whether the link
/// is in the root group of its file.
pub(crate) fn text_of_relative_path(path: &[u8], at_root: bool) -> Vec<u8> {
    join_path(shown_names(path, at_root))
}

/// Returns the text `FILE:PATH` for a link to `path` in a file that is not shown. The text must not
/// resolve to an existing file. If the file's name leads out of the mount, a slash follows the
/// colon, because names with a colon are common outside the mount. The names after the colon never
/// contain `..`.
pub(crate) fn text_of_hidden_file(file: &[u8], path: &[u8]) -> Vec<u8> {
    let climbs =
        file.starts_with(b"/") || file.split(|&byte| byte == b'/').any(|name| name == b"..");
    let slash: &[u8] = if !path.starts_with(b"/") && climbs {
        b"/"
    } else {
        b""
    };
    let names = path.split(|&byte| byte == b'/').map(|name| match name {
        b"." | b".." => name::escape(name, false),
        _ => name.to_vec(),
    });
    let path = names.collect::<Vec<_>>().join(&b'/');
    [file, b":", slash, &path].concat()
}

/// Iterates over the names in a soft link's path, as the mount shows them. `from_root` says whether
/// the path starts at the root of its file.
pub(crate) fn shown_names(path: &[u8], from_root: bool) -> impl Iterator<Item = Vec<u8>> {
    let names = path.split(|&byte| byte == b'/');
    let names = names.filter(|name| !matches!(*name, b"" | b"."));
    names
        .enumerate()
        .map(move |(place, name)| name::escape(name, from_root && place == 0))
}

/// Iterates over `names` as the mount shows them. The first name is in the root group of its file.
pub(crate) fn escape_names(names: &[Vec<u8>]) -> impl Iterator<Item = Vec<u8>> {
    let names = names.iter().enumerate();
    names.map(move |(place, name)| name::escape(name, place == 0))
}

/// Joins names to one path, which is `.` if there are no names.
pub(crate) fn join_path(names: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let text = names.collect::<Vec<_>>().join(&b'/');
    if text.is_empty() { b".".to_vec() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(names: &[&str]) -> Vec<Box<[u8]>> {
        names.iter().map(|name| name.as_bytes().into()).collect()
    }

    #[test]
    fn relative_paths_between_directories() {
        let way = |from: &[&str], to: &[&str]| relative_link_text(&path(from), &path(to));
        assert_eq!(way(&["a", "b"], &["a", "c"]), b"../c");
        assert_eq!(way(&["a", "b"], &[]), b"../..");
        assert_eq!(way(&["a"], &["a"]), b".");
        assert_eq!(way(&[], &["a", "b"]), b"a/b");
    }

    #[test]
    fn links_to_other_files_dangle() {
        assert_eq!(text_of_hidden_file(b"a/b.h5", b"/x/y"), b"a/b.h5:/x/y");
        assert_eq!(text_of_hidden_file(b"b.h5", b"x"), b"b.h5:x");
        // A group may be called `b.h5:`, and names with a colon are common outside the mount.
        assert_eq!(
            text_of_hidden_file(b"b.h5", b"/../etc"),
            b"b.h5:/%2E%2E/etc"
        );
        assert_eq!(
            text_of_hidden_file(b"../disk-0000", b"00:1f"),
            b"../disk-0000:/00:1f"
        );
        assert_eq!(text_of_hidden_file(b"/dev/0", b"0/./x"), b"/dev/0:/0/%2E/x");
    }

    #[test]
    fn soft_links_stay_inside() {
        assert_eq!(text_of_absolute_path(2, b"/x/y"), b"../../x/y");
        assert_eq!(text_of_absolute_path(0, b"/"), b".");
        assert_eq!(
            text_of_absolute_path(1, b"/.h5fs/../z"),
            b"../%2Eh5fs/%2E%2E/z"
        );
        assert_eq!(text_of_relative_path(b"./a//b/.", false), b"a/b");
        assert_eq!(text_of_relative_path(b".", false), b".");
        assert_eq!(text_of_relative_path(b".h5fs", true), b"%2Eh5fs");
        assert_eq!(text_of_relative_path(b".h5fs/.h5fs", false), b".h5fs/.h5fs");
    }
}
