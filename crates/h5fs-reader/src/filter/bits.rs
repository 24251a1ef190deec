//! Readers for numbers of any width in a bit stream. Each byte starts with its most significant
//! bit. The reader of ZFP streams, which starts with the least significant bit, shares the refill
//! of the bit window.

/// Number of bits in a 64-bit window after a refill, unless the input has ended.
pub(crate) const MIN_READY_BITS: u32 = 56;

/// Returns the next eight bytes of `rest`, padded with zeros past its end. `ready`, at most 63, is
/// the number of bits already filled in the window. Removes from `rest` only the whole bytes that
/// fit into the window, and adds their bits to `ready`.
#[inline]
pub(crate) fn next_word(rest: &mut &[u8], ready: &mut u32) -> [u8; 8] {
    let mut next = [0; 8];
    match rest.first_chunk::<8>() {
        Some(bytes) => next = *bytes,
        None => next
            .iter_mut()
            .zip(*rest)
            .for_each(|(to, from)| *to = *from),
    }
    let room = 63_u32.wrapping_sub(*ready).wrapping_shr(3);
    let bytes = usize::try_from(room).unwrap_or(0).min(rest.len());
    *rest = rest.get(bytes..).unwrap_or_default();
    let bytes = u32::try_from(bytes).unwrap_or(0);
    *ready = ready.wrapping_add(bytes.wrapping_shl(3));
    next
}

/// A reader of bits, which starts at the first bit of a byte slice.
#[derive(Debug)]
pub(crate) struct BitReader<'a> {
    rest: &'a [u8],
    /// The next bits of the stream, the first one in the highest bit. Only the highest `ready` bits
    /// are valid. The lower bits are zero, or the next refill reads them again.
    window: u64,
    ready: u32,
}

impl<'a> BitReader<'a> {
    /// Creates a reader of `bytes`.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        BitReader {
            rest: bytes,
            window: 0,
            ready: 0,
        }
    }

    /// Fills the window with at least `MIN_READY_BITS` bits, unless the input ends.
    #[inline]
    fn refill(&mut self) {
        let filled = self.ready;
        let next = next_word(&mut self.rest, &mut self.ready);
        self.window |= u64::from_be_bytes(next).wrapping_shr(filled);
    }

    /// Skips `count` bits of the window, at most `ready`.
    fn skip_ready(&mut self, count: u32) {
        self.window = self.window.unbounded_shl(count);
        self.ready = self.ready.wrapping_sub(count);
    }

    /// Reads the next `width` bits as a number, at most 56. Returns `None` if fewer bits remain.
    #[inline]
    pub(crate) fn read(&mut self, width: u32) -> Option<u64> {
        if self.ready < width {
            self.refill();
            if self.ready < width || width > MIN_READY_BITS {
                return None;
            }
        }
        let number = self.window.unbounded_shr(64_u32.wrapping_sub(width));
        self.skip_ready(width);
        Some(number)
    }

    /// Reads the next `width` bits as a number, at most 64. Returns `None` if fewer bits remain.
    #[inline]
    pub(crate) fn read_wide(&mut self, width: u32) -> Option<u64> {
        let Some(high) = width.checked_sub(32) else {
            return self.read(width);
        };
        let high = self.read(high)?;
        Some(high.wrapping_shl(32) | self.read(32)?)
    }

    /// Counts the zero bits before the next one bit, and skips all of them, including the one bit.
    /// Returns `None` if no one bit remains.
    #[inline]
    pub(crate) fn count_zeros(&mut self) -> Option<u32> {
        let mut zeros = 0_u32;
        loop {
            let run = self.window.leading_zeros();
            if run < self.ready {
                self.skip_ready(run.wrapping_add(1));
                return zeros.checked_add(run);
            }
            zeros = zeros.checked_add(self.ready)?;
            self.window = 0;
            self.ready = 0;
            self.refill();
            if self.ready == 0 {
                return None;
            }
        }
    }
}

/// An iterator over numbers of one width that follow each other without gaps, as [`BitReader`]
/// would read them. Each number is located from its index alone, so that the processor can work on
/// several at a time.
#[derive(Debug)]
pub(crate) struct PackedNumbers<'a> {
    bytes: &'a [u8],
    width: u32,
    /// Offset of the next number from the start of `bytes`, in bits.
    place: usize,
}

impl<'a> PackedNumbers<'a> {
    /// The largest supported width, in bits. A number of this width ends within eight bytes,
    /// whatever bit of a byte it starts at.
    pub(crate) const WIDEST: u32 = 57;

    /// Creates an iterator over numbers of `width` bits at the start of `bytes`. Returns `None` if
    /// `width` exceeds [`Self::WIDEST`].
    pub(crate) fn new(bytes: &'a [u8], width: u32) -> Option<Self> {
        (width <= Self::WIDEST).then_some(PackedNumbers {
            bytes,
            width,
            place: 0,
        })
    }

