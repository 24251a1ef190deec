//! TIFF files: headers, followed by the pictures of an array with unchanged values.
//!
//! The files follow TIFF 6.0, or BigTIFF for 4 GiB and more. Each page has one image file directory
//! (IFD) and one strip without compression. If the colours are in separate planes, each plane is a
//! strip. All directories precede the pixels. Starting with the second directory, they are at equal
//! distances, so that each can be generated when it is read. The pixels are the array's bytes in
//! their byte order, except that half floats become single floats. The pixels begin at a multiple
//! of 4096 bytes, so that a memory page of this file equals a page of the array's raw file.
//!
//! If rows and columns are a regular grid on the earth, each page has the tags of GeoTIFF.
//!
//! The first page describes the axes before rows and columns. If ImageJ supports the numbers, the
//! description is for ImageJ. Otherwise it is the shape in JSON, as tifffile reads and writes it.

mod field;
mod geo_tags;

use std::ops::Range;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::text::JsonObject;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::Elements;
use crate::elements::converted::ConvertedElements;
use crate::elements::normal::normalize;
use crate::framed::{self, FileHeader, FramedFile};
use crate::pictures::appearance::{Interlace, Origin};
use crate::pictures::georeference::GeoReference;
use crate::pictures::image::{Image, PixelKind, PixelType, half_to_single};
use crate::pictures::picture_style::PictureStyle;
use crate::pictures::tiff::field::{NumberBuffer, TiffField};
use crate::view::View;

/// Alignment of the first pixel in the file, in bytes.
const ALIGNMENT: u64 = 4096;

/// Number of values in a colour map for 8 bits.
const COLOURS: usize = 3 * 256;

/// Creates the TIFF file of `elements` with the appearance `look`; `None` if TIFF does not support
/// the numbers, or if the array is empty.
///
/// # Errors
/// `Limit` if the file is longer than any file can be; `Unsupported` for colours between rows and
/// columns.
pub fn file(elements: Elements, look: PictureStyle) -> Result<Option<FramedFile>> {
    let dims = elements.dims.as_deref().unwrap_or_default();
    let image = Image::from_datatype(&elements.datatype, dims, look.appearance);
    image.as_ref().map_or(Ok(()), check_interlace)?;
    let colours = look.palette.map(|palette| palette.tiff_color_map());
    let Some(headers) = TiffHeaders::new(image, colours, look.georeference) else {
        return Ok(None);
    };
    let bytes = headers.pixel_bytes();
    let content = if headers.image.pixel.bytes == headers.stored_bytes {
        normalize(elements)?.content
    } else {
        widen_half_floats(elements.content, headers.image.pixel, bytes / 4)
    };
    FramedFile::new(headers, content, bytes, 1).map(Some)
}

/// Returns the length in bytes of an image's TIFF file without a georeference, without reading its
/// elements; `None` if the image does not have a TIFF file.
///
/// # Errors
/// Fails as `file` does.
pub fn length(image: Option<Image>) -> Result<Option<u64>> {
    image.as_ref().map_or(Ok(()), check_interlace)?;
    let colours = image.as_ref().and_then(|image| image.appearance.palette);
    // The length does not depend on the colours.
    let headers = TiffHeaders::new(image, colours.map(|_| vec![0; COLOURS]), None);
    let length = |headers: TiffHeaders| framed::length(headers.length(), headers.pixel_bytes(), 1);
    headers.map(length).transpose()
}

/// Rejects an array whose axis of colours is between rows and columns, which TIFF does not support.
///
/// # Errors
/// `Unsupported` for colours between rows and columns.
fn check_interlace(image: &Image) -> Result<()> {
    match image.appearance.interlace {
        Some(Interlace::Line) => Err(Error::unsupported(
            "TIFF of colours that are interleaved by line (INTERLACE_LINE); png/ and npy/ have \
             them",
            None,
        )),
        _ => Ok(()),
    }
}

