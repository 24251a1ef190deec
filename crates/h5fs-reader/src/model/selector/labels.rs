//! Selectors that name dimensions: `[time=2020-03,latitude=60,longitude@0:10]`.
//!
//! | form | selected positions of the dimension |
//! |---|---|
//! | `NAME=VALUE` | where the coordinate has the value |
//! | `NAME=~VALUE` | where the coordinate is nearest to the value |
//! | `NAME=FIRST:LAST` | where the coordinate is from `FIRST` to `LAST`; either may be missing |
//! | `NAME@INDEX` | an integer, a slice or a list, as in a selector without names |
//!
//! Names and values are bare or quoted, as fields are. In a bare value, a `:` between the numbers
//! of a time of day (`T12:30`) is part of the value.

use crate::limits;
use crate::model::selector::{Selector, SelectorStep, parse_index, parse_step};

/// A selector whose first bracket after the fields names dimensions.
#[derive(Debug, PartialEq, Eq)]
pub struct LabelSelector<'a> {
    /// The brackets before the named dimensions, which name fields.
    pub before: &'a [u8],
    /// The named dimensions, in the order of the text.
    pub choices: Vec<DimensionChoice>,
    /// The brackets after the named dimensions.
    pub after: &'a [u8],
}

/// The part that a selector picks along one dimension.
#[derive(Debug, PartialEq, Eq)]
pub struct DimensionChoice {
    /// The name of the dimension.
    pub dimension: Vec<u8>,
    /// The selected positions.
    pub part: DimensionPart,
}

/// The selected positions of a dimension, as the selector describes them.
#[derive(Debug, PartialEq, Eq)]
pub enum DimensionPart {
    /// An integer, a slice or a list, as in a selector without names.
    Index(String),
    /// The positions at which the coordinate has this value.
    Value(Vec<u8>),
    /// The position at which the coordinate is nearest to this value.
    Nearest(Vec<u8>),
    /// The positions from a first to a last value, which both belong to the range.
    Range(Option<Vec<u8>>, Option<Vec<u8>>),
}

/// The part of a bracket that is not parsed yet.
struct BracketParser<'a>(&'a [u8]);

impl<'a> LabelSelector<'a> {
    /// Parses `text`. Returns `None` if no bracket of the text names dimensions.
    ///
    /// # Errors
    /// Fails with the reason if a bracket names dimensions in a wrong way.
    pub fn parse(text: &'a [u8]) -> Result<Option<Self>, String> {
        let mut rest = text;
        while let Some(inner) = rest.strip_prefix(b"[") {
            if names_dimensions(inner) {
                let before = text.strip_suffix(rest).unwrap_or_default();
                let mut parser = BracketParser(inner);
                let choices = parser.parse_choices()?;
                let after = parser.0;
                check_brackets_after(after)?;
                return Ok(Some(LabelSelector {
                    before,
                    choices,
                    after,
                }));
            }
            match parse_step(inner) {
                Some((SelectorStep::Field(_), after)) => rest = after,
                _ => break,
            }
        }
        Ok(None)
    }
}

/// Returns whether the bracket with the text `inner` contains the sign of a named dimension. A
/// quoted field may contain it, too.
fn names_dimensions(inner: &[u8]) -> bool {
    let is_field =
        matches!(inner.trim_ascii_start(), [b'\'' | b'"', ..]) && parse_step(inner).is_some();
    let mut bytes = inner.iter().take_while(|&&byte| byte != b']');
    !is_field && bytes.any(|byte| is_sign(*byte))
}

fn is_sign(byte: u8) -> bool {
    matches!(byte, b'=' | b'@')
}

