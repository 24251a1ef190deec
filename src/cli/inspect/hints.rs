//! Suggestions for a path that does not exist: the names that the user may have meant.

use h5fs_reader::error::Error;
use h5fs_tree::{Ino, Requests};

use crate::cli::inspect::walk::{DirectoryNames, join};
use crate::cli::text::printable::printable_bytes;
use crate::limits;

/// Maximum differences between a name and a suggestion: inserted, removed or replaced bytes.
const TYPOS: usize = 2;

/// Maximum names of a path that are replaced.
const REPAIRS: usize = 4;

/// Adds the path that was probably meant to the error of a path that does not exist. Returns any
/// other error unchanged.
pub(in crate::cli) fn suggest_path(tree: &dyn Requests, path: &[u8], error: Error) -> Error {
    if error != Error::NotFound {
        return error;
    }
    match similar_path(tree, path) {
        Some(meant) => Error::Usage(format!(
            "{error}; did you mean {}?",
            printable_bytes(&meant)
        )),
        None => error,
    }
}

/// Returns an existing path that differs from `path` in few names, or lacks `.h5fs`.
fn similar_path(tree: &dyn Requests, path: &[u8]) -> Option<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = path
        .split(|&byte| byte == b'/')
        .filter(|name| !name.is_empty())
        .map(<[u8]>::to_vec)
        .collect();
    for _ in 0..REPAIRS {
        let Some((directory, absent)) = first_absent(tree, &names) else {
            return Some(names.join(&b'/'));
        };
        let name = names.get(absent)?;
        match similar_name(tree, directory, name) {
            Some(meant) => names[absent] = meant,
            None if is_in_views(tree, directory, name) => names.insert(absent, b".h5fs".to_vec()),
            None => return None,
        }
    }
    first_absent(tree, &names)
        .is_none()
        .then(|| names.join(&b'/'))
}

/// Returns the directory that contains the first name that does not exist, and the index of the
/// name. Returns `None` if the path exists.
fn first_absent(tree: &dyn Requests, names: &[Vec<u8>]) -> Option<(Ino, usize)> {
    let mut path = b"/".to_vec();
    let mut directory = tree.find_path(&path, true).ok()?.ino;
    for (index, name) in names.iter().enumerate() {
        path = join(&path, name);
        match tree.find_path(&path, true) {
            Ok(found) => directory = found.ino,
            Err(_) => return Some((directory, index)),
        }
    }
    None
}

/// Returns the name in a directory that is most similar to `name`: `name` with a suffix, or a name
/// with few differences. Returns `None` for a directory with too many names.
fn similar_name(tree: &dyn Requests, directory: Ino, name: &[u8]) -> Option<Vec<u8>> {
    let mut names = DirectoryNames::open(tree, directory).ok()?;
    let mut best: Option<(usize, Vec<u8>)> = None;
    for _ in 0..=limits::HINT_NAMES {
        let Some(next) = names.next().ok()? else {
            return best.map(|(_, name)| name);
        };
        tree.forget(next.ino, 1);
        let distance = difference(name, &next.name);
        if distance.is_some_and(|distance| best.as_ref().is_none_or(|(least, _)| distance < *least))
        {
            best = distance.map(|distance| (distance, next.name));
        }
    }
    None
}

/// Returns whether the views of a directory have the name.
fn is_in_views(tree: &dyn Requests, directory: Ino, name: &[u8]) -> bool {
    let Ok(views) = tree.lookup(directory, b".h5fs") else {
        return false;
    };
    let found = tree.lookup(views.ino, name);
    for entry in found.iter().chain([&views]) {
        tree.forget(entry.ino, 1);
    }
    found.is_ok()
}

/// Returns the number of differences between a typed name and an existing one: 0 if only a suffix
/// such as `.csv` is missing. Returns `None` if the names are too different.
fn difference(typed: &[u8], name: &[u8]) -> Option<usize> {
    let suffix = name.strip_prefix(typed);
    if suffix.is_some_and(|suffix| suffix.starts_with(b".") && !typed.is_empty()) {
        return Some(0);
    }
    let most = TYPOS.min(typed.len() / 2);
    let is_near = typed.len().abs_diff(name.len()) <= most;
    let distance = is_near.then(|| edit_distance(typed, name));
    distance.filter(|&distance| distance <= most)
}

/// Returns the number of bytes to insert, remove or replace that turn one name into the other
/// (Levenshtein distance).
fn edit_distance(one: &[u8], other: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, byte) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, other_byte) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(byte != other_byte);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_single_bytes() {
        for (one, other, distance) in [
            ("", "", 0),
            ("temp", "temp", 0),
            ("temp", "tmp", 1),
            ("temp", "temps", 1),
            ("tmep", "temp", 2),
            ("kitten", "sitting", 3),
            ("", "abc", 3),
        ] {
            assert_eq!(edit_distance(one.as_bytes(), other.as_bytes()), distance);
            assert_eq!(edit_distance(other.as_bytes(), one.as_bytes()), distance);
        }
    }

    #[test]
    fn similar_names_have_few_differences_or_a_suffix() {
        let difference = |typed: &str, name: &str| difference(typed.as_bytes(), name.as_bytes());
        assert_eq!(difference("t", "t.csv"), Some(0));
        assert_eq!(difference("t", "t2.csv"), None);
        assert_eq!(difference("", ".csv"), None);
        assert_eq!(difference("x", "y"), None);
        assert_eq!(difference("lat", "lan"), Some(1));
        assert_eq!(difference("latitud", "latitude"), Some(1));
        assert_eq!(difference("latiutde", "latitude"), Some(2));
        assert_eq!(difference("latitude", "longitude"), None);
    }
}