/// Converts half floats to single floats in the same byte order. Other numbers are returned
/// unchanged.
fn widen_half_floats(content: Box<dyn View>, pixel: PixelType, count: u64) -> Box<dyn View> {
    let convert = move |half: &[u8], out: &mut Vec<u8>| {
        let half = half.first_chunk().copied().unwrap_or_default();
        out.extend_from_slice(&if pixel.is_big_endian {
            half_to_single(u16::from_be_bytes(half)).to_be_bytes()
        } else {
            half_to_single(u16::from_le_bytes(half)).to_le_bytes()
        });
    };
    Box::new(ConvertedElements {
        content,
        conversion: convert,
        count,
        stored_size: 2,
        size: 4,
    })
}

/// The file header and the image file directories, which precede the pixels.
struct TiffHeaders {
    /// The image, with the number type in the TIFF file.
    image: Image,
    /// Size in bytes of a number as stored in the array.
    stored_bytes: u8,
    pages: u64,
    /// Length of the pixels of one page in bytes.
    page_bytes: u64,
    /// The description of the stack, which is in the directory of the first page.
    description: Vec<u8>,
    /// The palette: all red values, then green, then blue.
    colours: Option<Vec<u16>>,
    georeference: Option<GeoReference>,
    is_big: bool,
    /// Length in bytes of the file header and the first page's directory.
    first_length: u64,
    /// Length in bytes of each directory after the first.
    directory_length: u64,
    /// The offset in the file of the first pixel.
    pixel_offset: u64,
}

impl TiffHeaders {
    fn new(
        image: Option<Image>,
        colours: Option<Vec<u16>>,
        georeference: Option<GeoReference>,
    ) -> Option<Self> {
        let mut image = image?;
        let stored_bytes = image.pixel.bytes;
        if (image.pixel.kind, stored_bytes) == (PixelKind::Float, 2) {
            image.pixel.bytes = 4;
        }
        // Width and height are 32-bit numbers in TIFF.
        u32::try_from(image.width.max(image.height)).ok()?;
        let (pages, numbers) = (image.picture_count()?, image.numbers_per_picture()?);
        let page_bytes = numbers.checked_mul(image.pixel.bytes.into())?;
        page_bytes.checked_mul(pages)?;
        let mut headers = TiffHeaders {
            description: description(&image, pages),
            colours,
            georeference: georeference.filter(|_| image.samples == 1),
            image,
            stored_bytes,
            pages,
            page_bytes,
            is_big: false,
            first_length: 0,
            directory_length: 0,
            pixel_offset: 0,
        };
        headers.compute_offsets()?;
        let end = headers.pixel_offset.checked_add(headers.pixel_bytes())?;
        if u32::try_from(end).is_err() {
            headers.is_big = true;
            headers.compute_offsets()?;
        }
        Some(headers)
    }

    fn pixel_bytes(&self) -> u64 {
        self.page_bytes.saturating_mul(self.pages)
    }

    /// Computes the lengths of the directories, and the offset of the pixels; `None` if they
    /// overflow.
    fn compute_offsets(&mut self) -> Option<()> {
        let file_header = if self.is_big { 16 } else { 8 };
        self.first_length = to_u64(self.directory(0).len()).checked_add(file_header)?;
        self.directory_length = to_u64(self.directory(1).len());
        let others = self
            .directory_length
            .checked_mul(self.pages.checked_sub(1)?)?;
        let end = self.first_length.checked_add(others)?;
        self.pixel_offset = end.checked_next_multiple_of(ALIGNMENT)?;
        Some(())
    }

    /// Creates an empty buffer with the byte order of the file.
    fn number_buffer(&self) -> NumberBuffer {
        NumberBuffer::new(self.image.pixel.is_big_endian, self.is_big)
    }

    /// Returns the offset in the file of a page's directory.
    fn directory_offset(&self, page: u64) -> u64 {
        match page.checked_sub(1) {
            Some(before) => self.first_length + before * self.directory_length,
            None => {
                if self.is_big {
                    16
                } else {
                    8
                }
            }
        }
    }

