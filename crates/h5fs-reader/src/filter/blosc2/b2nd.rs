//! The metalayer `b2nd`: the blocks of a chunk are boxes of an n-dimensional array. The array is
//! padded to a whole number of boxes (Blosc's README_B2ND_METALAYER).

use crate::error::{Error, Result};
use crate::filter::DecoderResources;
use crate::filter::blosc::{Chunk, Scratch};
use crate::filter::blosc2::size::{read_size_i32, read_size_i64};
use crate::limits;
use crate::wire::{Count, Cursor};

/// The division of an array into boxes.
#[derive(Debug)]
pub(super) struct BlockGrid {
    /// The dimensions, slowest first. At least one.
    dims: Vec<Dim>,
    type_bytes: usize,
    array_bytes: usize,
    block_bytes: usize,
    padded_bytes: usize,
}

/// One dimension of the array.
#[derive(Debug, Clone, Copy)]
struct Dim {
    /// Number of elements of the array in this dimension.
    array: usize,
    /// Number of elements of a box in this dimension, not 0.
    block: usize,
}

impl BlockGrid {
    /// Reads the metalayer: an array of seven fields. The fields used here are u8 version, u8 rank,
    /// the array's shape, the chunk's shape and the block's shape.
    pub(super) fn new(layer: &[u8], type_bytes: usize) -> Result<Self> {
        let mut cursor = Cursor::new(layer, None, "b2nd metalayer");
        cursor.skip(2)?;
        let rank = usize::from(cursor.u8()?);
        if !(1..=limits::RANK).contains(&rank) || type_bytes == 0 {
            return Err(cursor.corrupt("the rank or the type is missing"));
        }
        let array = numbers(&mut cursor, rank, read_size_i64)?;
        let chunk = numbers(&mut cursor, rank, read_size_i32)?;
        let block = numbers(&mut cursor, rank, read_size_i32)?;
        if array != chunk {
            return Err(cursor.unsupported("an array of several chunks"));
        }
        let dims: Vec<Dim> = array
            .into_iter()
            .zip(block)
            .map(|(array, block)| Dim { array, block })
            .collect();
        // This check ensures that padding less than doubles a dimension.
        if dims
            .iter()
            .any(|dim| dim.block == 0 || dim.block > dim.array)
        {
            return Err(cursor.corrupt("a block is outside the array"));
        }
        let bytes = |elements: fn(&Dim) -> usize| {
            dims.iter()
                .try_fold(type_bytes, |bytes, dim| bytes.checked_mul(elements(dim)))
                .ok_or_else(|| Error::corrupt("b2nd metalayer: too many elements", None))
        };
        Ok(BlockGrid {
            array_bytes: bytes(|dim| dim.array)?,
            block_bytes: bytes(|dim| dim.block)?,
            padded_bytes: bytes(|dim| dim.blocks().times(dim.block))?,
            dims,
            type_bytes,
        })
    }

    /// Returns the number of decoded bytes of the array without padding.
    pub(super) fn array_bytes(&self) -> usize {
        self.array_bytes
    }

    /// Returns the number of decoded bytes of one box.
    pub(super) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Returns the number of decoded bytes of all boxes together, including the padding.
    pub(super) fn padded_bytes(&self) -> usize {
        self.padded_bytes
    }

    /// Decodes `chunk`, box by box, and writes the array into `output`, which has the array's
    /// length.
    pub(super) fn decode_into(
        &self,
        chunk: &Chunk<'_>,
        output: &mut [u8],
        context: &mut DecoderResources,
    ) -> Result<()> {
        if chunk.block_bytes != self.block_bytes {
            return Err(Error::corrupt(
                "b2nd metalayer: blocks of an unexpected size",
                None,
            ));
        }
        let blocks = self.padded_bytes.checked_div(self.block_bytes).unwrap_or(0);
        let mut scratch = Scratch::new(context);
        let mut first = vec![0; self.block_bytes];
        chunk.decode_block(0, &mut scratch, &[], &mut first)?;
        copy_box(&self.runs(0), &first, output);
        let mut block = vec![0; self.block_bytes];
        for number in 1..blocks {
            chunk.decode_block(number, &mut scratch, &first, &mut block)?;
            copy_box(&self.runs(number), &block, output);
        }
        Ok(())
    }

