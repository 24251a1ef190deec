//! A NumPy file: a header and the elements as stored, except that booleans and strings are
//! normalized (`normal`).
//!
//! The header equals that of `numpy.save` byte for byte ("A Simple File Format for NumPy Arrays").
//! The format version is 1.0, or 2.0 if the header is longer than 65 535 bytes, or 3.0 if a field
//! name is not Latin-1. Spaces pad the header so that the elements begin at a multiple of 64 bytes.
//! h5py's enumeration of FALSE and TRUE becomes `|b1`, and its compound of `r` and `i` a complex
//! number. If elements are arrays, their dimensions follow the dimensions of the outer array.

use h5fs_reader::error::Result;
use h5fs_reader::model::Array;
use h5fs_reader::model::numpy::numpy_literal;
use h5fs_reader::model::shape::product;
use h5fs_reader::wire::to_u64;

use crate::elements::normal::normalize;
use crate::elements::{Elements, element_type, numpy_datatype};
use crate::framed::{self, FramedFile};

/// Creates the NumPy file of `elements`. Returns `None` if NumPy does not have their datatype, or
/// for a null dataspace.
///
/// # Errors
/// `Limit` if the file is longer than any file can be.
pub fn file(elements: Elements) -> Result<Option<FramedFile>> {
    let Some(descr) = numpy_literal(&numpy_datatype(&elements.datatype)) else {
        return Ok(None);
    };
    file_of_type(&descr, normalize(elements)?)
}

/// Creates the NumPy file of `elements`, whose NumPy type is `descr`. Returns `None` for a null
/// dataspace, or if the length of the header does not fit in 32 bits.
///
/// # Errors
/// Fails as [`file`] does.
pub(crate) fn file_of_type(descr: &str, elements: Elements) -> Result<Option<FramedFile>> {
    let Some(dims) = &elements.dims else {
        return Ok(None);
    };
    let Some(header) = header(descr, dims) else {
        return Ok(None);
    };
    let bytes = total_element_bytes(elements.datatype.size, dims)?;
    FramedFile::new(header, elements.content, bytes, 1).map(Some)
}

/// Returns the length in bytes of the NumPy file of `array`, without reading its elements; `None`
/// if the array does not have a NumPy file.
///
/// # Errors
/// `Limit` if the file is longer than any file can be.
pub fn length(array: &Array) -> Result<Option<u64>> {
    let (datatype, dims) = element_type(&array.datatype, &array.shape)?;
    match (numpy_literal(&numpy_datatype(&datatype)), dims) {
        (Some(descr), Some(dims)) => length_of_type(&descr, datatype.size, &dims),
        _ => Ok(None),
    }
}

/// Returns the length in bytes of a NumPy file with elements of `size` bytes and dimensions `dims`.
/// `descr` is the NumPy type. Returns `None` if the length of the header does not fit in 32 bits.
///
/// # Errors
/// `Limit` if the file is longer than any file can be.
pub(crate) fn length_of_type(descr: &str, size: u32, dims: &[u64]) -> Result<Option<u64>> {
    let Some(header) = header(descr, dims) else {
        return Ok(None);
    };
    framed::length(to_u64(header.len()), total_element_bytes(size, dims)?, 1).map(Some)
}

/// Returns the total size in bytes of elements of `size` bytes with dimensions `dims`.
fn total_element_bytes(size: u32, dims: &[u64]) -> Result<u64> {
    Ok(product(dims)?.saturating_mul(size.into()))
}

/// Returns the header of the NumPy file; `None` if its length does not fit in 32 bits.
fn header(descr: &str, dims: &[u64]) -> Option<Vec<u8>> {
    // NumPy reserves space so that the first dimension can grow to this many digits.
    const DIGITS: usize = 21;
    let shape: Vec<String> = dims.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let room = shape.first().map_or(0, |first| DIGITS - first.len());
    let dictionary = format!(
        "{{'descr': {descr}, 'fortran_order': False, 'shape': ({}{comma}), }}{:room$}",
        shape.join(", "),
        ""
    );
    header_bytes(&dictionary)
}

