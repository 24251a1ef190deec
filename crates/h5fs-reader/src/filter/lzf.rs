//! Filter 32000, LZF: a raw stream of liblzf. If compression failed, the filter was not applied,
//! and the chunk's mask records that.
//!
//! A control byte below 32 means that control + 1 literals follow. Any other control byte starts a
//! match:
//!
//! - The upper three bits are the length less 2. If they are 7, the next byte is added.
//! - The lower five bits and the next byte are the distance less 1.

use crate::error::{Error, Result};
use crate::filter::history::History;
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;

/// Returns the decoded bytes of a whole LZF stream.
///
/// # Errors
/// `Corrupt` for a damaged or truncated stream, or a decoded length that `length` does not allow.
pub fn decode(stream: &[u8], length: DecodedLength, context: &DecoderResources) -> Result<Buffer> {
    length.fill("LZF", &context.pool, |output| {
        let mut history = History::new(output);
        let mut rest = stream;
        while !rest.is_empty() {
            rest = step(rest, &mut history)
                .ok_or_else(|| Error::corrupt("LZF: damaged, or longer than the chunk", None))?;
        }
        Ok(history.written())
    })
}

/// Decodes the instruction at the start of `stream` and returns the bytes after it.
fn step<'a>(stream: &'a [u8], history: &mut History<'_>) -> Option<&'a [u8]> {
    let (&control, rest) = stream.split_first()?;
    let control = usize::from(control);
    if control < 32 {
        let (literals, rest) = rest.split_at_checked(control.wrapping_add(1))?;
        history.append_literals(literals)?;
        return Some(rest);
    }
    let (length, rest) = match control.wrapping_shr(5) {
        7 => {
            let (&more, rest) = rest.split_first()?;
            (usize::from(more).wrapping_add(7), rest)
        }
        short => (short, rest),
    };
    let (&low, rest) = rest.split_first()?;
    let distance = (control & 31).wrapping_shl(8) | usize::from(low);
    history.copy_back(distance.wrapping_add(1), length.wrapping_add(2))?;
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, length, &DecoderResources::default()).map(Buffer::into_vec)
    }

    /// The chunk that h5py 3.16 stored for `np.arange(200, dtype='u1') % 5` with
    /// `compression='lzf'`.
    const STORED: &[u8] = &[5, 0, 1, 2, 3, 4, 0, 224, 183, 4, 1, 3, 4];

    #[test]
    fn agrees_with_liblzf() {
        let expected: Vec<u8> = (0..200).map(|place| place % 5).collect();
        assert_eq!(decode(STORED, DecodedLength::Exactly(200)), Ok(expected));
    }

    #[test]
    fn damage_and_excess_are_detected() {
        for length in [0, 199, 201] {
            assert!(decode(STORED, DecodedLength::Exactly(length)).is_err());
        }
        for end in 0..STORED.len() {
            assert!(decode(&STORED[..end], DecodedLength::Exactly(200)).is_err());
        }
        // A match before the first byte.
        assert!(decode(&[0x20, 0], DecodedLength::AtMost(10)).is_err());
    }
}