    /// Returns the file header: byte order, version, and the offset of the first directory.
    fn file_header(&self) -> Vec<u8> {
        let mut out = self.number_buffer();
        out.bytes.extend(if self.image.pixel.is_big_endian {
            b"MM"
        } else {
            b"II"
        });
        if self.is_big {
            out.short(43);
            out.short(8);
            out.short(0);
        } else {
            out.short(42);
        }
        out.offset(self.directory_offset(0));
        out.bytes
    }

    /// Returns the directory of a page, followed by the values that do not fit in the directory's
    /// entries.
    fn directory(&self, page: u64) -> Vec<u8> {
        let samples = to_usize(self.image.samples).unwrap_or(1);
        let bits = u16::from(self.image.pixel.bytes) * 8;
        let format = match self.image.pixel.kind {
            PixelKind::Boolean | PixelKind::Unsigned => 1,
            PixelKind::Signed => 2,
            PixelKind::Float => 3,
        };
        let strip = self.pixel_offset + page * self.page_bytes;
        let mut fields = vec![
            TiffField::long(256, self.image.width),
            TiffField::long(257, self.image.height),
            TiffField::shorts(258, vec![bits; samples]),
            // The value 1 means no compression.
            TiffField::short(259, 1),
            TiffField::short(262, self.photometric_interpretation()),
        ];
        if page == 0 && !self.description.is_empty() {
            fields.push(TiffField::ascii(270, &self.description));
        }
        let is_planar = self.image.appearance.interlace == Some(Interlace::Plane);
        let strips = if is_planar { self.image.samples } else { 1 };
        let strip_bytes = self.page_bytes / strips;
        fields.push(TiffField::offsets(
            273,
            (0..strips)
                .map(|number| strip + number * strip_bytes)
                .collect(),
        ));
        fields.extend(
            self.orientation()
                .map(|number| TiffField::short(274, number)),
        );
        fields.extend([
            TiffField::short(277, u16::try_from(samples).unwrap_or(1)),
            TiffField::long(278, self.image.height),
            TiffField::offsets(279, (0..strips).map(|_| strip_bytes).collect()),
        ]);
        if is_planar {
            // The value 2 means separate planes.
            fields.push(TiffField::short(284, 2));
        }
        if let Some(colours) = &self.colours {
            fields.push(TiffField::shorts(320, colours.clone()));
        }
        if samples == 4 {
            // The value 2 means opacity that is not premultiplied.
            fields.push(TiffField::short(338, 2));
        }
        fields.push(TiffField::shorts(339, vec![format; samples]));
        let grid = self.georeference.iter();
        fields.extend(grid.flat_map(geo_tags::fields));
        let next = if page + 1 < self.pages {
            self.directory_offset(page + 1)
        } else {
            0
        };
        self.write_directory(&fields, self.directory_offset(page), next)
    }

    /// Returns the value of `PhotometricInterpretation`, which says whether pixels are palette
    /// indices, grey levels with 0 for white, grey levels with 0 for black, or red, green and blue.
    fn photometric_interpretation(&self) -> u16 {
        match self.image.samples {
            1 if self.colours.is_some() => 3,
            1 => u16::from(!self.image.appearance.is_zero_white),
            _ => 2,
        }
    }

    /// Returns the value of `Orientation`, the corner of the first pixel; `None` for the upper left
    /// corner.
    fn orientation(&self) -> Option<u16> {
        let Origin {
            is_bottom: is_below,
            is_right,
        } = self.image.appearance.origin;
        match (is_below, is_right) {
            (false, false) => None,
            (false, true) => Some(2),
            (true, true) => Some(3),
            (true, false) => Some(4),
        }
    }

