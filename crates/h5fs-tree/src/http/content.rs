//! The content of a response, sent in pieces.

use std::collections::VecDeque;
use std::ops::Range;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::Result;
use h5fs_reader::wire::to_u64;

use crate::errno::stale_error;
use crate::http::trees::OpenedEntry;
use crate::requests::Version;
use crate::state::traffic::RequestType;
use crate::workers::{RequestObject, RequestSubject};

/// The content of a response.
pub(super) enum ResponseContent {
    /// No content.
    Empty,
    /// The complete content in memory.
    Whole(bytes::Bytes),
    /// A content that is generated piece by piece while it is sent.
    Pieces(Box<dyn StreamedContent>),
}

/// A content that is generated piece by piece while it is sent. An error closes the connection, so
/// that the client does not mistake an incomplete response for a complete one.
pub(super) trait StreamedContent: Send {
    /// Returns the object and file to which the scheduler assigns the work of generating pieces.
    fn request_subject(&self) -> RequestSubject;

    /// Returns the number of bytes that were not returned yet, or `None` if the number is unknown.
    fn remaining(&self) -> Option<u64>;

    /// Returns the next bytes, about `most` of them, or `None` at the end. After a cancelled call,
    /// the next call returns the same bytes.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read.
    fn next_piece(&mut self, most: usize, cancel: &CancelToken) -> Result<Option<Bytes>>;
}

/// A content made of byte ranges of an open file, with texts between them.
pub(super) struct FileParts {
    open: OpenedEntry,
    version: Version,
    parts: VecDeque<ContentPart>,
}

/// A section of a [`FileParts`] content.
pub(super) enum ContentPart {
    Text(Bytes),
    /// A range of bytes of the file.
    Range(Range<u64>),
}

impl ContentPart {
    pub(super) fn length(&self) -> u64 {
        match self {
            ContentPart::Text(text) => to_u64(text.len()),
            ContentPart::Range(range) => range.end.saturating_sub(range.start),
        }
    }
}

impl FileParts {
    /// Creates a content from byte ranges of the open file and texts. `version` is the version of
    /// the file's content.
    pub(super) fn new(open: OpenedEntry, version: Version, parts: Vec<ContentPart>) -> Self {
        let parts = parts.into();
        FileParts {
            open,
            version,
            parts,
        }
    }

    /// Returns the open file, without the parts.
    pub(super) fn into_opened_entry(self) -> OpenedEntry {
        self.open
    }

    /// Reads the whole content at once. It must be small.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read.
    pub(super) fn read_all(&mut self, cancel: &CancelToken) -> Result<Vec<u8>> {
        let before: u64 = self.parts.iter().map(ContentPart::length).sum();
        let mut all = Vec::with_capacity(usize::try_from(before).unwrap_or(0));
        while let Some(piece) = self.next_piece(usize::MAX, cancel)? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    fn read(&self, range: &Range<u64>, most: usize, cancel: &CancelToken) -> Result<Bytes> {
        let tree = self.open.requests();
        let length = range.end.saturating_sub(range.start);
        let length = usize::try_from(length).map_or(most, |length| length.min(most));
        tree.traffic().count_request(RequestType::Read);
        let bytes = tree.read_with_cancel(self.open.handle(), range.start, length, cancel)?;
        if bytes.is_empty() {
            // The file ended before the announced length, or the work was cancelled.
            cancel.check_cancelled()?;
            return Err(stale_error());
        }
        // An ordinary file may be written while it is read.
        let now = tree.content_version(self.open.handle(), cancel)?;
        if self.version.identity.is_some() && now.identity.is_some() && self.version != now {
            return Err(stale_error());
        }
        tree.traffic().count_bytes_read(to_u64(bytes.len()));
        Ok(bytes)
    }
}

impl StreamedContent for FileParts {
    fn request_subject(&self) -> RequestSubject {
        let place = &self.open.place;
        let file = place.requests().data_file_number(place.ino());
        (RequestObject::Content(place.inode_key()), file)
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.parts.iter().map(ContentPart::length).sum())
    }

    fn next_piece(&mut self, most: usize, cancel: &CancelToken) -> Result<Option<Bytes>> {
        while self.parts.front().is_some_and(|part| part.length() == 0) {
            self.parts.pop_front();
        }
        let bytes = match self.parts.front() {
            None => return Ok(None),
            Some(ContentPart::Text(text)) => text.clone(),
            Some(ContentPart::Range(range)) => self.read(range, most, cancel)?,
        };
        match self.parts.front_mut() {
            Some(ContentPart::Range(range)) => {
                range.start = range.start.saturating_add(to_u64(bytes.len()));
            }
            _ => drop(self.parts.pop_front()),
        }
        Ok(Some(bytes))
    }
}
