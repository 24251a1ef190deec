//! A line plot of an array of numbers with one dimension.

mod axis_lines;
mod axis_marks;
mod bin;
mod bins;
mod decades;
mod equal_width_bins;
mod nexus_axis;
mod plot_axis;
mod sampled_pieces;

use h5fs_conventions::stored_type::StoredType;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::{Array, Datatype};
use h5fs_reader::wire::to_u64;

use crate::cf::decoded;
use crate::documents::html::axes;
use crate::documents::html::legend::format_short;
use crate::documents::html::markup::Html;
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::PageDraft;
use crate::documents::html::plot::axis_lines::{AxisLines, AxisMark};
use crate::documents::html::plot::axis_marks::AxisMarks;
use crate::documents::html::plot::bin::Bin;
use crate::documents::html::plot::bins::{BinnedNumbers, NumberReader};
use crate::documents::html::plot::decades::{DecadeLines, decade_count};
use crate::documents::html::plot::equal_width_bins::{PlacedBins, PositionedBin};
use crate::documents::html::plot::plot_axis::PlotAxis;
use crate::documents::html::plot::sampled_pieces::SampledPieces;
use crate::documents::html::script;

/// The width and the height of the drawing, in SVG units.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 240.0;

/// Writes the line plot if the array has numbers in one dimension.
pub(super) fn write(object: &PageObject<'_>, draft: &mut PageDraft) {
    let Some(array) = object.node.array() else {
        return;
    };
    let count = match *array.shape.dims() {
        [count] if count > 1 && is_number(&array.datatype) => count,
        _ => return,
    };
    let along = PlotAxis::find(object, count).unwrap_or_else(|error| {
        draft.write_error(&error);
        PlotAxis::default()
    });
    let Some(line) = PlotLine::choose(object, array, along, count) else {
        draft
            .body
            .markup("<p class=\"note\">too large to draw</p>\n");
        return;
    };
    match line.draw_figures(object) {
        Ok((figures, binned)) => {
            draft.body.append_html(&figures);
            for error in [binned.error, binned.coordinate_error].iter().flatten() {
                draft.write_error(error);
            }
        }
        Err(error) => draft.write_error(&error),
    }
}

fn is_number(datatype: &Datatype) -> bool {
    let is_plain = matches!(datatype.class, Class::Integer { .. } | Class::Float(_));
    is_plain && StoredType::new(datatype).is_some()
}

/// The line to draw, before its numbers are read.
struct PlotLine {
    count: u64,
    pieces: SampledPieces,
    axis: PlotAxis,
    /// Whether the coordinates of the dimension are ignored because they are too large to read.
    is_over_index: bool,
}

/// The values and texts from which a plot is drawn.
struct Drawing<'a> {
    label: &'a [u8],
    placed_bins: &'a PlacedBins,
    axis_marks: &'a AxisMarks,
    /// The minimum and maximum of the numbers that were read.
    range: (f64, f64),
    /// Whether only evenly spaced pieces of the array were read.
    is_sampled: bool,
    /// The alternative text of the drawing.
    alternative: &'a str,
}

impl PlotLine {
    /// Chooses which pieces of `array` are read for its line. `along` is the horizontal axis, and
    /// `count` the number of elements. Returns `None` if the array is too large.
    fn choose(object: &PageObject<'_>, array: &Array, along: PlotAxis, count: u64) -> Option<Self> {
        let is_remote = object.container.is_remote();
        let beside = along.coordinate.as_ref().map(|along| &*along.array);
        let both =
            beside.and_then(|beside| SampledPieces::choose(array, Some(beside), count, is_remote));
        let is_alone = beside.is_some() && both.is_none();
        Some(PlotLine {
            count,
            pieces: both.or_else(|| SampledPieces::choose(array, None, count, is_remote))?,
            axis: along,
            is_over_index: is_alone,
        })
    }