/// Checks the brackets that follow the named dimensions.
fn check_brackets_after(after: &[u8]) -> Result<(), String> {
    if LabelSelector::parse(after) != Ok(None) {
        return Err("all named dimensions belong in one bracket".to_owned());
    }
    if after.is_empty() || Selector::parse(after).is_some() {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(after);
    Err(format!("`{shown}` follows the named dimensions"))
}

impl BracketParser<'_> {
    /// Parses the named dimensions up to the closing bracket.
    fn parse_choices(&mut self) -> Result<Vec<DimensionChoice>, String> {
        let mut choices: Vec<DimensionChoice> = Vec::new();
        loop {
            let choice = self.parse_choice()?;
            let name = &choice.dimension;
            if choices.iter().any(|other| other.dimension == *name) {
                let name = String::from_utf8_lossy(name);
                return Err(format!("the dimension `{name}` is named twice"));
            }
            choices.push(choice);
            if choices.len() > limits::SELECTION_RANK {
                return Err("too many dimensions".to_owned());
            }
            if !self.skip(b',') {
                break;
            }
        }
        if self.skip(b']') {
            return Ok(choices);
        }
        Err(match String::from_utf8_lossy(self.0).trim() {
            "" => "no `]` closes the bracket".to_owned(),
            rest => format!("`{rest}` follows a quoted word"),
        })
    }

    fn parse_choice(&mut self) -> Result<DimensionChoice, String> {
        let dimension = self.parse_word(|_, byte, _| matches!(byte, b',' | b']') || is_sign(byte));
        let dimension = dimension?.ok_or("the dimension has no name")?;
        let part = if self.skip(b'@') {
            self.parse_index_text()?
        } else if self.skip(b'=') {
            self.parse_values()?
        } else {
            let shown = String::from_utf8_lossy(&dimension);
            return Err(format!(
                "`{shown}` has no dimension: name every dimension of the bracket, as in `x=10` or \
                 `x@0:10`"
            ));
        };
        Ok(DimensionChoice { dimension, part })
    }

    /// Parses the integer, slice or list after an `@`.
    fn parse_index_text(&mut self) -> Result<DimensionPart, String> {
        let mut is_in_list = false;
        let end = self.0.iter().position(|&byte| {
            let was_in_list = is_in_list;
            is_in_list = byte == b'[' || is_in_list && byte != b']';
            matches!(byte, b',' | b']') && !was_in_list
        });
        let (text, after) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = after;
        let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
        match parse_index(&text) {
            Some(_) if text != "..." => Ok(DimensionPart::Index(text)),
            _ => Err(format!("`{text}` is not an index")),
        }
    }

    /// Parses the value, or the range of values, after an `=`.
    fn parse_values(&mut self) -> Result<DimensionPart, String> {
        let is_nearest = self.skip(b'~');
        let first = self.parse_value()?;
        match (self.skip(b':'), first, is_nearest) {
            (false, Some(value), true) => Ok(DimensionPart::Nearest(value)),
            (false, Some(value), false) => Ok(DimensionPart::Value(value)),
            (true, first, false) => {
                let last = self.parse_value()?;
                if self.skip(b':') {
                    let reason = "a second `:`: a value with a `:` needs quotation marks";
                    return Err(reason.to_owned());
                }
                Ok(DimensionPart::Range(first, last))
            }
            (true, _, true) => Err("`~` takes one value, not a range".to_owned()),
            (false, None, _) => Err("no value follows the `=`".to_owned()),
        }
    }

    /// Parses a value up to the end of the dimension or to the `:` of a range.
    fn parse_value(&mut self) -> Result<Option<Vec<u8>>, String> {
        self.parse_word(|before, byte, after| match byte {
            b',' | b']' => true,
            b':' => !is_within_time(before, after),
            _ => false,
        })
    }

    /// Parses a quoted word, or a bare word up to the first byte for which `is_end` returns true.
    /// Its arguments are the bytes before, the byte, and the bytes after. Returns `None` for a bare
    /// word without bytes.
    fn parse_word(
        &mut self,
        is_end: impl Fn(&[u8], u8, &[u8]) -> bool,
    ) -> Result<Option<Vec<u8>>, String> {
        let text = self.0.trim_ascii_start();
        if let Some((quote @ (b'\'' | b'"'), quoted)) = text.split_first() {
            self.0 = quoted;
            return self.parse_quoted(*quote).map(Some);
        }
        let places = (0..text.len()).filter_map(|at| text.split_at_checked(at));
        let end = { places }.find(|(before, rest)| {
            let next = rest.split_first();
            next.is_some_and(|(&byte, after)| is_end(before, byte, after))
        });
        let (word, after) = end.unwrap_or((text, &[]));
        self.0 = after;
        let word = word.trim_ascii();
        Ok((!word.is_empty()).then(|| word.to_vec()))
    }

    /// Parses the rest of a quoted word, in which `\` makes the next byte literal.
    fn parse_quoted(&mut self, quote: u8) -> Result<Vec<u8>, String> {
        let mut word = Vec::new();
        let mut rest = self.0;
        while let [byte, after @ ..] = rest {
            rest = after;
            match (byte, after) {
                (byte, _) if *byte == quote => {
                    self.0 = rest;
                    return Ok(word);
                }
                (b'\\', [literal, after @ ..]) => {
                    word.push(*literal);
                    rest = after;
                }
                _ => word.push(*byte),
            }
        }
        Err("a quotation mark has no second one".to_owned())
    }

    /// Consumes blanks and the byte `wanted`. Returns whether the byte was there.
    fn skip(&mut self, wanted: u8) -> bool {
        let rest = self.0.trim_ascii_start();
        let after = rest.strip_prefix(&[wanted]);
        self.0 = after.unwrap_or(self.0);
        after.is_some()
    }
}

