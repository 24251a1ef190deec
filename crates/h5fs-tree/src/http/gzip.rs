//! Compresses responses that are texts, with gzip.

use std::sync::Arc;

use h5fs_reader::memory::gate::{AdmissionQueue, FairLock, FairLockGuard};
use h5fs_reader::wire::to_u64;
use http::HeaderMap;
use http::header::ACCEPT_ENCODING;
use libdeflater::{CompressionLvl, Compressor};

use crate::http::preferences::quality_value;
use crate::limits;

/// The gzip compression level: the fastest one that shortens texts.
const COMPRESSION_LEVEL: i32 = 1;

/// Minimum length in bytes of a text that is compressed.
const MIN_LENGTH: u64 = 512;

/// Returns whether a text of `length` bytes is compressed. Texts have a maximum length, because
/// they are in memory during compression.
pub(super) fn should_compress(length: u64) -> bool {
    (MIN_LENGTH..=limits::HTTP_GZIP).contains(&length)
}

/// Returns whether the client accepts gzip: RFC 9110, section 12.5.3.
pub(super) fn accepts_gzip(headers: &HeaderMap) -> bool {
    quality_value(headers, &ACCEPT_ENCODING, "gzip") > 0.0
}

/// The compressor of texts for all clients. It limits the memory of texts that are being
/// compressed, and of compressed texts that are being sent.
#[derive(Default)]
pub(super) struct TextCompressor(Arc<FairLock>);

/// Memory reserved for one text, and after compression for the compressed text.
pub(super) struct TextReservation(FairLockGuard);

/// A compressed text, with the memory reserved for it.
struct CompressedText {
    bytes: Vec<u8>,
    _room: TextReservation,
}

impl TextCompressor {
    /// Reserves memory for compressing a text of `length` bytes. Returns `None` if the texts of
    /// other responses use too much memory.
    pub(super) fn reserve(&self, length: u64) -> Option<TextReservation> {
        // The text and, in the worst case, the same length again.
        let weight = length.saturating_mul(2);
        let has_room = |_: &mut (), works: &AdmissionQueue| {
            let taken = works.admitted_weights(0).fold(0, u64::saturating_add);
            taken.saturating_add(weight) <= limits::HTTP_PACKED
        };
        self.0
            .enter((0, weight), has_room, || Err(()))
            .map(TextReservation)
            .ok()
    }
}

impl TextReservation {
    /// Compresses `text`. Returns `None` if the result is not shorter than the text.
    pub(super) fn compress(self, text: &[u8]) -> Option<bytes::Bytes> {
        let bytes = compress_text(text, CompressionLvl::new(COMPRESSION_LEVEL).ok()?)?;
        self.0.reduce_weight(to_u64(bytes.len()));
        Some(bytes::Bytes::from_owner(CompressedText {
            bytes,
            _room: self,
        }))
    }
}

impl AsRef<[u8]> for CompressedText {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Compresses a text that is served to all clients. Returns `None` if the result is not shorter
/// than the text.
pub(super) fn compress_shared(text: &[u8]) -> Option<Vec<u8>> {
    compress_text(text, CompressionLvl::best())
}

fn compress_text(text: &[u8], level: CompressionLvl) -> Option<Vec<u8>> {
    let mut compressor = Compressor::new(level);
    // One byte less than the text, so that compression fails if the result would not be shorter.
    let mut packed = vec![0; text.len().checked_sub(1)?];
    let length = compressor.gzip_compress(text, &mut packed).ok()?;
    packed.truncate(length);
    packed.shrink_to_fit();
    Some(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_what_it_takes() {
        let takes = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, text.parse().unwrap());
            accepts_gzip(&headers)
        };
        assert!(takes("gzip") && takes("br, GZIP;q=0.5") && takes("deflate, gzip"));
        assert!(
            !takes("identity") && !takes("gzip;q=0") && !takes("gzip;q=0.0") && !takes("xgzip")
        );
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    /// Decompresses gzip data with another library. The compressed data is between a header of ten
    /// bytes and a trailer of eight (RFC 1952, section 2.3).
    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let deflated = &packed[10..packed.len() - 8];
        miniz_oxide::inflate::decompress_to_vec(deflated).unwrap()
    }

    #[test]
    fn a_text_becomes_shorter_and_stays_the_same() {
        let packer = TextCompressor::default();
        let rows: String = (0..400).map(|row| format!("{row},{}\n", row * 7)).collect();
        let text = rows.as_bytes();
        let packed = packer
            .reserve(to_u64(text.len()))
            .unwrap()
            .compress(text)
            .unwrap();
        assert!(
            packed.len() < text.len() * 2 / 3,
            "{} of {}",
            packed.len(),
            text.len()
        );
        assert_eq!(unpacked(&packed), text);
        let best = compress_shared(text).unwrap();
        assert!(best.len() < packed.len() && unpacked(&best) == text);
        assert!(packer.reserve(3).unwrap().compress(b"a\xffb").is_none());
    }

    #[test]
    fn what_is_compressed_for_all_clients_has_a_bound() {
        let packer = TextCompressor::default();
        let length = limits::HTTP_GZIP;
        let text = vec![b'7'; usize::try_from(length).unwrap()];
        let mut rooms = Vec::new();
        while let Some(room) = packer.reserve(length) {
            rooms.push(room);
        }
        assert_eq!(to_u64(rooms.len()), limits::HTTP_PACKED / (2 * length));
        // A compressed text reserves only its own length while it is kept.
        let packed: Vec<_> = rooms.into_iter().map(|room| room.compress(&text)).collect();
        let taken: usize = packed.iter().flatten().map(bytes::Bytes::len).sum();
        let rest = limits::HTTP_PACKED - to_u64(taken);
        assert!(packer.reserve(rest / 2 + 1).is_none());
        assert!(packer.reserve(rest / 2).is_some());
        drop(packed);
        assert!(packer.reserve(limits::HTTP_PACKED / 2).is_some());
    }
}