    /// Reads the numbers, and returns the HTML of the plots, and the bins. An error of reading is
    /// returned in the bins.
    fn draw_figures(&self, object: &PageObject<'_>) -> Result<(Html, BinnedNumbers)> {
        let mut html = Html::default();
        let mut binned = self.read_bins(object)?;
        let Some(range) = value_range(&binned.bins) else {
            html.markup("<p class=\"note\">no finite numbers</p>\n");
            return Ok((html, binned));
        };
        let label = axes::values_label(object)?;
        let over_index = || place_by_index(&binned.bins);
        let placed = binned.placed_bins.take();
        let is_over_index = placed.is_none();
        let placed = placed.unwrap_or_else(over_index);
        let below = self.axis_marks(&placed, is_over_index);
        let alternative = self.alternative_text(&label, range, &placed, is_over_index);
        let drawing = Drawing {
            label: &label,
            placed_bins: &placed,
            axis_marks: &below,
            range,
            is_sampled: self.pieces.is_sample(),
            alternative: &alternative,
        };
        html.markup("<figure class=\"plot\"");
        let over = self.axis.coordinate.as_ref().filter(|_| !is_over_index);
        let over = over.map(|along| along.script_description(placed.range));
        script::write_line_data(object, self.count, over, &mut html);
        html.markup(">\n");
        let lines = AxisLines::choose(range.0, range.1);
        drawing.write(
            &lines.marks(),
            &|value| lines.relative_position(value),
            &mut html,
        );
        self.write_label(&below, is_over_index, &mut html);
        self.write_caption(&binned, is_over_index, &mut html);
        html.markup("</figure>\n");
        if let Some(decades) = DecadeLines::choose(range.0, range.1) {
            self.write_by_logarithm(&drawing, &decades, is_over_index, &mut html);
        }
        Ok((html, binned))
    }

    fn read_bins(&self, object: &PageObject<'_>) -> Result<BinnedNumbers> {
        let (elements, missing) = (object.read_part)("")?;
        let path = || Ok(object.path.to_vec());
        let elements = decoded::decode_numbers(&**object.container, object.node, &path, elements)?;
        let stored = StoredType::new(&elements.datatype)
            .ok_or_else(|| Error::unsupported("numbers without arithmetic", None))?;
        let numbers = NumberReader {
            elements,
            stored,
            missing,
            cancel: object.cancel.clone(),
        };
        let along = self
            .axis
            .coordinate
            .as_ref()
            .filter(|_| !self.is_over_index);
        match along {
            Some(along) => {
                let read = |first, count| along.read(first, count);
                bins::read(&numbers, Some(&read), &self.pieces)
            }
            None => bins::read(&numbers, None, &self.pieces),
        }
    }

    fn axis_marks(&self, placed: &PlacedBins, is_over_index: bool) -> AxisMarks {
        if is_over_index {
            return AxisMarks::for_indices(self.count);
        }
        let (least, most) = placed.range;
        let times = self.axis.coordinate.as_ref().and_then(|along| along.times);
        let times = times.and_then(|units| AxisMarks::for_times(&units, least, most));
        times.unwrap_or_else(|| AxisMarks::for_numbers(least, most))
    }

    /// Returns the alternative text of the drawing, which describes its ranges in words.
    fn alternative_text(
        &self,
        label: &[u8],
        range: (f64, f64),
        placed: &PlacedBins,
        is_over_index: bool,
    ) -> String {
        let (label, count) = (String::from_utf8_lossy(label), self.count);
        let (least, most) = (format_short(range.0), format_short(range.1));
        let of_read = if self.pieces.is_sample() {
            ", those of them that were read,"
        } else {
            ""
        };
        let mut text = format!("{label}: {count} values{of_read} from {least} to {most}");
        if !is_over_index {
            let along = String::from_utf8_lossy(&self.axis.label);
            let (first, last) = (format_short(placed.range.0), format_short(placed.range.1));
            text.push_str(&format!(", over {along} from {first} to {last}"));
        }
        text
    }

    /// Writes the label of the horizontal axis.
    fn write_label(&self, below: &AxisMarks, is_over_index: bool, html: &mut Html) {
        html.markup("<div class=\"over\">");
        let along = &self.axis;
        let times = along.coordinate.as_ref().and_then(|along| along.times);
        match (is_over_index, times.filter(|_| below.has_times)) {
            (true, _) if along.name.is_empty() => html.markup("index"),
            (true, _) => html.text(&along.name).markup(" (index)"),
            (false, Some(units)) => {
                html.text(&along.name);
                if let Some(day) = &below.common_day {
                    html.markup(", ").text(day);
                }
                if units.datetime64_precision().is_none() {
                    html.markup(" (calendar ").text(units.calendar_name());
                    html.markup(")");
                }
                &mut *html
            }
            (false, None) => html.text(&along.label),
        };
        html.markup("</div>\n");
    }

