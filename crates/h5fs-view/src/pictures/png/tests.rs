use std::io::Write;

use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::{Cause, Error, Result};
use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::ByteOrder;
use h5fs_reader::wire::to_u64;
use png::{BitDepth, ColorType};

use super::*;
use crate::cancellation::ends_with_its_second_read;
use crate::pictures::appearance::Interlace;
use crate::pictures::picture_style::PictureStyle;
use crate::pictures::png::output::{EncoderOutput, encoder_error};
use crate::pictures::png::picture::reduction_step;
use crate::text_files::text::InMemoryContent;
use crate::view::View;

/// An endless sequence of zeros.
struct ZeroContent;

impl View for ZeroContent {
    fn length(&self) -> u64 {
        0
    }

    fn read_for(
        &self,
        _: u64,
        length: usize,
        _: &CancelToken,
    ) -> Result<h5fs_reader::array::Bytes> {
        Ok(vec![0; length].into())
    }
}

fn elements(datatype: Datatype, dims: &[u64], content: impl View + 'static) -> Elements {
    Elements {
        datatype,
        dims: Some(dims.to_vec()),
        content: Box::new(content),
    }
}

fn unsigned(bytes: u16) -> Datatype {
    Datatype::integer(bytes, false, ByteOrder::Little)
}

/// Returns the appearance with colours on the last axis of three.
fn look(dims: usize) -> PictureStyle {
    let mut look = PictureStyle::default();
    look.appearance.interlace = (dims > 2).then_some(Interlace::Pixel);
    look
}

fn encode_picture(elements: Elements) -> Result<Option<Box<dyn View>>> {
    let look = look(elements.dims.as_ref().map_or(0, Vec::len));
    encoded_as(elements, look)
}

fn encoded_as(elements: Elements, look: PictureStyle) -> Result<Option<Box<dyn View>>> {
    Ok(match PngFile::from_elements(elements, look) {
        Some(PngFile::Compressed(picture)) => {
            let memory = Engine::new(0, 1).reserve_memory(0).unwrap();
            Some(Box::new(picture.encode(&memory, &CancelToken::default())?))
        }
        Some(PngFile::Stored(stored)) => Some(Box::new(stored)),
        None => None,
    })
}

/// Decodes a file with the `png` crate's decoder, which is independent of its encoder.
fn decode_picture(elements: Elements) -> (png::OutputInfo, Vec<u8>, Vec<(String, String)>) {
    let look = look(elements.dims.as_ref().map_or(0, Vec::len));
    decoded_as(elements, look)
}

fn decoded_as(
    elements: Elements,
    look: PictureStyle,
) -> (png::OutputInfo, Vec<u8>, Vec<(String, String)>) {
    let text = encoded_as(elements, look).unwrap().unwrap();
    let bytes = text.read_at(0, usize::MAX).unwrap().to_vec();
    assert_eq!(text.length(), bytes.len() as u64);
    let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let texts = reader.info().uncompressed_latin1_text.iter();
    let texts = texts.map(|text| (text.keyword.clone(), text.text.clone()));
    (info, pixels, texts.collect())
}

#[test]
fn pixels_come_back() {
    let bytes = [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 255, 255];
    let (info, pixels, texts) = decode_picture(elements(
        unsigned(2),
        &[2, 3],
        InMemoryContent::new(bytes.to_vec()),
    ));
    assert_eq!((info.width, info.height), (3, 2));
    assert_eq!(
        (info.color_type, info.bit_depth),
        (ColorType::Grayscale, BitDepth::Sixteen)
    );
    assert_eq!(pixels, [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 255, 255]);
    assert_eq!(texts, []);
    let colours: Vec<u8> = (0..2 * 2 * 4).collect();
    let (info, pixels, _) = decode_picture(elements(
        unsigned(1),
        &[2, 2, 4],
        InMemoryContent::new(colours.clone()),
    ));
    assert_eq!(
        (info.color_type, info.bit_depth),
        (ColorType::Rgba, BitDepth::Eight)
    );
    assert_eq!(pixels, colours);
}

