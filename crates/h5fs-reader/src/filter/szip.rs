//! Filter 4, szip: a u32 length, then adaptive entropy coding (CCSDS 121.0-B, "Lossless Data
//! Compression").
//!
//! Samples are divided into scanlines, each padded to whole blocks. A scanline is one reference
//! interval. A block consists of an option identifier and the samples coded with that option. With
//! preprocessing, an interval starts with an uncoded sample. The others are differences from the
//! previous sample, folded so that small differences become small non-negative numbers.

use crate::error::{Error, Result};
use crate::filter::bits::BitReader;
use crate::filter::shuffle::unshuffle;
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;
use crate::wire::{Count, Cursor, to_usize};

/// The largest accepted number of samples in a scanline. The encoder of the library makes at most
/// 4096.
const MAX_SCANLINE: usize = 1 << 16;

/// Returns the decoded bytes of a chunk.
///
/// # Errors
/// `Corrupt` for damaged or truncated bytes, invalid parameters, or a decoded length that `length`
/// does not allow.
pub fn decode(
    stored: &[u8],
    parameters: &[u32],
    length: DecodedLength,
    context: &DecoderResources,
) -> Result<Buffer> {
    let mut cursor = Cursor::new(stored, None, "szip");
    let total = length.check("szip", to_usize(cursor.u32()?.into())?)?;
    let stream = cursor.rest();
    let (coding, planes) = SzipParameters::new(parameters)
        .ok_or_else(|| Error::corrupt("szip: parameters outside their range", None))?;
    let samples = coding.decode(stream, total, context)?;
    if planes == 1 {
        return Ok(samples);
    }
    let mut elements = context.pool.buffer(total)?;
    unshuffle(&samples, planes, &mut elements);
    Ok(elements)
}

/// The parameters of the coding of samples.
#[derive(Debug)]
struct SzipParameters {
    /// Number of bits of a sample, 1..=24.
    bits: u32,
    /// Number of bits of a block's option identifier.
    id_bits: u32,
    /// Number of samples of a block, even.
    block: usize,
    /// Number of samples of a scanline without its padding.
    scanline: usize,
    /// Whether the coded numbers are differences from the previous sample (preprocessing).
    preprocess: bool,
    /// Whether the samples are stored with their high byte first.
    big_endian: bool,
}

impl SzipParameters {
    /// Parses the filter's parameters. Also returns the number of bytes in an element if the
    /// samples are its shuffled bytes, otherwise 1. Returns `None` if a parameter is outside its
    /// range.
    fn new(parameters: &[u32]) -> Option<(Self, usize)> {
        const BIG_ENDIAN: u32 = 16;
        const PREPROCESS: u32 = 32;
        let &[options, block, bits, scanline, ..] = parameters else {
            return None;
        };
        let (bits, planes) = match bits {
            32 => (8, 4),
            64 => (8, 8),
            1..=24 => (bits, 1),
            _ => return None,
        };
        let block = usize::try_from(block).ok()?;
        let scanline = usize::try_from(scanline).ok()?;
        if !(2..=256).contains(&block) || block & 1 == 1 || !(1..=MAX_SCANLINE).contains(&scanline)
        {
            return None;
        }
        let coding = SzipParameters {
            bits,
            id_bits: match bits {
                ..=8 => 3,
                9..=16 => 4,
                _ => 5,
            },
            block,
            scanline,
            preprocess: options & PREPROCESS != 0,
            big_endian: options & BIG_ENDIAN != 0,
        };
        Some((coding, planes))
    }

