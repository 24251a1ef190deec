//! Words from other programs that users type in place of our commands.

use std::ffi::OsString;
use std::path::{Component, Path};

use h5fs_reader::error::{Error, Result};

use crate::cli::text::printable::printable;

/// Translates the first argument from another program's word to our own. A word that names an
/// existing file stays unchanged. `is_command` recognises our commands.
///
/// # Errors
/// `Usage` with the right command, if the word cannot be translated.
pub(in crate::cli) fn translate_first(
    arguments: &[OsString],
    is_command: impl Fn(&str) -> bool,
) -> Result<Vec<OsString>> {
    let unchanged = || Ok(arguments.to_vec());
    let Some((first, rest)) = arguments.split_first() else {
        return unchanged();
    };
    let Some(word) = first.to_str().filter(|word| !Path::new(word).exists()) else {
        return unchanged();
    };
    let typed = |text: &str| Err(Error::Usage(format!("{word}: {text}")));
    match (word, rest) {
        ("mount", _) => typed("type `h5fs SOURCE MOUNTPOINT` to mount"),
        ("umount" | "unmount", _) => {
            typed("type `fusermount3 -u MOUNTPOINT` to unmount (root: `umount MOUNTPOINT`)")
        }
        ("version", []) => Ok(vec!["--version".into()]),
        ("help", []) => Ok(vec!["--help".into()]),
        ("help", [name]) => help_arguments(name, is_command),
        ("version" | "help", _) => typed("too many arguments (see `h5fs --help`)"),
        _ => unchanged(),
    }
}

/// Returns the first argument if it is a word that is neither a command nor a file.
pub(in crate::cli) fn unknown_word(
    arguments: &[OsString],
    is_command: impl Fn(&str) -> bool,
) -> Option<&str> {
    let word = arguments.first()?.to_str()?;
    let path = Path::new(word);
    let is_unknown = looks_like_command(path) && !path.exists() && !is_command(word);
    is_unknown.then_some(word)
}

/// Returns whether a path looks like a command: a name without a dot or a colon.
pub(in crate::cli) fn looks_like_command(path: &Path) -> bool {
    let mut parts = path.components();
    let (first, rest) = (parts.next(), parts.next());
    let is_name = matches!(first, Some(Component::Normal(name)) if name == path.as_os_str());
    let bytes = path.as_os_str().as_encoded_bytes();
    let is_of_file = bytes.starts_with(b"-") || bytes.iter().any(|byte| b".:".contains(byte));
    is_name && rest.is_none() && !is_of_file
}

/// Returns the error for a word that is neither a command nor a file.
pub(in crate::cli) fn unknown_command_error(word: &str) -> Error {
    Error::Usage(printable(&format!(
        "{word}: no such command or file (see `h5fs --help`)"
    )))
}

/// Returns the arguments that print the help of a command.
fn help_arguments(name: &OsString, is_command: impl Fn(&str) -> bool) -> Result<Vec<OsString>> {
    match name.to_str() {
        Some(own) if is_command(own) => Ok(vec![name.clone(), "--help".into()]),
        Some("mount" | "help" | "version") => Ok(vec!["--help".into()]),
        _ => Err(unknown_command_error(&name.to_string_lossy())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translate(line: &str) -> std::result::Result<String, String> {
        let words: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        match translate_first(&words, |name| name == "ls") {
            Ok(words) => Ok(words.join(" ".as_ref()).into_string().unwrap()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn command_words_are_distinguished_from_file_names() {
        for word in ["info", "dump", "ls-files"] {
            assert!(looks_like_command(Path::new(word)), "{word}");
        }
        for name in [
            "a.h5", "./info", "/info", "sub/info", "info/", "..", "", "-o", "s3:x",
        ] {
            assert!(!looks_like_command(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn synonyms_are_translated_or_explained() {
        for (line, wanted) in [
            ("help", "--help"),
            ("help ls", "ls --help"),
            ("help mount", "--help"),
            ("version", "--version"),
            ("ls help", "ls help"),
            ("a.h5 mount", "a.h5 mount"),
            ("./mount mnt", "./mount mnt"),
            ("", ""),
        ] {
            assert_eq!(translate(line).as_deref(), Ok(wanted));
        }
        for (line, wanted) in [
            ("mount a.h5 mnt", "`h5fs SOURCE MOUNTPOINT`"),
            ("mount", "`h5fs SOURCE MOUNTPOINT`"),
            ("umount mnt", "`fusermount3 -u MOUNTPOINT`"),
            ("unmount", "`fusermount3 -u MOUNTPOINT`"),
            ("help nonsense", "nonsense: no such command or file"),
            ("version x", "too many arguments"),
        ] {
            let told = translate(line).unwrap_err();
            assert!(told.contains(wanted), "{line}: {told}");
        }
    }
}
