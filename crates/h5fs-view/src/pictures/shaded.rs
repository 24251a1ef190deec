//! The picture of an array on its HTML page. It shows the values between two percentiles as
//! colours, for an overview. `png/` has the exact values.
//!
//! All pictures of a stack have the same range, which is estimated from some of the array's chunks
//! ([`sample`]). Missing values and NaN are transparent. A value outside of the range has the
//! colour of the nearer end. Colour pictures and palette indices are shown as stored.

pub(crate) mod colours;
pub mod north;
pub mod sample;
pub mod scale;
pub mod statistics;

use std::io::Write;
use std::time::Instant;

use h5fs_conventions::dimensions::PathFinder;
use h5fs_reader::array::{CancelToken, MemoryReservation};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::array::{Fill, Storage};
use h5fs_reader::model::{Array, Container, Datatype, Node};
use h5fs_reader::wire::Extent;
use png::{BitDepth, ColorType, DeflateCompression, Encoder, Filter};

use crate::cf::decoded;
use crate::elements::Elements;
use crate::elements::missing::MissingValues;
use crate::limits;
use crate::pictures::appearance::Appearance;
use crate::pictures::image::{Image, PixelKind, PixelType};
use crate::pictures::palette::Palette;
use crate::pictures::picture_style::PictureStyle;
use crate::pictures::png::is_picture;
use crate::pictures::png::output::{EncoderOutput, encoder_error};
use crate::pictures::png::picture::Picture;
use crate::pictures::shaded::statistics::Shading;
use crate::text_files::text::InMemoryContent;

/// Number of colours in the picture's palette, without the transparent colour at index 0.
const COLOURS: u8 = 255;

/// A function that returns the elements that a selector picks, and which of them are missing. An
/// empty selector picks all elements.
pub type ReadPart<'a> = dyn Fn(&str) -> Result<(Elements, Option<MissingValues>)> + 'a;

/// An array to draw on its HTML page.
pub struct DrawnArray<'a> {
    /// The objects of the file.
    pub container: &'a dyn Container,
    /// The object of the array.
    pub node: &'a Node,
    /// Finds the path of an object.
    pub path: &'a PathFinder<'a>,
    /// Reads the elements that a selector picks.
    pub read_part: &'a ReadPart<'a>,
    /// The token of the request that draws the array.
    pub cancel: CancelToken,
}

impl DrawnArray<'_> {
    /// Returns the elements of the picture that `selector` picks. Colours are as stored, and other
    /// numbers are decoded by the netCDF conventions.
    fn picture_elements(
        &self,
        selector: &str,
        appearance: Appearance,
    ) -> Result<(Elements, Option<MissingValues>)> {
        if appearance.has_colours() {
            (self.read_part)(selector)
        } else {
            self.decoded_elements(selector)
        }
    }

    /// Returns the elements that `selector` picks, decoded by the netCDF conventions.
    pub(crate) fn decoded_elements(
        &self,
        selector: &str,
    ) -> Result<(Elements, Option<MissingValues>)> {
        let (elements, missing) = (self.read_part)(selector)?;
        let stored = elements.datatype.clone();
        let elements = decoded::decode_numbers(self.container, self.node, self.path, elements)?;
        let is_as_stored = elements.datatype == stored;
        let missing = missing.or_else(|| self.fill_value_rule(&elements).filter(|_| is_as_stored));
        Ok((elements, missing))
    }

    /// Returns the rule that elements equal to the array's fill value are missing. Returns `None`
    /// if the file does not define a fill value, or if it is 0.
    fn fill_value_rule(&self, elements: &Elements) -> Option<MissingValues> {
        let Fill::Value(fill) = &self.node.array()?.fill else {
            return None;
        };
        let pixel = PixelType::from_datatype(&elements.datatype)?;
        let value = decode_number(pixel, fill.get(..pixel.bytes.into())?);
        let is_one = fill.len() == usize::from(pixel.bytes);
        (is_one && value != 0.0 && !value.is_nan()).then_some(MissingValues::EqualTo(value))
    }
}

/// Decodes a number of type `pixel` from its stored bytes.
fn decode_number(pixel: PixelType, bytes: &[u8]) -> f64 {
    match pixel.kind {
        PixelKind::Float => pixel.decode_float(bytes),
        _ => pixel.decode_integer(bytes) as f64,
    }
}

