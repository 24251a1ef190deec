//! Cards of a FITS header for an array's attributes, if the FITS standard allows them.
//!
//! An attribute becomes a card if its upper-case name is a keyword, and its value is one number,
//! boolean or text of printable characters. A keyword has up to 8 of the characters `A` to `Z`, `0`
//! to `9`, `-` and `_`. It must not describe the structure of the data. If several names differ
//! only in case, the first is used. In ASDF, the scalars of a mapping `meta` are used like
//! attributes. It is the mapping next to the object, or otherwise next to the nearest of its
//! parents.

use std::collections::HashSet;
use std::ops::ControlFlow;

use h5fs_reader::error::{Result, ignore_permanent};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::number::is_decodable;
use h5fs_reader::model::paths::resolve_path;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::model::{Container, LinkTarget, NodeId, NodeKind, Scalar, ScalarValue};

use crate::limits;
use crate::pictures::fits::cards::Cards;

/// Keywords that describe the structure of the data.
const RESERVED: [&str; 23] = [
    "SIMPLE", "XTENSION", "BITPIX", "NAXIS", "EXTEND", "END", "PCOUNT", "GCOUNT", "GROUPS",
    "TFIELDS", "THEAP", "BSCALE", "BZERO", "BLANK", "CONTINUE", "COMMENT", "HISTORY", "CHECKSUM",
    "DATASUM", "ZHECKSUM", "ZDATASUM", "INHERIT", "LONGSTRN",
];

/// Keywords that describe the structure of the data when a number follows them.
const NUMBERED: [&str; 12] = [
    "NAXIS", "TFORM", "TTYPE", "TUNIT", "TSCAL", "TZERO", "TNULL", "TDISP", "TDIM", "PTYPE",
    "PSCAL", "PZERO",
];

/// The value of a card.
#[derive(Debug, PartialEq)]
enum CardValue {
    Logical(bool),
    /// The text of a number.
    Number(String),
    Text(Vec<u8>),
}

/// Returns the cards for the attributes of `node`. `path` is the path of the node.
///
/// # Errors
/// Fails with a temporary error, such as a failed read. An attribute whose error is permanent, such
/// as damage, does not become a card.
pub fn cards(container: &dyn Container, node: NodeId, path: &[u8]) -> Result<Cards> {
    let mut found = HeaderCards::default();
    match container.asdf_extras() {
        None => add_attributes(container, node, &mut found)?,
        Some(_) => {
            if let Some(meta) = find_meta(container, path)? {
                add_scalars(container, meta, &mut found)?;
            }
        }
    }
    Ok(found.cards)
}

#[derive(Default)]
struct HeaderCards {
    cards: Cards,
    keywords: HashSet<String>,
}

impl HeaderCards {
    fn is_full(&self) -> bool {
        self.cards.count() >= limits::FITS_CARDS
    }

    /// Adds a card if `name` is a keyword and `value` fits in a card.
    fn add(&mut self, name: &[u8], value: Option<CardValue>) {
        let Some((keyword, value)) = keyword(name).zip(value) else {
            return;
        };
        if self.is_full() || !self.keywords.insert(keyword.clone()) {
            return;
        }
        match value {
            CardValue::Logical(value) => self.cards.logical(&keyword, value),
            CardValue::Number(text) => self.cards.fixed_format(&keyword, text),
            CardValue::Text(text) => self.cards.text(&keyword, &text),
        }
    }
}

