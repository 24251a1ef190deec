//! The legend of a picture: its colours, and their meaning in numbers and words.

use crate::documents::html::markup::Html;
use crate::pictures::image::Image;
use crate::pictures::shaded;
use crate::pictures::shaded::colours::ColourMap;
use crate::pictures::shaded::scale::{Scale, ScaleKind};
use crate::pictures::shaded::statistics::Shading;

/// Number of equal intervals between the colours from which the bar's gradient is drawn.
const GRADIENT_STEPS: u8 = 20;

/// The data for the legend of a picture, or of a stack of pictures.
pub(super) struct Legend<'a> {
    image: &'a Image,
    shading: &'a Shading,
    /// Number of pictures in the stack; `None` for a single picture.
    frames: Option<u64>,
}

impl<'a> Legend<'a> {
    pub(super) fn new(image: &'a Image, shading: &'a Shading, frames: Option<u64>) -> Self {
        Legend {
            image,
            shading,
            frames,
        }
    }

    /// Returns whether the picture shows numbers by a colour scale, and not colours that are stored
    /// in the file.
    fn has_scale(&self) -> bool {
        self.image.samples == 1 && self.image.appearance.palette.is_none()
    }

    /// Returns the alternative text of the picture of the object called `name`.
    pub(super) fn alternative_text(&self, name: &[u8]) -> String {
        let Image { height, width, .. } = self.image;
        let name = String::from_utf8_lossy(name);
        format!("{name}, {height} by {width}. {}", self.describe())
    }

    /// Describes in words the range of the colours, and the statistics of the values.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        if self.has_scale() {
            text.push_str(&self.range_text());
            text.push(' ');
        } else if self.image.samples > 1 {
            let Scale { low, high, .. } = self.shading.scale;
            let [low, high] = [low, high].map(format_short);
            text.push_str(&format!("Colours from {low} to {high}. "));
        }
        text.push_str(&self.statistics_text());
        let step = shaded::drawing_step(self.image);
        if step > 1 {
            text.push_str(&format!(" One pixel of {step} in each direction is shown."));
        }
        let origin = self.image.appearance.origin;
        match (origin.is_bottom, origin.is_right) {
            (false, false) => {}
            (true, false) => text.push_str(" The first row is at the bottom."),
            (false, true) => text.push_str(" The first column is at the right."),
            (true, true) => text.push_str(" The first pixel is at the bottom right."),
        }
        text
    }

    fn range_text(&self) -> String {
        let scale = &self.shading.scale;
        let width = scale.high - scale.low;
        let [low, high] = [scale.low, scale.high].map(|end| format_distinct(end, width));
        let known = &self.shading.statistics;
        let stack = match self.frames {
            _ if known.pieces_read < known.pieces_total => " of what was read",
            Some(_) => " of all pictures",
            None => "",
        };
        let ends = match (scale.kind, scale.is_between_percentiles) {
            (ScaleKind::Linear, true) => format!("the 1st to the 99th percentile{stack}"),
            (ScaleKind::Linear, false) => format!("the minimum to the maximum{stack}"),
            (ScaleKind::Log, true) => {
                format!("the 1st percentile of the values above 0 to the 99th of all values{stack}")
            }
            (ScaleKind::Log, false) => {
                format!("the 1st percentile of the values above 0 to the maximum{stack}")
            }
        };
        let colours = scale.colours.name();
        let mut text = match (scale.kind, scale.colours) {
            (ScaleKind::Linear, ColourMap::Diverging) => {
                format!("From {low} to {high}, a range that contains {ends}; {colours}.")
            }
            (ScaleKind::Linear, _) => format!("From {low} to {high}, {ends}; {colours}."),
            (ScaleKind::Log, _) => {
                format!("From {low} to {high} by the logarithm, {ends}; {colours}.")
            }
        };
        if scale.kind == ScaleKind::Log && self.shading.statistics.least < scale.low {
            text.push_str(" Smaller values have the lowest colour.");
        }
        if self.image.appearance.is_zero_white {
            text.push_str(" The minimum is white.");
        }
        text
    }

    fn statistics_text(&self) -> String {
        let known = &self.shading.statistics;
        let mut text = if known.least <= known.most {
            let width = known.most - known.least;
            let [least, most] = [known.least, known.most].map(|end| format_distinct(end, width));
            format!("Minimum {least}, maximum {most}")
        } else {
            "No finite values".to_owned()
        };
        for (count, what) in [
            (known.nan, "NaN or missing"),
            (known.masked, "fill or masked"),
            (known.infinite, "infinite"),
        ] {
            if count > 0 {
                text.push_str(&format!(", {count} {what}"));
            }
        }
        if known.pieces_read < known.pieces_total {
            let (read, all) = (known.pieces_read, known.pieces_total);
            text.push_str(&format!(
                ", of {} values in {read} of {all} chunks",
                known.count
            ));
        } else {
            let all = self.image.dims.iter().copied();
            let all = all.fold(1, u64::saturating_mul);
            let of_all = if known.count < all {
                format!(" of {all}")
            } else {
                String::new()
            };
            text.push_str(&format!(", of {}{of_all} values", known.count));
        }
        text.push('.');
        text
    }

    /// Writes a bar with the colours of the scale, and numbers below it. Writes nothing for a
    /// picture without a scale.
    pub(super) fn write_bar(&self, html: &mut Html) {
        if !self.has_scale() {
            return;
        }
        let scale = &self.shading.scale;
        html.markup(
            "<div class=\"bar\"><svg viewBox=\"0 0 1 1\" preserveAspectRatio=\"none\" role=\"img\"",
        );
        html.markup(
            " aria-label=\"the colours of the numbers beneath\"><linearGradient id=\"bar\">",
        );
        for stop in 0..=GRADIENT_STEPS {
            let share = f64::from(stop) / f64::from(GRADIENT_STEPS);
            let is_inverted = self.image.appearance.is_zero_white;
            let shown = if is_inverted { 1.0 - share } else { share };
            let [red, green, blue] = scale.colours.colour_at(shown);
            html.markup("<stop offset=\"").number(share);
            html.markup("\" stop-color=\"#")
                .number(format_args!("{red:02x}{green:02x}{blue:02x}"));
            html.markup("\"/>");
        }
        html.markup("</linearGradient><rect width=\"1\" height=\"1\" fill=\"url(#bar)\"/></svg>\n");
        html.markup("<div class=\"along\">");
        for text in tick_texts(scale) {
            html.markup("<span>").text(text).markup("</span>");
        }
        html.markup("</div></div>\n");
    }
}

