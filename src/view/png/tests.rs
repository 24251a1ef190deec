use super::*;
use crate::array::Engine;
use crate::error::Cause;
use crate::model::Datatype;
use crate::model::datatype::ByteOrder;
use crate::view::View;
use crate::wire::to_u64;

/// Zeros without an end.
struct Zeros;

impl View for Zeros {
    fn length(&self) -> Option<u64> {
        None
    }

    fn read_at(&self, _: u64, length: usize) -> Result<crate::array::Bytes> {
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

fn encoded(elements: Elements) -> Result<Option<Text>> {
    file(elements, &Engine::new(0, 1).hold(0).unwrap())
}

/// What the decoder of the crate, which is not its encoder, makes of a file.
fn decoded(elements: Elements) -> (png::OutputInfo, Vec<u8>, Vec<(String, String)>) {
    let text = encoded(elements).unwrap().unwrap();
    let bytes = text.read_at(0, usize::MAX).unwrap().to_vec();
    assert_eq!(text.length(), Some(bytes.len() as u64));
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
    let (info, pixels, texts) = decoded(elements(unsigned(2), &[2, 3], Text::new(bytes.to_vec())));
    assert_eq!((info.width, info.height), (3, 2));
    assert_eq!(
        (info.color_type, info.bit_depth),
        (ColorType::Grayscale, BitDepth::Sixteen)
    );
    assert_eq!(pixels, [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 255, 255]);
    assert_eq!(texts, []);
    let colours: Vec<u8> = (0..2 * 2 * 4).collect();
    let (info, pixels, _) = decoded(elements(
        unsigned(1),
        &[2, 2, 4],
        Text::new(colours.clone()),
    ));
    assert_eq!(
        (info.color_type, info.bit_depth),
        (ColorType::Rgba, BitDepth::Eight)
    );
    assert_eq!(pixels, colours);
}

#[test]
fn a_stack_and_a_line_are_no_picture() {
    for dims in [&[4][..], &[2, 4, 5], &[0, 4], &[]] {
        let found = encoded(elements(unsigned(1), dims, Zeros)).unwrap();
        assert!(found.is_none(), "{dims:?}");
    }
}

#[test]
fn every_so_manyth_pixel_of_a_large_picture_is_shown() {
    assert_eq!(step(8192, 8192), 1);
    assert_eq!(step(8192, 8193), 2);
    assert_eq!((step(1, 1_000_000), step(1, 1_000_001)), (1, 2));
    assert_eq!((step(1, u64::MAX / 8), step(0, 0)), (2_305_843_009_214, 1));

    // Each pixel is its number along the row.
    let width = 1_000_005_u32;
    let row: Vec<u8> = (0..width).flat_map(u32::to_le_bytes).collect();
    let (info, pixels, texts) = decoded(elements(unsigned(4), &[1, width.into()], Text::new(row)));
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

/// A picture of a thousand million million pixels costs what is shown of it.
#[test]
fn a_huge_picture_is_not_read_whole() {
    let side = 1 << 25;
    let image = Image::of(&unsigned(1), &[side, side]).unwrap();
    let huge = elements(unsigned(1), &[side, side], Zeros);
    let picture = Picture::new(image, huge).unwrap();
    assert_eq!(picture.step, 4096);
    let mut row = Vec::new();
    picture.row(side - 1, &mut row).unwrap();
    assert_eq!(row.len(), 8192);
}

/// The error of an output that has no room for so many bytes more.
fn refused(mut output: Output<'_>, more: usize) -> Error {
    let written = output.write_all(&vec![0; more]);
    let written = written.map_err(|error| failed(error.into()));
    output.finished(written).unwrap_err()
}

#[test]
fn what_an_encoded_picture_takes_is_bounded() {
    let engine = Engine::new(0, 1);
    let memory = engine.hold(0).unwrap();
    let mut output = Output::new(&memory, 1000).unwrap();
    output.write_all(&[0; 100_000]).unwrap();
    let held = limits::OPEN_BYTES - 1000 - to_u64(output.bytes.capacity());
    assert!(engine.hold(held + 1).is_err());
    let all_else = engine.hold(held).unwrap();
    // There is room for what it has reserved, and no more.
    output.write_all(&[0; 50_000]).unwrap();
    let error = refused(output, 100_000);
    assert!(matches!(
        error,
        Error::Io {
            cause: Cause::OutOfMemory,
            ..
        }
    ));
    drop(all_else);

    let most = usize::try_from(limits::PICTURE_BYTES).unwrap();
    let mut output = Output::new(&memory, 1000).unwrap();
    output.write_all(&vec![0; most]).unwrap();
    let error = refused(output, 1);
    assert_eq!(
        error,
        Error::limit("bytes of a picture", limits::PICTURE_BYTES)
    );
}

/// The reason comes through the encoder.
#[test]
fn a_picture_for_which_there_is_no_memory_says_so() {
    let engine = Engine::new(0, 1);
    let _all_else = engine.hold(limits::OPEN_BYTES - 100_000).unwrap();
    let noise = (0..200_000_u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8);
    let picture = elements(unsigned(1), &[200, 1000], Text::new(noise.collect()));
    let error = file(picture, &engine.hold(0).unwrap()).err().unwrap();
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
    let short = elements(unsigned(2), &[2, 3], Text::new(vec![0; 11]));
    assert!(matches!(encoded(short), Err(Error::Corrupt { .. })));
}

#[test]
fn an_encoding_ends_in_time() {
    let image = Image::of(&unsigned(1), &[2, 2]).unwrap();
    let mut picture = Picture::new(image, elements(unsigned(1), &[2, 2], Zeros)).unwrap();
    let visit = &mut |_: &[u8]| Ok(());
    assert_eq!(picture.rows(visit), Ok(()));
    picture.started -= limits::PICTURE_TIME;
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert_eq!(
        picture.rows(visit),
        Err(Error::limit("seconds that a picture takes", 120))
    );
}
