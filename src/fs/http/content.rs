//! The content of an answer, a piece after another.

use std::collections::VecDeque;
use std::ops::Range;

use crate::array::{Bytes, CancelToken};
use crate::error::Result;
use crate::fs::errno::stale;
use crate::fs::http::trees::OpenPlace;
use crate::fs::requests::Version;
use crate::fs::state::traffic::Call;
use crate::fs::workers::{Object, Of};
use crate::wire::to_u64;

/// The content of an answer.
pub(super) enum Content {
    /// None.
    Empty,
    /// All of it is there.
    Whole(bytes::Bytes),
    /// It is worked out while it is sent.
    Pieces(Box<dyn Pieces>),
}

/// A content that is worked out while it is sent. An error ends the connection: the client is not to
/// take a part for all.
pub(super) trait Pieces: Send {
    /// What the requests for pieces are about.
    fn of(&self) -> Of;

    /// Bytes that are left; `None` where that is not known.
    fn left(&self) -> Option<u64>;

    /// The next bytes, about `most` of them; none at the end. Work that is given up changes nothing.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    fn next(&mut self, most: usize, cancel: &CancelToken) -> Result<Option<Bytes>>;
}

/// Parts of an open file, and texts between them.
pub(super) struct FileParts {
    open: OpenPlace,
    version: Version,
    parts: VecDeque<Part>,
}

/// A part of a content.
pub(super) enum Part {
    Text(Bytes),
    /// Bytes of the file.
    Range(Range<u64>),
}

impl Part {
    pub(super) fn length(&self) -> u64 {
        match self {
            Part::Text(text) => to_u64(text.len()),
            Part::Range(range) => range.end.saturating_sub(range.start),
        }
    }
}

impl FileParts {
    /// These `parts` of what is open, and holds this `version`.
    pub(super) fn new(open: OpenPlace, version: Version, parts: Vec<Part>) -> Self {
        let parts = parts.into();
        FileParts {
            open,
            version,
            parts,
        }
    }

    /// What is open.
    pub(super) fn into_open(self) -> OpenPlace {
        self.open
    }

    /// All bytes, where they are few.
    ///
    /// # Errors
    /// Fails if they cannot be read.
    pub(super) fn whole(&mut self, cancel: &CancelToken) -> Result<Vec<u8>> {
        let before: u64 = self.parts.iter().map(Part::length).sum();
        let mut all = Vec::with_capacity(usize::try_from(before).unwrap_or(0));
        while let Some(piece) = self.next(usize::MAX, cancel)? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    fn read(&self, range: &Range<u64>, most: usize, cancel: &CancelToken) -> Result<Bytes> {
        let tree = self.open.requests();
        let length = range.end.saturating_sub(range.start);
        let length = usize::try_from(length).map_or(most, |length| length.min(most));
        tree.traffic().asked(Call::Read);
        let bytes = tree.read_for(self.open.handle(), range.start, length, cancel)?;
        if bytes.is_empty() {
            // The end came before the length that was told of, or the work is given up.
            cancel.go_on()?;
            return Err(stale());
        }
        // A file that is shown as it is may be written while it is read.
        let now = tree.version_of(self.open.handle(), cancel)?;
        if self.version.identity.is_some() && now.identity.is_some() && self.version != now {
            return Err(stale());
        }
        tree.traffic().read(to_u64(bytes.len()));
        Ok(bytes)
    }
}

impl Pieces for FileParts {
    fn of(&self) -> Of {
        let place = &self.open.place;
        let file = place.requests().file_of(place.ino());
        (Object::Content(place.number()), file)
    }

    fn left(&self) -> Option<u64> {
        Some(self.parts.iter().map(Part::length).sum())
    }

    fn next(&mut self, most: usize, cancel: &CancelToken) -> Result<Option<Bytes>> {
        while self.parts.front().is_some_and(|part| part.length() == 0) {
            self.parts.pop_front();
        }
        let bytes = match self.parts.front() {
            None => return Ok(None),
            Some(Part::Text(text)) => text.clone(),
            Some(Part::Range(range)) => self.read(range, most, cancel)?,
        };
        match self.parts.front_mut() {
            Some(Part::Range(range)) => {
                range.start = range.start.saturating_add(to_u64(bytes.len()));
            }
            _ => drop(self.parts.pop_front()),
        }
        Ok(Some(bytes))
    }
}
