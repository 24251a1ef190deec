//! Horizontal lines of a drawing at evenly spaced round values.

use std::iter;

/// Number of steps into which the range is divided, before the length of a step is rounded up to a
/// round number.
const APPROXIMATE_STEPS: f64 = 5.0;

/// A line of a plot's grid: its position, and its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisMark {
    /// The position of the line, from 0 at the beginning of the drawing to 1 at the end.
    pub(super) relative_position: f64,
    pub(super) text: String,
}

/// Evenly spaced horizontal lines at round values.
#[derive(Debug, PartialEq)]
pub(super) struct AxisLines {
    first: f64,
    pub(super) step: f64,
    count: u32,
}

impl AxisLines {
    /// Chooses lines at round values for a range whose ends are finite numbers.
    pub(super) fn choose(least: f64, most: f64) -> Self {
        let (least, most) = if most > least {
            (least, most)
        } else {
            let around = if least == 0.0 { 1.0 } else { least.abs() / 2.0 };
            (
                (least - around).max(f64::MIN),
                (most + around).min(f64::MAX),
            )
        };
        let rough = most / APPROXIMATE_STEPS - least / APPROXIMATE_STEPS;
        let power = 10_f64.powf(rough.log10().floor());
        let rounded = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = rounded.into_iter().find(|step| *step >= rough);
        let lines = step.map(|step| AxisLines {
            first: (least / step).floor() * step,
            step,
            count: 0,
        });
        let whole = lines.and_then(|lines| {
            let count = (most / lines.step).ceil() - (least / lines.step).floor();
            let last = lines.first + count * lines.step;
            let fits = (1.0..=APPROXIMATE_STEPS + 2.0).contains(&count)
                && lines.first <= least
                && last >= most
                && last.is_finite();
            fits.then_some(AxisLines {
                count: count as u32,
                ..lines
            })
        });
        // The range is at the limits of floating point.
        whole.unwrap_or(AxisLines {
            first: least,
            step: most / 2.0 - least / 2.0,
            count: 2,
        })
    }

    /// Returns the lines with their texts.
    pub(super) fn marks(&self) -> Vec<AxisMark> {
        let values = self.line_values().into_iter();
        let marks = values.map(|value| AxisMark {
            relative_position: self.relative_position(value),
            text: self.format_value(value),
        });
        marks.collect()
    }

    pub(super) fn line_values(&self) -> Vec<f64> {
        let next = |value: &f64| Some(value + self.step);
        let values = iter::successors(Some(self.first), next);
        values.take(self.count as usize + 1).collect()
    }

    /// Returns the position of a value in the drawing, from 0 at the first line to 1 at the last.
    pub(super) fn relative_position(&self, value: f64) -> f64 {
        let count = f64::from(self.count);
        let part = match self.step * count {
            range if range.is_finite() => (value - self.first) / range,
            // The range overflows a float.
            _ => (value / 2.0 - self.first / 2.0) / (self.step / 2.0 * count),
        };
        part.clamp(0.0, 1.0)
    }

    /// Formats the value of a line, with enough digits to distinguish it from the other lines.
    pub(super) fn format_value(&self, value: f64) -> String {
        let value = if value.abs() < self.step / 2.0 {
            0.0
        } else {
            value
        };
        let digits = -self.step.log10().floor();
        let largest = value.abs().max(self.step);
        if digits.is_finite() && digits <= 6.0 && largest < 1e7 {
            format!("{value:.*}", digits.max(0.0) as usize)
        } else {
            let significant = (largest / self.step).log10().ceil().clamp(1.0, 15.0);
            format!("{value:.*e}", significant as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(least: f64, most: f64) -> Vec<String> {
        let lines = AxisLines::choose(least, most);
        let values = lines.line_values().into_iter();
        values.map(|value| lines.format_value(value)).collect()
    }

    #[test]
    fn lines_stand_at_round_values() {
        assert_eq!(texts(0.3, 4.2), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(
            texts(267.2, 300.4),
            ["260", "270", "280", "290", "300", "310"]
        );
        assert_eq!(
            texts(-0.021, 0.017),
            ["-0.03", "-0.02", "-0.01", "0.00", "0.01", "0.02"]
        );
        assert_eq!(
            texts(0.0, 1e9),
            ["0.0e0", "2.0e8", "4.0e8", "6.0e8", "8.0e8", "1.0e9"]
        );
    }

    #[test]
    fn any_finite_numbers_have_lines() {
        for (least, most) in [
            (f64::MIN, f64::MAX),
            (0.0, f64::MIN_POSITIVE),
            (5e-324, 1e-323),
            (1.0, 1.0 + f64::EPSILON),
            (0.0, 0.0),
            (-7.0, -7.0),
            (f64::MAX, f64::MAX),
        ] {
            let lines = AxisLines::choose(least, most);
            let (bottom, top) = (
                lines.relative_position(least),
                lines.relative_position(most),
            );
            assert!((0.0..=1.0).contains(&top), "{least} {most} {lines:?}");
            assert!((0.0..=1.0).contains(&bottom) && bottom <= top);
            assert!(lines.count <= 7 && lines.line_values().iter().all(|value| value.is_finite()));
        }
    }
}
