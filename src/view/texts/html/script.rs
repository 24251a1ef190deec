//! The script of a page that a server gives, and what the page tells it. A page that is a file has
//! none: all that it shows is there without one.
//!
//! | file | what it adds |
//! |---|---|
//! | `numbers.js` | parts of an array, from its file of NumPy |
//! | `rows.js` | rows of a table, from its CSV |
//! | `controls.js` | what is pressed, dragged and read |
//! | `picture.js`, `shown.js` | a slider through a stack, zoom, the value beneath the pointer, the range |
//! | `line.js` | the value beneath the pointer, of a line |
//! | `table.js` | all rows |
//! | `search.js` | names and attributes of the whole file |
//! | `start.js` | where each of them is put |

use sha2::{Digest, Sha256};

use crate::error::Result;
use crate::model::NodeId;
use crate::view::cf::attributes;
use crate::view::elements::missing::Missing;
use crate::view::pictures::appearance::Interlace;
use crate::view::pictures::image::Image;
use crate::view::pictures::shaded::Drawn;
use crate::view::pictures::shaded::scale::Kind;
use crate::view::pictures::shaded::statistics::Shading;
use crate::view::texts::html::markup::{Html, Url};
use crate::view::texts::html::object::Object;

/// The script.
pub(crate) const TEXT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("script/numbers.js"),
    include_str!("script/rows.js"),
    include_str!("script/controls.js"),
    include_str!("script/shown.js"),
    include_str!("script/picture.js"),
    include_str!("script/line.js"),
    include_str!("script/table.js"),
    include_str!("script/search.js"),
    include_str!("script/start.js"),
    "})();\n",
);

/// A part of the script's address: another script has another one.
pub(crate) fn version() -> String {
    let digest = Sha256::digest(TEXT);
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Writes where the script and the answers to searches are, if a server gives them.
pub(super) fn write_head(object: &Object<'_>, html: &mut Html) {
    let Some(place) = object.site.script() else {
        return;
    };
    html.markup("<script src=\"").url(&place);
    html.markup("?script=").text(version());
    html.markup("\" data-search=\"").url(&place);
    html.markup("?search=\"></script>\n");
}

/// Writes what the script needs to know of a picture, as attributes of its figure.
///
/// # Errors
/// Fails if it cannot be found out which values are missing.
pub(super) fn tell_of_picture(
    object: &Object<'_>,
    image: &Image,
    sides: [usize; 2],
    shading: &Shading,
    html: &mut Html,
) -> Result<()> {
    if object.site.script().is_none() {
        return Ok(());
    }
    html.markup(" data-dims=\"");
    write_extents(&image.dims, html);
    html.markup("\" data-leading=\"")
        .number(image.leading().len());
    html.markup("\" data-sides=\"")
        .number(sides[0])
        .markup(" ")
        .number(sides[1])
        .markup("\"");
    let missing = missing(object)?;
    let is_plain = match image.appearance.interlace {
        None => image.appearance.palette.is_none(),
        Some(interlace) => interlace == Interlace::Pixel,
    };
    // Times are drawn as the numbers that they are stored as.
    let is_time = attributes::time(&**object.container, object.node.id)?.is_some();
    let numbers = object.site.numbers(!is_time).filter(|_| is_plain);
    let Some(numbers) = numbers.filter(|_| !matches!(missing, Some(Missing::Marked(_)))) else {
        return Ok(());
    };
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
    if let Some(Missing::Equal(value)) = missing {
        tell("\" data-missing=\"", value);
    }
    html.markup("\"");
    for (is_so, markup) in [
        (scale.kind == Kind::Log, " data-log"),
        (image.appearance.origin.is_below, " data-below"),
        (image.appearance.origin.is_right, " data-right"),
    ] {
        if is_so {
            html.markup(markup);
        }
    }
    Ok(())
}

/// Which values of the array are missing.
fn missing(object: &Object<'_>) -> Result<Option<Missing>> {
    let drawn = Drawn {
        container: &**object.container,
        node: object.node,
        path: &|| Ok(object.path.to_vec()),
        part: object.part,
    };
    drawn.numbers("").map(|(_, missing)| missing)
}

/// What a line is drawn over.
pub(super) struct Over {
    /// The array of its numbers, or of the edges between them.
    pub(super) node: NodeId,
    /// The numbers at the ends of the drawing.
    pub(super) range: (f64, f64),
    pub(super) is_time: bool,
    pub(super) are_edges: bool,
}

/// Writes where the numbers of a line are, and those over which it is drawn, as attributes of its
/// figure.
pub(super) fn tell_of_line(object: &Object<'_>, count: u64, over: Option<Over>, html: &mut Html) {
    let Some(numbers) = place(object, object.site.numbers(true)) else {
        return;
    };
    html.markup(" data-numbers=\"").url(&numbers);
    html.markup("\" data-count=\"").number(count).markup("\"");
    let Some(over) = over else {
        return;
    };
    let along = object.site.numbers_of(over.node, !over.is_time);
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
        .numbers_of(over.node, true)
        .filter(|_| over.is_time)
    {
        html.markup(" data-times=\"").url(&times).markup("\"");
    }
    if over.are_edges {
        html.markup(" data-edges");
    }
}

/// Writes where all rows of a table are, as attributes of the box around it: of an array of `dims`,
/// of which the first `leading` stand before the rows, or of a group.
pub(super) fn tell_of_rows(
    object: &Object<'_>,
    (dims, leading): (&[u64], usize),
    is_record: bool,
    html: &mut Html,
) {
    if let Some(rows) = place(object, object.site.part("")) {
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

/// The place, if a script asks for it.
fn place(object: &Object<'_>, url: Option<Url>) -> Option<Url> {
    object.site.script().and(url)
}

fn write_extents(extents: &[u64], html: &mut Html) {
    for (number, extent) in extents.iter().enumerate() {
        html.markup(if number > 0 { " " } else { "" })
            .number(extent);
    }
}
