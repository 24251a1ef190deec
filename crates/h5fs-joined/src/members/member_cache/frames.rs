//! A file of frames, each with a hash of its content. New frames are appended.
//!
//! | bytes | of the header |
//! |---|---|
//! | 8 | `h5fsscan` |
//! | 16 | random bytes: the marker at the start of each frame |
//! | 16 | random bytes: the key of the hashes |
//!
//! | bytes | of a frame |
//! |---|---|
//! | 16 | the marker |
//! | 1 | the kind |
//! | 4 | the length of the content, little-endian |
//! | 16 | the first bytes of the SHA-256 of the key, the kind and the content |
//! | | the content |
//!
//! Several processes may append frames at the same time, each with one call. After damaged or
//! truncated bytes, the next frames are found by the marker. The author of a data file does not
//! know the marker, so the content of a frame cannot contain a forged frame.

use h5fs_reader::wire::Count;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The first bytes of a cache file.
pub const MAGIC: &[u8; 8] = b"h5fsscan";

/// Length in bytes of the marker, of the key and of a digest.
const KEY_BYTES: usize = 16;

/// Number of random bytes in the header of the file: the marker and the key.
pub const RANDOM_BYTES: usize = 2 * KEY_BYTES;

/// Length in bytes of the file's header.
pub const HEADER_LENGTH: usize = MAGIC.len() + RANDOM_BYTES;

/// Length in bytes of the fields before the content of a frame.
const FRAME_HEADER_LENGTH: usize = KEY_BYTES + 1 + 4 + size_of::<Digest>();

/// Returns the header of a new cache file. `chance` contains random bytes for the frame marker and
/// the hash key.
pub fn header_bytes(chance: &[u8; RANDOM_BYTES]) -> Vec<u8> {
    [&MAGIC[..], chance].concat()
}

/// The identity of a frame: a keyed hash of its kind and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Digest([u8; KEY_BYTES]);

/// A frame of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheFrame<'f> {
    pub(super) kind: u8,
    pub(super) digest: Digest,
    pub(super) content: &'f [u8],
}

/// The decoded header of a cache file.
#[derive(Debug)]
pub(super) struct CacheHeader {
    marker: [u8; KEY_BYTES],
    key: [u8; KEY_BYTES],
}

impl CacheHeader {
    /// Parses the header of a file. Also returns the bytes after the header. Returns `None` if the
    /// file has no valid header.
    pub(super) fn parse(file: &[u8]) -> Option<(Self, &[u8])> {
        let (mark, rest) = file.strip_prefix(MAGIC)?.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        let (mark, key) = (*mark, *key);
        Some((CacheHeader { marker: mark, key }, rest))
    }

    /// Returns the digest of a frame with this kind and content.
    pub(super) fn digest(&self, kind: u8, content: &[u8]) -> Digest {
        let whole = Sha256::new()
            .chain_update(self.key)
            .chain_update([kind])
            .chain_update(content)
            .finalize();
        let mut own = [0; KEY_BYTES];
        own.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        Digest(own)
    }

    /// Appends a frame to `out`. Does nothing if the content has 4 GiB or more.
    pub(super) fn append(&self, kind: u8, digest: Digest, content: &[u8], out: &mut Vec<u8>) {
        if let Ok(length) = u32::try_from(content.len()) {
            out.extend_from_slice(&self.marker);
            out.push(kind);
            out.extend_from_slice(&length.to_le_bytes());
            out.extend_from_slice(&digest.0);
            out.extend_from_slice(content);
        }
    }

