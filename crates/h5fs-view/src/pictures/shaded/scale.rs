//! The scale of a picture: the position of each value in a range, and the choice of the range.

use crate::pictures::image::{self, PixelType};
use crate::pictures::shaded::colours::ColourMap;

/// A scale: a range of values, and the position of each value in the range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// How positions depend on values.
    pub kind: ScaleKind,
    /// The lower end of the range. `high` is the upper end. Both are finite, and `low` is not
    /// greater than `high`.
    pub low: f64,
    /// The upper end of the range.
    pub high: f64,
    /// Whether the ends of the range are percentiles of the values; otherwise they are the minimum
    /// and maximum.
    pub is_between_percentiles: bool,
    /// The colours of the positions.
    pub colours: ColourMap,
}

/// How the position of a value in a range depends on the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScaleKind {
    /// The position grows with the value.
    Linear,
    /// A logarithmic scale, whose `low` is positive.
    Log,
}

/// The percentiles at the ends of a range.
const PERCENTILES: (f64, f64) = (0.01, 0.99);

/// Minimum ratio of the upper to the lower end of a range of positive values for which the scale is
/// logarithmic.
const MIN_LOG_RATIO: f64 = 1e3;

/// Minimum ratio of the two ends, instead of `MIN_LOG_RATIO`, if half of the positive values are in
/// the lowest tenth (`DARK_FRACTION`) of the range.
const MIN_SKEWED_RATIO: f64 = 10.0;
const DARK_FRACTION: f64 = 0.1;

/// Maximum ratio of the distances of the two ends from 0 for which the scale is symmetric around 0.
const MAX_ASYMMETRY: f64 = 10.0;

impl Scale {
    /// Chooses a scale for finite `values`, and reorders the values. With `is_grey`, the values are
    /// shades of a picture, or counts of a detector. With `is_image`, they are shades of a picture.
    pub fn choose(values: &mut [f64], is_grey: bool, is_image: bool) -> Self {
        let colours = if is_grey {
            ColourMap::Grey
        } else {
            ColourMap::Viridis
        };
        let found = percentiles(values);
        let linear = |low: f64, high: f64| Scale {
            kind: ScaleKind::Linear,
            low,
            high,
            is_between_percentiles: found.is_some_and(|found| found.are_percentiles),
            colours,
        };
        let Some(RangeEnds { low, high, .. }) = found else {
            return linear(0.0, 1.0);
        };
        if is_image {
            return linear(low, high);
        }
        if low < 0.0 && high > 0.0 && high / -low < MAX_ASYMMETRY && -low / high < MAX_ASYMMETRY {
            let most = high.max(-low);
            return Scale {
                colours: ColourMap::Diverging,
                ..linear(-most, most)
            };
        }
        let is_positive = values.iter().all(|&value| value >= 0.0);
        if is_positive && let Some(log) = logarithmic_low(values, high) {
            return Scale {
                kind: ScaleKind::Log,
                low: log,
                ..linear(log, high)
            };
        }
        linear(low, high)
    }

    /// Returns the scale for colours whose samples are between `least` and `most`. Unsigned types
    /// have their full range. Other types have the range from 0 to 1 if it contains all samples, or
    /// otherwise the range of the samples.
    pub(crate) fn for_colours(pixel: PixelType, least: f64, most: f64) -> Self {
        let (low, high) = match pixel.kind {
            image::PixelKind::Unsigned | image::PixelKind::Boolean => (0.0, pixel.max_value()),
            _ if least >= 0.0 && most <= 1.0 => (0.0, 1.0),
            _ if least <= most => (least, most),
            _ => (0.0, 1.0),
        };
        Scale {
            kind: ScaleKind::Linear,
            low,
            high,
            is_between_percentiles: false,
            colours: ColourMap::Grey,
        }
    }

