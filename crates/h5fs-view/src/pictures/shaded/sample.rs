//! The sample of values that determines the range for drawing an array. Evenly spaced chunks are
//! read, and a bounded number of their values is used.

use std::ops::Range;
use std::time::Instant;

use h5fs_conventions::dimensions::{ancestor_groups, parent_path};
use h5fs_reader::array::CancelToken;
use h5fs_reader::error::Result;
use h5fs_reader::model::Array;
use h5fs_reader::model::array::Storage;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::Elements;
use crate::elements::missing::MissingValues;
use crate::limits;
use crate::pictures::image::{Image, PixelKind, PixelType};
use crate::pictures::shaded::scale::Scale;
use crate::pictures::shaded::statistics::{Shading, Statistics};
use crate::pictures::shaded::{DrawnArray, decode_number, has_many_sources};

/// Size in bytes of a sampled piece of an array that is not chunked.
const PIECE_BYTES: u64 = 64 << 10;

/// Number of consecutive values to read at a time from a sampled chunk or piece.
const RUN_VALUES: u64 = 256;

/// The meaning of an array's numbers, which determines the colours of its picture.
#[derive(Debug, Clone, Copy, Default)]
pub struct PixelMeaning {
    /// Whether the numbers are shades of a picture, or counts of a detector. Such numbers are drawn
    /// in grey.
    pub is_grey: bool,
    /// Whether the numbers are shades of a picture.
    pub is_image: bool,
}

impl PixelMeaning {
    /// Finds the meaning of the numbers of an array with these pictures. Integers in a group of the
    /// NeXus class `NXdetector` or `NXdata` are counts of a detector.
    ///
    /// # Errors
    /// Fails if the path or the attributes cannot be read.
    pub fn read(drawn: &DrawnArray<'_>, image: &Image) -> Result<Self> {
        let is_image = image.appearance.is_image;
        let is_whole = matches!(image.pixel.kind, PixelKind::Unsigned | PixelKind::Signed);
        let is_grey = is_image || image.pixel.kind == PixelKind::Boolean;
        if is_grey || !is_whole {
            return Ok(PixelMeaning { is_grey, is_image });
        }
        let path = (drawn.path)()?;
        let groups = ancestor_groups(drawn.container, parent_path(&path))?;
        let class = match groups.last() {
            Some(&group) => attribute_text(drawn.container, group, b"NX_class")?,
            None => None,
        };
        let classes: [&[u8]; 2] = [b"NXdetector", b"NXdata"];
        Ok(PixelMeaning {
            is_grey: class.is_some_and(|class| classes.contains(&&*class)),
            is_image,
        })
    }
}

/// Reads a sample of the array, and returns its statistics and the range for drawing; `None` if
/// reading a sample would take too long.
///
/// # Errors
/// Fails if the values cannot be read.
pub fn sample_shading(
    drawn: &DrawnArray<'_>,
    image: &Image,
    nature: PixelMeaning,
) -> Result<Option<Shading>> {
    let Some(array) = drawn.node.array() else {
        return Ok(None);
    };
    let Some(plan) = SamplePlan::choose(array, &image.dims, drawn.container.is_remote()) else {
        return Ok(None);
    };
    let mut sample = Sample {
        statistics: Statistics {
            pieces_read: plan.chunks_to_read,
            pieces_total: plan.chunks_in_array,
            ..Statistics::default()
        },
        finite: Vec::new(),
    };
    let started = Instant::now();
    for (number, place) in plan.chunk_numbers().enumerate() {
        if has_many_sources(array, plan.chunk_bounds(place)) {
            return Ok(None);
        }
        if number > 0 && started.elapsed() > limits::HTML_SAMPLING {
            sample.statistics.pieces_read = to_u64(number);
            break;
        }
        let (elements, missing) =
            drawn.picture_elements(&plan.selector(place), image.appearance)?;
        sample.add_values(
            &elements,
            missing.as_ref(),
            plan.values_per_chunk(),
            &drawn.cancel,
        )?;
    }
    let Sample {
        statistics,
        mut finite,
    } = sample;
    let scale = if image.samples > 1 {
        Scale::for_colours(image.pixel, statistics.least, statistics.most)
    } else {
        Scale::choose(&mut finite, nature.is_grey, nature.is_image)
    };
    Ok(Some(Shading { statistics, scale }))
}

/// The plan of a sample: which chunks (or pieces, if the array is not chunked) are read.
#[derive(Debug, PartialEq, Eq)]
struct SamplePlan {
    /// The dimensions of the array. `part` has the dimensions of a chunk or piece.
    dims: Vec<u64>,
    part_dims: Vec<u64>,
    /// The number of chunks or pieces to read. `all` is their number in the array.
    chunks_to_read: u64,
    chunks_in_array: u64,
}