    /// Returns the number of bytes in one decoded sample.
    fn sample_bytes(&self) -> usize {
        match self.bits {
            ..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    /// Decodes samples until they fill `total` bytes.
    fn decode(&self, stream: &[u8], total: usize, context: &DecoderResources) -> Result<Buffer> {
        let blocks = self.scanline.div_ceil(self.block);
        let mut interval = vec![0_u32; blocks.times(self.block)];
        let mut bits = BitReader::new(stream);
        let mut output = context.pool.buffer(total)?;
        let width = self.sample_bytes();
        for line in output.chunks_mut(self.scanline.times(width)) {
            // The last scanline may be shorter, but its last block is complete.
            let wanted = line.len().div_ceil(width);
            let samples = wanted.next_multiple_of(self.block);
            let samples = interval.get_mut(..samples).unwrap_or_default();
            samples.fill(0);
            self.interval(&mut bits, blocks, samples)
                .ok_or_else(|| Error::corrupt("szip: damaged, or ends too early", None))?;
            if self.preprocess {
                self.undo_differences(samples);
            }
            self.store(samples, line);
        }
        Ok(output)
    }

    /// Decodes the blocks of one reference interval into `samples`, which contains zeros. Each
    /// interval except the last has `blocks` blocks. Returns `None` if the bits are damaged or too
    /// few.
    fn interval(&self, bits: &mut BitReader<'_>, blocks: usize, samples: &mut [u32]) -> Option<()> {
        let mut done = 0_usize;
        let mut rest = samples;
        while !rest.is_empty() {
            let (block, _) = rest.split_at_mut_checked(self.block)?;
            let covered = match self.block(bits, block, self.preprocess && done == 0)? {
                BlockResult::Samples => 1,
                BlockResult::Zeros(run) => zero_blocks(run, done, blocks)?,
            };
            done = done.checked_add(covered)?;
            let samples = covered.checked_mul(self.block)?.min(rest.len());
            rest = rest.get_mut(samples..)?;
        }
        Some(())
    }

    /// Decodes one block. If `reference` is set, the block starts with an uncoded sample. Returns
    /// `None` if the bits are damaged or too few.
    fn block(
        &self,
        bits: &mut BitReader<'_>,
        block: &mut [u32],
        reference: bool,
    ) -> Option<BlockResult> {
        let uncoded = 1_u64.wrapping_shl(self.id_bits).wrapping_sub(1);
        let id = bits.read(self.id_bits)?;
        if id == uncoded {
            for sample in block {
                *sample = read_sample(bits, self.bits)?;
            }
            return Some(BlockResult::Samples);
        }
        let second_extension = id == 0 && bits.read(1)? == 1;
        let mut coded = block;
        if reference {
            let (first, others) = coded.split_first_mut()?;
            *first = read_sample(bits, self.bits)?;
            coded = others;
        }
        if second_extension {
            decode_sample_pairs(bits, coded)?;
        } else if id == 0 {
            return Some(BlockResult::Zeros(bits.count_zeros()?));
        } else {
            decode_split_samples(bits, coded, u32::try_from(id).ok()?.wrapping_sub(1))?;
        }
        Some(BlockResult::Samples)
    }

    /// Converts differences to samples.
    ///
    /// A difference is folded (0, -1, 1, -2, 2 and so on) while both signs are possible. If the
    /// distance of the previous sample from the nearer end of the range is smaller than the
    /// difference, only one sign is possible. The number then counts from that end.
    fn undo_differences(&self, samples: &mut [u32]) {
        let most = 1_u32.wrapping_shl(self.bits).wrapping_sub(1);
        let upper_half = most.wrapping_shr(1).wrapping_add(1);
        let Some((&mut first, others)) = samples.split_first_mut() else {
            return;
        };
        let mut sample = first;
        for folded in others {
            let magnitude = folded.wrapping_shr(1).wrapping_add(*folded & 1);
            let mirror = if sample & upper_half == 0 { 0 } else { most };
            sample = if magnitude > sample ^ mirror {
                mirror ^ *folded
            } else if *folded & 1 == 0 {
                sample.wrapping_add(magnitude)
            } else {
                sample.wrapping_sub(magnitude)
            };
            *folded = sample;
        }
    }

    /// Writes samples in their byte order until `line` is full.
    fn store(&self, samples: &[u32], line: &mut [u8]) {
        let width = self.sample_bytes();
        if width == 1 {
            for (to, sample) in line.iter_mut().zip(samples) {
                let [low, ..] = sample.to_le_bytes();
                *to = low;
            }
            return;
        }
        for (to, sample) in line.chunks_mut(width).zip(samples) {
            let bytes = sample.to_le_bytes();
            let bytes = bytes.iter().take(width);
            if self.big_endian {
                to.iter_mut()
                    .rev()
                    .zip(bytes)
                    .for_each(|(to, from)| *to = *from);
            } else {
                to.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            }
        }
    }
}

/// The result of decoding one block.
enum BlockResult {
    /// The block's samples were decoded.
    Samples,
    /// The block and some following blocks are zeros. The value is the code of their number.
    Zeros(u32),
}

fn read_sample(bits: &mut BitReader<'_>, width: u32) -> Option<u32> {
    u32::try_from(bits.read(width)?).ok()
}

/// Returns the number of blocks in a run of zero blocks with the code `run` (121.0-B, 3.5), or
/// `None` if the interval has fewer. Codes 0 to 3 mean 1 to 4 blocks. Code 4 means "to the end of
/// the segment of 64 blocks, or of the interval". A larger code is the number of blocks.
fn zero_blocks(run: u32, done: usize, blocks: usize) -> Option<usize> {
    let left = blocks.checked_sub(done)?;
    let covered = match run {
        0..=3 => usize::try_from(run).ok()?.checked_add(1)?,
        4 => left.min(64_usize.wrapping_sub(done & 63)),
        _ => usize::try_from(run).ok()?,
    };
    Some(covered).filter(|&covered| covered <= left)
}

/// Decodes the split-sample option: the high parts of all samples in unary code, then the `low` low
/// bits of all samples.
fn decode_split_samples(bits: &mut BitReader<'_>, samples: &mut [u32], low: u32) -> Option<()> {
    for sample in samples.iter_mut() {
        *sample = bits.count_zeros()?.checked_shl(low)?;
    }
    if low > 0 {
        for sample in samples {
            *sample |= read_sample(bits, low)?;
        }
    }
    Some(())
}

/// Decodes the second-extension option: two samples a, b in one number, (a + b)(a + b + 1) / 2 + b.
/// A reference sample takes the place of the first a.
fn decode_sample_pairs(bits: &mut BitReader<'_>, samples: &mut [u32]) -> Option<()> {
    // Pairs start at even indices of the block, so that a missing first sample leaves an odd
    // number.
    let (alone, pairs) = samples.split_at_mut_checked(samples.len() & 1)?;
    for second in alone {
        (_, *second) = pair(bits.count_zeros()?)?;
    }
    for place in pairs.chunks_exact_mut(2) {
        if let [first, second] = place {
            (*first, *second) = pair(bits.count_zeros()?)?;
        }
    }
    Some(())
}

fn pair(code: u32) -> Option<(u32, u32)> {
    // The sum is below 13. With a larger sum, this option is never the shortest (libaec's table
    // ends there too).
    let mut sum = 0_u32;
    let mut left = code;
    while left > sum {
        left = left.checked_sub(sum)?.checked_sub(1)?;
        sum = sum.checked_add(1)?;
    }
    (sum <= 12).then_some((sum.checked_sub(left)?, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(stored: &[u8], parameters: &[u32], length: DecodedLength) -> Result<Vec<u8>> {
        super::decode(stored, parameters, length, &DecoderResources::default())
            .map(Buffer::into_vec)
    }

    // Parameters and chunk as libhdf5 2.0 (h5py 3.16, `set_szip`) stored them.
    /// `[1000 + i * i % 17 for i in range(75)]` as `<u2`, chunks of 5 by 15: padded scanlines,
    /// predicted.
    const PREDICTED: (&[u32], &[u8]) = (
        &[169, 8, 16, 15],
        &[
            150, 0, 0, 0, 64, 62, 141, 84, 86, 91, 180, 156, 82, 216, 134, 10, 16, 15, 179, 213,
            165, 101, 186, 35, 197, 180, 196, 48, 24, 31, 192, 151, 74, 173, 72, 168, 254, 237, 49,
            2, 1, 245, 37, 124, 20, 210, 146, 170, 62, 91, 180, 194, 1, 250, 197, 43, 134, 10, 105,
            233, 17, 54, 171, 192,
        ],
    );
    /// `np.arange(100, 120)` as `>i4`: planes of bytes, not predicted.
    const PLANES: (&[u32], &[u8]) = (
        &[149, 4, 32, 20],
        &[
            80, 0, 0, 0, 0, 128, 64, 61, 145, 149, 153, 159, 180, 52, 181, 53, 246, 198, 214, 230,
            254, 224, 226, 228, 231, 221, 29, 93, 157, 192,
        ],
    );

    #[test]
    fn scanlines_lose_their_padding() {
        let (parameters, stored) = PREDICTED;
        let expected: Vec<u8> = (0..75_u16)
            .flat_map(|i| (1000 + i * i % 17).to_le_bytes())
            .collect();
        assert_eq!(
            decode(stored, parameters, DecodedLength::Exactly(150)),
            Ok(expected)
        );
    }

    #[test]
    fn wide_elements_are_planes_of_bytes() {
        let (parameters, stored) = PLANES;
        let expected: Vec<u8> = (100..120_i32).flat_map(i32::to_be_bytes).collect();
        assert_eq!(
            decode(stored, parameters, DecodedLength::Exactly(80)),
            Ok(expected)
        );
    }

    #[test]
    fn damage_never_panics_and_truncation_is_detected() {
        for (parameters, stored) in [PREDICTED, PLANES] {
            for end in 0..stored.len() - 1 {
                assert!(
                    decode(&stored[..end], parameters, DecodedLength::AtMost(150)).is_err(),
                    "{end}"
                );
            }
            for bit in 0..stored.len() * 8 {
                let mut damaged = stored.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                let _ = decode(&damaged, parameters, DecodedLength::AtMost(150));
            }
            for place in 0..4 {
                for wrong in [0, 3, 25, 1 << 20, u32::MAX] {
                    let mut parameters = parameters.to_vec();
                    parameters[place] = wrong;
                    let _ = decode(stored, &parameters, DecodedLength::AtMost(150));
                }
            }
        }
        assert!(decode(PLANES.1, &[32, 8, 16], DecodedLength::AtMost(150)).is_err());
    }

    /// 121.0-B, 3.5: codes 0 to 3 are the number of zero blocks less one, 4 is the rest of the
    /// segment, and larger codes are the number itself.
    #[test]
    fn runs_of_zero_blocks() {
        assert_eq!(zero_blocks(0, 0, 128), Some(1));
        assert_eq!(zero_blocks(3, 0, 128), Some(4));
        assert_eq!(zero_blocks(4, 10, 128), Some(54));
        assert_eq!(zero_blocks(4, 100, 128), Some(28));
        assert_eq!(zero_blocks(5, 0, 128), Some(5));
        assert_eq!(zero_blocks(5, 125, 128), None);
    }
}
