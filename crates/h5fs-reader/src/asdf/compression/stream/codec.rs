//! The codecs of streams, with decoders that return the content in order.

use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};

use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;

use crate::asdf::compression::stream::consecutive_frames::ConsecutiveFrames;
use crate::error::{Error, Result};
use crate::filter::{self, DecodedLength, DecoderResources};
use crate::limits;
use crate::memory::buffer::Buffer;
use crate::source::SharedSource;
use crate::wire::{Count, Extent, to_u64};

/// The magic bytes of an LZ4 frame.
pub(crate) const LZ4_MAGIC: &[u8] = &[0x04, 0x22, 0x4d, 0x18];

/// The magic bytes of an .xz stream.
pub(crate) const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];

/// A reader that decodes a stream and returns its content in order.
pub type StreamDecoder<'a> = Box<dyn Read + Send + 'a>;

/// The compression of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamCodec {
    /// Zstandard frames.
    Zstd,
    /// LZ4 frames.
    Lz4Frame,
    /// .xz streams.
    Xz,
}

impl StreamCodec {
    /// Decodes a whole stream.
    ///
    /// # Errors
    /// `Corrupt` for a damaged stream, or a decoded length that `length` does not allow.
    pub fn decode(
        self,
        stored: &[u8],
        length: DecodedLength,
        context: &mut DecoderResources,
    ) -> Result<Buffer> {
        let name = match self {
            StreamCodec::Zstd => return filter::zstd::decode(stored, length, context),
            StreamCodec::Lz4Frame => "LZ4 frame",
            StreamCodec::Xz => "xz",
        };
        let mut decoder = self.decoder(Cursor::new(stored))?;
        length.fill(name, context.pool(), |output| {
            let written = fill(&mut decoder, output)?;
            let is_end = written < output.len() || is_at_end(&mut decoder)?;
            Ok(written.plus(usize::from(!is_end)))
        })
    }

    /// Returns a decoder of all frames or streams in `stored`.
    ///
    /// # Errors
    /// `Corrupt` if the decoder cannot be created.
    pub fn decoder<'a>(self, stored: impl Read + Seek + Send + 'a) -> Result<StreamDecoder<'a>> {
        let stored = BufReader::new(stored);
        Ok(match self {
            StreamCodec::Zstd => self.part_decoder(stored)?,
            StreamCodec::Lz4Frame => {
                let (begin, end) = (FrameDecoder::new, FrameDecoder::into_inner);
                Box::new(ConsecutiveFrames::new(stored, LZ4_MAGIC, begin, end))
            }
            StreamCodec::Xz => Box::new(ConsecutiveFrames::new(
                stored,
                XZ_MAGIC,
                xz,
                XzReader::into_inner,
            )),
        })
    }

    /// Returns a decoder of one independent part of a stream. Unlike `decoder`, it decodes only the
    /// first LZ4 frame or .xz stream in `stored`.
    ///
    /// # Errors
    /// `Corrupt` if the decoder cannot be created.
    pub(crate) fn part_decoder<'a>(
        self,
        stored: impl io::BufRead + Send + 'a,
    ) -> Result<StreamDecoder<'a>> {
        Ok(match self {
            StreamCodec::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(stored);
                let mut decoder = decoder.map_err(|error| convert_error(&error))?;
                let limited = decoder.window_log_max(limits::ZSTD_WINDOW_LOG);
                limited.map_err(|error| convert_error(&error))?;
                Box::new(decoder)
            }
            StreamCodec::Lz4Frame => Box::new(FrameDecoder::new(stored)),
            StreamCodec::Xz => Box::new(xz(stored)),
        })
    }
}

fn xz<R: Read>(stored: R) -> XzReader<R> {
    XzReader::new_mem_limit(stored, false, limits::XZ_KIB)
}

/// Converts the error of a decoder to `Corrupt`. If the error contains an error of this crate, such
/// as a failure to read the source, returns that error.
pub fn convert_error(error: &io::Error) -> Error {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    let damaged = || Error::corrupt(format!("compressed stream: {error}"), None);
    cause.cloned().unwrap_or_else(damaged)
}

/// Reads decoded bytes until `output` is full or the stream ends. Returns the number of bytes read.
///
/// # Errors
/// Fails if the stream is damaged.
pub fn fill(decoder: &mut dyn Read, output: &mut [u8]) -> Result<usize> {
    let mut filled = 0_usize;
    while let Some(room) = output.get_mut(filled..).filter(|room| !room.is_empty()) {
        match decoder.read(room) {
            Ok(0) => break,
            Ok(read) => filled = filled.plus(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(convert_error(&error)),
        }
    }
    Ok(filled)
}

/// Returns whether `decoder` has returned all bytes of the stream. Otherwise, skips one byte.
///
/// # Errors
/// Fails if the stream is damaged at this position.
pub(crate) fn is_at_end(decoder: &mut dyn Read) -> Result<bool> {
    Ok(fill(decoder, &mut [0])? == 0)
}

/// A reader of a byte range of a source.
pub struct SourceRangeReader {
    source: SharedSource,
    all: Extent,
    left: Extent,
}

impl SourceRangeReader {
    /// Creates a reader of the byte range `all` of `source`.
    pub fn new(source: SharedSource, all: Extent) -> Self {
        SourceRangeReader {
            source,
            all,
            left: all,
        }
    }
}

impl Read for SourceRangeReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = to_u64(buffer.len()).min(self.left.length());
        let room = usize::try_from(count)
            .ok()
            .and_then(|count| buffer.get_mut(..count));
        let Some(room) = room else {
            return Ok(0);
        };
        self.source
            .read_at(self.left.start(), room)
            .map_err(io::Error::other)?;
        self.left = self.left.skip(count);
        Ok(room.len())
    }
}

impl Seek for SourceRangeReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (start, end) = (self.all.start(), self.all.end());
        let at = match to {
            SeekFrom::Start(place) => start.checked_add(place),
            SeekFrom::Current(distance) => self.left.start().checked_add_signed(distance),
            SeekFrom::End(distance) => end.checked_add_signed(distance),
        };
        let is_within = |at: &u64| (start..=end).contains(at);
        let at = at.filter(is_within).ok_or(io::ErrorKind::InvalidInput)?;
        self.left = Extent::from_range(at, end);
        Ok(at.minus_or_zero(start))
    }
}