impl SamplePlan {
    /// Chooses the chunks or pieces of an array to read; `None` if even one of them is too large.
    /// None of `dims` is 0.
    fn choose(array: &Array, dims: &[u64], is_remote: bool) -> Option<Self> {
        let itemsize = u64::from(array.datatype.size).max(1);
        let bytes = dims.iter().copied().fold(itemsize, u64::saturating_mul);
        let is_stream = matches!(array.storage, Ok(Storage::Encoded(_) | Storage::Strided(_)));
        let (part, cost) = match array.filtered_chunk() {
            Some((chunk, cost)) => (chunk_dims(dims, chunk), cost),
            None if is_stream && bytes > limits::HTML_SAMPLED => return None,
            // A stream must be decoded from its beginning.
            None if is_stream => (dims.to_vec(), bytes),
            None => (piece_dims(dims, itemsize), PIECE_BYTES.max(itemsize)),
        };
        if cost > limits::HTML_PICTURE {
            return None;
        }
        let along = dims.iter().zip(&part);
        let all = along.fold(1, |all: u64, (extent, part)| {
            all.saturating_mul(extent.div_ceil(*part))
        });
        let is_scattered = is_remote || matches!(array.storage, Ok(Storage::Virtual(_)));
        let most = if is_scattered {
            limits::HTML_FAR_SAMPLED_CHUNKS
        } else {
            limits::HTML_SAMPLED_CHUNKS
        };
        let affordable = (limits::HTML_SAMPLED / cost.max(1)).max(1);
        Some(SamplePlan {
            dims: dims.to_vec(),
            part_dims: part,
            chunks_to_read: all.min(most).min(affordable),
            chunks_in_array: all,
        })
    }

    /// Returns the numbers of the chunks or pieces to read. The chunks or pieces of the whole array
    /// are divided into ranges of equal length, and one is read from each range. Its position
    /// within the range varies, so that the sample includes several columns of the array.
    fn chunk_numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let (read, all) = (
            u128::from(self.chunks_to_read),
            u128::from(self.chunks_in_array),
        );
        (0..read).map(move |number| {
            let (start, end) = (number * all / read, (number + 1) * all / read);
            // The golden ratio, in thousandths.
            let within = (end - start) * (number * 618 % 1000) / 1000;
            u64::try_from(start + within).unwrap_or(0)
        })
    }

    /// Returns the start and the length of a chunk or piece in each dimension.
    fn chunk_bounds(&self, place: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let mut rest = place;
        let along = self.dims.iter().zip(&self.part_dims).rev();
        let mut bounds: Vec<_> = along
            .map(|(&extent, &part)| {
                let count = extent.div_ceil(part);
                let first = rest % count * part;
                rest /= count;
                (first, part.min(extent - first))
            })
            .collect();
        bounds.reverse();
        bounds.into_iter()
    }

    /// Returns the selector that picks a chunk or piece from the array.
    fn selector(&self, place: u64) -> String {
        let slices = self.chunk_bounds(place);
        let slices = slices.map(|(first, length)| format!("{first}:{}", first + length));
        format!("[{}]", slices.collect::<Vec<_>>().join(","))
    }

    /// Returns the maximum number of values to use from each chunk or piece that is read.
    fn values_per_chunk(&self) -> u64 {
        limits::HTML_SAMPLED_VALUES / self.chunks_to_read.max(1)
    }
}

/// Returns the dimensions of a chunk, for an array of dimensions `dims` with the chunk shape
/// `chunk`.
fn chunk_dims(dims: &[u64], chunk: &[u64]) -> Vec<u64> {
    let whole = dims.iter().enumerate();
    let part = whole.map(|(axis, &extent)| match chunk.get(axis) {
        Some(&along) => along.clamp(1, extent),
        // Elements that are arrays are decoded as a whole.
        None => extent,
    });
    part.collect()
}

/// Returns the dimensions of a piece of about `PIECE_BYTES` contiguous bytes, for an array of
/// dimensions `dims` with elements of `itemsize` bytes.
fn piece_dims(dims: &[u64], itemsize: u64) -> Vec<u64> {
    let mut room = (PIECE_BYTES / itemsize).max(1);
    let mut part: Vec<u64> = dims
        .iter()
        .rev()
        .map(|&extent| {
            let along = extent.min(room).max(1);
            room = (room / extent.max(1)).max(1);
            along
        })
        .collect();
    part.reverse();
    part
}

/// The values of a sample, and their statistics.
struct Sample {
    statistics: Statistics,
    finite: Vec<f64>,
}

impl Sample {
    /// Adds about `most` of the values in `elements` to the sample.
    fn add_values(
        &mut self,
        elements: &Elements,
        missing: Option<&MissingValues>,
        most: u64,
        cancel: &CancelToken,
    ) -> Result<()> {
        let Some(pixel) = PixelType::from_datatype(&elements.datatype) else {
            return Ok(());
        };
        let count = elements.dims.iter().flatten().product::<u64>();
        for run in spaced_ranges(count, most) {
            let bytes = elements.read(run.start, run.end - run.start, cancel)?;
            let missing = match missing {
                Some(missing) => {
                    let count = run.end - run.start;
                    missing.find_missing(&elements.datatype, run.start, count, &bytes, cancel)?
                }
                None => Vec::new(),
            };
            let size = to_usize(elements.datatype.size.into())?.max(1);
            for (place, bytes) in bytes.chunks_exact(size).enumerate() {
                if missing.get(place) == Some(&true) {
                    self.statistics.add_masked();
                    continue;
                }
                let value = decode_number(pixel, bytes);
                if self.statistics.add(value) {
                    self.finite.push(value);
                }
            }
        }
        Ok(())
    }
}