/// Calculated by hand: two rows of three pixels, with one letter for each sample.
#[test]
fn interlacing_and_origin_are_applied() {
    let planes = b"abcdef" // red
        .iter()
        .chain(b"ABCDEF") // green
        .chain(b"123456"); // blue
    let plane = elements(
        unsigned(1),
        &[3, 2, 3],
        InMemoryContent::new(planes.copied().collect()),
    );
    let mut look = look(3);
    look.appearance.interlace = Some(Interlace::Plane);
    let (info, pixels, _) = decoded_as(plane, look.clone());
    assert_eq!((info.width, info.height), (3, 2));
    assert_eq!(pixels, b"aA1bB2cC3dD4eE5fF6");
    let lines = b"abcABC123defDEF456".to_vec();
    look.appearance.interlace = Some(Interlace::Line);
    look.appearance.origin.is_bottom = true;
    let line = elements(unsigned(1), &[2, 3, 3], InMemoryContent::new(lines));
    assert_eq!(decoded_as(line, look.clone()).1, b"dD4eE5fF6aA1bB2cC3");
    look.appearance.interlace = None;
    look.appearance.origin.is_right = true;
    look.appearance.is_zero_white = true;
    let grey = elements(
        unsigned(2),
        &[2, 2],
        InMemoryContent::new(vec![0, 0, 1, 0, 2, 0, 255, 255]),
    );
    let (_, pixels, texts) = decoded_as(grey, look);
    assert_eq!(pixels, [0, 0, 255, 253, 255, 254, 255, 255]);
    assert_eq!(texts, [("Inverted".to_owned(), "1".to_owned())]);
}

#[test]
fn a_stack_and_a_line_are_no_picture() {
    for dims in [&[4][..], &[2, 4, 5], &[0, 4], &[]] {
        let found = encoded_as(
            elements(unsigned(1), dims, ZeroContent),
            PictureStyle::default(),
        )
        .unwrap();
        assert!(found.is_none(), "{dims:?}");
    }
}

#[test]
fn a_large_picture_shows_every_nth_pixel() {
    assert_eq!(reduction_step(8192, 8192, 2), 1);
    assert_eq!(reduction_step(8192, 8193, 1), 2);
    assert_eq!(
        (
            reduction_step(1, 1_000_000, 8),
            reduction_step(1, 1_000_001, 8)
        ),
        (1, 2)
    );
    assert_eq!(
        (reduction_step(1, u64::MAX / 8, 8), reduction_step(0, 0, 1)),
        (2_305_843_009_214, 1)
    );
    // Reading touches one page for each of a thousand by a thousand pixels.
    assert_eq!(reduction_step(1 << 31, 1 << 31, 1), 1 << 21);

    // The value of each pixel is its index in the row.
    let width = 1_000_005_u32;
    let row: Vec<u8> = (0..width).flat_map(u32::to_le_bytes).collect();
    let (info, pixels, texts) = decode_picture(elements(
        unsigned(4),
        &[1, width.into()],
        InMemoryContent::new(row),
    ));
    assert_eq!((info.width, info.height), (500_003, 1));
    let last = u64::from(width - 1);
    let expected = |shown: u64| ((2 * shown * 65535 + last / 2) / last) as u16;
    for shown in [0, 1, 31_415, 500_001, 500_002] {
        let place = 2 * shown as usize;
        let level = u16::from_be_bytes([pixels[place], pixels[place + 1]]);
        assert_eq!(level, expected(shown), "{shown}");
    }
    let texts: Vec<_> = texts
        .iter()
        .map(|(key, text)| (&key[..], &text[..]))
        .collect();
    assert_eq!(
        texts,
        [("Minimum", "0"), ("Maximum", "1000004"), ("Step", "2")]
    );
}

/// A picture of 10^15 pixels costs only the reading of its shown pixels.
#[test]
fn a_huge_picture_is_not_read_whole() {
    let side = 1 << 25;
    let image = Image::from_datatype(&unsigned(1), &[side, side], look(2).appearance).unwrap();
    let huge = elements(unsigned(1), &[side, side], ZeroContent);
    let picture = Picture::new(image, huge, None);
    assert_eq!(picture.step, 1 << 15);
    let mut row = Vec::new();
    picture
        .append_row_pixels(1023, 0..1024, &CancelToken::default(), &mut row)
        .unwrap();
    assert_eq!(row.len(), 1024);
}