/// Returns the texts of the numbers below the bar: one at each quarter, or only those at the ends
/// if a text is long.
fn tick_texts(scale: &Scale) -> Vec<String> {
    /// Maximum characters of a number so that five numbers fit side by side on a phone.
    const MAX_TICK_CHARACTERS: usize = 9;
    let width = scale.high - scale.low;
    let of = |quarters: &[u8]| -> Vec<String> {
        let values = quarters
            .iter()
            .map(|&quarter| scale.value_at(f64::from(quarter) / 4.0));
        let texts = values.map(|value| {
            if scale.kind == ScaleKind::Linear && has_common_digits(value, width) {
                format_distinct(value, width)
            } else {
                format_tick(value)
            }
        });
        texts.collect()
    };
    let all = of(&[0, 1, 2, 3, 4]);
    if all.iter().all(|text| text.len() <= MAX_TICK_CHARACTERS) {
        all
    } else {
        of(&[0, 4])
    }
}

/// Returns whether `value` is so large, compared with a range of length `width`, that all numbers
/// of the range have the same first digits.
fn has_common_digits(value: f64, width: f64) -> bool {
    width > 0.0 && value.abs() < 1e15 && value.abs() / width > 20.0
}

/// Formats `value` with enough digits to distinguish it from other numbers of a range of length
/// `width`.
fn format_distinct(value: f64, width: f64) -> String {
    if !has_common_digits(value, width) {
        return format_short(value);
    }
    let decimals = (2 - width.log10().floor() as i32).clamp(0, 12);
    format!("{value:.*}", usize::try_from(decimals).unwrap_or(0))
}

/// Formats a number below the bar briefly, so that five numbers fit next to each other on a phone.
fn format_tick(value: f64) -> String {
    let text = format_short(value);
    if text.len() <= 6 {
        return text;
    }
    match value.abs() {
        1e-2..1e5 => {
            let digits = 3 - value.abs().log10().floor() as i32;
            format!("{value:.*}", usize::try_from(digits).unwrap_or(0))
        }
        _ => format!("{value:.1e}"),
    }
}

/// Formats a number briefly: integers exactly, other numbers with five or six significant digits.
pub(super) fn format_short(value: f64) -> String {
    // Adding 0 removes the sign of -0.
    let value = value + 0.0;
    let is_plain = value == 0.0 || (1e-4..1e7).contains(&value.abs());
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value}");
    }
    if !is_plain {
        return format!("{value:.4e}");
    }
    let digits = 5 - value.abs().log10().floor() as i32;
    let text = format!("{value:.*}", usize::try_from(digits).unwrap_or(0));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let shown = [
            0.0,
            -7.0,
            65535.0,
            0.1 + 0.2,
            273.149_999,
            1.0 / 3.0,
            1e20,
            2.5e-9,
            16_777_215.0,
        ];
        let expected = [
            "0",
            "-7",
            "65535",
            "0.3",
            "273.15",
            "0.333333",
            "1.0000e20",
            "2.5000e-9",
            "16777215",
        ];
        assert_eq!(shown.map(format_short), expected);
        assert_eq!(format_short(-0.0), "0");
        let ticks = [
            1.907_7e-5,
            0.004_157_85,
            43_044.7,
            249.85,
            -2.317_05,
            16_777_215.0,
        ]
        .map(format_tick);
        assert_eq!(
            ticks,
            ["1.9e-5", "4.2e-3", "43045", "249.85", "-2.317", "1.7e7"]
        );
    }

    #[test]
    fn numbers_far_from_0_are_told_apart() {
        let ticks = |low, high| {
            tick_texts(&Scale {
                kind: ScaleKind::Linear,
                low,
                high,
                is_between_percentiles: true,
                colours: ColourMap::Viridis,
            })
        };
        assert_eq!(
            ticks(5_400_000.0, 5_419_900.0),
            ["5400000", "5404975", "5409950", "5414925", "5419900"]
        );
        assert_eq!(
            ticks(1.7e9, 1.7e9 + 1.0),
            ["1700000000.00", "1700000001.00"]
        );
        assert_eq!(ticks(0.0, 100.0), ["0", "25", "50", "75", "100"]);
        assert_eq!(format_distinct(2_459_000.5, 30.0), "2459000.5");
    }
}
