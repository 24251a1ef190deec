//! Consecutive frames or streams, for decoders that stop at the end of the first.

use crate::wire::Count;
use std::io::{self, BufReader, Read, Seek};

/// The first of the sixteen magic numbers of skippable frames, which contain no content.
const SKIPPABLE: u32 = 0x184d_2a50;

/// Maximum number of padding bytes that are skipped between two .xz streams.
const PADDING: u64 = 64 << 10;

/// A reader of the content of all consecutive frames or streams. It ends before bytes that are
/// neither a frame nor padding.
pub struct ConsecutiveFrames<S, D> {
    decoder: Option<D>,
    magic: &'static [u8],
    begin: fn(BufReader<S>) -> D,
    end: fn(D) -> BufReader<S>,
}

impl<S: Read + Seek, D: Read> ConsecutiveFrames<S, D> {
    /// Creates the reader. `begin` creates a decoder of one frame, which begins with `magic`. `end`
    /// converts a decoder that has reached the end of its frame into a reader of the following
    /// stored bytes.
    pub fn new(
        stored: BufReader<S>,
        magic: &'static [u8],
        begin: fn(BufReader<S>) -> D,
        end: fn(D) -> BufReader<S>,
    ) -> Self {
        ConsecutiveFrames {
            decoder: Some(begin(stored)),
            magic,
            begin,
            end,
        }
    }

    /// Starts decoding the next frame, if another frame follows.
    fn start_next_frame(&mut self) -> io::Result<()> {
        let Some(decoder) = self.decoder.take() else {
            return Ok(());
        };
        let mut stored = (self.end)(decoder);
        if seek_next_frame(&mut stored, self.magic)? {
            self.decoder = Some((self.begin)(stored));
        }
        Ok(())
    }
}

impl<S: Read + Seek, D: Read> Read for ConsecutiveFrames<S, D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(decoder) = &mut self.decoder {
            let read = decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.start_next_frame()?;
        }
        Ok(0)
    }
}

/// Returns whether `magic` follows, after padding and skippable frames, and moves to it.
fn seek_next_frame<S: Read + Seek>(stored: &mut BufReader<S>, magic: &[u8]) -> io::Result<bool> {
    let mut padding = 0_u64;
    loop {
        let mut first = Vec::new();
        let most = u64::try_from(magic.len()).unwrap_or(0);
        stored.by_ref().take(most).read_to_end(&mut first)?;
        if first == magic {
            let back = i64::try_from(most).unwrap_or(0).saturating_neg();
            stored.seek_relative(back)?;
            return Ok(true);
        }
        let Some(&word) = first.first_chunk::<4>() else {
            return Ok(false);
        };
        let beyond = i64::try_from(first.len().minus_or_zero(word.len())).unwrap_or(0);
        stored.seek_relative(beyond.saturating_neg())?;
        match u32::from_le_bytes(word) {
            0 if padding < PADDING => padding = padding.plus(4),
            word if word & !0xf == SKIPPABLE => {
                let mut length = [0; 4];
                stored.read_exact(&mut length)?;
                stored.seek_relative(i64::from(u32::from_le_bytes(length)))?;
            }
            _ => return Ok(false),
        }
    }
}
