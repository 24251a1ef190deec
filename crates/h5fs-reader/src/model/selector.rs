//! Selectors: text that picks a part of an array in NumPy's indexing syntax.
//!
//! Examples are `[0, :, ::-2]`, `[..., 3]`, `[[1, 5, 7], :]`, `[flux]` and `['a
//! field']['x'][10:20]`. A selector consists of brackets, one after another. A bracket contains
//! either a field's name, bare or quoted, or indices. Indices are integers, slices, at most one
//! ellipsis and at most one list of integers. Bare text that is not an index is a name. In a quoted
//! name, `\` makes the next byte literal. Selectors that name dimensions are in
//! `selector/labels.rs`.

pub mod fault;
pub mod labels;
pub mod split;

use crate::limits;
use crate::wire::Count;

/// A parsed selector: the content of its brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(pub(super) Vec<SelectorStep>);

/// The content of one pair of brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SelectorStep {
    Field(Vec<u8>),
    Indices(Vec<DimensionIndex>),
}

/// An index of one dimension. An ellipsis covers all dimensions without an index of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DimensionIndex {
    Integer(i64),
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        /// The step of the slice, never zero.
        step: i64,
    },
    /// A list of at most [`limits::SELECTED_PLACES`] indices.
    List(Vec<i64>),
    Ellipsis,
}

impl Selector {
    /// Parses `text`, which must be a selector from its first bracket to its last. Names are bytes
    /// as in the file. Returns `None` for any other text.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (step, after) = parse_step(rest.strip_prefix(b"[")?)?;
            steps.push(step);
            rest = after;
        }
        (!steps.is_empty()).then_some(Selector(steps))
    }
}

/// Parses the text after an opening bracket up to the closing bracket. Returns the step and the
/// text after the closing bracket.
fn parse_step(text: &[u8]) -> Option<(SelectorStep, &[u8])> {
    let text = text.trim_ascii_start();
    if let Some((quote @ (b'\'' | b'"'), quoted)) = text.split_first() {
        return parse_quoted(quoted, *quote);
    }
    let (inner, after) = before_bracket(text, closing_bracket(text)).unwrap_or_default();
    if let Some(indices) = parse_indices(inner) {
        return Some((SelectorStep::Indices(indices), after));
    }
    let end = text.iter().position(|&byte| byte == b']');
    let (name, after) = before_bracket(text, end)?;
    (!name.is_empty()).then(|| (SelectorStep::Field(name.to_vec()), after))
}

/// Returns the trimmed text before the bracket at `end`, and the text after the bracket.
fn before_bracket(text: &[u8], end: Option<usize>) -> Option<(&[u8], &[u8])> {
    let (inner, after) = text.split_at_checked(end?)?;
    Some((inner.trim_ascii(), after.get(1..)?))
}

/// Returns the position of the bracket that closes the indices, skipping the brackets of lists.
/// Returns `None` if no bracket closes them.
fn closing_bracket(text: &[u8]) -> Option<usize> {
    let mut in_list = false;
    text.iter().position(|&byte| {
        let was_in_list = in_list;
        in_list = byte == b'[' || in_list && byte != b']';
        byte == b']' && !was_in_list
    })
}

/// Parses a field's name up to its closing quote and the closing bracket. Returns the step and the
/// text after the closing bracket.
fn parse_quoted(text: &[u8], quote: u8) -> Option<(SelectorStep, &[u8])> {
    let mut name = Vec::new();
    let mut rest = text;
    loop {
        let (&byte, after) = rest.split_first()?;
        rest = after;
        match byte {
            byte if byte == quote => break,
            b'\\' => {
                let (&byte, after) = rest.split_first()?;
                name.push(byte);
                rest = after;
            }
            byte => name.push(byte),
        }
    }
    let after = rest.trim_ascii_start().strip_prefix(b"]")?;
    Some((SelectorStep::Field(name), after))
}

