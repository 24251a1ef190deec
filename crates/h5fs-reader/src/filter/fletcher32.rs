//! Filter 3, Fletcher's checksum: four bytes after the data (HDF5 3.0, IV.A.2.l names the filter
//! but does not define the checksum).
//!
//! The checksum consists of two sums over big-endian 16-bit words. An odd last byte is the high
//! half of a word. The sums are modulo 65535, computed by adding the carry at the low end, so that
//! 65535 is not reduced to 0. They are stored as one little-endian number with the second sum in
//! the high half.

use crate::error::{Error, Result};
use crate::memory::buffer::Buffer;

/// Number of bytes that the filter adds to a chunk.
pub(crate) const CHECKSUM_BYTES: usize = 4;

/// Returns the data without their checksum.
///
/// # Errors
/// `Corrupt` if the checksum is missing or wrong.
pub fn decode(mut bytes: Buffer) -> Result<Buffer> {
    let Some((data, &stored)) = bytes.split_last_chunk::<CHECKSUM_BYTES>() else {
        return Err(Error::corrupt("fletcher32: no room for the checksum", None));
    };
    let computed = fletcher32(data);
    let stored = u32::from_le_bytes(stored);
    // Libraries before 1.6.3 swapped the bytes of both halves on little-endian machines.
    let swapped = (stored & 0x00ff_00ff).wrapping_shl(8) | (stored.wrapping_shr(8) & 0x00ff_00ff);
    if computed != stored && computed != swapped {
        return Err(Error::corrupt("fletcher32: wrong checksum", None));
    }
    let length = data.len();
    bytes.truncate(length);
    Ok(bytes)
}

fn fletcher32(data: &[u8]) -> u32 {
    // The 64-bit sums could take many more words without folding. This size keeps the inner loop at
    // two dependent additions for each word.
    const WORDS: usize = 1 << 16;
    let (words, odd) = data.as_chunks::<2>();
    let last = odd.first().map(|&byte| [byte, 0]);
    let (mut sum1, mut sum2) = (0_u64, 0_u64);
    for block in words.chunks(WORDS).chain(last.as_slice().chunks(1)) {
        for word in block {
            sum1 = sum1.wrapping_add(u64::from(u16::from_be_bytes(*word)));
            sum2 = sum2.wrapping_add(sum1);
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    let halves = [fold(sum1), fold(sum2)].map(|sum| u32::try_from(sum).unwrap_or(0));
    let [low, high] = halves;
    high.wrapping_shl(16) | low
}

/// Returns `sum` modulo 65535, with 65535 for a multiple that is not 0.
fn fold(mut sum: u64) -> u64 {
    while sum > 0xffff {
        sum = (sum & 0xffff).wrapping_add(sum.wrapping_shr(16));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data and the checksum that libhdf5 1.14 stored after them (`h5py`, `fletcher32=True`, type
    /// `u1`, `read_direct_chunk`).
    const STORED: [(&[u8], [u8; 4]); 4] = [
        (&[1, 2, 3, 4, 5, 6], [12, 9, 20, 14]),
        (&[1, 2, 3, 4, 5], [6, 9, 14, 14]),
        (&[255, 255, 0, 0], [255, 255, 255, 255]),
        (&[255, 254, 0, 1], [255, 255, 254, 255]),
    ];

    #[test]
    fn agrees_with_libhdf5() {
        for (data, checksum) in STORED {
            let bytes = [data, &checksum].concat();
            assert_eq!(decode(bytes.into()), Ok(data.to_vec().into()));
        }
    }

    #[test]
    fn libraries_before_1_6_3_swapped_the_halves() {
        let (data, [a, b, c, d]) = STORED[0];
        assert!(decode([data, &[b, a, d, c]].concat().into()).is_ok());
    }

    #[test]
    fn damage_is_detected() {
        let (data, checksum) = STORED[0];
        let bytes = [data, &checksum].concat();
        for place in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[place] ^= 0x10;
            assert!(decode(damaged.into()).is_err(), "{place}");
        }
        assert!(decode(vec![0; 3].into()).is_err());
    }

    /// The sums of 2^20 words of 65535 are multiples of 65535 and not 0.
    #[test]
    fn long_data_do_not_overflow() {
        assert_eq!(fletcher32(&vec![0xff; 1 << 21]), 0xffff_ffff);
    }
}
