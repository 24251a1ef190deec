//! The pictures of an array, which are separate files. A page has one picture, and for a stack also
//! a strip of small pictures.

use std::sync::Arc;

use h5fs_reader::error::Result;
use h5fs_reader::model::Array;

use crate::documents::html::axes::{self, PageAxis};
use crate::documents::html::legend::Legend;
use crate::documents::html::markup::{Html, Url};
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::PageDraft;
use crate::documents::html::page_site::PictureFiles;
use crate::documents::html::script;
use crate::elements::element_type;
use crate::pictures::appearance::Interlace;
use crate::pictures::image::Image;
use crate::pictures::shaded::{self, north};

/// Maximum number of pictures in a strip.
const MAX_STRIP_PICTURES: u64 = 8;

/// A picture on a page, and the PNG file to which the picture links.
struct LinkedPicture {
    drawn_url: Option<Url>,
    file_url: Url,
}

/// Writes the pictures of the array, if it has any.
pub(super) fn write(object: &PageObject<'_>, draft: &mut PageDraft) {
    let (place, frames) = match object.site.picture_files() {
        PictureFiles::None => return,
        PictureFiles::One(file) => {
            let drawn = object.site.drawn_picture_url(None);
            (
                Some(LinkedPicture {
                    drawn_url: drawn,
                    file_url: file,
                }),
                None,
            )
        }
        PictureFiles::Stack(count) => (linked_picture(object, 0), Some(count)),
    };
    let Some((place, array)) = place.zip(object.node.array()) else {
        return;
    };
    if object.group.is_none() {
        draft.write_heading("Picture");
    }
    match render_pictures(object, array, &place, frames) {
        Ok(figure) => drop(draft.body.append_html(&figure)),
        Err(error) => draft.write_error(&error),
    }
}

/// Returns picture `number` of a stack and the PNG file to which it links; `None` if the picture
/// does not have a PNG file.
fn linked_picture(object: &PageObject<'_>, number: u64) -> Option<LinkedPicture> {
    Some(LinkedPicture {
        drawn_url: object.site.drawn_picture_url(Some(number)),
        file_url: object.site.frame_url(number)?,
    })
}

fn render_pictures(
    object: &PageObject<'_>,
    array: &Arc<Array>,
    place: &LinkedPicture,
    frames: Option<u64>,
) -> Result<Html> {
    let mut html = Html::default();
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    let dims = dims.unwrap_or_default();
    let path = || Ok(object.path.to_vec());
    let appearance =
        north::page_appearance(&**object.container, object.engine, object.node, &path)?;
    let Some(image) = Image::from_datatype(&datatype, &dims, appearance) else {
        return Ok(html);
    };
    let shading = if shaded::can_draw(array, &image) {
        (object.shading)()?
    } else {
        None
    };
    match shading.zip(place.drawn_url.as_ref()) {
        Some((shading, drawn)) => {
            let axes = axes::dimension_axes(object, &image.dims)?;
            let legend = Legend::new(&image, &shading, frames);
            let urls = (drawn, &place.file_url);
            html.markup("<figure class=\"picture w")
                .number(relative_width(&image))
                .markup("\"");
            script::write_picture_data(
                object,
                &image,
                row_column_dims(&image),
                &shading,
                &mut html,
            )?;
            script::write_axis_data(object, &axes, &mut html);
            html.markup(">\n");
            write_figure(object, (&image, &axes), &legend, urls, &mut html)?;
            if let Some(count) = frames.filter(|_| object.group.is_none()) {
                write_strip(object, &image, count, &mut html);
            }
        }
        None => {
            html.markup("<p class=\"note\">too large to draw on a page; ");
            html.link(&place.file_url, "png").markup(" has it</p>\n");
        }
    }
    Ok(html)
}

