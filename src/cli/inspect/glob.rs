//! Shell patterns in paths within a source, for example `run*/data`.
//!
//! `*`, `?`, `[a-z]` and `[!a-z]` match characters of one name. After a `\`, each of these
//! characters matches itself. A dot at the start of a name is matched only by a dot.

use h5fs_reader::error::{Error, Result};
use h5fs_tree::{FileKind, Requests};

use crate::cli::inspect::walk::{DirectoryNames, join};

/// Returns `path` itself if it exists or is not a pattern. Otherwise returns all paths that match
/// the pattern, in the order of the directories.
///
/// # Errors
/// Fails if the pattern matches no path, or if a directory cannot be listed. If the pattern may
/// have been meant as a path, the error says why this path does not exist.
pub(in crate::cli) fn expand_pattern(tree: &dyn Requests, path: &[u8]) -> Result<Vec<Vec<u8>>> {
    if !is_pattern(path) {
        return Ok(vec![path.to_vec()]);
    }
    let Err(no_path) = tree.find_path(path, false) else {
        return Ok(vec![path.to_vec()]);
    };
    let mut found = vec![b"/".to_vec()];
    let mut names = path.split(|&byte| byte == b'/').peekable();
    while let Some(name) = names.next() {
        let is_last = names.peek().is_none();
        if name.is_empty() {
            continue;
        }
        let mut next = Vec::new();
        for directory in &found {
            if is_pattern(name) {
                next.extend(matching_paths(tree, directory, name)?);
            } else {
                next.push(join(directory, name));
            }
        }
        next.retain(|path| {
            let there = tree.find_path(path, !is_last);
            there.is_ok_and(|there| is_last || there.attributes.kind == FileKind::Directory)
        });
        found = next;
    }
    if found.is_empty() {
        // A pattern with brackets only may have been meant as a selector.
        let is_plain = no_path == Error::NotFound && path.iter().any(|byte| b"*?".contains(byte));
        let none = || Error::Usage("no name matches this pattern".to_owned());
        return Err(if is_plain { none() } else { no_path });
    }
    if !path.starts_with(b"/") {
        found.iter_mut().for_each(|path| _ = path.remove(0));
    }
    Ok(found)
}

fn is_pattern(name: &[u8]) -> bool {
    name.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Returns the paths of all names in `directory` that match `pattern`.
fn matching_paths(tree: &dyn Requests, directory: &[u8], pattern: &[u8]) -> Result<Vec<Vec<u8>>> {
    let ino = tree.find_path(directory, true)?.ino;
    let mut names = DirectoryNames::open(tree, ino)?;
    let mut found = Vec::new();
    while let Some(named) = names.next()? {
        tree.forget(named.ino, 1);
        if is_match(pattern, &named.name) {
            found.push(join(directory, &named.name));
        }
    }
    Ok(found)
}

/// Returns whether `pattern` matches the whole `name`.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    if name.starts_with(b".") && !pattern.starts_with(b".") {
        return false;
    }
    let (mut pattern, mut name) = (pattern, name);
    // The pattern after the last star, and the rest of the name that the star may extend into.
    let mut star: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', behind @ ..] = pattern {
            star = Some((behind, name));
            pattern = behind;
            continue;
        }
        if let Some((behind, rest)) = match_one(pattern, name) {
            (pattern, name) = (behind, rest);
            if pattern.is_empty() && name.is_empty() {
                return true;
            }
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        // Extends the match of the last star by one character.
        let Some((behind, from)) = star.filter(|(_, from)| !from.is_empty()) else {
            return false;
        };
        let (_, from) = split_first_character(from);
        star = Some((behind, from));
        (pattern, name) = (behind, from);
    }
}

/// Matches the first character of `name` with the start of the pattern. Returns the rest of the
/// pattern and the rest of the name, or `None` if they do not match.
fn match_one<'a, 'b>(pattern: &'a [u8], name: &'b [u8]) -> Option<(&'a [u8], &'b [u8])> {
    if name.is_empty() {
        return None;
    }
    let (character, rest) = split_first_character(name);
    if let [b'[', inside @ ..] = pattern
        && let Some((is_in, behind)) = match_class(inside, character)
    {
        return is_in.then_some((behind, rest));
    }
    let behind = match pattern {
        [b'?', behind @ ..] => behind,
        [b'\\', quoted @ ..] if !quoted.is_empty() => quoted.strip_prefix(character)?,
        _ => pattern.strip_prefix(character)?,
    };
    Some((behind, rest))
}

/// Returns whether a class such as `[a-z]` contains `character`, and the pattern after the class.
/// `inside` starts after the `[`. Returns `None` if no `]` follows, because the `[` then matches
/// itself.
fn match_class<'a>(inside: &'a [u8], character: &[u8]) -> Option<(bool, &'a [u8])> {
    let (is_not, mut inside) = match inside {
        [b'!' | b'^', inside @ ..] => (true, inside),
        inside => (false, inside),
    };
    let (mut is_in, mut is_first) = (false, true);
    loop {
        match inside {
            [] => return None,
            [b']', behind @ ..] if !is_first => return Some((is_in != is_not, behind)),
            _ => {}
        }
        is_first = false;
        let (low, behind) = split_first_character(inside);
        let (high, behind) = match behind {
            [b'-', last @ ..] if !matches!(last, [] | [b']', ..]) => split_first_character(last),
            _ => (low, behind),
        };
        // UTF-8 preserves the order of characters.
        is_in |= (low..=high).contains(&character);
        inside = behind;
    }
}

/// Splits off the first character of a text, or its first byte if the text does not start with
/// valid UTF-8.
fn split_first_character(text: &[u8]) -> (&[u8], &[u8]) {
    let is_inner = |byte: &&u8| **byte & 0xc0 == 0x80;
    let inner = text.iter().skip(1).take(3).take_while(is_inner).count();
    let length = match str::from_utf8(&text[..(1 + inner).min(text.len())]) {
        Ok(_) => 1 + inner,
        Err(_) => 1,
    };
    text.split_at(length.min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected results are what `case NAME in PATTERN)` matches in a POSIX shell.
    #[test]
    fn patterns_match_as_in_a_shell() {
        for (pattern, name, wanted) in [
            ("run*", "run_1", true),
            ("run*", "run", true),
            ("*", ".h5fs", false),
            (".*", ".h5fs", true),
            ("*_?", "run_é", true),
            ("*_?", "run_10", false),
            ("r*n*1", "run_run_1", true),
            ("r*n*1", "run_run_2", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[^a-c]x", "dx", true),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[ä-ü]", "ö", true),
            ("a[b", "a[b", true),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("", "", true),
            ("a", "", false),
            ("**a**", "bab", true),
        ] {
            assert_eq!(
                is_match(pattern.as_bytes(), name.as_bytes()),
                wanted,
                "{pattern} {name}"
            );
        }
        assert!(is_match(b"a?b", b"a\xffb"));
        // Matching must not take exponential time in the number of stars.
        assert!(!is_match(&b"*a".repeat(100), &[b'a'; 99]));
    }
}
