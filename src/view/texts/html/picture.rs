//! The pictures of an array, which are files of their own: one, or a strip of some of a stack.

use crate::error::Result;
use crate::view::elements::opened;
use crate::view::pictures::appearance::Appearance;
use crate::view::pictures::image::Image;
use crate::view::texts::html::axes::{self, Axis};
use crate::view::texts::html::draft::Draft;
use crate::view::texts::html::markup::{Html, Url};
use crate::view::texts::html::object::Object;
use crate::view::texts::html::site::Pictures;

/// Pictures of a strip.
const FRAMES: u64 = 8;

/// Writes the pictures, if the array has any.
pub(super) fn write(object: &Object<'_>, draft: &mut Draft) {
    let drawn = match object.site.pictures() {
        Pictures::None => return,
        Pictures::One(url) => picture(object, &url),
        Pictures::Frames(count) => Ok(strip(object, count)),
    };
    match drawn {
        Ok(figure) => drop(draft.body.piece(&figure)),
        Err(error) => draft.fail(&error),
    }
}

/// The picture, with what stands along its sides.
fn picture(object: &Object<'_>, url: &Url) -> Result<Html> {
    let mut html = Html::default();
    let Some(array) = object.node.array() else {
        return Ok(html);
    };
    let (datatype, dims) = opened(&array.datatype, &array.shape)?;
    let dims = dims.unwrap_or_default();
    let appearance = Appearance::of(&**object.container, object.node)?;
    let Some(image) = Image::of(&datatype, &dims, appearance) else {
        return Ok(html);
    };
    let axes = axes::of_dimensions(object, &dims)?;
    let rows = image.leading().len();
    let [down, across] = [rows, rows + 1].map(|number| axes.get(number));
    html.markup("<figure class=\"picture\">\n<div class=\"label\">");
    html.text(axes::of_values(object)?)
        .markup("</div>\n<div class=\"down\">");
    write_side(down, image.height, &mut html);
    html.markup("</div>\n<a href=\"")
        .url(url)
        .markup("\"><img src=\"")
        .url(url);
    html.markup("\" alt=\"the array as a picture\"></a>\n<div class=\"along\">");
    write_side(across, image.width, &mut html);
    html.markup("</div>\n</figure>\n");
    Ok(html)
}

/// Writes the first value along a side, the name, and the last value.
fn write_side(axis: Option<&Axis>, length: u64, html: &mut Html) {
    let none = Axis::default();
    let axis = axis.unwrap_or(&none);
    html.markup("<span>")
        .text(axis.at(0))
        .markup("</span><span>");
    html.text(&axis.label).markup("</span><span>");
    html.text(axis.at(length.saturating_sub(1)))
        .markup("</span>");
}

/// Evenly spaced ones of `count` pictures.
fn strip(object: &Object<'_>, count: u64) -> Html {
    let mut html = Html::default();
    html.markup("<div class=\"strip\">\n");
    for number in spaced(count) {
        if let Some(url) = object.site.frame(number) {
            html.markup("<a href=\"").url(&url).markup("\"><img src=\"");
            html.url(&url).markup("\" alt=\"\"><small>").number(number);
            html.markup("</small></a>\n");
        }
    }
    html.markup("</div>\n<p class=\"note\">")
        .number(count.min(FRAMES));
    html.markup(" of ").number(count).markup(" pictures</p>\n");
    html
}

/// The numbers of the pictures in a strip of `count`.
fn spaced(count: u64) -> impl Iterator<Item = u64> {
    let shown = count.min(FRAMES);
    let steps = u128::from(shown.saturating_sub(1).max(1));
    let last = u128::from(count.saturating_sub(1));
    (0..shown).map(move |place| u64::try_from(u128::from(place) * last / steps).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_the_first_and_the_last_picture() {
        let numbers = |count| spaced(count).collect::<Vec<_>>();
        assert_eq!(numbers(1), [0]);
        assert_eq!(numbers(3), [0, 1, 2]);
        assert_eq!(numbers(365), [0, 52, 104, 156, 208, 260, 312, 364]);
        assert_eq!(numbers(u64::MAX).last(), Some(&(u64::MAX - 1)));
    }
}
