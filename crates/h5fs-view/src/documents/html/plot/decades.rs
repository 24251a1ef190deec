//! Horizontal lines of a logarithmic plot at powers of ten.

use crate::documents::html::plot::axis_lines::AxisMark;

/// Maximum number of horizontal lines.
const MAX_LINES: i32 = 7;

/// Minimum number of decades between the smallest and the largest number of a logarithmic plot.
const MIN_DECADES: f64 = 3.0;

/// Horizontal lines at powers of ten, at equal distances.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct DecadeLines {
    /// The exponent of ten at the first line.
    first: i32,
    /// Number of decades between two lines.
    step: i32,
    /// Number of steps from the first line to the last.
    steps: i32,
}

impl DecadeLines {
    /// Chooses lines for the range from `least` to `most`. Returns `None` if `least` is not
    /// positive, or the range is too narrow for a logarithmic plot.
    pub(super) fn choose(least: f64, most: f64) -> Option<Self> {
        if least <= 0.0 || decade_count(least, most) <= MIN_DECADES {
            return None;
        }
        let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
        let step = (last - first + MAX_LINES - 2) / (MAX_LINES - 1);
        let steps = (last - first + step - 1) / step;
        Some(DecadeLines { first, step, steps })
    }

    /// Returns the lines with their texts.
    pub(super) fn marks(&self) -> Vec<AxisMark> {
        let last = self.first + self.steps * self.step;
        let is_plain = self.first >= -3 && last <= 6;
        let marks = (0..=self.steps).map(|number| {
            let exponent = self.first + number * self.step;
            let text = match exponent {
                0.. if is_plain => format!("{:.0}", 10_f64.powi(exponent)),
                _ if is_plain => format!(
                    "{:.*}",
                    exponent.unsigned_abs() as usize,
                    10_f64.powi(exponent)
                ),
                _ => format!("1e{exponent}"),
            };
            AxisMark {
                relative_position: f64::from(number) / f64::from(self.steps),
                text,
            }
        });
        marks.collect()
    }

    /// Returns the position of a positive value in the drawing, from 0 at the first line to 1 at
    /// the last.
    pub(super) fn relative_position(&self, value: f64) -> f64 {
        let share = (value.log10() - f64::from(self.first)) / f64::from(self.steps * self.step);
        share.clamp(0.0, 1.0)
    }
}

/// Returns the number of decades between two positive numbers.
pub(super) fn decade_count(least: f64, most: f64) -> f64 {
    most.log10() - least.log10()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(least: f64, most: f64) -> Vec<String> {
        let decades = DecadeLines::choose(least, most).unwrap();
        decades.marks().into_iter().map(|mark| mark.text).collect()
    }

    #[test]
    fn lines_stand_at_powers_of_ten() {
        assert_eq!(texts(0.02, 30.0), ["0.01", "0.1", "1", "10", "100"]);
        assert_eq!(texts(1e-9, 2e-6), ["1e-9", "1e-8", "1e-7", "1e-6", "1e-5"]);
        let wide = texts(3e-20, 5.0);
        assert_eq!(
            wide,
            ["1e-20", "1e-16", "1e-12", "1e-8", "1e-4", "1e0", "1e4"]
        );
        assert!(texts(5e-324, f64::MAX).len() <= 7);
    }

    #[test]
    fn only_positive_numbers_far_apart_have_them() {
        for (least, most) in [(0.0, 1e9), (-1.0, 1e9), (1.0, 1000.0), (7.0, 7.0)] {
            assert_eq!(DecadeLines::choose(least, most), None);
        }
        assert!(DecadeLines::choose(1.0, 1001.0).is_some());
    }

    /// Calculated by hand: the range from 0.01 to 100 has four decades, with 1 in the middle.
    #[test]
    fn a_value_stands_at_its_logarithm() {
        let decades = DecadeLines::choose(0.02, 30.0).unwrap();
        let shares = [0.01, 0.1, 1.0, 10.0, 100.0].map(|value| decades.relative_position(value));
        assert_eq!(shares, [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert!((decades.relative_position(0.02) - std::f64::consts::LOG10_2 / 4.0).abs() < 1e-5);
    }
}
