//! Elements that stand at strides over the bytes of another array (ASDF).
//!
//! A read is cut into runs, elements that follow each other in the base too. The runs are fetched in
//! the order in which they stand there, so that each piece of the base is needed once a read
//! however the strides lie.

use std::sync::Arc;

use crate::array::{Bytes, Engine, Reader};
use crate::error::{Error, Result};
use crate::model::Array;
use crate::model::storage::{Storage, Strided};

/// Runs that are put in order at once.
const BATCH: usize = 1 << 16;

/// How the elements of an array are gathered from its base.
#[derive(Debug)]
pub(super) struct Gather {
    base: Reader,
    /// Where the first element is, in bytes of the base.
    offset: u64,
    /// Runs along the dimensions that do not belong to a run, slowest first, with their strides.
    axes: Vec<(u64, i64)>,
    /// Bytes of a run.
    run: u64,
    /// Bytes of the base that come together, where it comes in pieces.
    piece: Option<u64>,
}

/// A part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// Offset in the base.
    from: u64,
    /// Offset in the reply.
    to: usize,
    length: usize,
}

impl Gather {
    /// The elements of `array`, which must not be empty.
    ///
    /// # Errors
    /// `Corrupt` where an element does not lie in the base, or as the base cannot be read.
    pub(super) fn new(engine: &Arc<Engine>, array: &Array, strided: &Strided) -> Result<Self> {
        let element = u64::from(array.datatype.size);
        let dims = array.shape.dims();
        let base = Reader::new(engine, Arc::clone(&strided.base))?;
        if !is_inside(dims, strided, element, base.length()) {
            return Err(Error::corrupt("array: an element outside its block", 0));
        }
        let mut run = element;
        let mut axes: Vec<(u64, i64)> = dims
            .iter()
            .copied()
            .zip(strided.strides.iter().copied())
            .collect();
        axes.retain(|&(length, _)| length != 1);
        while let Some(&(length, stride)) = axes.last()
            && u64::try_from(stride) == Ok(run)
        {
            run = run.saturating_mul(length);
            axes.pop();
        }
        let piece = match &strided.base.storage {
            Ok(Storage::Encoded(pieces)) => Some(pieces.piece_bytes()),
            _ => None,
        };
        Ok(Gather {
            base,
            offset: strided.offset,
            axes,
            run,
            piece,
        })
    }

    /// The bytes that the elements are gathered from.
    pub(super) fn base(&self) -> &Reader {
        &self.base
    }

    /// The bytes of the range, which lies inside the array.
    pub(super) fn read(&self, start: u64, end: u64) -> Result<Bytes> {
        if self.axes.is_empty() {
            let from = self.offset.saturating_add(start);
            return self.base.read(from, (end - start) as usize);
        }
        let mut reply = vec![0; (end - start) as usize];
        let mut next = start;
        let mut parts = Vec::new();
        while next < end {
            parts.clear();
            while next < end && parts.len() < BATCH {
                let within = next % self.run;
                let stop = (next - within).saturating_add(self.run).min(end);
                parts.push(Part {
                    from: self.start(next / self.run).wrapping_add(within),
                    to: (next - start) as usize,
                    length: (stop - next) as usize,
                });
                next = stop;
            }
            parts.sort_unstable();
            self.fetch(&parts, &mut reply)?;
        }
        Ok(reply.into())
    }

    /// Where run `number` begins in the base.
    fn start(&self, mut number: u64) -> u64 {
        let mut at = self.offset;
        for &(length, stride) in self.axes.iter().rev() {
            let step = (number % length) as i64;
            number /= length;
            // All sums lie in the base, as was checked for the outermost elements.
            at = at.wrapping_add_signed(stride.wrapping_mul(step));
        }
        at
    }

    /// Puts the parts, sorted by where they are in the base, into the reply.
    fn fetch(&self, parts: &[Part], reply: &mut [u8]) -> Result<()> {
        let mut window = (0..0, Bytes::from(Vec::new()));
        for part in parts {
            let (mut from, mut to, mut left) = (part.from, part.to, part.length);
            while left > 0 {
                if !window.0.contains(&from) {
                    window = self.window(from, left)?;
                }
                let skip = (from - window.0.start) as usize;
                let count = left.min(window.1.len() - skip);
                reply[to..to + count].copy_from_slice(&window.1[skip..skip + count]);
                from += count as u64;
                to += count;
                left -= count;
            }
        }
        Ok(())
    }

