//! Parses the name of a joined directory, which selects files and a dimension: `joined[tas_*.nc]`,
//! `joined[*,join=time]`, `joined[*,join=0]`, `joined[*,join=file]`.
//!
//! A pattern applies to the name of a file, or to its path if the pattern contains a slash. `*`
//! matches any characters except a slash, and `?` matches one such character. A slash is written as
//! `%2F` and a percent sign as `%25`, as in all names of the mount.

/// The files to join, and the dimension that joins them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JoinChoice {
    /// A pattern that selects files. `None` selects all.
    pattern: Option<Vec<u8>>,
    pub(super) join: JoinDimension,
}

/// The dimension that joins files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JoinDimension {
    /// The dimension whose coordinates differ between files.
    Differing,
    /// The dimension of this name.
    Named(Vec<u8>),
    /// The first dimension of each array.
    First,
    /// A new dimension with one element for each file.
    NewForFiles,
}

/// The name of the directory below `.h5fs` that joins all files.
pub const NAME: &[u8] = b"joined";

impl JoinChoice {
    /// Returns the choice of all files, joined by their coordinates.
    pub(crate) fn all_files() -> Self {
        JoinChoice {
            pattern: None,
            join: JoinDimension::Differing,
        }
    }

    /// Parses the name of a joined directory, such as `joined[tas_*.nc]`. Returns `None` if the
    /// name does not have this form.
    pub fn parse(name: &[u8]) -> Option<Self> {
        let rest = name.strip_prefix(NAME)?;
        if rest.is_empty() {
            return Some(Self::all_files());
        }
        let inside = rest.strip_prefix(b"[")?.strip_suffix(b"]")?;
        let (pattern, join) = match inside.iter().rposition(|&byte| byte == b',') {
            Some(comma) => match inside[comma + 1..].strip_prefix(b"join=") {
                Some(way) => (&inside[..comma], Some(way)),
                None => (inside, None),
            },
            None => (inside, None),
        };
        let join = match join {
            None => JoinDimension::Differing,
            Some(b"0") => JoinDimension::First,
            Some(b"file") => JoinDimension::NewForFiles,
            Some(b"") => return None,
            Some(name) => JoinDimension::Named(name.to_vec()),
        };
        (!pattern.is_empty()).then(|| JoinChoice {
            pattern: Some(unescape_pattern(pattern)),
            join,
        })
    }

    /// Returns whether the choice includes the file at `path`, relative to the directory.
    pub fn includes_path(&self, path: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        let part = if pattern.contains(&b'/') {
            path
        } else {
            crate::paths::split_path(path).1
        };
        matches_pattern(pattern, part)
    }
}

fn unescape_pattern(pattern: &[u8]) -> Vec<u8> {
    let mut own = Vec::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some((&first, after)) = rest.split_first() {
        let (byte, after) = match (first, after) {
            (b'%', [b'2', b'F' | b'f', after @ ..]) => (b'/', after),
            (b'%', [b'2', b'5', after @ ..]) => (b'%', after),
            _ => (first, after),
        };
        own.push(byte);
        rest = after;
    }
    own
}

/// Returns whether a pattern matches a text. The cost is at most the product of their lengths.
fn matches_pattern(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The position of the last star in the pattern, and the end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(b'?') if text[from] != b'/' => (at, from) = (at + 1, from + 1),
            Some(&byte) if byte != b'?' && byte == text[from] => (at, from) = (at + 1, from + 1),
            _ => match star {
                Some((place, end)) if text[end] != b'/' => {
                    star = Some((place, end + 1));
                    (at, from) = (place + 1, end + 1);
                }
                _ => return false,
            },
        }
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories() {
        let named = |name: &str| JoinChoice::parse(name.as_bytes());
        assert_eq!(named("joined"), Some(JoinChoice::all_files()));
        let choice = named("joined[tas_*.nc]").unwrap();
        assert_eq!(choice.join, JoinDimension::Differing);
        assert!(choice.includes_path(b"r1/tas_2001.nc") && !choice.includes_path(b"pr_2001.nc"));
        let beneath = named("joined[r?%2F*.nc]").unwrap();
        assert!(
            beneath.includes_path(b"r1/a.nc")
                && !beneath.includes_path(b"r1/s/a.nc")
                && !beneath.includes_path(b"a.nc")
        );
        let of = |name: &str| named(name).unwrap().join;
        assert_eq!(
            of("joined[*,join=time]"),
            JoinDimension::Named(b"time".to_vec())
        );
        assert_eq!(of("joined[*,join=0]"), JoinDimension::First);
        assert_eq!(of("joined[*,join=file]"), JoinDimension::NewForFiles);
        assert_eq!(of("joined[a,b]"), JoinDimension::Differing);
        for none in [
            "joined[]",
            "joined[",
            "joined[*,join=]",
            "joined2",
            "join",
            "joined[,join=0]",
        ] {
            assert_eq!(named(none), None, "{none}");
        }
    }

    #[test]
    fn patterns() {
        let is = |pattern: &str, text: &str| matches_pattern(pattern.as_bytes(), text.as_bytes());
        assert!(is("*", "a.nc") && is("a*c*.nc", "abcc.nc") && is("?.nc", "a.nc"));
        assert!(is("r?/*.nc", "r1/a.nc") && is("", "") && is("**", ""));
        assert!(!is("*", "r1/a.nc") && !is("a", "ab") && !is("?", "/") && !is("a*b", "ac"));
        assert!(!is(&"*a".repeat(40), &"b".repeat(4000)));
    }
}