    /// Returns, for each dimension, the part of box `number` that is within the array. The fastest
    /// dimension is first.
    fn runs(&self, number: usize) -> Vec<BoxRun> {
        let mut number = number;
        let (mut array_step, mut block_step) = (self.type_bytes, self.type_bytes);
        let mut runs = Vec::with_capacity(self.dims.len());
        for dim in self.dims.iter().rev() {
            let start = number
                .checked_rem(dim.blocks())
                .unwrap_or(0)
                .times(dim.block);
            number = number.checked_div(dim.blocks()).unwrap_or(0);
            runs.push(BoxRun {
                start: start.times(array_step),
                count: dim.block.min(dim.array.minus_or_zero(start)),
                array_step,
                block_step,
            });
            array_step = array_step.times(dim.array);
            block_step = block_step.times(dim.block);
        }
        runs
    }
}

impl Dim {
    /// Returns the number of boxes in this dimension.
    fn blocks(&self) -> usize {
        self.array.div_ceil(self.block.max(1)).max(1)
    }
}

/// The part of a box that is within the array, in one dimension. All fields except `count` are in
/// bytes.
#[derive(Debug, Clone, Copy)]
struct BoxRun {
    start: usize,
    count: usize,
    array_step: usize,
    block_step: usize,
}

/// Copies a box, or the part of one that the remaining `runs` describe, into the array. The
/// recursion depth is the array's number of dimensions.
fn copy_box(runs: &[BoxRun], block: &[u8], output: &mut [u8]) {
    let Some((run, faster)) = runs.split_last() else {
        return;
    };
    let output = output.get_mut(run.start..).unwrap_or_default();
    if faster.is_empty() {
        let bytes = run.count.times(run.array_step);
        if let (Some(to), Some(from)) = (output.get_mut(..bytes), block.get(..bytes)) {
            to.copy_from_slice(from);
        }
        return;
    }
    let rows = output.chunks_mut(run.array_step.max(1));
    for (row, part) in rows
        .zip(block.chunks(run.block_step.max(1)))
        .take(run.count)
    {
        copy_box(faster, part, row);
    }
}

/// Reads a MessagePack array of `rank` numbers, each preceded by its type byte.
fn numbers(
    cursor: &mut Cursor<'_>,
    rank: usize,
    number: fn(&mut Cursor<'_>) -> Result<usize>,
) -> Result<Vec<usize>> {
    cursor.skip(1)?;
    (0..rank)
        .map(|_| {
            cursor.skip(1)?;
            number(cursor)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The array is 3 by 3 bytes in boxes of 2 by 2: four boxes, padded to 4 by 4.
    #[test]
    fn boxes_are_put_together_without_their_padding() {
        let mut layer = vec![0x97, 0, 2, 0x92];
        for (width, dim) in [(8, 3), (8, 3), (4, 3), (4, 3), (4, 2), (4, 2)] {
            if layer.len() == 4 + 18 || layer.len() == 4 + 18 + 11 {
                layer.push(0x92);
            }
            layer.push(if width == 8 { 0xd3 } else { 0xd2 });
            layer.resize(layer.len() + width - 1, 0);
            layer.push(dim);
        }
        let boxes = BlockGrid::new(&layer, 1).unwrap();
        assert_eq!((boxes.array_bytes(), boxes.padded_bytes()), (9, 16));
        // An uncompressed Blosc chunk: version 2, flag 2, 16 bytes in blocks of 4.
        let mut chunk = vec![2, 1, 2, 1, 16, 0, 0, 0, 4, 0, 0, 0, 32, 0, 0, 0];
        chunk.extend([1, 2, 4, 5, 3, 0, 6, 0, 7, 8, 0, 0, 9, 0, 0, 0]);
        let mut output = [0; 9];
        boxes
            .decode_into(
                &Chunk::new(&chunk).unwrap(),
                &mut output,
                &mut DecoderResources::default(),
            )
            .unwrap();
        assert_eq!(output, [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        // A box that is larger than the array, or empty.
        for wrong in [0, 4] {
            *layer.last_mut().unwrap() = wrong;
            assert!(BlockGrid::new(&layer, 1).is_err());
        }
    }
}
