//! Tests with streams that hdf5plugin 7.1 wrote with CharLS, of images that the tests calculate.

use super::*;
use crate::wire::crc32::crc32;

/// `test_image(23, 17, 8, 0)` encoded by hdf5plugin 7.1.
const BYTES: &str = "\
    ffd8fff7000b080017001101011100ffda0008010100000000957a81bc0003afb40000094623389804232380488c\
    88504c08db3968c9b3b18308451c0024039ce910000006137bc8c00000379fb6a1c3e51e08e60e29412096d98a43\
    dd515116f908e790519100000f3dad300000069c392f04c8b585061e021290824930716000002b6879b5210843ca\
    2841ddcd3aa7211d7028508ee68822610381c60aa592f146a3cd2c541016050b94a53d92822156eca5056c0a2535\
    6fccd088972a2934e50d3c81844aea8404869a9bc000002be01c0000060dce71aed82c248799c00948c410e35f28\
    c0e73932740000064f568556051a1222405e097001c00480008074db2c94c8c973508000007c178146efa8b56050\
    84b2cec0039f78b4c54255b0ffd9\
    ";
/// `test_image(15, 18, 12, 0)`, encoded the same way.
const TWELVE: &str = "\
    ffd8fff7000b0c000f001201011100ffda0008010100000000a2c5870f9e7b8b0e18418e2468d24799962294a3e0\
    d252a8f4b182aa549d155554fc4289544d2f841b2e4cf308b365d338fb2e4cf3028cf2c142ea2d69bd208a9425b5\
    ad4b7d4155284beeecb5020cb30003feef350d5b6bcd21b39bdf200e77a7908422f44a38eeeaec14c42117a54083\
    bbabb35490847d421a11ddbb64067ff77700055bb6f9bc0009b6ecef687ff7d6090dca52b9708212ba9766295cbb\
    412b1620ffd9\
    ";
/// `test_image(15, 18, 16, 0)`, encoded the same way.
const SIXTEEN: &str = "\
    ffd8fff7000b10000f001201011100fff8000d01ffff0012004301140040ffda0008010100000000a02c0580700c\
    39e43b80b00e01806b1c0480d01a0480f03320c40502814078418240a0a0a03c12c42082828150261462a0a0a0a0\
    78622288150440d02e1876c0b81303c0c90b03605c1303a5ec0b81303c0ca2303c1601445d088341a06c348a1412\
    084cda1a1a120d8ea2950904267d0d0d0906c81152848405ff06c2e13052aac1b0b84c12bb3130f0f0963383c139\
    22448910fa256c468d1a0bc60c4c9122443e951c11a34682f19b14a448910fa8474488d1a179b3f3c3e362e0e6d5\
    83b06e1983dd360dc1985e0d7ff85e2b024774aaaa86670841550d4fb5955519bb422a114220ffd9\
    ";
/// Three components, `test_image(12, 15, 8, 0)` to `test_image(12, 15, 8, 2)`, interleave mode 0.
const PLANES: &str = "\
    ffd8fff7001108000c000f03011100021100031100ffda0008010100000000957a81bc0003afb5188ce268108c84\
    11910a09811b620c9b1c04c308450801ce74880000030857718000006f3f6cf3078239838003722cc521e3997c84\
    73c8a000078514e6000000d38725e0998a90a6a12908249a0e2c0000056d0044842104964083bb8427211d7040a1\
    1dcc00ffda000801020000000000000ebed000003dad9801139dda311893c0723210464434d1fb620c9b2ac2e845\
    0800000977e0c2ad63000029ce93cc3c11cc1c001b9166290f1ccbe4239e45013964920c000003bc1c9782000000\
    cd8c1421846521049341ba3b808988391610c1ff3b84295800001380481028eee600ffda00080103000000000000\
    019e5f6800000e94d352800311c71c68c4624f01c8c8411910d347ed88326cab0ba1142000000e5ddf8000002d08\
    21e14000012db3161d08e604879156290140006cbd423a806a278296a88000001660e08000002e5202c596514000\
    0451d9672837eee02175992044383feee10a88ee110e04fddcc0ffd9\
    ";