    fn write_caption(&self, binned: &BinnedNumbers, is_over_index: bool, html: &mut Html) {
        html.markup("<figcaption>");
        if self.count > to_u64(binned.bins.len()) {
            html.markup("minimum and maximum of each of ")
                .number(binned.bins.len());
            html.markup(" bins");
            if !is_over_index {
                html.markup(" of equal width");
            }
        } else {
            html.number(self.count).markup(" values");
        }
        let pieces = &self.pieces;
        if pieces.is_sample() {
            html.markup(" of what was read: ")
                .number(pieces.pieces_read)
                .markup(" evenly spaced pieces of ");
            html.number(pieces.pieces_total)
                .markup(" read; the line has gaps where nothing was read");
        }
        if is_over_index && self.axis.coordinate.is_some() {
            html.markup(", over the index, as ").text(&self.axis.name);
            html.markup(if self.is_over_index {
                " is too large to read"
            } else if binned.coordinate_error.is_some() {
                " cannot be read"
            } else {
                " neither rises nor falls"
            });
        }
        html.markup("</figcaption>\n");
    }

    /// Writes the plot with a logarithmic vertical axis.
    fn write_by_logarithm(
        &self,
        drawing: &Drawing<'_>,
        decades_: &DecadeLines,
        is_over_index: bool,
        html: &mut Html,
    ) {
        let (least, most) = drawing.range;
        html.markup(
            "<details class=\"again\"><summary>Logarithmic axis: all values are above 0, and span ",
        );
        html.number(format_args!("{:.1}", decade_count(least, most)));
        html.markup(" decades</summary>\n<figure class=\"logarithm\">\n");
        let alternative = format!("{}, logarithmic axis", drawing.alternative);
        let drawing = Drawing {
            alternative: &alternative,
            ..*drawing
        };
        drawing.write(
            &decades_.marks(),
            &|value| decades_.relative_position(value),
            html,
        );
        self.write_label(drawing.axis_marks, is_over_index, html);
        html.markup("</figure></details>\n");
    }
}

/// Places each bin at its index among the bins as the horizontal coordinate.
fn place_by_index(bins: &[Bin]) -> PlacedBins {
    let places = bins.iter().enumerate().map(|(number, &bin)| PositionedBin {
        bin,
        x: number as f64,
    });
    PlacedBins {
        positioned_bins: places.collect(),
        range: (0.0, bins.len().saturating_sub(1).max(1) as f64),
    }
}

/// Returns the minimum and maximum of the numbers in all bins; `None` if all bins are empty.
fn value_range(bins: &[Bin]) -> Option<(f64, f64)> {
    let ranges = bins.iter().filter_map(|bin| match bin {
        Bin::Range(least, most) => Some((*least, *most)),
        Bin::Unread | Bin::Empty => None,
    });
    let wider = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.max(b.1));
    ranges.reduce(wider)
}

impl Drawing<'_> {
    /// Writes the label, the numbers at the left, the drawing, and the numbers below it. `share`
    /// converts a value to its position on the vertical axis, from 0 at the first of `marks` to 1
    /// at the last.
    fn write(&self, marks: &[AxisMark], share: &dyn Fn(f64) -> f64, html: &mut Html) {
        html.markup("<div class=\"label\">").text(self.label);
        html.markup("</div>\n<div class=\"ticks\">");
        for mark in marks.iter().rev() {
            html.markup("<span>").text(&mark.text).markup("</span>");
        }
        html.markup(
            "</div>\n<svg viewBox=\"0 0 640 240\" preserveAspectRatio=\"none\" role=\"img\"",
        );
        html.markup(" aria-label=\"")
            .text(self.alternative)
            .markup("\">\n");
        self.write_lines(marks, html);
        html.markup("<path class=\"line\" d=\"");
        write_path(
            self.placed_bins,
            self.is_sampled,
            &|value| HEIGHT - HEIGHT * share(value),
            html,
        );
        html.markup("\"/>\n</svg>\n");
        self.write_axis_marks(html);
    }

    /// Writes the horizontal lines, and the vertical lines at the numbers below the drawing.
    fn write_lines(&self, marks: &[AxisMark], html: &mut Html) {
        html.markup("<path class=\"across\" d=\"");
        for mark in marks {
            let y = HEIGHT - HEIGHT * mark.relative_position;
            html.markup("M").point(0.0, y).markup("L").point(WIDTH, y);
        }
        for mark in &self.axis_marks.marks {
            let x = WIDTH * mark.relative_position;
            html.markup("M").point(x, 0.0).markup("L").point(x, HEIGHT);
        }
        html.markup("\"/>\n");
    }

    fn write_axis_marks(&self, html: &mut Html) {
        html.markup("<svg class=\"below\">");
        for mark in &self.axis_marks.marks {
            // Texts at the ends are aligned so that they stay within the drawing.
            html.markup(match mark.relative_position {
                share if share < 0.05 => "<text class=\"first\" x=\"",
                share if share > 0.95 => "<text class=\"last\" x=\"",
                _ => "<text x=\"",
            });
            html.number(format_args!("{:.2}%", 100.0 * mark.relative_position));
            html.markup("\" y=\"1em\">")
                .text(&mark.text)
                .markup("</text>");
        }
        html.markup("</svg>\n");
    }
}

