//! What a stream is decoded to: bytes; or, where the bytes before it are not known yet, symbols that stand for
//! a byte or for a place among those.

#![expect(
    clippy::as_conversions,
    reason = "a place in a window has fifteen bits"
)]

use super::WINDOW;
use super::adler::Adler;

/// What a stream is decoded to.
pub(super) trait Symbol: Copy {
    fn literal(byte: u8) -> Self;

    /// Two literals, the first one lowest.
    fn literals(bytes: u16) -> [Self; 2] {
        bytes.to_le_bytes().map(Self::literal)
    }

    fn copy_bytes(room: &mut [Self], bytes: &[u8]) {
        for (room, &byte) in room.iter_mut().zip(bytes) {
            *room = Self::literal(byte);
        }
    }

    /// Adds what was decoded to the checksum, where it is known.
    fn add_to(sum: &mut Adler, symbols: &[Self]);
}

impl Symbol for u8 {
    #[inline(always)]
    fn literal(byte: u8) -> Self {
        byte
    }

    fn add_to(sum: &mut Adler, symbols: &[Self]) {
        sum.add(symbols);
    }
}

/// A byte, or from [`UNKNOWN`](Self::UNKNOWN) on a place in the window before the first symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Marked(u16);

impl Marked {
    const UNKNOWN: u16 = 1 << 15;

    /// The window before the first symbol.
    pub(super) fn window() -> impl Iterator<Item = Self> {
        (0..WINDOW).map(|place| Marked(Self::UNKNOWN | place as u16))
    }

    /// The byte, where it is known.
    pub(super) fn known(self) -> Option<u8> {
        u8::try_from(self.0).ok()
    }

    /// The byte, once the window is known.
    pub(super) fn resolved(self, window: &[u8; WINDOW]) -> u8 {
        match self.known() {
            Some(byte) => byte,
            None => {
                let place = usize::from(self.0 & !Self::UNKNOWN);
                window.get(place).copied().unwrap_or(0)
            }
        }
    }
}

impl Symbol for Marked {
    #[inline(always)]
    fn literal(byte: u8) -> Self {
        Marked(u16::from(byte))
    }

    fn add_to(_: &mut Adler, _: &[Self]) {}
}
