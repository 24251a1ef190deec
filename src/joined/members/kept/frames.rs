//! A file of frames, each with a hash of its content, to whose end more are added.
//!
//! | bytes | field |
//! |---|---|
//! | 8 | `h5fsscan` |
//! | 1 | the kind |
//! | 4 | the length of the content, little-endian |
//! | 16 | the first bytes of the SHA-256 of the kind and the content |
//! | | the content |
//!
//! Several processes may add frames at a time, each with one call. Of what is damaged or cut off the
//! frames behind are found again by their beginning.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The beginning of a frame.
pub(crate) const MAGIC: &[u8; 8] = b"h5fsscan";

/// Bytes before the content.
const HEAD: usize = MAGIC.len() + 1 + 4 + size_of::<Digest>();

/// What a frame is known by: a hash of its kind and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Digest([u8; 16]);

/// A frame of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'f> {
    pub(super) kind: u8,
    pub(super) digest: Digest,
    pub(super) content: &'f [u8],
}

impl Digest {
    /// That of a frame.
    pub(super) fn of(kind: u8, content: &[u8]) -> Self {
        let whole = Sha256::new()
            .chain_update([kind])
            .chain_update(content)
            .finalize();
        let mut own = [0; 16];
        own.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        Digest(own)
    }
}

/// Adds a frame to `out`; none of 4 GiB or more.
pub(super) fn append(kind: u8, digest: Digest, content: &[u8], out: &mut Vec<u8>) {
    if let Ok(length) = u32::try_from(content.len()) {
        out.extend_from_slice(MAGIC);
        out.push(kind);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&digest.0);
        out.extend_from_slice(content);
    }
}

/// All frames of a file that are whole.
pub(super) fn frames(file: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut rest = file;
    std::iter::from_fn(move || {
        loop {
            let begin = rest.windows(MAGIC.len()).position(|own| own == MAGIC)?;
            rest = rest.get(begin..)?;
            match first(rest) {
                Some(frame) => {
                    rest = rest.get(HEAD + frame.content.len()..)?;
                    return Some(frame);
                }
                None => rest = rest.get(1..)?,
            }
        }
    })
}

/// The frame at the beginning, if it is whole.
fn first(bytes: &[u8]) -> Option<Frame<'_>> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (&kind, rest) = rest.split_first()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (digest, rest) = rest.split_first_chunk()?;
    let content = rest.get(..usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
    let digest = Digest(*digest);
    (Digest::of(kind, content) == digest).then_some(Frame {
        kind,
        digest,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(file: &[u8]) -> Vec<&[u8]> {
        frames(file).map(|frame| frame.content).collect()
    }

    #[test]
    fn frames_behind_damage_are_found() {
        let all: [&[u8]; 3] = [b"first", b"", b"the last h5fsscan one"];
        let (mut file, mut begins) = (Vec::new(), Vec::new());
        for content in all {
            begins.push(file.len());
            append(7, Digest::of(7, content), content, &mut file);
        }
        assert_eq!(contents(&file), all);
        for at in begins[0]..begins[1] {
            let mut damaged = file.clone();
            damaged[at] ^= 1;
            assert_eq!(contents(&damaged), all[1..], "byte {at}");
        }
        for end in 0..file.len() {
            let whole = begins[1..].iter().filter(|begin| **begin <= end).count();
            assert_eq!(contents(&file[..end]), all[..whole], "{end} bytes");
            let again = [&file[..end], &file].concat();
            assert_eq!(contents(&again), [&all[..whole], &all].concat());
        }
    }
}
