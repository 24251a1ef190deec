//! The chunk grid of an array in a Zarr store.

use h5fs_reader::model::Shape;
use h5fs_reader::wire::Count;

/// The kind of chunk grid of an array in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkGridKind {
    /// The chunks of the file, served as they are stored.
    Stored,
    /// Decoded chunks, of a size that suits readers.
    Decoded,
    /// Chunks that references can locate in the file: the stored chunks, or equal parts of an array
    /// that is contiguous in the file.
    Referenced,
    /// One decoded chunk, which contains the whole array.
    Whole,
}

/// Maximum size in bytes of a chunk of an array that is not chunked in the file.
const CONTIGUOUS_CHUNK_BYTES: u64 = 4 << 20;

/// Approximate size in bytes of a chunk that combines several chunks of the file.
const COMBINED_BYTES: u64 = 1 << 20;

/// Approximate size in bytes of a combined chunk, for an array with a dimension that may grow.
/// Readers read a chunk as a whole, including its elements after the end of the array.
const GROWING_BYTES: u64 = 256 << 10;

/// Approximate size in bytes of a combined chunk of pointers to texts. All its texts are read to
/// compute the length of the chunk file.
const TEXT_POINTER_BYTES: u64 = 64 << 10;

/// Maximum number of the file's chunks in one combined chunk. To decide whether the combined chunk
/// is a file, each of them may have to be looked up.
const MAX_COMBINED_CHUNKS: u64 = 4096;

/// Size in bytes of the file's chunks above which they are split.
const MAX_STORED_CHUNK_BYTES: u64 = 64 << 20;

/// Returns the shape of the store's chunks, for an array of shape `shape` that the file stores in
/// chunks of shape `stored`. Each element has `bytes` bytes. If `are_texts`, elements are pointers
/// to texts. The result is a whole multiple of `stored`, or a part of it. It does not depend on the
/// current length of dimensions that may grow.
pub(super) fn decoded_chunk_shape(
    shape: &Shape,
    stored: &[u64],
    bytes: u64,
    are_texts: bool,
) -> Vec<u64> {
    let own = stored.iter().fold(bytes.max(1), |own, &dim| own.times(dim));
    if own > MAX_STORED_CHUNK_BYTES {
        return limit_dims(stored, MAX_STORED_CHUNK_BYTES / bytes.max(1));
    }
    let most = match (are_texts, may_grow(shape)) {
        (true, _) => TEXT_POINTER_BYTES,
        (false, true) => GROWING_BYTES,
        (false, false) => COMBINED_BYTES,
    };
    let mut room = (most / own.max(1)).clamp(1, MAX_COMBINED_CHUNKS);
    let mut together = stored.to_vec();
    let axes = together.iter_mut().zip(shape.dims()).zip(shape.max());
    for ((chunk, dim), max) in axes.rev() {
        let length = max.map_or(u64::MAX, |max| max.max(*dim));
        let parts = length.div_ceil((*chunk).max(1)).max(1);
        *chunk = chunk.times(parts.min(room));
        if parts > room {
            break;
        }
        room /= parts;
    }
    together
}

fn may_grow(shape: &Shape) -> bool {
    let mut axes = shape.dims().iter().zip(shape.max());
    axes.any(|(dim, max)| *max != Some(*dim))
}

/// Returns the shape of the store's chunks, for an array that the file does not store in chunks.
/// The chunks split its first dimensions, so that each is contiguous in C order. Each element has
/// `bytes` bytes. The current length of a first dimension that may grow is ignored, so that the
/// result does not change.
pub(super) fn contiguous_chunk_shape(shape: &Shape, bytes: u64) -> Vec<u64> {
    let mut dims = shape.dims().to_vec();
    let grows = |(dim, max): (&u64, &Option<u64>)| *max != Some(*dim);
    let first = shape.dims().first().zip(shape.max().first());
    if let (Some(dim), true) = (dims.first_mut(), first.is_some_and(grows)) {
        *dim = u64::MAX;
    }
    limit_dims(&dims, CONTIGUOUS_CHUNK_BYTES / bytes.max(1))
}

/// Returns the shape of the chunks that divide an array of shape `dims`, which is contiguous in the
/// file, into parts of equal length. No chunk extends beyond the array, because its bytes after the
/// end of the array would not exist. Each element has `bytes` bytes.
pub(super) fn divided_chunk_shape(dims: &[u64], bytes: u64) -> Vec<u64> {
    /// Maximum number of times that the parts of a dimension are smaller than necessary, because no
    /// other number divides its length.
    const MAX_SURPLUS: u64 = 16;
    /// Maximum number of divisors that are tried for a dimension.
    const MAX_TRIED: usize = 4096;
    let mut room = (CONTIGUOUS_CHUNK_BYTES / bytes.max(1)).max(1);
    let mut shape = vec![1; dims.len()];
    for (&dim, chunk) in dims.iter().zip(&mut shape).rev() {
        let length = dim.max(1);
        let least = length.div_ceil(room);
        let counts = least..=least.times(MAX_SURPLUS).min(length);
        *chunk = counts
            .take(MAX_TRIED)
            .find(|count| length.is_multiple_of(*count))
            .map_or(length, |count| length / count);
        if *chunk < length {
            break;
        }
        room = (room / length).max(1);
    }
    shape
}

