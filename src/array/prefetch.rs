//! Decoding ahead of sequential reads through one open file.

use std::sync::{Arc, Mutex, OnceLock};

use crate::array::cancel::Canceller;
use crate::array::chunks::Chunks;
use crate::array::engine::Decoder;
use crate::array::span::Span;
use crate::memory::lock::lock;

/// The reads of one array through one open file.
///
/// The kernel sends the requests of one sequential reader in parallel, so they may arrive a little
/// out of order.
#[derive(Default)]
pub(crate) struct Stream {
    progress: Mutex<Progress>,
    canceller: Canceller,
    room: OnceLock<Room>,
    /// The same for the way back.
    room_back: OnceLock<Room>,
}

#[derive(Default)]
struct Progress {
    /// The furthest end of a read so far.
    end: u64,
    /// Whether the next read, should it go on here, is the second of a run.
    sequential: bool,
    /// The first chunk that no read of this run has touched.
    untouched: u64,
    /// The first chunk that was not queued.
    unqueued: u64,
}

/// A part of the cache that is claimed for one reader.
struct Room {
    decoder: Arc<Decoder>,
    bytes: u64,
}

impl Room {
    fn claim(decoder: &Arc<Decoder>, bytes: u64) -> Self {
        decoder.cache.claim(bytes);
        Room {
            decoder: Arc::clone(decoder),
            bytes,
        }
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.decoder.cache.release(self.bytes);
    }
}

/// A read this many times its own length away from the end of those before still belongs to them.
const DISORDER: u64 = 4;

impl Stream {
    /// A file that has just been opened.
    pub(crate) fn new() -> Self {
        Stream::default()
    }

    /// To be told of each read of `chunks`, which must be encoded, before it: where the reads are
    /// sequential, the chunks behind this one are queued; a seek drops what is queued.
    pub(super) fn advise(&self, decoder: &Arc<Decoder>, chunks: &Arc<Chunks>, span: &Span<'_>) {
        let (offset, end) = (span.start(), span.end());
        let mut progress = lock(&self.progress);
        if !progress.goes_on(offset, end) {
            if chunks.is_sequential() && offset < progress.end {
                // The chunks that are decoded on the way back here will be wanted again.
                let claim = || Room::claim(decoder, decoder.needed_backwards(chunks));
                self.room_back.get_or_init(claim);
            }
            self.canceller.cancel();
            *progress = Progress::default();
        }
        progress.end = progress.end.max(end);
        progress.untouched = progress.untouched.max(span.last_chunk() + 1);
        let sequential = std::mem::replace(&mut progress.sequential, true);
        if sequential || chunks.grid.band() > 1 {
            let claim = || Room::claim(decoder, decoder.needed(chunks));
            self.room.get_or_init(claim);
        }
        if !sequential {
            return;
        }
        let depth = decoder.depth(chunks);
        let from = progress.untouched.max(progress.unqueued);
        let to = (progress.untouched + depth).min(chunks.grid.chunks());
        if from < to {
            // Chunks that are still to be read must not go before those read meanwhile.
            for number in progress.untouched..from {
                decoder.cache.promote(chunks.key(number));
            }
            let numbers: Vec<u64> = (from..to).collect();
            let taken = decoder
                .queue
                .push_expected(chunks, &numbers, &self.canceller);
            progress.unqueued = from + taken as u64;
        }
    }
}

impl Progress {
    /// Whether a read of `offset..end` belongs to the run of those before.
    fn goes_on(&self, offset: u64, end: u64) -> bool {
        let disorder = (end - offset).saturating_mul(DISORDER);
        self.end != 0 && offset.abs_diff(self.end) <= disorder
    }
}
