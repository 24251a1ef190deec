//! The response of a tree at a path, summarized as one line. Tests of time and memory compare the
//! line, so that no test passes because every request failed.

use h5fs_reader::error::Result;
use h5fs_tree::{FileKind, Requests};

use super::tree::Tree;

/// Number of names of a directory, bytes of a file, and characters of a text in a line.
const SHOWN: usize = 3;
const SHOWN_TEXT: usize = 60;

/// The response for `good` in a file that also contains `bad`.
pub(crate) const GOOD: (&str, &str) = ("good", "file of 8 bytes: [103, 111, 111, …]");

impl Tree {
    /// Fails unless the responses at these paths equal the lines. A line that ends in `*` is a
    /// prefix of the response.
    #[track_caller]
    pub(crate) fn answers(&self, expected: &[(&str, &str)]) {
        for (path, line) in expected {
            let answer = self.answer(path);
            let is_it = match line.strip_suffix('*') {
                Some(begin) => answer.starts_with(begin),
                None => answer == *line,
            };
            assert!(is_it, "{path}: {answer}, not {line}");
        }
    }

    /// Returns the line of a path: `directory: a, b, c, …`, `file of 8 bytes: [1, 2, 3, …]`, `link:
    /// text`, or the same with an error.
    pub(crate) fn answer(&self, path: &str) -> String {
        match self.kind(path) {
            Err(error) => format!("error: {error}"),
            Ok(FileKind::Symlink) => format!("link: {}", said(self.link(path), |text| cut(&text))),
            Ok(FileKind::Directory) => format!("directory: {}", self.first_names(path)),
            Ok(FileKind::File) => {
                let size = said(self.size(path), |size| size.to_string());
                let content = said(self.part(path, 0, SHOWN + 1), |bytes| list(&bytes));
                format!("file of {size} bytes: [{content}]")
            }
        }
    }

    /// Returns the names of a path's extended attributes as a line, without the built-in ones, or
    /// the error of the list.
    pub(crate) fn attributes_line(&self, path: &str) -> String {
        let ino = self.0.resolve(path.as_bytes()).expect("an object").ino;
        let is_own = |name: &Vec<u8>| !name.starts_with(b"user.h5fs.");
        said(self.0.listxattr(ino), |names| {
            let own: Vec<_> = names.into_iter().filter(is_own).collect();
            list(
                &own.iter()
                    .map(|name| name.escape_ascii().to_string())
                    .collect::<Vec<_>>(),
            )
        })
    }

    fn first_names(&self, path: &str) -> String {
        let mut names = Vec::new();
        let directory = self.0.resolve(path.as_bytes()).expect("a directory").ino;
        let handle = self.0.opendir(directory).expect("a directory").handle;
        let mut place = 0;
        let listed = loop {
            let before = place;
            let read = self.0.readdir(handle, place, &mut |entry| {
                if names.len() > SHOWN {
                    return true;
                }
                place = entry.next;
                if !matches!(entry.name, b"." | b"..") {
                    names.push(cut(&entry.name.escape_ascii().to_string()));
                }
                false
            });
            if read.is_err() || place == before {
                break read;
            }
        };
        self.0.release(handle);
        match listed {
            Ok(_) => list(&names),
            Err(error) => format!("{}; error: {error}", list(&names)),
        }
    }
}

fn said<T>(result: Result<T>, text: impl FnOnce(T) -> String) -> String {
    result.map_or_else(|error| format!("error: {error}"), text)
}

fn list(items: &[impl ToString]) -> String {
    let mut texts: Vec<String> = items.iter().take(SHOWN).map(ToString::to_string).collect();
    if items.len() > SHOWN {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_TEXT) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