/// Returns the error of an output that has too little memory for `more` bytes.
fn write_error(mut output: EncoderOutput<'_>, more: usize) -> Error {
    let written = output.write_all(&vec![0; more]);
    let written = written.map_err(|error| encoder_error(error.into()));
    output.finish(written).unwrap_err()
}

#[test]
fn the_memory_of_an_encoded_picture_is_limited() {
    let engine = Engine::new(0, 1);
    let memory = engine.reserve_memory(0).unwrap();
    let mut output = EncoderOutput::new(&memory, 1000).unwrap();
    output.write_all(&[0; 100_000]).unwrap();
    let held = limits::OPEN_BYTES - 1000 - to_u64(output.bytes.capacity());
    assert!(engine.reserve_memory(held + 1).is_err());
    let all_else = engine.reserve_memory(held).unwrap();
    // The reserved memory is sufficient for this write, but not for more.
    output.write_all(&[0; 50_000]).unwrap();
    let error = write_error(output, 100_000);
    assert!(matches!(
        error,
        Error::Io {
            cause: Cause::OutOfMemory,
            ..
        }
    ));
    drop(all_else);
}

/// An encoder's error must have the reason why its output failed.
#[test]
fn a_picture_without_memory_is_an_error() {
    let engine = Engine::new(0, 1);
    let _all_else = engine.reserve_memory(limits::OPEN_BYTES - 100_000).unwrap();
    let picture = elements(
        unsigned(1),
        &[200, 1000],
        InMemoryContent::new(noise(200_000)),
    );
    let Some(PngFile::Compressed(picture)) = PngFile::from_elements(picture, look(2)) else {
        panic!("a small picture");
    };
    let cancel = CancelToken::default();
    let error = picture
        .encode(&engine.reserve_memory(0).unwrap(), &cancel)
        .err()
        .unwrap();
    assert!(
        matches!(
            error,
            Error::Io {
                cause: Cause::OutOfMemory,
                ..
            }
        ),
        "{error:?}"
    );
}

#[test]
fn a_picture_that_cannot_be_read_is_an_error() {
    let short = elements(unsigned(2), &[2, 3], InMemoryContent::new(vec![0; 11]));
    assert!(matches!(encode_picture(short), Err(Error::Corrupt { .. })));
}

/// Returns bytes without a pattern.
fn noise(bytes: usize) -> Vec<u8> {
    let mixed = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8;
    (0..to_u64(bytes)).map(mixed).collect()
}

fn uncompressed_picture(elements: Elements) -> UncompressedPng {
    let dims = elements.dims.clone().unwrap();
    let image =
        Image::from_datatype(&elements.datatype, &dims, look(dims.len()).appearance).unwrap();
    UncompressedPng::new(Picture::new(image, elements, None))
}

/// The stored picture equals the compressed one for each number type. Its bytes do not depend on
/// the order of reads, and its length is known in advance.
#[test]
fn stored_and_compressed_pictures_are_equal() {
    let signed = |bytes| Datatype::integer(bytes, true, ByteOrder::Little);
    let boolean = h5fs_reader::testing::type_of(1, h5fs_reader::model::datatype::Class::Bool);
    let single = Datatype::ieee(4, ByteOrder::Big);
    for (datatype, dims) in [
        (unsigned(1), &[300, 500][..]),
        (unsigned(2), &[70, 130, 3]),
        (signed(1), &[257, 301]),
        (signed(2), &[10, 33_000]),
        (signed(8), &[100, 77]),
        (single, &[211, 97]),
        (boolean, &[900, 803]),
    ] {
        let bytes = dims.iter().product::<u64>() * u64::from(datatype.size);
        let mut content = noise(bytes as usize);
        if datatype.is_boolean() {
            content.iter_mut().for_each(|byte| *byte &= 1);
        }
        let of = || {
            elements(
                datatype.clone(),
                dims,
                InMemoryContent::new(content.clone()),
            )
        };
        let (compressed, pixels, _) = decode_picture(of());
        let whole = uncompressed_picture(of())
            .read_at(0, usize::MAX)
            .unwrap()
            .to_vec();
        assert_eq!(uncompressed_picture(of()).bytes(), to_u64(whole.len()));
        let decoder = png::Decoder::new(std::io::Cursor::new(&whole));
        let mut reader = decoder.read_info().unwrap();
        let mut found = vec![0; reader.output_buffer_size().unwrap()];
        assert_eq!(reader.next_frame(&mut found).unwrap(), compressed);
        assert!(found == pixels, "{dims:?}");
        let picture = uncompressed_picture(of());
        for (at, length) in [
            (5, 3),
            (whole.len() - 20, 20),
            (whole.len() / 2, 3000),
            (0, 70),
        ] {
            let read = picture.read_at(at as u64, length).unwrap();
            assert_eq!(read[..], whole[at..at + length], "{at}");
        }
    }
}