fn add_attributes(container: &dyn Container, node: NodeId, found: &mut HeaderCards) -> Result<()> {
    let mut outcome = Ok(());
    let listed = container.attributes(node, &mut |attribute| {
        if keyword(&attribute.name).is_none() {
            return ControlFlow::Continue(());
        }
        let content = attribute
            .content
            .and_then(|content| card_value(container, &content));
        match ignore_permanent(content) {
            Ok(value) => found.add(&attribute.name, value.flatten()),
            Err(error) => outcome = Err(error),
        }
        if found.is_full() || outcome.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    outcome?;
    ignore_permanent(listed).map(|_| ())
}

/// Finds the nearest mapping `meta`, next to the object at `path` or next to one of its parents.
fn find_meta(container: &dyn Container, path: &[u8]) -> Result<Option<NodeId>> {
    let mut path = path;
    while let Some(end) = path.iter().rposition(|&byte| byte == b'/') {
        path = &path[..end];
        let name = [path, b"/meta"].concat();
        let found = ignore_permanent(resolve_path(container, container.root(), &name))?.flatten();
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn add_scalars(container: &dyn Container, meta: NodeId, found: &mut HeaderCards) -> Result<()> {
    let mut links = container.links(meta)?;
    let mut left = limits::FITS_CARDS;
    while let Some(link) = links.next()?.filter(|_| left > 0) {
        left -= 1;
        let LinkTarget::Hard(node) = link.target else {
            continue;
        };
        if keyword(&link.name).is_none() {
            continue;
        }
        if let Some(node) = ignore_permanent(container.node(node))?
            && let NodeKind::Scalar(scalar) = &node.kind
        {
            found.add(&link.name, scalar_value(scalar));
        }
    }
    Ok(())
}

/// Returns the FITS keyword for an attribute's name. Returns `None` if the name is not a keyword,
/// or if the keyword describes the structure of the data.
fn keyword(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_uppercase();
    let is_of_it = |byte| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_');
    let fits = (1..=8).contains(&name.len()) && name.bytes().all(is_of_it);
    let stem = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let is_numbered = stem.len() < name.len() && NUMBERED.contains(&stem);
    (fits && !is_numbered && !RESERVED.contains(&&*name)).then_some(name)
}

/// Returns the card value for an attribute; `None` if FITS does not have such values.
fn card_value(container: &dyn Container, content: &AttributeContent) -> Result<Option<CardValue>> {
    let datatype = &content.datatype;
    let has_value = match &datatype.class {
        Class::Integer { .. } | Class::Enumeration { .. } | Class::Bool => datatype.size <= 8,
        Class::Float(format) => is_decodable(format),
        Class::String { .. } | Class::VariableString { .. } => true,
        _ => false,
    };
    if !has_value || content.shape.elements()? != 1 {
        return Ok(None);
    }
    let writer = ValueWriter::new(datatype)?;
    let element = content.elements.get(..writer.size()).unwrap_or_default();
    let most = limits::FITS_CARDS * super::cards::CARD;
    let mut text = Vec::new();
    writer.write_text(
        element,
        &TextContext::new(container, &|_| Ok(None), most),
        &mut text,
    )?;
    Ok(match datatype.class {
        _ if datatype.is_boolean() || datatype.class == Class::Bool => {
            Some(CardValue::Logical(element != [0]))
        }
        Class::Integer { .. } | Class::Float(_) => number_value(&text),
        _ => text_value(text),
    })
}

fn scalar_value(scalar: &Scalar) -> Option<CardValue> {
    match &scalar.value {
        ScalarValue::Bool(value) => Some(CardValue::Logical(*value)),
        ScalarValue::Int(_) | ScalarValue::Float(_) => {
            let mut text = Vec::new();
            scalar.write_json(&mut text);
            number_value(&text)
        }
        ScalarValue::Complex(..) | ScalarValue::Timestamp | ScalarValue::String => {
            text_value(scalar.text.clone().into_bytes())
        }
        ScalarValue::Null | ScalarValue::Binary => None,
    }
}

/// Parses the text of a finite number of at most 64 bits; `None` for any other text.
fn number_value(text: &[u8]) -> Option<CardValue> {
    let text = std::str::from_utf8(text).ok()?;
    let is_one = if text.contains(['.', 'e']) {
        text.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()
    };
    is_one.then(|| CardValue::Number(text.replace('e', "E")))
}

/// Returns a text as a card value; `None` if the text has characters that are not printable, or is
/// too long for a FITS header.
fn text_value(text: Vec<u8>) -> Option<CardValue> {
    let is_short = text.len() <= limits::FITS_TEXT;
    let is_printable = text.iter().all(|byte| matches!(byte, b' '..=b'~'));
    (is_short && is_printable).then_some(CardValue::Text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::model::Shape;
    use h5fs_reader::model::datatype::{Charset, Datatype, StringPadding};
    use h5fs_reader::testing::{Heap, int, type_of};

    #[test]
    fn names_that_are_keywords() {
        let keyword = |name: &str| keyword(name.as_bytes());
        assert_eq!(keyword("units").as_deref(), Some("UNITS"));
        assert_eq!(keyword("DATE-OBS").as_deref(), Some("DATE-OBS"));
        assert_eq!(keyword("CRVAL1").as_deref(), Some("CRVAL1"));
        for name in ["", "exposure time", "nine_char", "größe", "a.b"] {
            assert_eq!(keyword(name), None, "{name}");
        }
        for name in ["NAXIS", "naxis2", "TFORM12", "End", "bzero", "COMMENT"] {
            assert_eq!(keyword(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_that_fit() {
        let number = |text: &str| match number_value(text.as_bytes()) {
            Some(CardValue::Number(text)) => Some(text),
            _ => None,
        };
        assert_eq!(number("-7").as_deref(), Some("-7"));
        assert_eq!(number("1e+300").as_deref(), Some("1E+300"));
        assert_eq!(
            number("18446744073709551615").as_deref(),
            Some("18446744073709551615")
        );
        for text in [
            "nan",
            "-inf",
            "0x1.8p+16000",
            "18446744073709551616",
            "1e400",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    fn card_value(datatype: Datatype, dims: &[u64], elements: &[u8]) -> Option<CardValue> {
        let content = AttributeContent {
            datatype,
            shape: Shape::fixed(dims.to_vec()),
            elements: elements.into(),
        };
        super::card_value(&Heap(Vec::new()), &content).unwrap()
    }

    #[test]
    fn attributes_of_one_value_fit() {
        let text = type_of(
            4,
            Class::String {
                padding: StringPadding::NullPadded,
                charset: Charset::Utf8,
            },
        );
        let of_text = |elements| card_value(text.clone(), &[], elements);
        assert_eq!(of_text(b"ab\0\0"), Some(CardValue::Text(b"ab".to_vec())));
        assert_eq!(of_text("aé\0".as_bytes()), None);
        assert_eq!(of_text(b"a\nb\0"), None);
        let seven = || Some(CardValue::Number("7".to_owned()));
        assert_eq!(card_value(int(2), &[1, 1], &[7, 0]), seven());
        assert_eq!(card_value(int(2), &[2], &[7, 0, 8, 0]), None);
        assert_eq!(card_value(int(2), &[0], &[]), None);
        assert_eq!(
            card_value(type_of(1, Class::Bool), &[], &[1]),
            Some(CardValue::Logical(true))
        );
    }

    #[test]
    fn the_cards_of_a_header_are_bounded() {
        let mut found = HeaderCards::default();
        for number in 0..=limits::FITS_CARDS {
            found.add(
                format!("A{number}").as_bytes(),
                Some(CardValue::Logical(true)),
            );
        }
        assert_eq!(found.cards.count(), limits::FITS_CARDS);
        assert_eq!(text_value(vec![b'x'; limits::FITS_TEXT + 1]), None);
        let mut found = HeaderCards::default();
        found.add(b"gain", Some(CardValue::Logical(true)));
        found.add(b"GAIN", Some(CardValue::Logical(false)));
        assert_eq!(found.cards.count(), 1);
    }
}
