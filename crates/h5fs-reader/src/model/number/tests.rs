//! Texts of numbers of many formats.

use super::*;
use ByteOrder::{Big, Little, Vax};

fn all_bits(size: u16) -> BitRange {
    BitRange {
        offset: 0,
        precision: size * 8,
    }
}

fn text(element: &[u8], format: &FloatFormat) -> String {
    let mut out = Vec::new();
    float_value(element, format).unwrap().write_text(&mut out);
    String::from_utf8(out).unwrap()
}

fn ieee(size: u8, order: ByteOrder) -> FloatFormat {
    match Datatype::ieee(size, order).class {
        Class::Float(format) => format,
        _ => unreachable!(),
    }
}

/// Returns a format without padding: the sign in the highest bit, then the exponent, then the
/// mantissa.
pub(crate) fn format(
    order: ByteOrder,
    exponent_bits: u8,
    mantissa_bits: u8,
    bias: u32,
) -> FloatFormat {
    let sign = exponent_bits + mantissa_bits;
    FloatFormat {
        order,
        bits: BitRange {
            offset: 0,
            precision: u16::from(sign) + 1,
        },
        sign,
        exponent: mantissa_bits,
        exponent_bits,
        mantissa: 0,
        mantissa_bits,
        bias,
        normalization: Normalization::Implied,
    }
}

#[test]
fn integers_of_every_size_and_order() {
    let text = |element: &[u8], order, signed, bits| {
        decode_integer(element, order, signed, bits)
            .unwrap()
            .to_string()
    };
    assert_eq!(text(&[0xFE], Little, true, all_bits(1)), "-2");
    assert_eq!(text(&[0x01, 0x02], Big, false, all_bits(2)), "258");
    assert_eq!(
        text(&[0x01, 0x00, 0x80], Little, true, all_bits(3)),
        "-8388607"
    );
    // VAX: the more significant word comes first, each word little-endian.
    assert_eq!(
        text(&[2, 1, 4, 3], Vax, false, all_bits(4)),
        0x0102_0304.to_string()
    );
    let least = i128::MIN.to_be_bytes();
    let digits = "-170141183460469231731687303715884105728";
    assert_eq!(text(&least, Big, true, all_bits(16)), digits);
    assert_eq!(decode_integer(&[0; 17], Little, true, all_bits(17)), None);
}

#[test]
fn integers_within_padding() {
    let field = BitRange {
        offset: 3,
        precision: 5,
    };
    // Bits 3..8 of 0b_1010_0111 0b_1111_1010 are 11111: bits 3-7 of the low byte.
    let element = [0b1111_1010, 0b1010_0111];
    assert_eq!(
        decode_integer(&element, Little, false, field),
        Some(Integer::Unsigned(31))
    );
    assert_eq!(
        decode_integer(&element, Little, true, field),
        Some(Integer::Signed(-1))
    );
}

/// Expected: `repr(x)` of Python 3 for the double, whose bytes are `struct.pack('<d', x)`.
#[test]
fn doubles_print_as_in_python() {
    let print = |value: f64| text(&value.to_le_bytes(), &ieee(8, Little));
    assert_eq!(print(1.0), "1.0");
    assert_eq!(print(0.1), "0.1");
    assert_eq!(print(-0.0), "-0.0");
    assert_eq!(print(1e300), "1e+300");
    assert_eq!(print(1e16), "1e+16");
    assert_eq!(print(1e15), "1000000000000000.0");
    assert_eq!(print(123_456_789_012_345_680.0), "1.2345678901234568e+17");
    assert_eq!(print(0.0001), "0.0001");
    assert_eq!(print(1e-5), "1e-05");
    assert_eq!(print(5e-324), "5e-324");
    assert_eq!(print(f64::NAN), "nan");
    assert_eq!(print(f64::NEG_INFINITY), "-inf");
}

/// Expected: `str(numpy.float32(x))` of NumPy 2.4.
#[test]
fn singles_print_as_in_numpy() {
    let print = |value: f32| text(&value.to_be_bytes(), &ieee(4, Big));
    assert_eq!(print(0.1), "0.1");
    assert_eq!(print(999_999.0), "999999.0");
    assert_eq!(print(1e6), "1e+06");
    assert_eq!(print(16_777_216.0), "1.6777216e+07");
    assert_eq!(print(3.402_823_5e38), "3.4028235e+38");
    assert_eq!(print(1e-4), "1e-04");
    assert_eq!(print(1e-45), "1e-45");
    assert_eq!(print(0.000_123_456_78), "0.00012345678");
}