/// Returns whether the HTML page of an array shows its pictures: at most [`limits::HTML_PICTURE`]
/// bytes must be decoded or read for one picture.
pub fn can_draw(array: &Array, image: &Image) -> bool {
    bytes_to_read(array, image) <= limits::HTML_PICTURE
}

/// Returns whether a part of a virtual array is read from so many sources that reading may take
/// long. `part` has the start and the length of the part in each dimension.
pub(crate) fn has_many_sources(array: &Array, part: impl Iterator<Item = (u64, u64)>) -> bool {
    let Ok(Storage::Virtual(mappings)) = &array.storage else {
        return false;
    };
    let block: Vec<_> = part
        .map(|(start, length)| Extent::saturating(start, length))
        .collect();
    mappings.overlapping(&block).count() > limits::HTML_SOURCES
}

/// Returns the number of bytes that must be decoded or read for one picture.
fn bytes_to_read(array: &Array, image: &Image) -> u64 {
    let leading = image.stack_dims().len();
    let first = image.dims.iter().enumerate();
    let first = first.map(|(axis, &extent)| (0, if axis < leading { 1 } else { extent }));
    if has_many_sources(array, first) {
        return u64::MAX;
    }
    let itemsize = u64::from(image.pixel.bytes);
    let own = image.dims.iter().skip(leading).copied();
    let all = own.clone().fold(itemsize, u64::saturating_mul);
    let Some((chunk, bytes)) = array.filtered_chunk() else {
        return all;
    };
    let along = chunk.iter().skip(leading).chain([1].iter().cycle());
    let chunks = own
        .zip(along)
        .map(|(extent, &chunk)| extent.div_ceil(chunk.max(1)));
    chunks.fold(bytes, u64::saturating_mul)
}

/// Returns the reduction step of the drawn picture: one of this many pixels of `image` is shown in
/// each direction.
pub(crate) fn drawing_step(image: &Image) -> u64 {
    let longest = image.height.max(image.width);
    longest.div_ceil(limits::HTML_PICTURE_EDGE).max(1)
}

/// Returns the width and the height of the drawn picture in pixels.
pub(crate) fn drawn_size(image: &Image) -> (u64, u64) {
    let step = drawing_step(image);
    (image.width.div_ceil(step), image.height.div_ceil(step))
}

/// Draws the picture that `selector` picks, and returns the PNG file. An empty `selector` picks the
/// whole array. Returns `None` if the selected part is not a picture.
///
/// # Errors
/// Fails if a pixel cannot be read.
pub fn draw_png(
    drawn: &DrawnArray<'_>,
    selector: &str,
    look: PictureStyle,
    shading: &Shading,
    (memory, cancel): (&MemoryReservation, &CancelToken),
) -> Result<Option<InMemoryContent>> {
    let (elements, missing) = drawn.picture_elements(selector, look.appearance)?;
    let dims = elements.dims.clone().unwrap_or_default();
    let image = Image::from_datatype(&elements.datatype, &dims, look.appearance);
    let Some(image) = image.filter(is_picture) else {
        return Ok(None);
    };
    let shaded = ShadedPicture {
        missing,
        datatype: elements.datatype.clone(),
        palette: look.palette,
        picture: Picture::new_reduced(image.clone(), elements, drawing_step(&image)),
        image,
        shading,
    };
    shaded.encode(memory, cancel).map(Some)
}

/// A picture that is being drawn for an HTML page.
struct ShadedPicture<'a> {
    image: Image,
    datatype: Datatype,
    missing: Option<MissingValues>,
    palette: Option<Palette>,
    picture: Picture,
    shading: &'a Shading,
}