    /// The piece of the base in which `from` lies, or just the `length` bytes there.
    fn window(&self, from: u64, length: usize) -> Result<(std::ops::Range<u64>, Bytes)> {
        let (start, length) = match self.piece {
            Some(piece) => (from - from % piece, piece as usize),
            None => (from, length),
        };
        let bytes = self.base.read(start, length)?;
        let window = start..start + bytes.len() as u64;
        if !window.contains(&from) {
            return Err(Error::corrupt("array: its block is too short", from));
        }
        Ok((window, bytes))
    }
}

/// Whether every element lies in a base of `length` bytes.
fn is_inside(dims: &[u64], strided: &Strided, element: u64, length: u64) -> bool {
    if dims.len() != strided.strides.len() {
        return false;
    }
    let mut low = i128::from(strided.offset);
    let mut high = low.saturating_add(i128::from(element));
    for (&dim, &stride) in dims.iter().zip(&strided.strides) {
        let reach = i128::from(dim.saturating_sub(1)).saturating_mul(i128::from(stride));
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    low >= 0 && high <= i128::from(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Shape;
    use crate::model::array::{Fill, Layout};
    use crate::model::datatype::{ByteOrder, Datatype};
    use crate::model::storage::{Pieces, Pipeline};

    /// The bytes 0, 1, 2, … 99, in pieces of seven.
    #[derive(Debug)]
    struct Counting;

    impl Pieces for Counting {
        fn bytes(&self) -> u64 {
            100
        }

        fn piece_bytes(&self) -> u64 {
            7
        }

        fn stored_bytes(&self) -> u64 {
            100
        }

        fn decode(&self, piece: u64) -> Result<Vec<u8>> {
            let start = u8::try_from(piece * 7).unwrap();
            Ok((start..100.min(start + 7)).collect())
        }
    }

    fn array(size: u16, dims: &[u64], storage: Storage) -> Arc<Array> {
        Arc::new(Array {
            datatype: Datatype::integer(size, false, ByteOrder::Little),
            shape: Shape::fixed(dims.to_vec()),
            fill: Fill::Zero,
            layout: Layout::Block,
            chunk_shape: None,
            pipeline: Pipeline::default(),
            storage: Ok(storage),
        })
    }

    fn base() -> Arc<Array> {
        array(1, &[100], Storage::Encoded(Arc::new(Counting)))
    }

    fn gathered(size: u16, dims: &[u64], offset: u64, strides: &[i64]) -> Result<Vec<u8>> {
        let strided = Storage::Strided(Strided {
            base: base(),
            offset,
            strides: strides.to_vec(),
        });
        let engine = Engine::new(1 << 20, 1);
        let reader = Reader::new(&engine, array(size, dims, strided))?;
        let whole = reader.read(0, usize::MAX)?.into_vec();
        for (start, end) in [(0, 1), (1, 4), (3, whole.len())] {
            let part = reader.read(start as u64, end.min(whole.len()) - start)?;
            assert_eq!(part[..], whole[start..end.min(whole.len())]);
        }
        Ok(whole)
    }

    #[test]
    fn elements_are_gathered_in_c_order() {
        let transposed = gathered(1, &[3, 2], 10, &[1, 3]);
        assert_eq!(transposed, Ok(vec![10, 13, 11, 14, 12, 15]));
        assert_eq!(
            gathered(2, &[3], 20, &[-5]),
            Ok(vec![20, 21, 15, 16, 10, 11])
        );
        assert_eq!(gathered(1, &[2, 3], 5, &[0, 1]), Ok(vec![5, 6, 7, 5, 6, 7]));
        assert_eq!(gathered(1, &[2, 40], 3, &[40, 1]), Ok((3..83).collect()));
        assert_eq!(
            gathered(2, &[2, 1, 2], 90, &[6, 77, 2]),
            Ok(vec![90, 91, 92, 93, 96, 97, 98, 99])
        );
    }

    #[test]
    fn elements_outside_the_base_are_refused() {
        assert!(gathered(2, &[3], 3, &[-2]).is_err());
        assert!(gathered(2, &[2], 97, &[2]).is_err());
        assert!(gathered(1, &[u64::MAX >> 2], 0, &[i64::MAX]).is_err());
    }

    #[test]
    fn arrays_over_one_base_share_what_is_decoded() {
        let (engine, base) = (Engine::new(1 << 20, 1), base());
        for _ in 0..2 {
            let strided = Storage::Strided(Strided {
                base: Arc::clone(&base),
                offset: 0,
                strides: vec![1],
            });
            let reader = Reader::new(&engine, array(1, &[7], strided)).unwrap();
            assert_eq!(reader.read(0, 7).unwrap()[..], [0, 1, 2, 3, 4, 5, 6]);
        }
        assert_eq!(engine.statistics().chunks_decoded, 1);
    }
}
