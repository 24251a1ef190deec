//! An array of numbers along one dimension, as a line.

use std::iter;

use crate::error::{Error, Result};
use crate::model::Datatype;
use crate::model::datatype::Class;
use crate::view::cf::decoded;
use crate::view::cf::stored::Stored;
use crate::view::texts::html::axes::{self, Axis};
use crate::view::texts::html::bins::{self, Bin, Binned, Pieces};
use crate::view::texts::html::draft::Draft;
use crate::view::texts::html::legend::short;
use crate::view::texts::html::markup::Html;
use crate::view::texts::html::object::Object;
use crate::view::texts::html::script;
use crate::wire::to_u64;

/// The size of the drawing.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;

/// Lines across the drawing, at most.
const LINES: f64 = 5.0;

/// Writes the line, if the array is one of numbers along one dimension.
pub(super) fn write(object: &Object<'_>, draft: &mut Draft) {
    let Some(array) = object.node.array() else {
        return;
    };
    let count = match *array.shape.dims() {
        [count] if count > 1 && is_number(&array.datatype) => count,
        _ => return,
    };
    let Some(pieces) = Pieces::of(array, count, object.container.is_far()) else {
        draft
            .body
            .markup("<p class=\"note\">too large to be drawn</p>\n");
        return;
    };
    match drawn(object, count, &pieces) {
        Ok((figure, error)) => {
            draft.body.piece(&figure);
            if let Some(error) = error {
                draft.fail(&error);
            }
        }
        Err(error) => draft.fail(&error),
    }
}

fn is_number(datatype: &Datatype) -> bool {
    let is_plain = matches!(datatype.class, Class::Integer { .. } | Class::Float(_));
    is_plain && Stored::new(datatype).is_some()
}

/// The figure, and why a part of it is not there.
fn drawn(object: &Object<'_>, count: u64, pieces: &Pieces) -> Result<(Html, Option<Error>)> {
    let mut html = Html::default();
    let (elements, missing) = (object.part)("")?;
    let path = || Ok(object.path.to_vec());
    let elements = decoded::numbers(&**object.container, object.node, &path, elements)?;
    let Some(stored) = Stored::new(&elements.datatype) else {
        return Ok((html, None));
    };
    let Binned { bins, error } = bins::read(&elements, stored, missing.as_ref(), pieces)?;
    let Some(lines) = Lines::across(&bins) else {
        html.markup("<p class=\"note\">no finite numbers</p>\n");
        return Ok((html, error));
    };
    let label = axes::of_values(object)?;
    let axes = axes::of_dimensions(object, &[count])?;
    html.markup("<figure class=\"plot\"");
    script::tell_of_line(object, count, &mut html);
    html.markup(">\n<div class=\"label\">").text(&label);
    html.markup("</div>\n<div class=\"ticks\">");
    for value in lines.values().into_iter().rev() {
        html.markup("<span>")
            .text(lines.text(value))
            .markup("</span>");
    }
    html.markup("</div>\n");
    draw(&bins, &lines, &alternative(&label, count, &bins), &mut html);
    write_axis(axes.first(), count, &mut html);
    html.markup("<figcaption>");
    if count > to_u64(bins.len()) {
        html.markup("minimum and maximum of each of ")
            .number(bins.len());
        html.markup(" bins");
    } else {
        html.number(count).markup(" values");
    }
    if pieces.read < pieces.all {
        html.markup(", ")
            .number(pieces.read)
            .markup(" evenly spaced pieces of ");
        html.number(pieces.all).markup(" read");
    }
    html.markup("</figcaption>\n</figure>\n");
    Ok((html, error))
}

/// What stands for the line where it is not seen.
fn alternative(label: &[u8], count: u64, bins: &[Bin]) -> String {
    let label = String::from_utf8_lossy(label);
    let (least, most) = Lines::range(bins).unwrap_or((f64::NAN, f64::NAN));
    let (least, most) = (short(least), short(most));
    format!("{label}: {count} values from {least} to {most}")
}

/// Writes the values along the dimension below the drawing.
fn write_axis(axis: Option<&Axis>, count: u64, html: &mut Html) {
    html.markup("<div class=\"along\">");
    let none = Axis::default();
    let axis = axis.unwrap_or(&none);
    let last = count.saturating_sub(1);
    html.markup("<span>")
        .text(axis.at(0))
        .markup("</span><span>");
    match &*axis.label {
        [] => html.markup("index"),
        label => html.text(label),
    };
    html.markup("</span><span>").text(axis.at(last));
    html.markup("</span></div>\n");
}

/// The values at evenly spaced lines across a drawing.
#[derive(Debug, PartialEq)]
struct Lines {
    first: f64,
    step: f64,
    count: u32,
}

impl Lines {
    /// Lines at round values around all bins; `None` where those hold no number.
    fn across(bins: &[Bin]) -> Option<Self> {
        let (least, most) = Self::range(bins)?;
        Some(Self::around(least, most))
    }

    /// The least and the greatest number of all bins.
    fn range(bins: &[Bin]) -> Option<(f64, f64)> {
        let ranges = bins.iter().filter_map(|bin| match bin {
            Bin::Range(least, most) => Some((*least, *most)),
            Bin::Unread | Bin::Nothing => None,
        });
        let wider = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
        ranges.reduce(wider)
    }