/// Returns the header with the text `dictionary`: magic bytes, version, length and text, then
/// spaces and a line break. Returns `None` if the length does not fit in 32 bits.
fn header_bytes(dictionary: &str) -> Option<Vec<u8>> {
    const ALIGNMENT: usize = 64;
    let latin1 = dictionary.chars().map(|c| u8::try_from(c).ok());
    let latin1: Option<Vec<u8>> = latin1.collect();
    let is_latin1 = latin1.is_some();
    let mut text = latin1.unwrap_or_else(|| dictionary.as_bytes().to_vec());
    // Like NumPy, adds a whole block if no padding is needed.
    let padded = |text: &[u8], prefix: usize| {
        let unpadded = prefix + text.len() + 1;
        text.len() + 1 + ALIGNMENT - unpadded % ALIGNMENT
    };
    let mut header = b"\x93NUMPY".to_vec();
    let length = match u16::try_from(padded(&text, 10)) {
        Ok(length) if is_latin1 => {
            header.extend_from_slice(&[1, 0]);
            header.extend_from_slice(&length.to_le_bytes());
            usize::from(length)
        }
        _ => {
            let length = padded(&text, 12);
            header.extend_from_slice(&[if is_latin1 { 2 } else { 3 }, 0]);
            header.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
            length
        }
    };
    text.resize(length - 1, b' ');
    header.extend_from_slice(&text);
    header.push(b'\n');
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::Datatype;
    use h5fs_reader::model::datatype::{ByteOrder, Class};
    use h5fs_reader::testing::{int, member, type_of};

    fn text(datatype: &Datatype, dims: &[u64]) -> (usize, [u8; 2], String) {
        let descr = numpy_literal(&numpy_datatype(datatype)).unwrap();
        let header = header(&descr, dims).unwrap();
        let place = if header[6] == 1 { 10 } else { 12 };
        let text = header[place..].iter().map(|&byte| char::from(byte));
        (
            header.len(),
            [header[6], header[7]],
            text.collect::<String>().trim_end().to_owned(),
        )
    }

    /// Expected: the headers that `numpy.lib.format.write_array_header_1_0` and its successors
    /// write.
    #[test]
    fn headers_equal_those_of_numpy() {
        let single = Datatype::ieee(4, ByteOrder::Big);
        let expected = "{'descr': '>f4', 'fortran_order': False, 'shape': (3, 4), }";
        assert_eq!(text(&single, &[3, 4]), (128, [1, 0], expected.to_owned()));
        let expected = "{'descr': '<i2', 'fortran_order': False, 'shape': (), }";
        assert_eq!(text(&int(2), &[]), (128, [1, 0], expected.to_owned()));

        let named = |name: &str| type_of(2, Class::Compound(vec![member(name, 0, int(2))]));
        assert_eq!(text(&named("é"), &[3]).1, [1, 0]);
        assert_eq!(text(&named("Δ"), &[3]).1, [3, 0]);
        let (length, version, _) = text(&named(&"x".repeat(70_000)), &[3]);
        assert_eq!((length, version), (70_144, [2, 0]));
        assert_eq!(numpy_literal(&int(3)), None);
    }

    #[test]
    fn booleans_and_complex_numbers() {
        let members = vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])];
        let base = Box::new(int(1));
        let boolean = type_of(1, Class::Enumeration { base, members });
        assert!(text(&boolean, &[1]).2.starts_with("{'descr': '|b1',"));
        let part = || Datatype::ieee(8, ByteOrder::Little);
        let complex = Class::Compound(vec![member("r", 0, part()), member("i", 8, part())]);
        let complex = type_of(16, complex);
        assert!(text(&complex, &[1]).2.starts_with("{'descr': '<c16',"));
        let record = Class::Compound(vec![member("z", 0, complex), member("b", 16, boolean)]);
        let expected = "{'descr': [('z', '<c16'), ('b', '|b1')],";
        assert!(text(&type_of(17, record), &[1]).2.starts_with(expected));
    }
}