/// Returns evenly spaced ranges of the indices below `count`. The ranges have about `most` indices
/// in total.
fn spaced_ranges(count: u64, most: u64) -> impl Iterator<Item = Range<u64>> {
    let all = count.div_ceil(RUN_VALUES);
    let read = if count <= most {
        all
    } else {
        (most / RUN_VALUES).clamp(1, all.max(1))
    };
    (0..read.min(all)).map(move |number| {
        let place = u128::from(number) * u128::from(all) / u128::from(read);
        let first = u64::try_from(place).unwrap_or(0) * RUN_VALUES;
        first..(first + RUN_VALUES).min(count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::array::{Fill, Layout};
    use h5fs_reader::model::shape::Shape;
    use h5fs_reader::model::storage::{Filter, Pipeline};
    use h5fs_reader::testing::int;

    fn plan(dims: &[u64], chunk: Option<&[u64]>, is_remote: bool) -> Option<SamplePlan> {
        let filter = Filter {
            id: 1,
            name: None,
            parameters: Vec::new(),
        };
        let array = Array {
            datatype: int(2),
            shape: Shape::fixed(dims.to_vec()),
            fill: Fill::Zero,
            layout: Layout::Chunked,
            chunk_shape: chunk.map(<[u64]>::to_vec),
            pipeline: Pipeline(chunk.map(|_| filter).into_iter().collect()),
            storage: Ok(Storage::Fill),
        };
        SamplePlan::choose(&array, dims, is_remote)
    }

    /// The number of chunks is bounded, so that at most 64 MiB of a stack of 84 GB are read.
    #[test]
    fn a_bounded_number_of_chunks_is_read() {
        let counts = |dims: &[u64], chunk: &[u64]| {
            let plan = plan(dims, Some(chunk), false)?;
            assert_eq!(plan.chunk_numbers().count() as u64, plan.chunks_to_read);
            assert!(
                plan.chunk_numbers()
                    .all(|place| place < plan.chunks_in_array)
            );
            Some((plan.chunks_to_read, plan.chunks_in_array))
        };
        assert_eq!(counts(&[10, 20], &[10, 20]), Some((1, 1)));
        assert_eq!(counts(&[100, 512, 512], &[1, 512, 512]), Some((64, 100)));
        assert_eq!(
            counts(&[10_000, 2048, 2048], &[1, 2048, 2048]),
            Some((8, 10_000))
        );
        // The frame of a detector has 72 MB.
        assert_eq!(counts(&[900, 4362, 8296], &[1, 4362, 8296]), Some((1, 900)));
        assert_eq!(counts(&[9, 1 << 14, 1 << 14], &[1, 1 << 14, 1 << 14]), None);
        let far = plan(&[100, 512, 512], Some(&[1, 512, 512]), true).unwrap();
        assert_eq!(far.chunks_to_read, limits::HTML_FAR_SAMPLED_CHUNKS);
        let flat = plan(&[1 << 20, 1 << 20], None, false).unwrap();
        assert_eq!(
            (flat.part_dims.clone(), flat.chunks_to_read),
            (vec![1, 32_768], 64)
        );
    }

    #[test]
    fn a_sampled_part_is_a_chunk() {
        let plan = plan(&[5, 7], Some(&[2, 3]), false).unwrap();
        assert_eq!((plan.chunks_to_read, plan.chunks_in_array), (9, 9));
        let all: Vec<String> = plan
            .chunk_numbers()
            .map(|place| plan.selector(place))
            .collect();
        assert_eq!(all[0], "[0:2,0:3]");
        assert_eq!(all[5], "[2:4,6:7]");
        assert_eq!(all[8], "[4:5,6:7]");
    }

    /// 64 of 1000 chunks in 10 columns are read, some in each column.
    #[test]
    fn chunks_of_all_columns_are_read() {
        let plan = plan(&[100, 1280], Some(&[1, 128]), false).unwrap();
        let columns: std::collections::BTreeSet<u64> =
            plan.chunk_numbers().map(|at| at % 10).collect();
        assert_eq!((plan.chunks_in_array, columns.len()), (1000, 10));
    }

    #[test]
    fn evenly_spaced_runs_of_many_values_are_sampled() {
        let looked = |count, most| {
            spaced_ranges(count, most)
                .map(|run| run.end - run.start)
                .sum::<u64>()
        };
        assert_eq!(looked(1000, 5000), 1000);
        assert_eq!(looked(1 << 30, 1 << 14), 1 << 14);
        assert_eq!(looked(10, 1), 10);
        assert_eq!(looked(0, 5), 0);
        assert!(spaced_ranges(1 << 30, 1 << 14).all(|run| run.end <= 1 << 30));
    }
}
