//! The CRC-32 of ISO 3309, which .xz streams use for their headers and indices.

/// The generator polynomial with reversed bits: the highest bit is the coefficient of x^0.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// Returns the CRC-32 of `bytes`. The function works bit by bit, which is fast enough for headers
/// but not for content.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let sum = bytes.iter().fold(u32::MAX, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |sum, _| {
            let carry = if sum & 1 == 1 { POLYNOMIAL } else { 0 };
            sum.wrapping_shr(1) ^ carry
        })
    });
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_the_catalogues() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
