//! A picture of an array: which of its pixels are shown, and its encoding as a compressed PNG file.

use std::io::Write;
use std::ops::Range as Span;
use std::time::Instant;

use h5fs_reader::array::{CancelToken, MemoryReservation};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::to_usize;
use png::{BitDepth, ColorType, DeflateCompression, Encoder, Filter};

use crate::elements::Elements;
use crate::limits;
use crate::pictures::appearance::{Appearance, Interlace};
use crate::pictures::image::Image;
use crate::pictures::palette::Palette;
use crate::pictures::png::levels::{LevelConversion, PixelFormat, ValueRange};
use crate::pictures::png::output::{EncoderOutput, encoder_error};
use crate::text_files::text::InMemoryContent;

/// Amount of array data to read at a time, in bytes.
const BATCH: u64 = 256 << 10;

/// Cost in bytes of reading one separate pixel, which reads a whole memory page.
const PAGE: u64 = 4096;

/// The elements of a picture. In each direction, one of `step` pixels is shown.
pub struct Picture {
    pub(super) image: Image,
    elements: Elements,
    /// The palette, if the numbers are palette indices.
    palette: Option<Palette>,
    /// Size of a stored pixel in bytes.
    pixel_bytes: u64,
    pub(super) step: u64,
}

impl Picture {
    pub(super) fn new(image: Image, elements: Elements, palette: Option<Palette>) -> Self {
        let pixel = image.samples * u64::from(image.pixel.bytes);
        Picture {
            step: reduction_step(image.height, image.width, pixel),
            palette,
            pixel_bytes: pixel,
            image,
            elements,
        }
    }

    /// Creates a picture without a palette that shows one of `step` pixels in each direction.
    pub(in crate::pictures) fn new_reduced(image: Image, elements: Elements, step: u64) -> Self {
        Picture {
            step,
            ..Self::new(image, elements, None)
        }
    }

    /// Returns how many pixels are shown in a direction with `extent` pixels.
    pub(super) fn shown_pixels(&self, extent: u64) -> u64 {
        extent.div_ceil(self.step)
    }

    /// Encodes the picture as a compressed PNG file. The memory that the encoding takes is charged
    /// to `memory`.
    ///
    /// # Errors
    /// `Limit` if the encoding takes too long. Fails if an element cannot be read.
    pub fn encode(
        &self,
        memory: &MemoryReservation,
        cancel: &CancelToken,
    ) -> Result<InMemoryContent> {
        // The rows of the encoder, and a stored and a converted row.
        const ROWS: u64 = 5;
        let row = self.shown_pixels(self.image.width) * self.image.samples * 8;
        let mut output = EncoderOutput::new(memory, ROWS * row)?;
        let started = Instant::now();
        let check = &mut || {
            if started.elapsed() > limits::PICTURE_TIME {
                let most = limits::PICTURE_TIME.as_secs();
                Err(Error::limit("seconds for a picture", most))
            } else {
                cancel.check_cancelled()
            }
        };
        let levels = self.level_conversion(cancel, check)?;
        let encoded = self.write(&levels, (cancel, check), &mut output);
        output.finish(encoded).map(InMemoryContent::new)
    }

