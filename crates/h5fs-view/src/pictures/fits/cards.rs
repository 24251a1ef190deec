//! The cards of a FITS header (FITS 4.0, 4.1 and 4.2).

use std::fmt::Display;

/// Length of a card in bytes.
pub(crate) const CARD: usize = 80;

/// Size of a header block in bytes.
const BLOCK: usize = 2880;

/// Maximum characters between the quotes of a card, including the continuation mark `&`.
const TEXT: usize = 68;

/// A list of cards of 80 characters each.
#[derive(Debug, Default, Clone)]
pub struct Cards {
    bytes: Vec<u8>,
}

impl Cards {
    /// Returns the number of cards.
    pub fn count(&self) -> usize {
        self.bytes.len() / CARD
    }

    /// Appends a card with a logical value (FITS 4.0, section 4.2.2).
    pub fn logical(&mut self, keyword: &str, value: bool) {
        self.fixed_format(keyword, if value { 'T' } else { 'F' });
    }

    /// Appends a card with an integer (FITS 4.0, section 4.2.3).
    pub fn integer(&mut self, keyword: &str, value: i128) {
        self.fixed_format(keyword, value);
    }

    /// Adds the card `NAXIS` and a card for the length of each axis, fastest axis first.
    pub(super) fn axes(&mut self, axes: impl IntoIterator<Item = u64>) {
        let axes: Vec<u64> = axes.into_iter().collect();
        self.fixed_format("NAXIS", axes.len());
        for (number, axis) in axes.into_iter().enumerate() {
            self.fixed_format(&format!("NAXIS{}", number + 1), axis);
        }
    }

    /// Adds a card whose value is right-aligned up to column 30, as in the fixed format of
    /// mandatory keywords. A longer value extends to the right.
    pub(crate) fn fixed_format(&mut self, keyword: &str, value: impl Display) {
        self.card(format!("{keyword:<8}= {value:>20}").as_bytes());
    }

    /// Adds a card whose value is a text of printable characters. A long text continues in further
    /// cards (4.2.1.2).
    pub fn text(&mut self, keyword: &str, text: &[u8]) {
        let mut start = format!("{keyword:<8}= ").into_bytes();
        let mut piece = Vec::new();
        let quotes = text.iter().filter(|&&byte| byte == b'\'').count();
        let mut left = text.len() + quotes;
        for &byte in text {
            let start_of_byte = piece.len();
            piece.push(byte);
            if byte == b'\'' {
                piece.push(byte);
            }
            left -= piece.len() - start_of_byte;
            // A card is full if it has no space for a doubled quote and the continuation mark.
            let is_full = piece.len() + 3 > TEXT;
            if is_full && piece.len() + left > TEXT {
                piece.push(b'&');
                self.quoted_card(&start, &piece);
                start = b"CONTINUE  ".to_vec();
                piece.clear();
            }
        }
        self.quoted_card(&start, &piece);
    }

    fn quoted_card(&mut self, start: &[u8], text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        self.card(&[start, format!("'{text:<8}'").as_bytes()].concat());
    }

    fn card(&mut self, card: &[u8]) {
        let end = self.bytes.len() + CARD;
        self.bytes.extend_from_slice(card);
        self.bytes.resize(end, b' ');
    }

    pub(super) fn append(&mut self, other: &Cards) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// Returns the encoded header: the cards, `END`, and spaces up to a whole block.
    pub(super) fn header(mut self) -> Vec<u8> {
        if self
            .bytes
            .chunks(CARD)
            .any(|card| card.starts_with(b"CONTINUE"))
        {
            // Readers before version 4.0 need this keyword.
            self.text("LONGSTRN", b"OGIP 1.0");
        }
        self.card(b"END");
        let length = self.bytes.len().next_multiple_of(BLOCK);
        self.bytes.resize(length, b' ');
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(cards: &Cards) -> Vec<String> {
        let cards = cards.bytes.chunks(CARD);
        let text = |card: &[u8]| String::from_utf8(card.to_vec()).unwrap();
        cards.map(|card| text(card).trim_end().to_owned()).collect()
    }

    /// The texts are those of the examples in "FITS 4.0", 4.2 and 5.3.
    #[test]
    fn values_are_in_fixed_columns() {
        let mut cards = Cards::default();
        cards.logical("SIMPLE", true);
        cards.integer("BITPIX", -32);
        cards.axes([512, 10_000]);
        cards.text("XTENSION", b"BINTABLE");
        cards.text("KEYWORD1", b"O'HARA");
        cards.text("NULL", b"");
        let expected = [
            "SIMPLE  =                    T",
            "BITPIX  =                  -32",
            "NAXIS   =                    2",
            "NAXIS1  =                  512",
            "NAXIS2  =                10000",
            "XTENSION= 'BINTABLE'",
            "KEYWORD1= 'O''HARA '",
            "NULL    = '        '",
        ];
        assert_eq!(lines(&cards), expected);
        assert_eq!(cards.count(), 8);
    }

    #[test]
    fn a_long_text_continues_in_further_cards() {
        let text = |length: usize| {
            let mut cards = Cards::default();
            cards.text("LONG", &vec![b'\''; length]);
            lines(&cards)
        };
        let quotes = |count: usize| "''".repeat(count);
        assert_eq!(text(34), [format!("LONG    = '{}'", quotes(34))]);
        let rest = "CONTINUE  '''''    '".to_owned();
        assert_eq!(text(35), [format!("LONG    = '{}&'", quotes(33)), rest]);
    }

    #[test]
    fn a_header_fills_blocks() {
        let mut cards = Cards::default();
        for number in 0..35 {
            cards.integer("NUMBER", number);
        }
        let header = cards.clone().header();
        assert_eq!((header.len(), &header[2800..2804]), (2880, &b"END "[..]));
        cards.integer("NUMBER", 35);
        assert_eq!(cards.header().len(), 5760);
    }
}