    /// Returns the eight bytes from byte `at` on, padded with zeros past the end. Returns `None` if
    /// the next number extends past the end.
    #[cold]
    fn word_at_end(&self, at: usize) -> Option<[u8; 8]> {
        let end = self.place.checked_add(usize::try_from(self.width).ok()?)?;
        let rest = self.bytes.get(at..)?;
        let mut word = [0; 8];
        word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        (end.div_ceil(8) <= self.bytes.len()).then_some(word)
    }
}

impl Iterator for PackedNumbers<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let at = self.place.wrapping_shr(3);
        let word = match self
            .bytes
            .get(at..)
            .and_then(|rest| rest.first_chunk::<8>())
        {
            Some(word) => *word,
            None => self.word_at_end(at)?,
        };
        let skipped = u32::try_from(self.place & 7).unwrap_or(0);
        let word = u64::from_be_bytes(word).wrapping_shl(skipped);
        self.place = self.place.checked_add(usize::try_from(self.width).ok()?)?;
        Some(word.unbounded_shr(64_u32.wrapping_sub(self.width)))
    }
}

/// Fills `output` with the low `size` bytes of each of `numbers`, in the given byte order. Returns
/// `None` if there are too few numbers, or if no integer type has this size.
pub(crate) fn store_elements(
    numbers: impl Iterator<Item = u64>,
    size: usize,
    big_endian: bool,
    output: &mut [u8],
) -> Option<()> {
    match size {
        1 => store_as::<1>(numbers, big_endian, output),
        2 => store_as::<2>(numbers, big_endian, output),
        4 => store_as::<4>(numbers, big_endian, output),
        8 => store_as::<8>(numbers, big_endian, output),
        _ => None,
    }
}

#[inline]
fn store_as<const SIZE: usize>(
    mut numbers: impl Iterator<Item = u64>,
    big_endian: bool,
    output: &mut [u8],
) -> Option<()> {
    for element in output.as_chunks_mut::<SIZE>().0 {
        let number = numbers.next()?.to_le_bytes();
        *element = *number.first_chunk::<SIZE>()?;
        if big_endian {
            element.reverse();
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_agree_with_the_bit_reader() {
        let bytes: Vec<u8> = (0..60_u8).map(|byte| byte.wrapping_mul(77)).collect();
        for width in 1..=PackedNumbers::WIDEST {
            let mut reader = BitReader::new(&bytes);
            let read: Vec<u64> = std::iter::from_fn(|| reader.read_wide(width)).collect();
            let numbers: Vec<u64> = PackedNumbers::new(&bytes, width).unwrap().collect();
            assert_eq!(numbers, read, "{width}");
            assert_eq!(numbers.len(), 480 / width as usize);
        }
        assert!(PackedNumbers::new(&bytes, 58).is_none());
        assert_eq!(PackedNumbers::new(&[], 0).unwrap().next(), Some(0));
    }

    #[test]
    fn numbers_become_elements_of_either_order() {
        let mut output = [0xff; 6];
        store_elements([0x01_0203, 4, 5].into_iter(), 2, false, &mut output).unwrap();
        assert_eq!(output, [3, 2, 4, 0, 5, 0]);
        store_elements([0x01_0203, 4, 5].into_iter(), 2, true, &mut output).unwrap();
        assert_eq!(output, [2, 3, 0, 4, 0, 5]);
        assert_eq!(store_elements([1].into_iter(), 2, true, &mut output), None);
        assert_eq!(
            store_elements([1, 2].into_iter(), 3, true, &mut output),
            None
        );
    }

    #[test]
    fn numbers_cross_bytes_and_refills() {
        // 1, 23, 456, 7890 in 3, 7, 13, 17 bits, repeated and written as binary text.
        let numbers = [(1, 3), (23, 7), (456, 13), (7890, 17), (u64::MAX - 5, 64)];
        let text: String = (0..20)
            .flat_map(|_| numbers)
            .map(|(number, width)| format!("{number:0width$b}"))
            .collect();
        let bytes: Vec<u8> = text
            .as_bytes()
            .chunks(8)
            .map(|bits| u8::from_str_radix(str::from_utf8(bits).unwrap(), 2).unwrap())
            .collect();
        let mut reader = BitReader::new(&bytes);
        for (number, width) in (0..20).flat_map(|_| numbers) {
            assert_eq!(reader.read_wide(width as u32), Some(number));
        }
        assert_eq!(reader.read(1), None);
        assert_eq!(reader.read(0), Some(0));
    }

    #[test]
    fn zeros_are_counted_across_refills() {
        let mut bytes = vec![0; 30];
        bytes[0] = 0b0010_1000;
        bytes[29] = 1;
        let mut reader = BitReader::new(&bytes);
        let counts = [
            reader.count_zeros(),
            reader.count_zeros(),
            reader.count_zeros(),
        ];
        assert_eq!(counts, [Some(2), Some(1), Some(3 + 28 * 8 + 7)]);
        assert_eq!(reader.count_zeros(), None);
        assert_eq!(BitReader::new(&[0; 3]).count_zeros(), None);
    }
}