    /// Returns the position of `value` in the range, from 0 to 1; `None` for NaN.
    pub(crate) fn relative_position(&self, value: f64) -> Option<f64> {
        if value.is_nan() {
            return None;
        }
        let value = value.clamp(self.low, self.high);
        let share = match self.kind {
            // Halving the values first keeps the differences finite.
            ScaleKind::Linear => {
                (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
            }
            ScaleKind::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        };
        // The range has only one value.
        Some(if share.is_finite() { share } else { 0.5 })
    }

    /// Returns the value at the position `share` in the range, from 0 (lower end) to 1 (upper end).
    pub fn value_at(&self, share: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => self.low * (1.0 - share) + self.high * share,
            ScaleKind::Log => (self.low.ln() * (1.0 - share) + self.high.ln() * share).exp(),
        }
    }
}

/// The ends of a range of values, before the kind of scale is chosen.
#[derive(Clone, Copy)]
struct RangeEnds {
    low: f64,
    high: f64,
    are_percentiles: bool,
}

/// Returns the 1st and the 99th percentile of `values`, or their minimum and maximum if the two
/// percentiles are equal. Returns `None` without values.
fn percentiles(values: &mut [f64]) -> Option<RangeEnds> {
    let low = percentile(values, PERCENTILES.0)?;
    let high = percentile(values, PERCENTILES.1)?;
    if high > low {
        return Some(RangeEnds {
            low,
            high,
            are_percentiles: true,
        });
    }
    Some(RangeEnds {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        are_percentiles: false,
    })
}

/// Returns the lower end of a logarithmic range of `values` whose upper end is `high`; `None` if a
/// linear scale is better.
fn logarithmic_low(values: &[f64], high: f64) -> Option<f64> {
    let mut positive: Vec<f64> = values
        .iter()
        .copied()
        .filter(|&value| value > 0.0)
        .collect();
    let low = percentile(&mut positive, PERCENTILES.0)?;
    let middle = percentile(&mut positive, 0.5)?;
    let is_dark = high / low > MIN_SKEWED_RATIO && (middle - low) / (high - low) < DARK_FRACTION;
    (high / low > MIN_LOG_RATIO || is_dark).then_some(low)
}