/// Writes the picture with its axes.
fn write_figure(
    object: &PageObject<'_>,
    (image, axes): (&Image, &[PageAxis]),
    legend: &Legend<'_>,
    (drawn, file): (&Url, &Url),
    html: &mut Html,
) -> Result<()> {
    let name = axes::values_label(object)?;
    let [down, across] = row_column_dims(image).map(|number| axes.get(number));
    let origin = image.appearance.origin;
    html.markup("<div class=\"label\">")
        .text(&name)
        .markup("</div>\n<div class=\"down\">");
    write_side(down, image.height, origin.is_bottom, html);
    html.markup("</div>\n<a href=\"").url(file);
    html.markup("\"><img src=\"").url(drawn);
    write_size(image, html);
    html.markup("\" alt=\"")
        .text(legend.alternative_text(&name))
        .markup("\"></a>\n<div class=\"along\">");
    write_side(across, image.width, origin.is_right, html);
    html.markup("</div>\n");
    legend.write_bar(html);
    html.markup("<figcaption>").text(legend.describe());
    html.markup(" <span>The values are in ")
        .link(file, "png")
        .markup(".</span></figcaption>\n</figure>\n");
    Ok(())
}

/// Returns the width of a picture, scaled so that its height is 20. The result is between 1 and 60.
fn relative_width(image: &Image) -> u64 {
    let breadth = u128::from(image.width) * 20 / u128::from(image.height.max(1));
    u64::try_from(breadth.clamp(1, 60)).unwrap_or(20)
}

/// Writes the width and the height of a drawn picture, as attributes of the `img` element that is
/// still open.
fn write_size(image: &Image, html: &mut Html) {
    let (width, height) = shaded::drawn_size(image);
    html.markup("\" width=\"").number(width);
    html.markup("\" height=\"").number(height);
}

/// Returns the indices of the array's dimensions that are the rows and the columns of a picture.
fn row_column_dims(image: &Image) -> [usize; 2] {
    let first = image.stack_dims().len();
    match image.appearance.interlace {
        Some(Interlace::Plane) => [first + 1, first + 2],
        Some(Interlace::Line) => [first, first + 2],
        _ => [first, first + 1],
    }
}

/// Writes the label of one side of a picture: the first coordinate, the name of the dimension, and
/// the last coordinate.
fn write_side(axis: Option<&PageAxis>, length: u64, is_reversed: bool, html: &mut Html) {
    let none = PageAxis::default();
    let axis = axis.unwrap_or(&none);
    let mut ends = [0, length.saturating_sub(1)];
    if is_reversed {
        ends.reverse();
    }
    html.markup("<span>")
        .text(axis.coordinate_text(ends[0]))
        .markup("</span><span>");
    html.text(&axis.label).markup("</span><span>");
    html.text(axis.coordinate_text(ends[1])).markup("</span>");
}

/// Writes a strip of evenly spaced small pictures of a stack of `count` pictures.
fn write_strip(object: &PageObject<'_>, image: &Image, count: u64, html: &mut Html) {
    html.markup("<div class=\"strip\">\n");
    for number in spaced_frame_numbers(count) {
        let Some(LinkedPicture {
            drawn_url: Some(drawn),
            file_url: file,
        }) = linked_picture(object, number)
        else {
            continue;
        };
        html.markup("<a href=\"")
            .url(&file)
            .markup("\"><img src=\"");
        html.url(&drawn);
        write_size(image, html);
        html.markup("\" alt=\"picture ")
            .number(number)
            .markup("\"><small>")
            .number(number)
            .markup("</small></a>\n");
    }
    html.markup("</div>\n<p class=\"note\">")
        .number(count.min(MAX_STRIP_PICTURES));
    html.markup(" of ")
        .number(count)
        .markup(" pictures, all in one range</p>\n");
}

/// Returns the numbers of the pictures in the strip of a stack of `count` pictures.
fn spaced_frame_numbers(count: u64) -> impl Iterator<Item = u64> {
    let shown = count.min(MAX_STRIP_PICTURES);
    let steps = u128::from(shown.saturating_sub(1).max(1));
    let last = u128::from(count.saturating_sub(1));
    (0..shown).map(move |place| u64::try_from(u128::from(place) * last / steps).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_the_first_and_the_last_picture() {
        let numbers = |count| spaced_frame_numbers(count).collect::<Vec<_>>();
        assert_eq!(numbers(1), [0]);
        assert_eq!(numbers(3), [0, 1, 2]);
        assert_eq!(numbers(365), [0, 52, 104, 156, 208, 260, 312, 364]);
        assert_eq!(numbers(u64::MAX).last(), Some(&(u64::MAX - 1)));
    }
}
