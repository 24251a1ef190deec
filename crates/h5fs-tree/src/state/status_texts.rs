//! Texts about the current state of the mount: `status`, `errors` and `metrics`.
//!
//! `stat` creates the text, because the text's length is the size of the file. A subsequent open
//! shows the same text. While that text is open and recent, `stat` returns its length again. A
//! reader that calls `stat` before or after the open thus gets the matching size.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use h5fs_reader::memory::lock::lock;
use h5fs_view::text_files::text::InMemoryContent;

/// Maximum age of a text that a later `stat` or open may use again.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The last text of each inode: at most three, `status`, `errors` and `metrics`.
#[derive(Default)]
pub(crate) struct StatusTexts(Mutex<HashMap<u64, (Instant, InMemoryContent)>>);

impl StatusTexts {
    /// Returns the text of the inode `ino` for a `stat`: an open recent text, or a new one from
    /// `write`.
    pub(crate) fn text_for_stat(
        &self,
        ino: u64,
        write: impl FnOnce() -> Vec<u8>,
    ) -> InMemoryContent {
        self.text(ino, InMemoryContent::is_shared, write)
    }

    /// Returns the text of the inode `ino` for an open: a recent text, or a new one from `write`.
    pub(crate) fn text_for_open(
        &self,
        ino: u64,
        write: impl FnOnce() -> Vec<u8>,
    ) -> InMemoryContent {
        self.text(ino, |_| true, write)
    }

    fn text(
        &self,
        ino: u64,
        is_it: fn(&InMemoryContent) -> bool,
        write: impl FnOnce() -> Vec<u8>,
    ) -> InMemoryContent {
        let is_of_now =
            |(made, text): &&(Instant, InMemoryContent)| made.elapsed() < MAX_AGE && is_it(text);
        let known = lock(&self.0).get(&ino).filter(is_of_now).cloned();
        if let Some((_, text)) = known {
            return text;
        }
        let text = InMemoryContent::new_of_current_state(write());
        lock(&self.0).insert(ino, (Instant::now(), text.clone()));
        text
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use h5fs_view::view::View;

    #[test]
    fn a_reader_gets_the_text_of_the_reported_length() {
        let (status_texts, written) = (StatusTexts::default(), Cell::new(0));
        let write = || {
            written.set(written.get() + 1);
            vec![b'x'; written.get()]
        };
        assert_eq!(status_texts.text_for_stat(1, write).length(), 1);
        assert_eq!(status_texts.text_for_stat(1, write).length(), 2);
        let open = status_texts.text_for_open(1, write);
        assert_eq!(open.length(), 2);
        assert_eq!(status_texts.text_for_stat(1, write).length(), 2);
        assert_eq!(status_texts.text_for_stat(2, write).length(), 3);
        drop(open);
        assert_eq!(status_texts.text_for_stat(1, write).length(), 4);
    }
}