    /// Lines at round values around two finite numbers.
    fn around(least: f64, most: f64) -> Self {
        let (least, most) = if most > least {
            (least, most)
        } else {
            let around = if least == 0.0 { 1.0 } else { least.abs() / 2.0 };
            (
                (least - around).max(f64::MIN),
                (most + around).min(f64::MAX),
            )
        };
        let rough = most / LINES - least / LINES;
        let power = 10_f64.powf(rough.log10().floor());
        let rounded = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = rounded.into_iter().find(|step| *step >= rough);
        let lines = step.map(|step| Lines {
            first: (least / step).floor() * step,
            step,
            count: 0,
        });
        let whole = lines.and_then(|lines| {
            let count = (most / lines.step).ceil() - (least / lines.step).floor();
            let last = lines.first + count * lines.step;
            let fits = (1.0..=LINES + 2.0).contains(&count)
                && lines.first <= least
                && last >= most
                && last.is_finite();
            fits.then_some(Lines {
                count: count as u32,
                ..lines
            })
        });
        // Numbers at the ends of what a float can be.
        whole.unwrap_or(Lines {
            first: least,
            step: most / 2.0 - least / 2.0,
            count: 2,
        })
    }

    fn values(&self) -> Vec<f64> {
        let next = |value: &f64| Some(value + self.step);
        let values = iter::successors(Some(self.first), next);
        values.take(self.count as usize + 1).collect()
    }

    /// The height of a value in the drawing, from the top.
    fn height(&self, value: f64) -> f64 {
        let count = f64::from(self.count);
        let part = match self.step * count {
            range if range.is_finite() => (value - self.first) / range,
            // The whole range is more than a float can be.
            _ => (value / 2.0 - self.first / 2.0) / (self.step / 2.0 * count),
        };
        HEIGHT - HEIGHT * part.clamp(0.0, 1.0)
    }

    /// The text of the value at a line, with as many digits as the lines need.
    fn text(&self, value: f64) -> String {
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

/// Draws the lines across, and the bins as one line.
fn draw(bins: &[Bin], lines: &Lines, alternative: &str, html: &mut Html) {
    html.markup("<svg viewBox=\"0 0 640 240\" preserveAspectRatio=\"none\" role=\"img\"");
    html.markup(" aria-label=\"")
        .text(alternative)
        .markup("\">\n");
    html.markup("<path class=\"across\" d=\"");
    for value in lines.values() {
        let height = lines.height(value);
        html.markup("M")
            .place(0.0, height)
            .markup("L")
            .place(WIDTH, height);
    }
    html.markup("\"/>\n<path class=\"line\" d=\"");
    let width = WIDTH / (bins.len().saturating_sub(1).max(1) as f64);
    let mut last = None;
    for (number, bin) in bins.iter().enumerate() {
        match *bin {
            Bin::Unread => {}
            Bin::Nothing => last = None,
            Bin::Range(least, most) => {
                let x = number as f64 * width;
                // From the nearer end to the farther one.
                let is_above = last.is_some_and(|last: f64| last - least > most - last);
                let ends = if is_above {
                    [most, least]
                } else {
                    [least, most]
                };
                html.markup(if last.is_some() { "L" } else { "M" });
                html.place(x, lines.height(ends[0]));
                html.markup("L").place(x, lines.height(ends[1]));
                last = Some(ends[1]);
            }
        }
    }
    html.markup("\"/>\n</svg>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(least: f64, most: f64) -> Vec<String> {
        let lines = Lines::around(least, most);
        let values = lines.values().into_iter();
        values.map(|value| lines.text(value)).collect()
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
            let lines = Lines::around(least, most);
            let (top, bottom) = (lines.height(most), lines.height(least));
            assert!((0.0..=HEIGHT).contains(&top), "{least} {most} {lines:?}");
            assert!((0.0..=HEIGHT).contains(&bottom) && top <= bottom);
            assert!(lines.count <= 7 && lines.values().iter().all(|value| value.is_finite()));
        }
    }

    fn path(bins: &[Bin]) -> String {
        let mut html = Html::default();
        draw(bins, &Lines::across(bins).unwrap(), "a line", &mut html);
        let text = String::from_utf8(html.finish()).unwrap();
        let line = text.split("class=\"line\" d=\"").nth(1).unwrap();
        line.split('"').next().unwrap().to_owned()
    }

    /// By hand: values from 0 to 4 at heights from 240 to 0, bins 320 apart.
    #[test]
    fn a_line_goes_through_the_bins_and_breaks_where_nothing_is() {
        let one = |value| Bin::Range(value, value);
        let whole = path(&[one(0.0), Bin::Range(1.0, 3.0), one(4.0)]);
        let expected = "M0.0 240.0L0.0 240.0L320.0 180.0L320.0 60.0L640.0 0.0L640.0 0.0";
        assert_eq!(whole, expected);
        let broken = path(&[one(0.0), Bin::Nothing, one(4.0)]);
        assert_eq!(broken, "M0.0 240.0L0.0 240.0M640.0 0.0L640.0 0.0");
        let unread = path(&[one(0.0), Bin::Unread, one(4.0)]);
        assert_eq!(unread, "M0.0 240.0L0.0 240.0L640.0 0.0L640.0 0.0");
    }
}