    /// Encodes a directory with `fields`. `place` is the offset of the directory in the file, and
    /// `next` the offset of the next directory.
    fn write_directory(&self, fields: &[TiffField], place: u64, next: u64) -> Vec<u8> {
        let (count, entry, inline) = if self.is_big { (8, 20, 8) } else { (2, 12, 4) };
        let length = count + entry * fields.len() + inline;
        let mut out = self.number_buffer();
        let mut behind = Vec::new();
        if self.is_big {
            out.long8(to_u64(fields.len()));
        } else {
            out.short(u16::try_from(fields.len()).unwrap_or(0));
        }
        for field in fields {
            let mut value = self.number_buffer();
            field.value.write(&mut value);
            out.short(field.tag);
            out.short(field.value.type_number(self.is_big));
            out.offset(field.value.count());
            if value.bytes.len() <= inline {
                value.bytes.resize(inline, 0);
                out.bytes.extend(value.bytes);
            } else {
                out.offset(place + to_u64(length + behind.len()));
                behind.extend(value.bytes);
                // Values and directories begin at even offsets.
                behind.resize(behind.len().next_multiple_of(2), 0);
            }
        }
        out.offset(next);
        out.bytes.extend(behind);
        out.bytes.resize(out.bytes.len().next_multiple_of(2), 0);
        out.bytes
    }
}

impl FileHeader for TiffHeaders {
    fn length(&self) -> u64 {
        self.pixel_offset
    }

    fn write(&self, range: Range<u64>, out: &mut Vec<u8>) {
        let mut at = range.start;
        while at < range.end {
            let (start, bytes) = self.piece_at(at);
            let end = (start + to_u64(bytes.len())).min(range.end);
            let place = |at: u64| usize::try_from(at - start).unwrap_or(bytes.len());
            out.extend_from_slice(&bytes[place(at)..place(end)]);
            at = end;
        }
    }

    fn own_bytes(&self) -> u64 {
        let colours = self.colours.as_ref().map_or(0, |colours| 2 * colours.len());
        to_u64(self.description.len() + colours)
    }
}

impl TiffHeaders {
    /// Returns the piece of the headers that contains the offset `at`, and the offset of the piece.
    /// A piece is the file header with the first directory, one further directory, or the zeros
    /// after all directories.
    fn piece_at(&self, at: u64) -> (u64, Vec<u8>) {
        let Some(behind) = at.checked_sub(self.first_length) else {
            return (0, [self.file_header(), self.directory(0)].concat());
        };
        let page = behind / self.directory_length + 1;
        if page < self.pages {
            return (self.directory_offset(page), self.directory(page));
        }
        let end = self.directory_offset(self.pages);
        let zeros = usize::try_from(self.pixel_offset - end).unwrap_or(0);
        (end, vec![0; zeros])
    }
}

/// Returns the description of the stack; empty for a single picture with two axes.
fn description(image: &Image, pages: u64) -> Vec<u8> {
    if image.dims.len() == 2 {
        return Vec::new();
    }
    imagej_description(image, pages).unwrap_or_else(|| shape_description(image))
}

/// Returns whether ImageJ supports pictures with these numbers.
fn has_imagej_pixels(image: &Image) -> bool {
    let PixelType { kind, bytes, .. } = image.pixel;
    match image.samples {
        1 => matches!(
            (kind, bytes),
            (PixelKind::Boolean | PixelKind::Unsigned, 1)
                | (PixelKind::Unsigned, 2)
                | (PixelKind::Float, 4)
        ),
        3 => (kind, bytes) == (PixelKind::Unsigned, 1),
        _ => false,
    }
}

/// Returns ImageJ's description of a stack, with up to three leading axes: frames, slices and
/// channels. Returns `None` if ImageJ would lose an axis, or does not support the numbers.
fn imagej_description(image: &Image, pages: u64) -> Option<Vec<u8>> {
    let leading = image.stack_dims();
    let axes = match leading {
        [slices] => format!("slices={slices}\n"),
        [frames, slices] => format!("slices={slices}\nframes={frames}\n"),
        // In a colour picture, channels are colours.
        [frames, slices, channels] if image.samples == 1 => {
            format!("channels={channels}\nslices={slices}\nframes={frames}\n")
        }
        _ => return None,
    };
    // ImageJ drops axes of length one.
    if !has_imagej_pixels(image) || leading.contains(&1) {
        return None;
    }
    let hyperstack = match leading.len() {
        1 => "",
        _ => "hyperstack=true\nmode=grayscale\n",
    };
    let text = format!("ImageJ=1.54f\nimages={pages}\n{axes}{hyperstack}loop=false\n");
    Some(text.into_bytes())
}