/// Expected: `str(numpy.float16(x))` of NumPy 2.4.
#[test]
fn halves_print_as_in_numpy() {
    let half = ieee(2, Little);
    assert_eq!(text(&0x2E66_u16.to_le_bytes(), &half), "0.1");
    assert_eq!(text(&0x7BFF_u16.to_le_bytes(), &half), "6.55e+04");
    assert_eq!(text(&0x0001_u16.to_le_bytes(), &half), "6e-08");
    assert_eq!(text(&0x502B_u16.to_le_bytes(), &half), "33.34");
    assert_eq!(text(&0xFC00_u16.to_le_bytes(), &half), "-inf");
    assert_eq!(text(&0x7E00_u16.to_le_bytes(), &half), "nan");
    assert_eq!(text(&0x8000_u16.to_le_bytes(), &half), "-0.0");
}

/// Values computed by hand from the formats' definitions. Expected texts are NumPy's for the type
/// that h5py reads.
#[test]
fn other_formats_by_their_fields() {
    // bfloat16 is the upper half of an IEEE single: 0x4049 is 3.140625.
    assert_eq!(text(&[0x49, 0x40], &format(Little, 8, 7, 127)), "3.140625");
    // FP8 E5M2: 0b0_01111_01 is 1.25. E4M3: 0b1_1000_100 is -3, and 0x01 is 2^-9. Readers hold both
    // as 16-bit floats.
    assert_eq!(text(&[0x3D], &format(Little, 5, 2, 15)), "1.25");
    assert_eq!(text(&[0xC4], &format(Little, 4, 3, 7)), "-3.0");
    assert_eq!(text(&[0x01], &format(Little, 4, 3, 7)), "0.001953");
    // The number below 0.1 in a 20-bit format is held in 32 bits. With more exponent bits, it is
    // held in 64 bits.
    let tenth = 0.1_f32.to_bits() >> 12;
    let twenty = format(Little, 8, 11, 127);
    assert_eq!(text(&tenth.to_le_bytes(), &twenty), "0.099975586");
    let tenth = 0.1_f64.to_bits() >> 40;
    let wide = format(Little, 11, 12, 1023);
    assert_eq!(text(&tenth.to_le_bytes(), &wide), "0.0999908447265625");
    // VAX F: 1.0 is 0.5 * 2^1, exponent 129: bytes 80 40 00 00. D and G: 80 40, 10 40 first.
    assert_eq!(text(&[0x80, 0x40, 0, 0], &format(Vax, 8, 23, 129)), "1.0");
    assert_eq!(
        text(&[0x80, 0xC0, 0, 0, 0, 0, 0, 0], &format(Vax, 8, 55, 129)),
        "-1.0"
    );
    assert_eq!(
        text(&[0x10, 0x40, 0, 0, 0, 0, 0, 0], &format(Vax, 11, 52, 1025)),
        "1.0"
    );
    // VAX lacks infinities: the highest exponent is an ordinary number, 2^126 here.
    assert_eq!(
        text(&[0x80, 0x7F, 0, 0], &format(Vax, 8, 23, 129)),
        "8.507059e+37"
    );
    assert_eq!(text(&[0x00, 0x80, 0, 0], &format(Vax, 8, 23, 129)), "nan");
}

/// x87 extended: the leading one is stored. 0.1 from `numpy.longdouble('0.1').tobytes()`.
#[test]
fn extended_precision() {
    let mut x87 = format(Little, 15, 64, 16383);
    x87.normalization = Normalization::None;
    let tenth = [0xCD, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xFB, 0x3F];
    assert_eq!(text(&[&tenth[..], &[0; 6]].concat(), &x87), "0.1");
    // 1 + 2^-60, and the double nearest to 0.1: NumPy's `str(numpy.longdouble(…))`.
    let near_one = [0x08, 0, 0, 0, 0, 0, 0, 0x80, 0xFF, 0x3F];
    assert_eq!(text(&near_one, &x87), "1.0000000000000000009");
    let tenth = [0x00, 0xD0, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xFB, 0x3F];
    assert_eq!(text(&tenth, &x87), "0.10000000000000000555");
    let infinity = [0, 0, 0, 0, 0, 0, 0, 0x80, 0xFF, 0x7F, 0, 0];
    assert_eq!(text(&infinity, &x87), "inf");
    // Exponent field 0x7FFE, mantissa 1.5: 1.5 * 2^16383.
    let huge = [0, 0, 0, 0, 0, 0, 0, 0xC0, 0xFE, 0xFF, 0, 0];
    assert_eq!(text(&huge, &x87), "-0x1.8p+16383");
}

#[test]
fn unsupported_float_formats_have_no_value() {
    let quad = format(Little, 15, 112, 16_383);
    assert!(float_value(&[0xaa; 16], &quad).is_some());
    let strange = [
        FloatFormat {
            mantissa_bits: 128,
            ..quad
        },
        FloatFormat {
            exponent_bits: 31,
            ..quad
        },
        FloatFormat {
            bias: 1 << 30,
            ..quad
        },
    ];
    for format in strange {
        assert!(float_value(&[0xaa; 16], &format).is_none());
    }
}
