//! The script of a page that a server provides, and the data that the page passes to it. A page
//! that is a file does not have a script, and shows all its content without one.
//!
//! | file | feature |
//! |---|---|
//! | `numbers.js` | parts of an array, read from its NumPy file |
//! | `rows.js` | rows of a table, read from its CSV file |
//! | `controls.js` | buttons, sliders and readouts |
//! | `state.js` | the state of the file, and the state of the page in its URL |
//! | `axis.js` | coordinate values |
//! | `picture.js`, `shown.js` | sliders for the axes, the choice of the sides, zoom |
//! | `pointer.js` | the value at the pointer, with mouse, touch and keyboard |
//! | `range.js` | the range of the colours, and a histogram |
//! | `profiles.js` | the numbers along each axis through an element |
//! | `line.js` | the value of a line at the pointer |
//! | `table.js` | scrolling through all rows |
//! | `search.js` | search in the names and attributes of the whole file |
//! | `start.js` | attaches the features to the page |

use h5fs_conventions::attributes;
use h5fs_reader::error::Result;
use h5fs_reader::model::NodeId;
use sha2::{Digest, Sha256};

use crate::documents::html::axes::{self, PageAxis};
use crate::documents::html::markup::{Html, Url};
use crate::documents::html::object::PageObject;
use crate::elements::missing::MissingValues;
use crate::pictures::appearance::Interlace;
use crate::pictures::image::Image;
use crate::pictures::shaded::DrawnArray;
use crate::pictures::shaded::scale::ScaleKind;
use crate::pictures::shaded::statistics::Shading;

/// The JavaScript code that a server provides to its pages.
pub const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("script/numbers.js"),
    include_str!("script/rows.js"),
    include_str!("script/controls.js"),
    include_str!("script/state.js"),
    include_str!("script/axis.js"),
    include_str!("script/shown.js"),
    include_str!("script/picture.js"),
    include_str!("script/pointer.js"),
    include_str!("script/range.js"),
    include_str!("script/profiles.js"),
    include_str!("script/line.js"),
    include_str!("script/table.js"),
    include_str!("script/search.js"),
    include_str!("script/start.js"),
    "})();\n",
);

/// Returns the version for the script's URL. The version changes whenever the script changes.
pub fn version() -> String {
    let digest = Sha256::digest(SCRIPT);
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Writes the URLs of the script and of the search, if a server provides them.
pub(super) fn write_head(object: &PageObject<'_>, html: &mut Html) {
    let Some(place) = object.site.script_url() else {
        return;
    };
    html.markup("<script src=\"").url(&place);
    html.markup("?script=").text(version());
    html.markup("\" data-search=\"").url(&place);
    html.markup("?search=\"");
    write_state(object, html);
    html.markup("></script>\n");
}

/// Writes the state of the data file, and where the script finds the shape of the object's array in
/// a later state.
fn write_state(object: &PageObject<'_>, html: &mut Html) {
    if let Some(tag) = object.site.state_tag() {
        html.markup(" data-state=\"").text(tag).markup("\"");
    }
    if object.container.is_growing() {
        html.markup(" data-growing");
    }
    let dims = object
        .node
        .array()
        .map_or(&[][..], |array| array.shape.dims());
    let header = object.site.npy_url(false).filter(|_| !dims.is_empty());
    if let Some(header) = header {
        html.markup(" data-shape=\"");
        write_extents(dims, html);
        html.markup("\" data-header=\"").url(&header).markup("\"");
    }
}

/// Writes the data of a picture for the page's script, as HTML attributes of the figure. `sides`
/// are the indices of the dimensions of rows and columns.
///
/// # Errors
/// Fails if the mask of missing values, or an attribute, cannot be read.
pub(super) fn write_picture_data(
    object: &PageObject<'_>,
    image: &Image,
    sides: [usize; 2],
    shading: &Shading,
    html: &mut Html,
) -> Result<()> {
    if object.site.script_url().is_none() {
        return Ok(());
    }
    html.markup(" data-dims=\"");
    write_extents(&image.dims, html);
    html.markup("\" data-leading=\"")
        .number(image.stack_dims().len());
    html.markup("\" data-sides=\"")
        .number(sides[0])
        .markup(" ")
        .number(sides[1])
        .markup("\"");
    let missing = missing_values(object)?;
    let is_plain = match image.appearance.interlace {
        None => image.appearance.palette.is_none(),
        Some(interlace) => interlace == Interlace::Pixel,
    };
    // Times are drawn as their stored numbers.
    let is_time = attributes::read_time_units(&**object.container, object.node.id)?.is_some();
    let numbers = object.site.npy_url(!is_time).filter(|_| is_plain);
    let Some(numbers) = numbers.filter(|_| !matches!(missing, Some(MissingValues::Masked(_))))
    else {
        return Ok(());
    };
    if let Some(unit) = axes::values_unit(object)? {
        html.markup(" data-unit=\"").text(unit).markup("\"");
    }
    html.markup(" data-numbers=\"").url(&numbers);
    html.markup("\" data-samples=\"").number(image.samples);
    let scale = &shading.scale;
    let known = &shading.statistics;
    let mut tell = |name: &'static str, value: f64| {
        html.markup(name).number(format_args!("{value:e}"));
    };
    tell("\" data-low=\"", scale.low);
    tell("\" data-high=\"", scale.high);
    tell("\" data-least=\"", known.least);
    tell("\" data-most=\"", known.most);
    if let Some(MissingValues::EqualTo(value)) = missing {
        tell("\" data-missing=\"", value);
    }
    html.markup("\"");
    for (is_so, markup) in [
        (scale.kind == ScaleKind::Log, " data-log"),
        (image.appearance.origin.is_bottom, " data-below"),
        (image.appearance.origin.is_right, " data-right"),
    ] {
        if is_so {
            html.markup(markup);
        }
    }
    Ok(())
}