/// Returns whether a `:` between the texts `before` and `after` separates the hour from the minute,
/// or the minute from the second, of a time such as `2020-03-05T12:30:15`.
fn is_within_time(before: &[u8], after: &[u8]) -> bool {
    let are_digits = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_digit);
    let is_begun = match before {
        [.., a, b'T', b, c, b':', d, e] => are_digits(&[*a, *b, *c, *d, *e]),
        [.., a, b'T', b, c] => are_digits(&[*a, *b, *c]),
        _ => false,
    };
    let is_continued = match after {
        [tens, units, rest @ ..] => {
            are_digits(&[*tens, *units]) && !rest.first().is_some_and(u8::is_ascii_digit)
        }
        _ => false,
    };
    is_begun && is_continued
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(text: &str) -> Vec<(String, DimensionPart)> {
        let parsed = LabelSelector::parse(text.as_bytes());
        let parsed = parsed.unwrap_or_else(|reason| panic!("{text}: {reason}"));
        let choices = parsed.expect("named dimensions").choices.into_iter();
        let name = |choice: &DimensionChoice| String::from_utf8(choice.dimension.clone()).unwrap();
        choices.map(|choice| (name(&choice), choice.part)).collect()
    }

    fn value(text: &str) -> DimensionPart {
        DimensionPart::Value(text.as_bytes().to_vec())
    }

    fn range(first: &str, last: &str) -> DimensionPart {
        let bound = |text: &str| (!text.is_empty()).then(|| text.as_bytes().to_vec());
        DimensionPart::Range(bound(first), bound(last))
    }

    fn index(text: &str) -> DimensionPart {
        DimensionPart::Index(text.to_owned())
    }

    #[test]
    fn each_form_of_a_choice() {
        let parsed = choices("[ time = 2020-03 , lat=~60.5,lon=10:20, level@0:10:2,k@[1, 2]]");
        let nearest = DimensionPart::Nearest(b"60.5".to_vec());
        assert_eq!(
            parsed,
            [
                ("time".to_owned(), value("2020-03")),
                ("lat".to_owned(), nearest),
                ("lon".to_owned(), range("10", "20")),
                ("level".to_owned(), index("0:10:2")),
                ("k".to_owned(), index("[1, 2]")),
            ]
        );
    }

    #[test]
    fn colons_in_times_of_day_do_not_separate() {
        let part = |text: &str| choices(&format!("[t={text}]")).remove(0).1;
        let (noon, full) = ("2020-03-05T12:30", "2020-03-05T12:30:15.5");
        assert_eq!(part(noon), value(noon));
        assert_eq!(part(full), value(full));
        assert_eq!(part(&format!("{noon}:{full}")), range(noon, full));
        assert_eq!(part(&format!("{noon}:2021")), range(noon, "2021"));
        assert_eq!(part("2020-03-05T12:2021"), range("2020-03-05T12", "2021"));
        assert_eq!(part("2020-03-05T12:"), range("2020-03-05T12", ""));
        assert_eq!(part(&format!("{full}:{noon}")), range(full, noon));
        assert_eq!(part(&format!(":{noon}")), range("", noon));
        assert_eq!(part("AT12:30"), range("AT12", "30"));
        assert_eq!(part(":"), range("", ""));
        assert_eq!(part("-20:-10"), range("-20", "-10"));
    }

    #[test]
    fn quoted_names_and_values() {
        let parsed = choices(r#"['a=b'="x,]:y",c='it\'s':'z']"#);
        assert_eq!(
            parsed,
            [
                ("a=b".to_owned(), value("x,]:y")),
                ("c".to_owned(), range("it's", "z"))
            ]
        );
        assert_eq!(
            choices("[my dim=it's]"),
            [("my dim".to_owned(), value("it's"))]
        );
    }

    #[test]
    fn brackets_around_the_named_dimensions() {
        let parsed = LabelSelector::parse(b"[flux]['x=1'][t=3][0:2]")
            .unwrap()
            .unwrap();
        assert_eq!(parsed.before, b"[flux]['x=1']");
        assert_eq!(parsed.after, b"[0:2]");
        for text in ["[0]", "[flux]", "['a=b']", "[[0,1],:]", "x[a=1]", "", "[]"] {
            assert_eq!(LabelSelector::parse(text.as_bytes()), Ok(None), "{text}");
        }
    }

    #[test]
    fn wrong_brackets_have_reasons() {
        let named = "name every dimension of the bracket, as in `x=10` or `x@0:10`";
        for (text, wanted) in [
            (
                "[time=2020,0:3]",
                format!("`0:3` has no dimension: {named}"),
            ),
            (
                "[0:3,time=2020]",
                format!("`0:3` has no dimension: {named}"),
            ),
            ("[=3]", "the dimension has no name".to_owned()),
            ("[t=]", "no value follows the `=`".to_owned()),
            ("[t=~]", "no value follows the `=`".to_owned()),
            ("[t=~1:2]", "`~` takes one value, not a range".to_owned()),
            (
                "[t=1:2:3]",
                "a second `:`: a value with a `:` needs quotation marks".to_owned(),
            ),
            ("[t=1", "no `]` closes the bracket".to_owned()),
            ("[t='1]", "a quotation mark has no second one".to_owned()),
            ("[t='1'2]", "`2]` follows a quoted word".to_owned()),
            ("[t@x]", "`x` is not an index".to_owned()),
            ("[t@...]", "`...` is not an index".to_owned()),
            ("[t@0:2:0]", "`0:2:0` is not an index".to_owned()),
            ("[t=1,t@2]", "the dimension `t` is named twice".to_owned()),
            (
                "[t=1][x=2]",
                "all named dimensions belong in one bracket".to_owned(),
            ),
            ("[t=1]x", "`x` follows the named dimensions".to_owned()),
        ] {
            assert_eq!(LabelSelector::parse(text.as_bytes()), Err(wanted), "{text}");
        }
    }
}
