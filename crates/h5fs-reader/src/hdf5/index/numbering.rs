//! The numbers of chunks in the chunk indices that are arrays.
//!
//! HDF5 3.0, VII.B. Chunks are numbered in row-major order over the MAXIMUM dimensions, so that
//! growth does not change any number. The specification says the current dimensions instead. An
//! unlimited dimension counts as the slowest one, and the other dimensions keep their order.

use crate::error::{Error, Result};
use crate::hdf5::index::{ChunkGeometry, chunks_along};

/// The numbering of the chunks of one grid.
#[derive(Debug, Clone)]
pub(super) struct ChunkNumbering {
    /// The dimensions, slowest first, each with its stride: the difference between the numbers of
    /// chunks that are neighbours in that dimension.
    strides: Vec<(usize, u64)>,
    /// The number of chunks in the maximum extent, or `None` if a dimension is unlimited.
    chunk_count: Option<u64>,
}

impl ChunkNumbering {
    /// Creates the numbering for a grid without an unlimited dimension. `at` is the location of the
    /// index, for errors.
    pub(super) fn for_fixed_size(
        geometry: &ChunkGeometry,
        at: impl Into<Option<u64>> + Copy,
    ) -> Result<Self> {
        let numbering = ChunkNumbering::new(geometry, at)?;
        match numbering.chunk_count {
            Some(_) => Ok(numbering),
            None => Err(Error::corrupt(
                "chunk index of fixed size: a dimension is unlimited",
                at,
            )),
        }
    }

    /// Creates the numbering for a grid with exactly one unlimited dimension. `at` is the location
    /// of the index, for errors.
    pub(super) fn for_growing(
        geometry: &ChunkGeometry,
        at: impl Into<Option<u64>> + Copy,
    ) -> Result<Self> {
        let unlimited = geometry.max.iter().filter(|max| max.is_none()).count();
        match unlimited {
            1 => ChunkNumbering::new(geometry, at),
            _ => Err(Error::corrupt(
                "extensible array: not exactly one dimension is unlimited",
                at,
            )),
        }
    }

    fn new(geometry: &ChunkGeometry, at: impl Into<Option<u64>> + Copy) -> Result<Self> {
        let mut strides = Vec::with_capacity(geometry.rank());
        let mut stride = 1_u64;
        let limits = geometry.max.iter().zip(&geometry.dims);
        for (dimension, ((max, dim), chunk)) in limits.zip(&geometry.chunk_shape).enumerate().rev()
        {
            let Some(max) = max else { continue };
            if dim > max {
                return Err(Error::corrupt("dataspace: larger than its maximum", at));
            }
            strides.push((dimension, stride));
            stride = stride
                .checked_mul(chunks_along(*max, *chunk))
                .ok_or_else(|| Error::limit("number of chunks", u64::MAX))?;
        }
        let unlimited = geometry.max.iter().position(Option::is_none);
        strides.extend(unlimited.map(|dimension| (dimension, stride)));
        strides.reverse();
        let total = unlimited.is_none().then_some(stride);
        Ok(ChunkNumbering {
            strides,
            chunk_count: total,
        })
    }

    /// Returns the number of chunks in the maximum extent, 0 if a dimension is unlimited.
    pub(super) fn chunk_count(&self) -> u64 {
        self.chunk_count.unwrap_or(0)
    }

    /// Returns the number of the chunk with the grid coordinates `place`, or `None` if the number
    /// overflows.
    pub(super) fn chunk_number(&self, place: &[u64]) -> Option<u64> {
        self.strides
            .iter()
            .try_fold(0_u64, |number, &(dimension, stride)| {
                let along = place.get(dimension)?.checked_mul(stride)?;
                number.checked_add(along)
            })
    }

    /// Writes the grid coordinates of the chunk with the number `number` to `place`, which has the
    /// grid's rank.
    pub(super) fn write_grid_coordinates(&self, number: u64, place: &mut [u64]) {
        let mut rest = number;
        for &(dimension, stride) in &self.strides {
            // A stride of zero occurs in a slower dimension of an empty grid, which does not
            // contain chunks.
            let along = rest.checked_div(stride).unwrap_or(0);
            rest = rest.checked_rem(stride).unwrap_or(0);
            if let Some(place) = place.get_mut(dimension) {
                *place = along;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(dims: &[u64], max: &[Option<u64>], chunk_shape: &[u64]) -> ChunkGeometry {
        ChunkGeometry::new(dims.to_vec(), max.to_vec(), chunk_shape.to_vec(), 8, 0).unwrap()
    }

    /// Checks two rows of five chunks each, two of them in the current extent.
    #[test]
    fn chunks_are_numbered_over_maximum_dimensions() {
        let geometry = geometry(&[4, 4], &[Some(4), Some(10)], &[2, 2]);
        let numbering = ChunkNumbering::for_fixed_size(&geometry, 0).unwrap();
        assert_eq!(numbering.chunk_number(&[1, 0]), Some(5));
        assert_eq!(numbering.chunk_count(), 10);
        let mut place = [0; 2];
        numbering.write_grid_coordinates(6, &mut place);
        assert_eq!(place, [1, 1]);
    }

    #[test]
    fn the_unlimited_dimension_is_slowest() {
        let geometry = geometry(&[4, 6, 3], &[Some(4), None, Some(3)], &[2, 2, 1]);
        let numbering = ChunkNumbering::for_growing(&geometry, 0).unwrap();
        // 2 chunks in the first dimension, 3 in the last: (row 1, column 2, layer 1).
        assert_eq!(numbering.chunk_number(&[1, 2, 1]), Some(2 * 6 + 3 + 1));
        let mut place = [0; 3];
        numbering.write_grid_coordinates(16, &mut place);
        assert_eq!(place, [1, 2, 1]);
        assert!(ChunkNumbering::for_fixed_size(&geometry, 0).is_err());
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        let huge = geometry(&[1, 1], &[Some(u64::MAX), Some(3)], &[1, 1]);
        assert!(ChunkNumbering::for_fixed_size(&huge, 0).is_err());
        let shrunk = geometry(&[5], &[Some(4)], &[1]);
        assert!(ChunkNumbering::for_fixed_size(&shrunk, 0).is_err());
        let endless = geometry(&[1, 1], &[None, Some(3)], &[1, 1]);
        let numbering = ChunkNumbering::for_growing(&endless, 0).unwrap();
        assert_eq!(numbering.chunk_number(&[u64::MAX, 0]), None);
    }
}