/// Returns tifffile's description of a stack: its shape in JSON.
fn shape_description(image: &Image) -> Vec<u8> {
    let mut object = JsonObject::default();
    object.add_json("shape", format_args!("{:?}", image.dims));
    object.finish().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures::appearance::Appearance;
    use crate::text_files::text::InMemoryContent;
    use h5fs_reader::model::Datatype;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::int;

    fn pixel_interlaced_style() -> PictureStyle {
        let mut look = PictureStyle::default();
        look.appearance.interlace = Some(Interlace::Pixel);
        look
    }

    fn file_of(datatype: Datatype, dims: &[u64], bytes: &[u8], look: PictureStyle) -> Vec<u8> {
        let elements = Elements {
            datatype,
            dims: Some(dims.to_vec()),
            content: Box::new(InMemoryContent::new(bytes.to_vec())),
        };
        let file = file(elements, look).unwrap().unwrap();
        let length = usize::try_from(file.length()).unwrap();
        let whole = file.read_at(0, length + 1).unwrap().to_vec();
        assert_eq!(whole.len(), length);
        for start in [0, 1, 7, 9, 200, 4095] {
            let part = file.read_at(to_u64(start), 300).unwrap();
            assert_eq!(part[..], whole[start..length.min(start + 300)]);
        }
        whole
    }

    /// The bytes were written by hand after "TIFF 6.0".
    #[test]
    fn a_picture() {
        let whole = file_of(
            int(2),
            &[2, 3],
            &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 255, 255],
            PictureStyle::default(),
        );
        let entry = |tag: u16, kind: u16, value: u32| {
            let mut bytes = tag.to_le_bytes().to_vec();
            bytes.extend_from_slice(&kind.to_le_bytes());
            bytes.extend_from_slice(&1_u32.to_le_bytes());
            bytes.extend_from_slice(&value.to_le_bytes());
            bytes
        };
        let entries = [
            entry(256, 4, 3),
            entry(257, 4, 2),
            entry(258, 3, 16),
            entry(259, 3, 1),
            entry(262, 3, 1),
            entry(273, 4, 4096),
            entry(277, 3, 1),
            entry(278, 4, 2),
            entry(279, 4, 12),
            entry(339, 3, 2),
        ];
        let head = [&b"II\x2a\0\x08\0\0\0\x0a\0"[..], &entries.concat(), &[0; 4]].concat();
        assert_eq!(whole[..head.len()], head);
        assert!(whole[head.len()..4096].iter().all(|&byte| byte == 0));
        assert_eq!(whole[4096..], [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 255, 255]);
    }

    #[test]
    fn a_stack_of_big_endian_colours() {
        let datatype = Datatype::integer(2, false, ByteOrder::Big);
        let pixels: Vec<u8> = (0..2 * 4 * 2 * 3 * 2).collect();
        let whole = file_of(datatype, &[2, 4, 2, 3], &pixels, pixel_interlaced_style());
        assert_eq!(whole[..8], *b"MM\0\x2a\0\0\0\x08");
        assert_eq!(whole[4096..], pixels);
        // Three numbers of two bytes do not fit in the entry.
        let bits = 8 + 2 + 2 * 12;
        assert_eq!(whole[bits..bits + 8], [1, 2, 0, 3, 0, 0, 0, 3]);
        let place = usize::from(whole[bits + 11]);
        assert_eq!(whole[place..place + 6], [0, 16, 0, 16, 0, 16]);
        let text = b"{\"shape\": [2, 4, 2, 3]}\0";
        assert!(whole.windows(text.len()).any(|window| window == text));
    }

    #[test]
    fn descriptions() {
        let text = |datatype: &Datatype, dims: &[u64]| {
            let is_coloured = dims.len() > 2 && dims.last() == Some(&3);
            let look = if is_coloured {
                pixel_interlaced_style()
            } else {
                PictureStyle::default()
            };
            let headers = TiffHeaders::new(
                Image::from_datatype(datatype, dims, look.appearance),
                None,
                None,
            )
            .unwrap();
            String::from_utf8(headers.description).unwrap()
        };
        let bytes = Datatype::integer(1, false, ByteOrder::Little);
        let stack = "ImageJ=1.54f\nimages=7\nslices=7\nloop=false\n";
        assert_eq!(text(&bytes, &[7, 4, 5]), stack);
        let movie = "ImageJ=1.54f\nimages=14\nslices=7\nframes=2\nhyperstack=true\n\
                     mode=grayscale\nloop=false\n";
        assert_eq!(text(&bytes, &[2, 7, 4, 5]), movie);
        let deep = "ImageJ=1.54f\nimages=42\nchannels=7\nslices=3\nframes=2\nhyperstack=true\n\
                    mode=grayscale\nloop=false\n";
        assert_eq!(text(&bytes, &[2, 3, 7, 4, 5]), deep);
        // ImageJ would lose an axis of these.
        for dims in [
            &[2, 3, 7, 2, 4, 5][..],
            &[1, 7, 4, 5],
            &[2, 1, 4, 5],
            &[2, 3, 7, 4, 5, 3],
        ] {
            assert_eq!(text(&bytes, dims), format!("{{\"shape\": {dims:?}}}"));
        }
        assert_eq!(text(&int(8), &[2, 7, 4, 5]), "{\"shape\": [2, 7, 4, 5]}");
        assert_eq!(text(&bytes, &[5]), "{\"shape\": [5]}");
        assert_eq!(text(&bytes, &[4, 5, 3]), "{\"shape\": [4, 5, 3]}");
        assert_eq!(text(&bytes, &[1, 5]), "");
    }

    fn headers_of_byte_array(dims: &[u64]) -> Option<TiffHeaders> {
        let bytes = Datatype::integer(1, false, ByteOrder::Little);
        TiffHeaders::new(
            Image::from_datatype(&bytes, dims, Appearance::default()),
            None,
            None,
        )
    }

    #[test]
    fn a_file_of_4_gib_is_a_bigtiff() {
        let headers = |rows: u64| headers_of_byte_array(&[rows, 1 << 12]).unwrap();
        let most = (1 << 20) - 2;
        assert!(!headers(most).is_big && headers(most + 1).is_big);
        let big = headers(1 << 30).file_header();
        assert_eq!(big, *b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0");
        // Width and height have 32 bits.
        assert!(headers_of_byte_array(&[1, 1 << 32]).is_none());
        assert!(headers_of_byte_array(&[1 << 40, 1 << 31, 1 << 31]).is_none());
    }

    /// In a file of a million pages, a directory in the middle is generated without the others.
    #[test]
    fn directories_have_a_fixed_distance() {
        let headers = headers_of_byte_array(&[1_000_000, 1, 2]).unwrap();
        let mut out = Vec::new();
        let (page, next) = (
            headers.directory_offset(700_000),
            headers.directory_offset(700_001),
        );
        headers.write(page..next, &mut out);
        assert_eq!(out, headers.directory(700_000));
        let after = out.len() - 4;
        assert_eq!(out[after..], u32::try_from(next).unwrap().to_le_bytes());
        assert_eq!(headers.directory(999_999).last_chunk(), Some(&[0; 4]));
    }

    /// Expected: `numpy.float16` to `numpy.float32`, for all cases of the formats.
    #[test]
    fn half_floats_become_single_ones() {
        for (half, expected) in [
            (0x0000, 0.0_f32),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x03ff, 6.097_555e-5),
            (0x0400, 6.103_515_6e-5),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
            (0xfc00, f32::NEG_INFINITY),
        ] {
            assert_eq!(half_to_single(half), expected.to_bits(), "{half:#x}");
        }
        assert_eq!(half_to_single(0x7e01), 0x7fc0_2000);
        let half = Datatype::ieee(2, ByteOrder::Big);
        let whole = file_of(half, &[1, 2], &[0x3c, 0, 0xc0, 0], PictureStyle::default());
        assert_eq!(whole[4096..], [0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0]);
    }
}