impl ShadedPicture<'_> {
    fn encode(&self, memory: &MemoryReservation, cancel: &CancelToken) -> Result<InMemoryContent> {
        // The rows of the encoder, and a stored and a converted row.
        const ROWS: u64 = 5;
        let (width, height) = drawn_size(&self.image);
        let mut output = EncoderOutput::new(memory, ROWS * width * self.image.samples * 8)?;
        let encoded = self.write([width, height], cancel, &mut output);
        output.finish(encoded).map(InMemoryContent::new)
    }

    fn write(
        &self,
        size: [u64; 2],
        cancel: &CancelToken,
        output: &mut EncoderOutput<'_>,
    ) -> Result<()> {
        let [width, height] = size.map(|extent| u32::try_from(extent).unwrap_or(0));
        let mut encoder = Encoder::new(output, width, height);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_deflate_compression(DeflateCompression::Level(1));
        encoder.set_filter(Filter::NoFilter);
        match (self.image.samples, &self.palette) {
            (1, Some(palette)) => {
                encoder.set_color(ColorType::Indexed);
                encoder.set_palette(palette.bytes());
            }
            (1, None) => {
                encoder.set_color(ColorType::Indexed);
                encoder.set_palette(self.png_palette());
                encoder.set_trns(vec![0]);
            }
            (3, _) => encoder.set_color(ColorType::Rgb),
            _ => encoder.set_color(ColorType::Rgba),
        }
        let mut writer = encoder.write_header().map_err(encoder_error)?;
        let mut rows = writer.stream_writer().map_err(encoder_error)?;
        let (mut row, mut number) = (Vec::new(), 0);
        let bytes = usize::try_from(size[0].saturating_mul(self.image.samples)).unwrap_or(0);
        let started = Instant::now();
        let mut go_on = || {
            if started.elapsed() > limits::HTML_DRAWING {
                let most = limits::HTML_DRAWING.as_secs();
                return Err(Error::limit("seconds for a picture on a page", most));
            }
            cancel.check_cancelled()
        };
        self.picture.visit_rows(cancel, &mut go_on, &mut |stored| {
            row.clear();
            self.write_row(number, stored, cancel, &mut row)?;
            number += 1;
            if row.len() != bytes {
                return Err(Error::corrupt(
                    "a row of a picture has an unexpected length",
                    None,
                ));
            }
            rows.write_all(&row)
                .map_err(|error| encoder_error(error.into()))
        })?;
        rows.finish().map_err(encoder_error)?;
        writer.finish().map_err(encoder_error)
    }

    /// Returns the palette of the PNG file: a transparent colour, followed by the colours of the
    /// scale from its lower end to its upper end.
    fn png_palette(&self) -> Vec<u8> {
        let last = f64::from(COLOURS - 1);
        let is_inverted = self.image.appearance.is_zero_white;
        let colour = |number: u8| {
            let share = f64::from(number) / last;
            let share = if is_inverted { 1.0 - share } else { share };
            self.shading.scale.colours.colour_at(share)
        };
        let colours = (0..COLOURS).map(colour);
        [[0; 3]].into_iter().chain(colours).flatten().collect()
    }

    /// Converts a shown row to palette indices or colours, and appends them. `place` is the number
    /// of the shown row, and `stored` are its stored pixels.
    fn write_row(
        &self,
        place: u64,
        stored: &[u8],
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let pixel = self.image.pixel;
        let values = stored.chunks_exact(pixel.bytes.into());
        if self.image.samples > 1 {
            let opacity = 3;
            let places = (0..self.image.samples).cycle();
            out.extend(values.zip(places).map(|(bytes, place)| {
                let share = if place == opacity && pixel.kind == PixelKind::Float {
                    decode_number(pixel, bytes)
                } else {
                    let share = self
                        .shading
                        .scale
                        .relative_position(decode_number(pixel, bytes));
                    share.unwrap_or(0.0)
                };
                (share * 255.0).round() as u8
            }));
            return Ok(());
        }
        if self.palette.is_some() {
            out.extend_from_slice(stored);
            return Ok(());
        }
        let missing = self.missing_pixels(place, stored, cancel)?;
        let scale = &self.shading.scale;
        out.extend(values.enumerate().map(|(column, bytes)| {
            let value = match missing.get(column) {
                Some(true) => f64::NAN,
                _ => decode_number(pixel, bytes),
            };
            match scale.relative_position(value) {
                Some(share) => 1 + (share * f64::from(COLOURS - 1)).round() as u8,
                None => 0,
            }
        }));
        Ok(())
    }

    /// Returns, for each pixel of the shown row `number`, whether the pixel is missing; an empty
    /// list if no value of the array is missing.
    fn missing_pixels(
        &self,
        number: u64,
        stored: &[u8],
        cancel: &CancelToken,
    ) -> Result<Vec<bool>> {
        let width = self.image.width;
        match &self.missing {
            None => Ok(Vec::new()),
            Some(missing @ MissingValues::EqualTo(_)) => {
                missing.find_missing(&self.datatype, 0, 0, stored, cancel)
            }
            Some(missing) => {
                let step = drawing_step(&self.image);
                let first = number * step * width;
                let all = missing.find_missing(&self.datatype, first, width, &[], cancel)?;
                let step = usize::try_from(step).unwrap_or(usize::MAX);
                Ok(all.into_iter().step_by(step).collect())
            }
        }
    }
}
