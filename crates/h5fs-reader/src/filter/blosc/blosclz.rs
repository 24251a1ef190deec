//! BloscLZ, Blosc's own Lempel-Ziv codec.
//!
//! A control byte below 32 means that control + 1 literals follow. In the first control byte, the
//! upper three bits are ignored. Any other control byte starts a match:
//!
//! - The upper three bits are the length less 2. If they are 7, the following bytes are added to
//!   the length, up to and including the first byte that is not 255.
//! - The lower five bits and the next byte are the distance less 1. If all these thirteen bits are
//!   set, a big-endian u16 follows and is added.

use crate::filter::history::History;

/// Decodes a whole BloscLZ stream and returns the number of bytes written. Returns `None` if the
/// stream is damaged or does not fit into `output`.
pub(crate) fn decode_into(stream: &[u8], output: &mut [u8]) -> Option<usize> {
    let (&first, mut rest) = stream.split_first()?;
    let mut history = History::new(output);
    let mut control = first & 31;
    loop {
        rest = step(control, rest, &mut history)?;
        let Some((&next, after)) = rest.split_first() else {
            return Some(history.written());
        };
        (control, rest) = (next, after);
    }
}

/// Decodes the instruction that starts with `control`, and returns the bytes after it.
fn step<'a>(control: u8, rest: &'a [u8], history: &mut History<'_>) -> Option<&'a [u8]> {
    const FAR: usize = 0x1fff;
    let control = usize::from(control);
    if control < 32 {
        let (literals, rest) = rest.split_at_checked(control.wrapping_add(1))?;
        history.append_literals(literals)?;
        return Some(rest);
    }
    let mut length = control.wrapping_shr(5).wrapping_add(2);
    let mut rest = rest;
    let mut more = if length == 9 { 255 } else { 0 };
    while more == 255 {
        (more, rest) = rest.split_first().map(|(&byte, rest)| (byte, rest))?;
        length = length.checked_add(more.into())?;
    }
    let (&low, mut rest) = rest.split_first()?;
    let mut distance = (control & 31).wrapping_shl(8) | usize::from(low);
    if distance == FAR {
        let (&far, after) = rest.split_first_chunk()?;
        distance = FAR.wrapping_add(u16::from_be_bytes(far).into());
        rest = after;
    }
    history.copy_back(distance.wrapping_add(1), length)?;
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream written by hand: a literal with a control of 0x20, then `aaaa...` by a long match,
    /// `b`, and a match with a long distance.
    #[test]
    fn long_and_far_matches() {
        let mut stream = vec![0x20, b'a'];
        // Length 9 + 40 * 255 + 1, distance 1.
        stream.push(0xe0);
        stream.extend([255; 40]);
        stream.extend([1, 0]);
        stream.extend([0x00, b'b']);
        // Length 3, distance 1: `bbb`. Then length 4, distance 8192 + 300.
        stream.extend([0x20, 0]);
        stream.extend([
            0x5f,
            0xff,
            300_u16.to_be_bytes()[0],
            300_u16.to_be_bytes()[1],
        ]);
        let mut output = vec![0; 20_000];
        let written = decode_into(&stream, &mut output).unwrap();
        let expected = [vec![b'a'; 10_211], b"bbbbaaaa".to_vec()].concat();
        assert_eq!(&output[..written], expected);
        assert_eq!(decode_into(&stream, &mut output[..10_000]), None);
        assert_eq!(decode_into(&stream[..stream.len() - 1], &mut output), None);
        assert_eq!(decode_into(&[], &mut output), None);
    }
}