fn parse_indices(text: &[u8]) -> Option<Vec<DimensionIndex>> {
    let indices = split_indices(str::from_utf8(text).ok()?).map(parse_index);
    let indices: Vec<DimensionIndex> = indices.collect::<Option<_>>()?;
    let ellipses = indices
        .iter()
        .filter(|&index| *index == DimensionIndex::Ellipsis);
    let lists = indices
        .iter()
        .filter(|index| matches!(index, DimensionIndex::List(_)));
    (ellipses.count() <= 1 && lists.count() <= 1).then_some(indices)
}

/// Returns the texts of the indices, which commas separate. Commas within lists do not separate.
fn split_indices(text: &str) -> impl Iterator<Item = &str> {
    let mut in_list = false;
    let parts = without_last_comma(text).split(move |c| {
        in_list = c == '[' || in_list && c != ']';
        c == ',' && !in_list
    });
    parts.map(str::trim)
}

/// Removes a trailing comma, which Python allows after the last item.
fn without_last_comma(text: &str) -> &str {
    text.strip_suffix(',').unwrap_or(text)
}

fn parse_index(text: &str) -> Option<DimensionIndex> {
    if text == "..." {
        return Some(DimensionIndex::Ellipsis);
    }
    if let Some(list) = text.strip_prefix('[') {
        return parse_list(list.strip_suffix(']')?.trim()).map(DimensionIndex::List);
    }
    let mut parts = text.split(':').map(str::trim);
    let first = parts.next()?;
    let Some(second) = parts.next() else {
        return parse_integer(first).map(DimensionIndex::Integer);
    };
    let bound = |text: &str| match text {
        "" => Some(None),
        text => parse_integer(text).map(Some),
    };
    let step = bound(parts.next().unwrap_or_default())?.unwrap_or(1);
    let slice = DimensionIndex::Slice {
        start: bound(first)?,
        stop: bound(second)?,
        step,
    };
    (step != 0 && parts.next().is_none()).then_some(slice)
}

fn parse_list(text: &str) -> Option<Vec<i64>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let integers = without_last_comma(text).split(',');
    let integers = integers.map(|integer| parse_integer(integer.trim()));
    let list: Vec<i64> = integers
        .take(limits::SELECTED_PLACES.plus_one())
        .collect::<Option<_>>()?;
    (list.len() <= limits::SELECTED_PLACES).then_some(list)
}

/// Parses a decimal number. A number outside 64 bits becomes the largest or smallest number, which
/// is out of range for every dimension.
fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let farthest = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(text.parse().unwrap_or(farthest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_selector(text: &str) -> bool {
        Selector::parse(text.as_bytes()).is_some()
    }

    #[test]
    fn lists_of_integers() {
        let indices = |text: &str| Selector::parse(text.as_bytes()).map(|Selector(steps)| steps);
        let list = |list: &[i64]| {
            Some(vec![SelectorStep::Indices(vec![DimensionIndex::List(
                list.to_vec(),
            )])])
        };
        assert_eq!(indices("[[]]"), list(&[]));
        assert_eq!(indices("[ [ -1 , 2, ] , ]"), list(&[-1, 2]));
        let and_all = Selector::parse(b"[[1], :]").unwrap();
        assert_eq!(and_all, Selector::parse(b"[[+1,],::1]").unwrap());
        for none in [
            "[[1],[2]]",
            "[[1,2]3]",
            "[[a]]",
            "[[0:2]]",
            "[[1,,2]]",
            "[[,]]",
            "[[[1]]]",
            "[[1]x]",
        ] {
            assert!(!is_selector(none), "{none}");
        }
        assert_eq!(
            indices("[[1]"),
            Some(vec![SelectorStep::Field(b"[1".to_vec())])
        );
    }

    #[test]
    fn quotes_in_names() {
        let quoted = Selector::parse(br"['it\'s']").unwrap();
        assert_eq!(
            quoted,
            Selector(vec![SelectorStep::Field(b"it's".to_vec())])
        );
    }

    #[test]
    fn a_list_is_bounded() {
        let list = |count: usize| format!("[[{}]]", vec!["0"; count].join(","));
        assert!(is_selector(&list(limits::SELECTED_PLACES)));
        assert!(!is_selector(&list(limits::SELECTED_PLACES + 1)));
    }
}