/// Expected: `zlib.adler32` of the rows, computed with libdeflate.
#[test]
fn the_checksum_covers_all_rows() {
    let content = noise(400 * 500);
    let picture = uncompressed_picture(elements(
        unsigned(1),
        &[400, 500],
        InMemoryContent::new(content.clone()),
    ));
    let rows: Vec<u8> = content
        .chunks(500)
        .flat_map(|row| [&[0], row].concat())
        .collect();
    let end = picture.bytes();
    let tail = picture.read_at(end - 20, 20).unwrap();
    assert_eq!(tail[..4], libdeflater::adler32(&rows).to_be_bytes());
    let end = picture.read_at(end - 8, 8).unwrap();
    assert_eq!(end[..], *b"IEND\xae\x42\x60\x82");
}

/// The length of a picture of the largest size that is shown completely is known at once. Reading
/// its middle reads only a part.
#[test]
fn the_length_of_a_large_picture_needs_no_pixels() {
    /// Pixels that must not be read.
    struct UnreadablePixels;
    impl View for UnreadablePixels {
        fn length(&self) -> u64 {
            0
        }

        fn read_for(&self, _: u64, _: usize, _: &CancelToken) -> Result<h5fs_reader::array::Bytes> {
            Err(Error::NotFound)
        }
    }
    let double = Datatype::ieee(8, ByteOrder::Little);
    let large = |content: Box<dyn View>| Elements {
        datatype: double.clone(),
        dims: Some(vec![8192, 8192]),
        content,
    };
    let picture = PngFile::from_elements(large(Box::new(UnreadablePixels)), look(2)).unwrap();
    let PngFile::Stored(picture) = picture else {
        panic!("a large picture is stored");
    };
    let rows = 8192 * (1 + 2 * 8192);
    let blocks = to_u64(rows).div_ceil(65_535);
    // The parts are the signature, IHDR, two texts, the zlib header, the blocks, the checksum and
    // IEND.
    let head = 8 + 25 + 2 * (12 + 8 + 24) + 14;
    assert_eq!(picture.length(), head + to_u64(rows) + 17 * blocks + 28);
    assert_eq!(picture.read_at(0, 1).err(), Some(Error::NotFound));
    let bytes = unsigned(1);
    let flat = elements(bytes, &[8192, 8192], ZeroContent);
    assert!(matches!(
        PngFile::from_elements(flat, look(2)),
        Some(PngFile::Stored(_))
    ));
}

#[test]
fn cancelling_a_reader_ends_the_encoding() {
    let picture = uncompressed_picture(elements(unsigned(4), &[2000, 2000], ZeroContent));
    let canceller = h5fs_reader::array::Canceller::default();
    let token = canceller.token();
    canceller.cancel();
    let error = picture.read_for(0, 10, &token).unwrap_err();
    assert!(error.is_cancelled());
    assert_eq!(picture.read_at(0, 10).unwrap().len(), 10);
}

#[test]
fn cancelling_a_request_ends_its_picture() {
    let (dims, bytes) = ([2000, 2000], 4 * 2000 * 2000);
    let plain = |content| uncompressed_picture(elements(unsigned(4), &dims, content));
    ends_with_its_second_read(bytes, plain, |picture, cancel| {
        picture.read_for(0, 10, cancel)
    });
}
