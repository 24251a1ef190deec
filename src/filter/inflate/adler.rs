//! The checksum of a zlib stream (RFC 1950, 8.2).

#![expect(
    clippy::arithmetic_side_effects,
    reason = "so many bytes are added at a time that nothing overflows"
)]

const LANES: usize = 16;

/// Two sums of the bytes, modulo a prime.
#[derive(Clone, Copy)]
pub(super) struct Adler {
    low: u32,
    high: u32,
}

impl Default for Adler {
    fn default() -> Self {
        Adler { low: 1, high: 0 }
    }
}

impl Adler {
    const MODULUS: u32 = 65_521;

    pub(super) fn value(self) -> u32 {
        self.high << 16 | self.low
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        // As many as do not overflow 32 bits.
        for part in bytes.chunks(5536) {
            let (rows, rest) = part.as_chunks::<LANES>();
            // Each lane for itself, as vector instructions have it.
            let (mut low, mut high) = ([0_u32; LANES], [0_u32; LANES]);
            for row in rows {
                for ((low, high), &byte) in low.iter_mut().zip(&mut high).zip(row) {
                    *high += *low;
                    *low += u32::from(byte);
                }
            }
            let in_rows = part.len() - rest.len();
            self.high += self.low * u32::try_from(in_rows).unwrap_or(0);
            for ((low, high), weight) in low.iter().zip(&high).zip((1..=16).rev()) {
                self.high += high * 16 + low * weight;
                self.low += low;
            }
            for &byte in rest {
                self.low += u32::from(byte);
                self.high += self.low;
            }
            self.low %= Self::MODULUS;
            self.high %= Self::MODULUS;
        }
    }
}