/// Writes one line through all bins. `height` converts a value to its distance from the top of the
/// drawing. With `is_sampled`, the line is interrupted at bins of which nothing was read.
fn write_path(placed: &PlacedBins, is_sampled: bool, height: &dyn Fn(f64) -> f64, html: &mut Html) {
    let (first, end) = placed.range;
    let mut last = None;
    for place in &placed.positioned_bins {
        match place.bin {
            Bin::Unread if !is_sampled => {}
            Bin::Unread | Bin::Empty => last = None,
            Bin::Range(least, most) => {
                let x = (place.x - first) / (end - first) * WIDTH;
                // The line begins at the nearer end of the bin and goes to the farther one.
                let is_above = last.is_some_and(|last: f64| last - least > most - last);
                let ends = if is_above {
                    [most, least]
                } else {
                    [least, most]
                };
                html.markup(if last.is_some() { "L" } else { "M" });
                html.point(x, height(ends[0]));
                html.markup("L").point(x, height(ends[1]));
                last = Some(ends[1]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(bins: &[Bin], is_sampled: bool) -> String {
        path_of(&place_by_index(bins), is_sampled)
    }

    fn path_of(placed: &PlacedBins, is_sampled: bool) -> String {
        let bins: Vec<Bin> = placed
            .positioned_bins
            .iter()
            .map(|place| place.bin)
            .collect();
        let (least, most) = value_range(&bins).unwrap();
        let lines = AxisLines::choose(least, most);
        let mut html = Html::default();
        let height = |value| HEIGHT - HEIGHT * lines.relative_position(value);
        write_path(placed, is_sampled, &height, &mut html);
        String::from_utf8(html.finish()).unwrap()
    }

    /// Calculated by hand: values from 0 to 4 have heights from 240 to 0, and bins are 320 apart.
    #[test]
    fn a_line_goes_through_the_bins_and_breaks_where_nothing_is() {
        let one = |value| Bin::Range(value, value);
        let whole = path(&[one(0.0), Bin::Range(1.0, 3.0), one(4.0)], false);
        let expected = "M0.0 240.0L0.0 240.0L320.0 180.0L320.0 60.0L640.0 0.0L640.0 0.0";
        assert_eq!(whole, expected);
        let broken = path(&[one(0.0), Bin::Empty, one(4.0)], false);
        assert_eq!(broken, "M0.0 240.0L0.0 240.0M640.0 0.0L640.0 0.0");
        // Without a sample, no coordinate is in the range of the bin.
        let unread = path(&[one(0.0), Bin::Unread, one(4.0)], false);
        assert_eq!(unread, "M0.0 240.0L0.0 240.0L640.0 0.0L640.0 0.0");
        let sampled = path(&[one(0.0), Bin::Unread, one(4.0)], true);
        assert_eq!(sampled, broken);
    }

    /// Calculated by hand: 1 is a quarter of the way from 0 to 4.
    #[test]
    fn a_line_goes_where_its_numbers_stand() {
        let place = |value, x| PositionedBin {
            bin: Bin::Range(value, value),
            x,
        };
        let placed = PlacedBins {
            positioned_bins: vec![place(0.0, 4.0), place(2.0, 1.0), place(4.0, 0.0)],
            range: (0.0, 4.0),
        };
        let expected = "M640.0 240.0L640.0 240.0L160.0 120.0L160.0 120.0L0.0 0.0L0.0 0.0";
        assert_eq!(path_of(&placed, false), expected);
    }
}