    fn write(
        &self,
        levels: &LevelConversion,
        (cancel, check): (&CancelToken, Check<'_>),
        output: &mut EncoderOutput<'_>,
    ) -> Result<()> {
        let size = |extent: u64| u32::try_from(self.shown_pixels(extent)).unwrap_or(0);
        let (height, width) = (size(self.image.height), size(self.image.width));
        let mut encoder = Encoder::new(output, width, height);
        let depth = self.pixel_format().depth;
        encoder.set_color(self.color_type());
        encoder.set_depth(depth);
        if let Some(palette) = &self.palette {
            encoder.set_palette(palette.bytes());
        }
        // Higher levels take several times as long, and make the file only a tenth smaller.
        encoder.set_deflate_compression(DeflateCompression::Level(1));
        encoder.set_filter(match depth {
            BitDepth::One => Filter::NoFilter,
            _ => Filter::Up,
        });
        for (keyword, text) in levels
            .text_chunks()
            .into_iter()
            .chain(self.constant_text_chunks())
        {
            let added = encoder.add_text_chunk(keyword.to_owned(), text);
            added.map_err(encoder_error)?;
        }
        let mut writer = encoder.write_header().map_err(encoder_error)?;
        let mut rows = writer.stream_writer().map_err(encoder_error)?;
        let mut row = Vec::new();
        self.visit_rows(cancel, check, &mut |stored| {
            row.clear();
            levels.write(stored, &mut row);
            rows.write_all(&row)
                .map_err(|error| encoder_error(error.into()))
        })?;
        rows.finish().map_err(encoder_error)?;
        writer.finish().map_err(encoder_error)
    }

    fn color_type(&self) -> ColorType {
        match self.image.samples {
            1 if self.palette.is_some() => ColorType::Indexed,
            1 => ColorType::Grayscale,
            3 => ColorType::Rgb,
            _ => ColorType::Rgba,
        }
    }

    /// Returns the palette as bytes, red, green and blue of each index; `None` for a picture
    /// without a palette.
    pub(super) fn palette_bytes(&self) -> Option<&[u8]> {
        self.palette.as_ref().map(Palette::bytes)
    }

    /// Returns whether each level is subtracted from the highest level, because the array has 0 for
    /// white.
    fn is_inverted(&self) -> bool {
        self.image.appearance.is_zero_white && self.palette.is_none()
    }

    /// Returns the properties of the PNG file's pixels.
    pub(super) fn pixel_format(&self) -> PixelFormat {
        PixelFormat::from_pixel(self.image.pixel, self.image.samples)
    }

    /// Returns the number of bits that `pixels` pixels take in the PNG file.
    pub(super) fn bit_count(&self, pixels: u64) -> u64 {
        let depth = u64::from(self.pixel_format().depth as u8);
        pixels
            .saturating_mul(self.image.samples)
            .saturating_mul(depth)
    }

    /// Returns the content of the chunk IHDR (PNG, 11.2.1).
    pub(super) fn ihdr_content(&self) -> Vec<u8> {
        let sizes = [self.image.width, self.image.height].map(|extent| self.shown_pixels(extent));
        let sizes = sizes.map(|size| u32::try_from(size).unwrap_or(0).to_be_bytes());
        let kind = [
            self.pixel_format().depth as u8,
            self.color_type() as u8,
            0,
            0,
            0,
        ];
        [sizes.as_flattened(), &kind].concat()
    }

    /// Returns the conversion of values to levels. For some number types, this reads all shown
    /// pixels.
    pub(super) fn level_conversion(
        &self,
        cancel: &CancelToken,
        check: Check<'_>,
    ) -> Result<LevelConversion> {
        let samples = self.image.samples;
        let levels = LevelConversion::from_pixel(
            self.image.pixel,
            samples,
            &mut |range: &mut dyn ValueRange| {
                self.visit_rows(cancel, check, &mut |stored| {
                    range.include(stored);
                    Ok(())
                })
            },
        )?;
        Ok(if self.is_inverted() {
            levels.invert()
        } else {
            levels
        })
    }

    /// Returns the text chunks that do not depend on the pixels.
    pub(super) fn constant_text_chunks(&self) -> impl Iterator<Item = (&'static str, String)> {
        let step = (self.step > 1).then(|| ("Step", self.step.to_string()));
        let inverted = self.is_inverted().then(|| ("Inverted", "1".to_owned()));
        step.into_iter().chain(inverted)
    }

    /// Passes each shown row to `visit`: the shown pixels of the row, as stored.
    pub(in crate::pictures) fn visit_rows(
        &self,
        cancel: &CancelToken,
        check: Check<'_>,
        visit: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut row = Vec::new();
        let width = self.shown_pixels(self.image.width);
        for number in 0..self.shown_pixels(self.image.height) {
            check()?;
            row.clear();
            self.append_row_pixels(number, 0..width, cancel, &mut row)?;
            visit(&row)?;
        }
        Ok(())
    }

    /// Appends the pixels of the shown row `number` as stored. `span` is the range of shown
    /// columns.
    pub(super) fn append_row_pixels(
        &self,
        number: u64,
        span: Span<u64>,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let Image {
            height,
            width,
            samples,
            appearance: Appearance {
                interlace, origin, ..
            },
            ..
        } = self.image;
        let row = match number * self.step {
            row if origin.is_bottom => height - 1 - row,
            row => row,
        };
        // The leftmost of these pixels in the array.
        let first = match (origin.is_right, span.end.checked_sub(1)) {
            (true, Some(last)) => width - 1 - last * self.step,
            _ => span.start * self.step,
        };
        let count = span.end.saturating_sub(span.start);
        let start = out.len();
        match interlace {
            Some(Interlace::Line | Interlace::Plane) => {
                let mut planes = Vec::new();
                for sample in 0..samples {
                    let line = match interlace {
                        Some(Interlace::Plane) => sample * height + row,
                        _ => row * samples + sample,
                    };
                    self.append_pixels(line * width + first, count, 1, cancel, &mut planes)?;
                }
                self.interleave(&planes, count, out)?;
            }
            _ => {
                self.append_pixels((row * width + first) * samples, count, samples, cancel, out)?;
            }
        }
        if origin.is_right {
            reverse(&mut out[start..], to_usize(self.pixel_bytes)?);
        }
        Ok(())
    }

    /// Appends `count` pixels as stored, starting at element `first`. Each pixel has `numbers`
    /// numbers. Only one of `self.step` pixels is read.
    fn append_pixels(
        &self,
        mut first: u64,
        count: u64,
        numbers: u64,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let size = u64::from(self.image.pixel.bytes);
        let pixel = numbers * size;
        let distance = self.step * pixel;
        let mut left = count;
        while left > 0 {
            let count = (BATCH / distance).clamp(1, left);
            let length = to_usize((count - 1) * distance + pixel)?;
            cancel.check_cancelled()?;
            let bytes = self
                .elements
                .content
                .read_for(first * size, length, cancel)?;
            if bytes.len() != length {
                return Err(Error::corrupt("array: fewer elements than its shape", None));
            }
            match self.step {
                1 => out.extend_from_slice(&bytes),
                _ => {
                    let pixel = to_usize(pixel)?;
                    let pixels = bytes.chunks(to_usize(distance)?);
                    pixels.for_each(|pixels| out.extend_from_slice(&pixels[..pixel]));
                }
            }
            first += count * self.step * numbers;
            left -= count;
        }
        Ok(())
    }

    /// Appends `count` pixels whose samples are in separate planes. `planes` has all first samples,
    /// then all second samples, and so on.
    fn interleave(&self, planes: &[u8], count: u64, out: &mut Vec<u8>) -> Result<()> {
        let size = usize::from(self.image.pixel.bytes);
        let plane = to_usize(count)? * size;
        for place in (0..plane).step_by(size.max(1)) {
            let numbers = planes.chunks_exact(plane.max(1));
            numbers.for_each(|plane| out.extend_from_slice(&plane[place..place + size]));
        }
        Ok(())
    }
}

/// Reverses the order of stored pixels. Each has `pixel` bytes.
fn reverse(pixels: &mut [u8], pixel: usize) {
    pixels.reverse();
    pixels.chunks_mut(pixel.max(1)).for_each(<[u8]>::reverse);
}

/// A function that is called at intervals during a long task. It returns an error if the task must
/// stop.
pub(in crate::pictures) type Check<'c> = &'c mut dyn FnMut() -> Result<()>;

/// Returns the smallest reduction step for a picture of `height` by `width` pixels, each `pixel`
/// bytes long. One of this many pixels is shown in each direction, so that libpng accepts the size
/// and the pixels can be read quickly.
pub(super) fn reduction_step(height: u64, width: u64, pixel: u64) -> u64 {
    let is_enough = |step: &u64| {
        let (rows, columns) = (height.div_ceil(*step), width.div_ceil(*step));
        let pixels = rows.saturating_mul(columns);
        let row = columns
            .saturating_mul(PAGE)
            .min(width.saturating_mul(pixel));
        rows.max(columns) <= limits::PICTURE_EDGE
            && pixels <= limits::PICTURE_PIXELS
            && rows.saturating_mul(row) <= limits::PICTURE_TOUCHED
    };
    let (mut least, mut enough) = (1, height.max(width).max(1));
    while least < enough {
        let middle = least + (enough - least) / 2;
        if is_enough(&middle) {
            enough = middle;
        } else {
            least = middle + 1;
        }
    }
    enough
}