/// Writes the names, the units and the URLs of the coordinate values of a picture's dimensions for
/// the page's script, as HTML attributes of the figure.
pub(super) fn write_axis_data(object: &PageObject<'_>, axes: &[PageAxis], html: &mut Html) {
    if object.site.script_url().is_none() {
        return;
    }
    for (number, axis) in axes.iter().enumerate() {
        let place = axis.coordinates();
        let place = place.and_then(|node| object.site.npy_url_of(node, true));
        if !axis.name.is_empty() {
            html.markup(" data-axis").number(number).markup("name=\"");
            html.text(&axis.name).markup("\"");
        }
        if let Some(unit) = &axis.unit {
            html.markup(" data-axis").number(number).markup("unit=\"");
            html.text(unit).markup("\"");
        }
        if let Some(place) = place {
            html.markup(" data-axis").number(number).markup("at=\"");
            html.url(&place).markup("\"");
        }
    }
}

/// Returns the rule for missing values of the object's array; `None` if no value counts as missing.
fn missing_values(object: &PageObject<'_>) -> Result<Option<MissingValues>> {
    let drawn = DrawnArray {
        container: &**object.container,
        node: object.node,
        path: &|| Ok(object.path.to_vec()),
        read_part: object.read_part,
        cancel: object.cancel.clone(),
    };
    drawn.decoded_elements("").map(|(_, missing)| missing)
}

/// The coordinates of a line plot, for the page's script.
pub(super) struct LineCoordinates {
    /// The node of the array with the coordinates, or with bin edges.
    pub(super) node: NodeId,
    /// The coordinates at the left and right end of the drawing.
    pub(super) range: (f64, f64),
    pub(super) is_time: bool,
    pub(super) are_edges: bool,
}

/// Writes the URLs of the numbers and the coordinates of a line plot for the page's script, as HTML
/// attributes of the figure. `count` is the number of elements, and `over` describes the
/// coordinates.
pub(super) fn write_line_data(
    object: &PageObject<'_>,
    count: u64,
    over: Option<LineCoordinates>,
    html: &mut Html,
) {
    let Some(numbers) = scripted_url(object, object.site.npy_url(true)) else {
        return;
    };
    html.markup(" data-numbers=\"").url(&numbers);
    html.markup("\" data-count=\"").number(count).markup("\"");
    let Some(over) = over else {
        return;
    };
    let along = object.site.npy_url_of(over.node, !over.is_time);
    let Some(along) = along else {
        return;
    };
    html.markup(" data-along=\"").url(&along);
    html.markup("\" data-first=\"")
        .number(format_args!("{:e}", over.range.0));
    html.markup("\" data-last=\"")
        .number(format_args!("{:e}", over.range.1));
    html.markup("\"");
    if let Some(times) = object
        .site
        .npy_url_of(over.node, true)
        .filter(|_| over.is_time)
    {
        html.markup(" data-times=\"").url(&times).markup("\"");
    }
    if over.are_edges {
        html.markup(" data-edges");
    }
}

/// Writes the URL of the decoded elements of a table for the page's script, and the names of the
/// columns of one element if there are several, such as the parts of a complex number.
pub(super) fn write_element_data(
    object: &PageObject<'_>,
    is_decoded: bool,
    parts: &[Vec<u8>],
    html: &mut Html,
) {
    let decoded = object.site.npy_url(true).filter(|_| is_decoded);
    if let Some(decoded) = scripted_url(object, decoded) {
        html.markup(" data-decoded=\"").url(&decoded).markup("\"");
    }
    if parts.len() > 1 && object.site.script_url().is_some() {
        html.markup(" data-parts=\"");
        html.text(parts.join(&b' ')).markup("\"");
    }
}

/// Writes the URL of all rows of a table for the page's script, as HTML attributes of the box
/// around the table. `dims` are the dimensions of the array or group. The first `leading` of them
/// precede the rows.
pub(super) fn write_rows_url(
    object: &PageObject<'_>,
    (dims, leading): (&[u64], usize),
    is_record: bool,
    html: &mut Html,
) {
    if let Some(rows) = scripted_url(object, object.site.part_table_url("")) {
        html.markup(" data-rows=\"").url(&rows);
        html.markup("\" data-dims=\"");
        write_extents(dims, html);
        html.markup("\" data-leading=\"")
            .number(leading)
            .markup("\"");
        if is_record {
            html.markup(" data-record");
        }
    }
}

/// Returns `url` if the page has a script; otherwise `None`.
fn scripted_url(object: &PageObject<'_>, url: Option<Url>) -> Option<Url> {
    object.site.script_url().and(url)
}

fn write_extents(extents: &[u64], html: &mut Html) {
    for (number, extent) in extents.iter().enumerate() {
        html.markup(if number > 0 { " " } else { "" })
            .number(extent);
    }
}
