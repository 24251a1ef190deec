//! Statistics of the values of a drawn array, which its page shows.

use h5fs_reader::error::{Error, Result};

use crate::pictures::shaded::colours::ColourMap;
use crate::pictures::shaded::scale::{Scale, ScaleKind};

/// The statistics of the sampled values of an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// The minimum of the finite values; NaN if no value is finite. `most` is their maximum.
    pub least: f64,
    /// The maximum of the finite values; NaN if no value is finite.
    pub most: f64,
    /// Number of sampled values.
    pub count: u64,
    /// Number of sampled values that are NaN, including NaN in place of a missing value.
    pub nan: u64,
    /// Number of sampled values that are infinite.
    pub infinite: u64,
    /// Number of sampled values that a mask marks as missing.
    pub masked: u64,
    /// Number of chunks or pieces that were read. `pieces_total` is their number in the array.
    pub pieces_read: u64,
    /// Number of chunks or pieces of the array.
    pub pieces_total: u64,
}

/// The statistics of an array for its page, and the scale for drawing the array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shading {
    /// The statistics of the sampled values.
    pub statistics: Statistics,
    /// The scale from values to colours.
    pub scale: Scale,
}

impl Default for Statistics {
    fn default() -> Self {
        Statistics {
            least: f64::NAN,
            most: f64::NAN,
            count: 0,
            nan: 0,
            infinite: 0,
            masked: 0,
            pieces_read: 0,
            pieces_total: 0,
        }
    }
}

impl Statistics {
    /// Adds a value that is not masked. Returns whether it is finite.
    pub(super) fn add(&mut self, value: f64) -> bool {
        self.count += 1;
        self.nan += u64::from(value.is_nan());
        self.infinite += u64::from(value.is_infinite());
        if value.is_finite() {
            self.least = self.least.min(value);
            self.most = self.most.max(value);
        }
        value.is_finite()
    }

    /// Adds a masked value.
    pub(super) fn add_masked(&mut self) {
        self.count += 1;
        self.masked += 1;
    }
}

/// The encoding of the statistics and the scale in the cache is a sequence of 64-bit numbers.
impl Shading {
    /// Encodes the statistics and the scale for the cache.
    pub fn to_bytes(self) -> Vec<u8> {
        let Shading { statistics, scale } = self;
        let floats = [statistics.least, statistics.most, scale.low, scale.high].map(f64::to_bits);
        let counts = [
            statistics.count,
            statistics.nan,
            statistics.infinite,
            statistics.masked,
            statistics.pieces_read,
            statistics.pieces_total,
            u64::from(scale.kind == ScaleKind::Log),
            u64::from(scale.is_between_percentiles),
            match scale.colours {
                ColourMap::Grey => 0,
                ColourMap::Viridis => 1,
                ColourMap::Diverging => 2,
            },
        ];
        let numbers = floats.into_iter().chain(counts);
        numbers.flat_map(u64::to_le_bytes).collect()
    }

    /// Decodes the result of [`to_bytes`](Self::to_bytes).
    ///
    /// # Errors
    /// `Corrupt` if `bytes` has another length.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let unfit = || Error::corrupt("kept statistics of a picture", None);
        let (numbers, _) = bytes.as_chunks();
        let numbers: Vec<u64> = numbers
            .iter()
            .map(|&number| u64::from_le_bytes(number))
            .collect();
        let [
            least,
            most,
            low,
            high,
            count,
            nan,
            infinite,
            masked,
            read,
            all,
            log,
            percentiles,
            colours,
        ] = *numbers.as_slice()
        else {
            return Err(unfit());
        };
        let [least, most, low, high] = [least, most, low, high].map(f64::from_bits);
        Ok(Shading {
            statistics: Statistics {
                least,
                most,
                count,
                nan,
                infinite,
                masked,
                pieces_read: read,
                pieces_total: all,
            },
            scale: Scale {
                kind: if log == 1 {
                    ScaleKind::Log
                } else {
                    ScaleKind::Linear
                },
                low,
                high,
                is_between_percentiles: percentiles == 1,
                colours: match colours {
                    0 => ColourMap::Grey,
                    1 => ColourMap::Viridis,
                    _ => ColourMap::Diverging,
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_by_kind() {
        let mut statistics = Statistics::default();
        for value in [f64::NAN, 3.0, -1.5, f64::INFINITY, 2.0] {
            assert_eq!(statistics.add(value), value.is_finite());
        }
        statistics.add_masked();
        assert_eq!((statistics.least, statistics.most), (-1.5, 3.0));
        let counts = [
            statistics.count,
            statistics.nan,
            statistics.infinite,
            statistics.masked,
        ];
        assert_eq!(counts, [6, 1, 1, 1]);
    }

    #[test]
    fn stored_shadings_are_read_back() {
        let mut values = [1.0, 50.0, 1e6];
        let shading = Shading {
            statistics: Statistics {
                least: 1.0,
                most: 1e6,
                count: 3,
                pieces_read: 1,
                pieces_total: 7,
                ..Statistics::default()
            },
            scale: Scale::choose(&mut values, false, false),
        };
        assert_eq!(Shading::from_bytes(&shading.to_bytes()), Ok(shading));
        assert!(Shading::from_bytes(b"no").is_err());
    }
}
