//! A PNG file of one picture: integers of 8 and 16 bits and booleans as they are, other numbers
//! scaled to 16 bits.
//!
//! Portable Network Graphics, Third Edition. A text chunk (11.3.3.2) says how the values are found
//! again:
//!
//! | keyword | the chunk's number |
//! |---|---|
//! | `Offset` | what is to be added to the pixels: the minimum of signed integers, if it is negative |
//! | `Minimum`, `Maximum` | the finite values that the pixels 0 and 65535 stand for |
//! | `Step` | one pixel of so many in each direction is shown |
//!
//! NaN is 0, and so is what all pixels are that have one value; the infinities are 0 and 65535.
//! The file is made whole, as its size is not known before, with a few rows in memory beside it.

mod levels;
mod output;

use std::io::Write;
use std::time::Instant;

use png::{BitDepth, ColorType, DeflateCompression, Encoder, Filter};

use crate::array::HeldMemory;
use crate::error::{Error, Result};
use crate::limits;
use crate::view::elements::Elements;
use crate::view::image::Image;
use crate::view::png::levels::{Levels, Range};
use crate::view::png::output::{Output, failed};
use crate::view::text::Text;
use crate::wire::to_usize;

/// Bytes of an array that are read at a time.
const BATCH: u64 = 256 << 10;

/// Whether an array of these pictures is one picture with rows and columns.
pub(crate) fn is_picture(image: &Image) -> bool {
    image.leading().is_empty() && image.dims.len() > 1
}

/// The file of `elements`; `None` where they are no picture. What it takes is held in `memory`.
///
/// # Errors
/// As an element cannot be read; `Limit` where it is too large, or takes too long.
pub(crate) fn file(elements: Elements, memory: &HeldMemory) -> Result<Option<Text>> {
    let dims = elements.dims.as_deref().unwrap_or_default();
    let image = Image::of(&elements.datatype, dims).filter(is_picture);
    let encode = |image| Picture::new(image, elements)?.encode(memory);
    image.map(encode).transpose()
}

/// The elements of a picture, of which one pixel of `step` in each direction is shown.
struct Picture {
    image: Image,
    elements: Elements,
    /// Bytes of a pixel as the array has it.
    pixel: u64,
    step: u64,
    started: Instant,
}

impl Picture {
    fn new(image: Image, elements: Elements) -> Result<Self> {
        // More pixels than a file has bytes would wrap around below.
        let pixel = image.samples * u64::from(image.pixel.bytes);
        let numbers = image.numbers().and_then(|numbers| numbers.checked_mul(8));
        numbers.ok_or_else(|| Error::limit("size of a picture", u64::MAX))?;
        Ok(Picture {
            pixel,
            step: step(image.height, image.width),
            image,
            elements,
            started: Instant::now(),
        })
    }

    /// The pixels that are shown of so many.
    fn shown(&self, extent: u64) -> u64 {
        extent.div_ceil(self.step)
    }

    fn encode(&self, memory: &HeldMemory) -> Result<Text> {
        // Rows of the encoder, and those here as they are stored and as they are written.
        const ROWS: u64 = 5;
        let row = self.shown(self.image.width) * self.image.samples * 8;
        let mut output = Output::new(memory, ROWS * row)?;
        let levels = self.levels()?;
        let encoded = self.write(&levels, &mut output);
        output.finished(encoded).map(Text::new)
    }

    fn write(&self, levels: &Levels, output: &mut Output<'_>) -> Result<()> {
        let size = |extent: u64| u32::try_from(self.shown(extent)).unwrap_or(0);
        let (height, width) = (size(self.image.height), size(self.image.width));
        let mut encoder = Encoder::new(output, width, height);
        encoder.set_color(match self.image.samples {
            1 => ColorType::Grayscale,
            3 => ColorType::Rgb,
            _ => ColorType::Rgba,
        });
        encoder.set_depth(levels.depth());
        // Higher levels take several times as long for a tenth less.
        encoder.set_deflate_compression(DeflateCompression::Level(1));
        encoder.set_filter(match levels.depth() {
            BitDepth::One => Filter::NoFilter,
            _ => Filter::Up,
        });
        for (keyword, text) in self.texts(levels) {
            let added = encoder.add_text_chunk(keyword.to_owned(), text);
            added.map_err(failed)?;
        }
        let mut writer = encoder.write_header().map_err(failed)?;
        let mut rows = writer.stream_writer().map_err(failed)?;
        let mut row = Vec::new();
        self.rows(&mut |stored| {
            row.clear();
            levels.write(stored, &mut row);
            rows.write_all(&row).map_err(|error| failed(error.into()))
        })?;
        rows.finish().map_err(failed)?;
        writer.finish().map_err(failed)
    }

    /// What becomes of the values, for which some have to be looked at.
    fn levels(&self) -> Result<Levels> {
        let samples = self.image.samples;
        Levels::of(self.image.pixel, samples, &mut |range: &mut dyn Range| {
            self.rows(&mut |stored| {
                range.include(stored);
                Ok(())
            })
        })
    }

    fn texts(&self, levels: &Levels) -> Vec<(&'static str, String)> {
        let mut texts = levels.texts();
        if self.step > 1 {
            texts.push(("Step", self.step.to_string()));
        }
        texts
    }

    /// Hands the shown pixels of each shown row to `visit`, as they are stored.
    fn rows(&self, visit: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut row = Vec::new();
        for number in 0..self.shown(self.image.height) {
            if self.started.elapsed() > limits::PICTURE_TIME {
                let most = limits::PICTURE_TIME.as_secs();
                return Err(Error::limit("seconds that a picture takes", most));
            }
            row.clear();
            self.row(number * self.step, &mut row)?;
            visit(&row)?;
        }
        Ok(())
    }

    /// Appends the shown pixels of the array's row `number`.
    fn row(&self, number: u64, out: &mut Vec<u8>) -> Result<()> {
        let distance = self.step * self.pixel;
        let pixel = to_usize(self.pixel)?;
        let (mut first, end) = (0, self.shown(self.image.width));
        while first < end {
            let count = (BATCH / distance).clamp(1, end - first);
            let length = to_usize((count - 1) * distance + self.pixel)?;
            let place = number * self.image.width + first * self.step;
            let bytes = self.elements.content.read_at(place * self.pixel, length)?;
            if bytes.len() != length {
                return Err(Error::corrupt("array: fewer elements than its shape", None));
            }
            match self.step {
                1 => out.extend_from_slice(&bytes),
                _ => {
                    let pixels = bytes.chunks(to_usize(distance)?);
                    pixels.for_each(|pixels| out.extend_from_slice(&pixels[..pixel]));
                }
            }
            first += count;
        }
        Ok(())
    }
}

/// The least number so that one pixel of so many in each direction makes a picture that readers
/// take.
fn step(height: u64, width: u64) -> u64 {
    let is_enough = |step: &u64| {
        let (height, width) = (height.div_ceil(*step), width.div_ceil(*step));
        let pixels = height.saturating_mul(width);
        height.max(width) <= limits::PICTURE_EDGE && pixels <= limits::PICTURE_PIXELS
    };
    let (mut least, mut enough) = (1, height.max(width).max(1));
    while least < enough {
        let middle = least + (enough - least) / 2;
        match is_enough(&middle) {
            true => enough = middle,
            false => least = middle + 1,
        }
    }
    enough
}

#[cfg(test)]
mod tests;