/// Three components, `test_image(12, 15, 8, 0)` to `test_image(12, 15, 8, 2)`, interleave mode 1.
const LINES: &str = "\
    ffd8fff7001108000c000f03011100021100031100ffda000c03010002000300000100957a81bc0003afb41fbf80\
    0000ad77770045ddd83fbbbb000001d4a529400189ce734623389a042321111312787ed9b6d9af179482648a0984\
    1248ac91a6bf5221522d7e5c0422270130c1114218928b0b94728c49ee17388800e73a4400000184def63000000e\
    07ed9c162bbc19abd8c0000a9fd2058aab19d041078000022afd8c1e08e60e000dc4c3ca4734539316e66048796d\
    d88d7596c888b7196bb60a000365f2222df65f22225e65eecd42a801f269a67000000d38725e089134429208e8a2\
    89830b569283a69a69a13ded4cae7f20000005ca4686186184666659041c79f3011119992fa0dd110e0000440677\
    9ba0dd11144a66659240811114484066691e0fd111246d50411160fd11104c662b6040a199904ab566110e050889\
    e504443a1c09d113c0ffd9\
    ";
/// Three components, `test_image(12, 15, 8, 0)` to `test_image(12, 15, 8, 2)`, interleave mode 2.
const PIXELS: &str = "\
    ffd8fff7001108000c000f03011100021100031100ffda000c0301000200030000020040000029e004197adbeebe\
    060000015a000001d0b8c5c5adaddac00000272100016ad6b5ad6b5ad6b344cc988c9b6723092f38df72326da511\
    90452364924914c80496a0ff7aaaa544c046308892492747009714274e491148ec4114800e0b0161cae7754aa892\
    000000c20ccfb6a1b5a1dda030cf000001c000005000004f4aedaffce9d889262e5cb42398a476660ed08000c290\
    f2d9b35ec4444db35615d380001b2f9f3d444444d9969af9e055003f0a304d32534de9a289c6140000034e30f387\
    25ed58227c000005c8a22520743422d348b4d056186b0c2322000023333303223969f207c6e8383737f443e44444\
    021ca252423336b032823117a20908f160407e7e888888888a24826252936b315194cd620e810e1c0a1a19d11111\
    11110f78ffd9\
    ";
/// `test_image(23, 17, 8, 0)` with an error of at most 2.
const NEAR: &str = "\
    ffd8fff7000b080017001101011100ffda0008010100020000b983e03e60001d1596124a14a4b2c094b0524962c1\
    123923fd0007ee80000ff405751889cd432b3113894e2b7111300a8810001b790000136cb1b123878888c8c15802\
    2600a02222e45189253a812a8518908cc8e0cc812db228cd8a0561838985cea12d621882e286358ca00043154384\
    dccc201cc60804636c2002300048204ac608462201a000442215ca2046677a3998dc5124642c5201050081c66c96\
    19428000000ce28a34d628c12cb0632392a350ffd9\
    ";
/// `test_image(23, 17, 8, 0)` with thresholds 5, 9, 30 and counters halved at 17.
const PRESET: &str = "\
    ffd8fff7000b080017001101011100fff8000d0100ff00050009001e0011ffda0008010100000000955540de0001\
    d7da000004a3323898042323804b191c504c0844ce5a082290715831d8873900e749c400000184def23000000de2\
    7f54387ca3ccc8d10a0904b6cccc140006a2a22df021440724a3204000079ed6980000034e1c9782645ac3830f01\
    08a21c69460e2c0000056d80e000002bf486294a97508108e4c414e423ae050a108e4c4d03c207038082a964bc51\
    a8f34b19044c0a17294855aa8221d6eca4055c0a253d6fccb089778a293ce50d3c01800000b222570a090d4d1200\
    00002be940000060fdef32f982c21ed34820913dce3242a306b585ca9256b46b6051a316b2f0541f0446680e975d\
    52d51d6c3a1000000f827028dca492cc0a108c59d81a294d9a284a80ffd9\
    ";