    /// Returns all valid frames in `file`, the bytes after the header. Hashes at most twice as many
    /// bytes as the file has, even if damaged frames contain wrong lengths.
    pub(super) fn frames<'f>(&self, file: &'f [u8]) -> Vec<CacheFrame<'f>> {
        let (mut rest, mut left) = (file, file.len().saturating_mul(2));
        let mut frames = Vec::new();
        let next = |rest: &[u8]| rest.windows(KEY_BYTES).position(|own| own == self.marker);
        while let Some(begin) = next(rest) {
            rest = rest.get(begin..).unwrap_or_default();
            let Some(stated) = frame_at(rest) else {
                rest = rest.get(KEY_BYTES..).unwrap_or_default();
                continue;
            };
            let Some(less) = left.checked_sub(stated.content.len()) else {
                break;
            };
            left = less;
            let mut behind = KEY_BYTES;
            if self.digest(stated.kind, stated.content) == stated.digest {
                behind = FRAME_HEADER_LENGTH.plus(stated.content.len());
                frames.push(stated);
            }
            rest = rest.get(behind..).unwrap_or_default();
        }
        frames
    }
}

/// Decodes the frame at the start of `bytes`, which begin with the frame marker. Does not verify
/// the digest. Returns `None` if the frame extends past the end of `bytes`.
fn frame_at(bytes: &[u8]) -> Option<CacheFrame<'_>> {
    let rest = bytes.get(KEY_BYTES..)?;
    let (&kind, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (digest, rest) = rest.split_first_chunk()?;
    let content = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    Some(CacheFrame {
        kind,
        digest: Digest(*digest),
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_header() -> CacheHeader {
        let chance: Vec<u8> = (100..100 + RANDOM_BYTES as u8).collect();
        let file = header_bytes(chance[..].try_into().unwrap());
        assert_eq!(file.len(), HEADER_LENGTH);
        let (head, rest) = CacheHeader::parse(&file).unwrap();
        assert!(rest.is_empty() && CacheHeader::parse(&file[..HEADER_LENGTH - 1]).is_none());
        head
    }

    fn contents<'f>(head: &CacheHeader, file: &'f [u8]) -> Vec<&'f [u8]> {
        let frames = head.frames(file).into_iter();
        frames.map(|frame| frame.content).collect()
    }

    fn add(head: &CacheHeader, content: &[u8], file: &mut Vec<u8>) {
        head.append(7, head.digest(7, content), content, file);
    }

    #[test]
    fn frames_after_damage_are_found() {
        let head = random_header();
        let all: [&[u8]; 3] = [b"first", b"", b"the last h5fsscan one"];
        let (mut file, mut begins) = (Vec::new(), Vec::new());
        for content in all {
            begins.push(file.len());
            add(&head, content, &mut file);
        }
        assert_eq!(contents(&head, &file), all);
        for at in begins[0]..begins[1] {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(contents(&head, &damaged), all[1..], "byte {at}");
        }
        for end in 0..file.len() {
            let whole = begins[1..].iter().filter(|begin| **begin <= end).count();
            assert_eq!(contents(&head, &file[..end]), all[..whole], "{end} bytes");
            let again = [&file[..end], &file].concat();
            assert_eq!(contents(&head, &again), [&all[..whole], &all].concat());
        }
    }

    /// The content of a member may look like frames of another file.
    #[test]
    fn no_frame_is_found_inside_content() {
        let head = random_header();
        let (other, _) = CacheHeader::parse(b"h5fsscan0123456789abcdef0123456789abcdef").unwrap();
        let mut forged = Vec::new();
        add(&other, b"forged", &mut forged);
        let mut file = Vec::new();
        add(&head, &forged, &mut file);
        add(&head, b"behind", &mut file);
        file[FRAME_HEADER_LENGTH - 1] ^= 1;
        assert_eq!(contents(&head, &file), [b"behind"]);
    }

    /// Each of these frames has a length that extends to the end of the file.
    #[test]
    fn the_number_of_hashed_bytes_is_limited() {
        let head = random_header();
        let mut file = Vec::new();
        for left in (0..10_000_u32).rev() {
            file.extend_from_slice(&head.marker);
            file.push(7);
            file.extend_from_slice(&(left * FRAME_HEADER_LENGTH as u32).to_le_bytes());
            file.extend_from_slice(&[0; KEY_BYTES]);
        }
        add(&head, b"behind", &mut file);
        // Two of them exhaust the limit.
        assert_eq!(contents(&head, &file), Vec::<&[u8]>::new());
    }
}