/// Returns the value at the fraction `part` of the sorted values, from 0 (minimum) to 1 (maximum).
/// Reorders the values. Returns `None` without values.
fn percentile(values: &mut [f64], part: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = (last as f64 * part).round() as usize;
    let (_, value, _) = values.select_nth_unstable_by(place, f64::total_cmp);
    Some(*value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::Datatype;
    use h5fs_reader::model::datatype::ByteOrder;

    fn linear_scale(values: &[f64]) -> Scale {
        Scale::choose(&mut values.to_vec(), false, false)
    }

    fn ramp(from: f64, to: f64) -> Vec<f64> {
        (0..=1000)
            .map(|n| from + (to - from) * f64::from(n) / 1000.0)
            .collect()
    }

    /// Expected: `numpy.percentile(values, [1, 99])`, calculated by hand for a ramp.
    #[test]
    fn a_range_is_between_percentiles() {
        let mut values = ramp(0.0, 100.0);
        values[7] = 1e9;
        let scale = Scale::choose(&mut values, false, false);
        assert_eq!(scale.kind, ScaleKind::Linear);
        assert!(
            (scale.low - 1.0).abs() < 0.2 && (scale.high - 99.0).abs() < 0.2,
            "{scale:?}"
        );
        assert_eq!(scale.colours, ColourMap::Viridis);
        assert_eq!(
            Scale::choose(&mut ramp(5.0, 6.0), true, false).colours,
            ColourMap::Grey
        );
    }

    #[test]
    fn signed_values_have_a_diverging_colour_map() {
        let scale = linear_scale(&ramp(-20.0, 50.0));
        assert_eq!(
            (scale.colours, scale.low),
            (ColourMap::Diverging, -scale.high)
        );
        assert_eq!(scale.relative_position(0.0), Some(0.5));
        // Most of the range is on one side.
        assert_eq!(linear_scale(&ramp(-1.0, 500.0)).colours, ColourMap::Viridis);
        let shades = Scale::choose(&mut ramp(-20.0, 50.0), true, true);
        assert_eq!(shades.colours, ColourMap::Grey);
    }

    #[test]
    fn positive_values_over_decades_are_shown_by_the_logarithm() {
        let values: Vec<f64> = (0..=1000)
            .map(|n| 10_f64.powf(f64::from(n) / 200.0))
            .collect();
        let scale = linear_scale(&values);
        assert_eq!(scale.kind, ScaleKind::Log);
        assert!(
            (scale.low.log10() - 0.05).abs() < 1e-9 && (scale.high.log10() - 4.95).abs() < 1e-9
        );
        assert!((scale.relative_position(10_f64.powf(2.5)).unwrap() - 0.5).abs() < 1e-9);
        assert!((scale.value_at(0.5).log10() - 2.5).abs() < 1e-9);
        assert_eq!(scale.relative_position(0.0), Some(0.0));
        // Some of these counts are zero.
        let mut counts = values.clone();
        counts[..300].fill(0.0);
        assert_eq!(linear_scale(&counts).kind, ScaleKind::Log);
        assert_eq!(linear_scale(&ramp(1.0, 900.0)).kind, ScaleKind::Linear);
        // Most of these counts are low.
        let mut frame = ramp(10.0, 30.0);
        frame[900..].fill(800.0);
        let scale = linear_scale(&frame);
        assert_eq!(scale.kind, ScaleKind::Log);
        assert!(scale.relative_position(20.0).unwrap() > 0.1);
    }

    #[test]
    fn any_values_have_a_range() {
        for values in [
            &[][..],
            &[3.0],
            &[0.0; 9],
            &[f64::MIN, f64::MAX],
            &[0.0, f64::MIN_POSITIVE],
            &[-1e-320, 1e-320],
        ] {
            let scale = linear_scale(values);
            for &value in values
                .iter()
                .chain(&[f64::INFINITY, f64::NEG_INFINITY, 0.0])
            {
                let share = scale.relative_position(value).unwrap();
                assert!((0.0..=1.0).contains(&share), "{values:?} {value} {share}");
            }
            assert_eq!(scale.relative_position(f64::NAN), None);
            assert!(scale.value_at(0.5).is_finite(), "{values:?}");
        }
        // All values except one are 0.
        let mut sparse = vec![0.0; 1000];
        sparse[17] = 8.0;
        let scale = linear_scale(&sparse);
        assert_eq!((scale.low, scale.high), (0.0, 8.0));
        assert!(
            !scale.is_between_percentiles && linear_scale(&ramp(0.0, 1.0)).is_between_percentiles
        );
        let wide = [1e-200, 1e-100, 1.0, 1e100, 1e200];
        let scale = linear_scale(&wide);
        assert_eq!(scale.kind, ScaleKind::Log);
        let middle = scale.relative_position(1.0).unwrap();
        assert!((middle - 0.5).abs() < 1e-9 && (scale.value_at(0.5) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn colours_have_the_range_of_their_type() {
        let of = |datatype, least, most| {
            let scale =
                Scale::for_colours(PixelType::from_datatype(&datatype).unwrap(), least, most);
            (scale.low, scale.high)
        };
        let unsigned = Datatype::integer(2, false, ByteOrder::Little);
        assert_eq!(of(unsigned, 7.0, 300.0), (0.0, 65535.0));
        let float = || Datatype::ieee(4, ByteOrder::Little);
        assert_eq!(of(float(), 0.2, 1.0), (0.0, 1.0));
        assert_eq!(of(float(), 0.0, 255.0), (0.0, 255.0));
        assert_eq!(of(float(), f64::NAN, f64::NAN), (0.0, 1.0));
    }
}