/// Returns an image of squares. Half of them contain a curved surface, the others a constant, so
/// that runs occur.
fn test_image(lines: usize, width: usize, bits: u32, component: usize) -> Vec<usize> {
    let sample = |y: usize, x: usize| match (y / 4 + x / 5) % 2 {
        0 => y * y * 2 + x * 3 + x * y + 40 * component,
        _ => 100 * component,
    };
    let places = (0..lines).flat_map(|y| (0..width).map(move |x| (y, x)));
    places
        .map(|(y, x)| sample(y, x) & ((1 << bits) - 1))
        .collect()
}

fn bytes(samples: &[usize]) -> Vec<u8> {
    samples.iter().map(|&sample| sample as u8).collect()
}

fn pairs(samples: &[usize]) -> Vec<u8> {
    let pairs = samples.iter().map(|&sample| (sample as u16).to_le_bytes());
    pairs.flatten().collect()
}

fn stream(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.map(byte).collect()
}

fn decode_stream(stream: &[u8], length: DecodedLength) -> Result<Vec<u8>> {
    decode(stream, length, &DecoderResources::default(), &|| true).map(Buffer::into_vec)
}

#[track_caller]
fn assert_decodes_to(hex: &str, expected: Vec<u8>) {
    let length = DecodedLength::Exactly(expected.len());
    assert_eq!(decode_stream(&stream(hex), length), Ok(expected));
}

#[test]
fn samples_of_one_and_two_bytes() {
    assert_decodes_to(BYTES, bytes(&test_image(23, 17, 8, 0)));
    assert_decodes_to(PRESET, bytes(&test_image(23, 17, 8, 0)));
    assert_decodes_to(TWELVE, pairs(&test_image(15, 18, 12, 0)));
    assert_decodes_to(SIXTEEN, pairs(&test_image(15, 18, 16, 0)));
}

#[test]
fn several_components() {
    let planes = [0, 1, 2].map(|component| bytes(&test_image(12, 15, 8, component)));
    let places = 0..planes[0].len();
    let pixels: Vec<u8> = places
        .flat_map(|place| [0, 1, 2].map(|c| planes[c][place]))
        .collect();
    assert_decodes_to(PLANES, planes.concat());
    assert_decodes_to(LINES, pixels.clone());
    assert_decodes_to(PIXELS, pixels);
}

/// The expected sum is `zlib.crc32` of the bytes that hdf5plugin decodes.
#[test]
fn near_lossless_samples_are_within_the_bound() {
    let image = bytes(&test_image(23, 17, 8, 0));
    let near = decode_stream(&stream(NEAR), DecodedLength::Exactly(image.len())).unwrap();
    assert!(
        near.iter()
            .zip(&image)
            .all(|(near, byte)| near.abs_diff(*byte) <= 2)
    );
    assert_eq!(crc32(&near), 0x2f450e0);
}

#[test]
fn truncated_and_damaged_streams_are_rejected() {
    for hex in [BYTES, SIXTEEN, PIXELS, NEAR] {
        let whole = stream(hex);
        for end in 0..whole.len() {
            assert!(
                decode_stream(&whole[..end], DecodedLength::AtMost(1000)).is_err(),
                "{end}"
            );
        }
        for place in 0..whole.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[place] = byte;
                if let Ok(bytes) = decode_stream(&damaged, DecodedLength::AtMost(1000)) {
                    assert!(bytes.len() <= 1000);
                }
            }
        }
    }
    assert!(decode_stream(&stream(BYTES), DecodedLength::AtMost(23 * 17 - 1)).is_err());
}

#[test]
fn an_unwanted_decode_is_cancelled() {
    let unwanted = decode(
        &stream(BYTES),
        DecodedLength::Exactly(391),
        &DecoderResources::default(),
        &|| false,
    );
    assert_eq!(unwanted.err(), Some(crate::error::Error::cancelled()));
}