/// Shortens the first dimensions of `dims` until the product of all is at most `room`. The product
/// is at least one.
fn limit_dims(dims: &[u64], room: u64) -> Vec<u64> {
    let mut room = room.max(1);
    let mut shape = vec![1; dims.len()];
    for (&dim, chunk) in dims.iter().zip(&mut shape).rev() {
        let length = dim.max(1);
        *chunk = length.min(room);
        if length > room {
            break;
        }
        room /= length;
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNLIMITED: Option<u64> = None;

    fn shape(dims: &[u64], max: &[Option<u64>]) -> Shape {
        Shape::Simple {
            dims: dims.to_vec(),
            max: max.to_vec(),
        }
    }

    fn fixed(dims: &[u64]) -> Shape {
        Shape::fixed(dims.to_vec())
    }

    #[test]
    fn small_chunks_are_put_together() {
        let of = |dims: &[u64], stored: &[u64], bytes| {
            decoded_chunk_shape(&fixed(dims), stored, bytes, false)
        };
        // At most 4096 chunks are combined, here of 8 bytes each.
        assert_eq!(of(&[7200], &[1], 8), [4096]);
        assert_eq!(of(&[100], &[1], 8), [100]);
        // A chunk has 131 rows of ten chunks of 800 bytes: 1 048 000 of 1 048 576 bytes.
        assert_eq!(of(&[5000, 100], &[10, 10], 8), [1310, 100]);
        assert_eq!(of(&[5000, 100_000], &[10, 10], 8), [10, 13_100]);
        assert_eq!(of(&[64, 64, 64], &[64, 64, 64], 4), [64, 64, 64]);
        assert_eq!(of(&[1000, 1000], &[300, 300], 4), [300, 600]);
        assert_eq!(of(&[], &[], 4), [0; 0]);
        assert_eq!(decoded_chunk_shape(&fixed(&[9000]), &[1], 16, true), [4096]);
        assert_eq!(
            decoded_chunk_shape(&fixed(&[90_000]), &[4], 16, true),
            [4096]
        );
    }

    #[test]
    fn an_array_that_grows_keeps_its_chunks() {
        for length in [1, 10, 100_000] {
            let one = shape(&[length], &[UNLIMITED]);
            assert_eq!(decoded_chunk_shape(&one, &[100], 8, false), [32_700]);
            let bounded = shape(&[length.min(5000)], &[Some(5000)]);
            assert_eq!(decoded_chunk_shape(&bounded, &[100], 8, false), [5000]);
            let first = shape(&[length, 4], &[UNLIMITED, Some(4)]);
            assert_eq!(decoded_chunk_shape(&first, &[1, 4], 4, false), [4096, 4]);
        }
    }

    #[test]
    fn large_chunks_are_cut() {
        let of = |stored: &[u64], bytes| {
            decoded_chunk_shape(&fixed(&[1 << 20, 1 << 20]), stored, bytes, false)
        };
        assert_eq!(of(&[4096, 4096], 4), [4096, 4096]);
        assert_eq!(of(&[8192, 4096], 4), [4096, 4096]);
        assert_eq!(of(&[2, 1 << 25], 4), [1, 1 << 24]);
    }

    #[test]
    fn parts_of_equal_length() {
        assert_eq!(divided_chunk_shape(&[], 8), [0; 0]);
        assert_eq!(divided_chunk_shape(&[3, 5], 8), [3, 5]);
        // 512 rows of 1024 doubles are 4 MiB, so 5000 rows need 10 parts, and 6000 rows 12 parts.
        assert_eq!(divided_chunk_shape(&[5000, 1024], 8), [500, 1024]);
        assert_eq!(divided_chunk_shape(&[6000, 1024], 8), [500, 1024]);
        assert_eq!(divided_chunk_shape(&[2, 1 << 30], 4), [1, 1 << 20]);
        // A prime number of rows is not divided.
        assert_eq!(divided_chunk_shape(&[10_007, 1024], 8), [10_007, 1024]);
        assert_eq!(divided_chunk_shape(&[1 << 62], 1), [1 << 22]);
        assert_eq!(divided_chunk_shape(&[0, 4], 4), [1, 4]);
    }

    #[test]
    fn pieces_of_at_most_4_mib() {
        let of = |dims: &[u64], bytes| contiguous_chunk_shape(&fixed(dims), bytes);
        assert_eq!(of(&[], 8), [0; 0]);
        assert_eq!(of(&[3, 5], 8), [3, 5]);
        // 512 rows of 1024 doubles are 4 MiB.
        assert_eq!(of(&[5000, 1024], 8), [512, 1024]);
        assert_eq!(of(&[7, 5000, 1000], 8), [1, 524, 1000]);
        assert_eq!(of(&[1 << 30], 4), [1 << 20]);
        assert_eq!(of(&[2, 1 << 30], 4), [1, 1 << 20]);
        assert_eq!(of(&[0, 4], 4), [1, 4]);
        let grows = shape(&[10, 4], &[UNLIMITED, Some(4)]);
        assert_eq!(contiguous_chunk_shape(&grows, 4), [1 << 18, 4]);
        assert_eq!(of(&[9], 5 << 20), [1]);
    }
}
