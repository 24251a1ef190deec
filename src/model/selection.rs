//! Selectors: a part of an array, named as NumPy's basic indexing names it.
//!
//! `[0, :, ::-2]`, `[..., 3]`, `[flux]`, `['a field']['x'][10:20]`: one bracket after the other,
//! each with either a field's name, bare or quoted, or integers, slices and at most one ellipsis. A
//! bare text that is no index is a name; in a quoted one `\` makes the next byte stand for itself.
//! What NumPy calls an `IndexError` or a `KeyError` is [`Error::NotFound`]: there is no such part.
//!
//! An element that is itself an array counts as further dimensions behind the array's own, as in
//! NumPy.

use crate::error::{Error, Result};
use crate::limits;
use crate::model::shape::product;
use crate::model::{Datatype, Shape, datatype::Class};
use crate::wire::to_u64;

/// The indices in the brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector(Vec<Step>);

/// The content of one pair of brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Field(Vec<u8>),
    Indices(Vec<Index>),
}

/// An index of one dimension, or of all that no other one speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Index {
    At(i64),
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        /// Never zero.
        step: i64,
    },
    Ellipsis,
}

/// Some elements of an array, or parts of them, in an order of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selection {
    /// The type of what is picked; never an array.
    pub datatype: Datatype,
    /// The dimensions, slowest first; none for a single element.
    pub axes: Vec<Axis>,
    /// Where the first element is, in bytes from the start of the array.
    pub offset: u64,
}

/// A dimension of a selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Elements along it.
    pub count: u64,
    /// Bytes in the array from one to the next; meaningless where there is but one.
    pub stride: i64,
}

impl Selector {
    /// The selector that `text` is from its first bracket to its last; `None` where it is none.
    /// The bytes of names are those in the file.
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

    /// The part of an array of `datatype` and `shape` that this names.
    ///
    /// # Errors
    /// `NotFound` where there is no such part; `Limit` for an array that no file can hold.
    pub fn select(&self, datatype: &Datatype, shape: &Shape) -> Result<Selection> {
        if *shape == Shape::Null {
            return Err(Error::NotFound);
        }
        let mut selection = Selection::whole(datatype, shape.dims())?;
        for step in &self.0 {
            match step {
                Step::Field(name) => selection.take_field(name)?,
                Step::Indices(indices) => selection.take(indices)?,
            }
        }
        Ok(selection)
    }
}

/// The ways to read `name` as a name, not empty, and a selector behind it: the longest name first.
pub fn split(name: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let places = name.iter().enumerate().rev();
    places
        .filter(|&(at, &byte)| byte == b'[' && at > 0)
        .filter_map(|(at, _)| name.split_at_checked(at))
        .filter(|(_, selector)| Selector::parse(selector).is_some())
}

/// The text before the closing bracket, and the text after it.
fn parse_step(text: &[u8]) -> Option<(Step, &[u8])> {
    let text = text.trim_ascii_start();
    if let Some((quote @ (b'\'' | b'"'), quoted)) = text.split_first() {
        return parse_quoted(quoted, *quote);
    }
    let end = text.iter().position(|&byte| byte == b']')?;
    let (inner, after) = text.split_at_checked(end)?;
    let inner = inner.trim_ascii();
    let step = match parse_indices(inner) {
        Some(indices) => Step::Indices(indices),
        None if inner.is_empty() => return None,
        None => Step::Field(inner.to_vec()),
    };
    Some((step, after.get(1..)?))
}

/// A name up to its closing quote, and what follows the bracket behind it.
fn parse_quoted(text: &[u8], quote: u8) -> Option<(Step, &[u8])> {
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
    Some((Step::Field(name), after))
}

fn parse_indices(text: &[u8]) -> Option<Vec<Index>> {
    let text = std::str::from_utf8(text).ok()?;
    // Python allows one comma behind the last index.
    let text = text.strip_suffix(',').unwrap_or(text);
    let indices = text.split(',').map(|index| parse_index(index.trim()));
    let indices: Vec<Index> = indices.collect::<Option<_>>()?;
    let ellipses = indices.iter().filter(|&&index| index == Index::Ellipsis);
    (ellipses.count() <= 1).then_some(indices)
}

fn parse_index(text: &str) -> Option<Index> {
    if text == "..." {
        return Some(Index::Ellipsis);
    }
    let mut parts = text.split(':').map(str::trim);
    let first = parts.next()?;
    let Some(second) = parts.next() else {
        return parse_integer(first).map(Index::At);
    };
    let bound = |text: &str| match text {
        "" => Some(None),
        text => parse_integer(text).map(Some),
    };
    let step = bound(parts.next().unwrap_or_default())?.unwrap_or(1);
    let slice = Index::Slice {
        start: bound(first)?,
        stop: bound(second)?,
        step,
    };
    (step != 0 && parts.next().is_none()).then_some(slice)
}

/// A decimal number; what 64 bits cannot hold is as far away as can be, which is past every end.
fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let farthest = match text.starts_with('-') {
        true => i64::MIN,
        false => i64::MAX,
    };
    Some(text.parse().unwrap_or(farthest))
}

impl Selection {
    /// All elements of an array of `datatype` and `dims`.
    ///
    /// # Errors
    /// `Limit` for an array that no file can hold.
    pub fn whole(datatype: &Datatype, dims: &[u64]) -> Result<Self> {
        let mut selection = Selection {
            datatype: datatype.clone(),
            axes: axes(dims, datatype.size)?,
            offset: 0,
        };
        selection.open_arrays()?;
        Ok(selection)
    }

    /// The dimensions, slowest first.
    pub fn dims(&self) -> Vec<u64> {
        self.axes.iter().map(|axis| axis.count).collect()
    }

    /// Bytes of all that is picked.
    ///
    /// # Errors
    /// `Limit` where they do not fit 63 bits.
    pub fn bytes(&self) -> Result<u64> {
        let mut factors = self.dims();
        factors.push(self.datatype.size.into());
        product(&factors)
    }

    /// Counts the dimensions of elements that are arrays as the array's own.
    fn open_arrays(&mut self) -> Result<()> {
        while let Class::Array { base, dims } = &self.datatype.class {
            let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
            self.axes.extend(axes(&dims, base.size)?);
            self.datatype = Datatype::clone(base);
        }
        if self.axes.len() > limits::SELECTION_RANK {
            return Err(Error::limit("rank", to_u64(limits::SELECTION_RANK)));
        }
        Ok(())
    }

    fn take_field(&mut self, name: &[u8]) -> Result<()> {
        let Class::Compound(members) = &self.datatype.class else {
            return Err(Error::NotFound);
        };
        let member = members.iter().find(|member| member.name == name);
        let member = member.ok_or(Error::NotFound)?;
        self.offset = self.offset.saturating_add(member.offset.into());
        self.datatype = member.datatype.clone();
        self.open_arrays()
    }

    fn take(&mut self, indices: &[Index]) -> Result<()> {
        let named = indices.iter().filter(|&&index| index != Index::Ellipsis);
        let unnamed = self.axes.len().checked_sub(named.count());
        let unnamed = unnamed.ok_or(Error::NotFound)?;
        let mut axes = std::mem::take(&mut self.axes).into_iter();
        for &index in indices {
            match index {
                Index::Ellipsis => self.axes.extend(axes.by_ref().take(unnamed)),
                Index::At(at) => {
                    let axis = axes.next().ok_or(Error::NotFound)?;
                    self.skip(axis.position(at)?, axis.stride);
                }
                Index::Slice { start, stop, step } => {
                    let axis = axes.next().ok_or(Error::NotFound)?;
                    let (first, count) = axis.range(start, stop, step);
                    self.axes.push(Axis {
                        count,
                        stride: axis.stride.saturating_mul(step),
                    });
                    if count > 0 {
                        self.skip(first, axis.stride);
                    }
                }
            }
        }
        self.axes.extend(axes);
        Ok(())
    }

    /// Moves the first element by `count` strides.
    fn skip(&mut self, count: i64, stride: i64) {
        let bytes = count.saturating_mul(stride);
        self.offset = self.offset.saturating_add_signed(bytes);
    }
}

impl Axis {
    /// The place that an integer means, a negative one counting from the end.
    fn position(&self, at: i64) -> Result<i64> {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let from_start = if at < 0 { at.saturating_add(count) } else { at };
        match (0..count).contains(&from_start) {
            true => Ok(from_start),
            false => Err(Error::NotFound),
        }
    }

    /// The first place of a slice and the number of its places, as Python's `slice.indices` has
    /// them.
    fn range(&self, start: Option<i64>, stop: Option<i64>, step: i64) -> (i64, u64) {
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        // Where a slice may begin and end: it goes past the last place, or before the first.
        let (low, high) = match step > 0 {
            true => (0, count),
            false => (-1, count.saturating_sub(1)),
        };
        let place = |bound: i64| {
            let from_start = match bound < 0 {
                true => bound.saturating_add(count),
                false => bound,
            };
            from_start.clamp(low, high)
        };
        let (first, end) = match step > 0 {
            true => (start.map_or(low, place), stop.map_or(high, place)),
            false => (start.map_or(high, place), stop.map_or(low, place)),
        };
        let ahead = if step > 0 { end > first } else { end < first };
        if !ahead {
            return (first, 0);
        }
        let places = end.abs_diff(first).div_ceil(step.unsigned_abs());
        (first, places)
    }
}

/// Dimensions in C order of elements of `size` bytes.
fn axes(dims: &[u64], size: u32) -> Result<Vec<Axis>> {
    let empty = dims.contains(&0);
    let mut stride = u64::from(size);
    let mut axes = Vec::new();
    for &count in dims.iter().rev() {
        let bytes = if empty { 0 } else { stride };
        let most = i64::MAX.unsigned_abs();
        let too_long = || Error::limit("size of an array", most);
        axes.push(Axis {
            count,
            stride: i64::try_from(bytes).map_err(|_| too_long())?,
        });
        if !empty {
            stride = stride.checked_mul(count).ok_or_else(too_long)?;
        }
    }
    axes.reverse();
    Ok(axes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::value::tests::{int, member, type_of};
    use proptest::prelude::*;

    fn select(text: &str, datatype: &Datatype, dims: &[u64]) -> Result<Selection> {
        let selector = Selector::parse(text.as_bytes()).ok_or(Error::NotFound)?;
        selector.select(datatype, &Shape::fixed(dims.to_vec()))
    }

    /// The elements' numbers in the array, in the selection's order.
    fn picked(selection: &Selection) -> Vec<u64> {
        let size = i64::from(selection.datatype.size);
        let mut places = vec![selection.offset.cast_signed()];
        for axis in &selection.axes {
            let along = |&place: &i64| (0..axis.count as i64).map(move |i| place + i * axis.stride);
            places = places.iter().flat_map(along).collect();
        }
        places.iter().map(|place| (place / size) as u64).collect()
    }

    /// Expected: the same indices of `numpy.arange(n).reshape(dims)`.
    #[test]
    fn as_numpy_has_it() {
        let pick = |text: &str, dims: &[u64]| {
            select(text, &int(2), dims).map(|selection| (selection.dims(), picked(&selection)))
        };
        assert_eq!(pick("[1,::2]", &[2, 3]), Ok((vec![2], vec![3, 5])));
        assert_eq!(pick("[::-1]", &[3]), Ok((vec![3], vec![2, 1, 0])));
        assert_eq!(pick("[..., 1]", &[2, 3]), Ok((vec![2], vec![1, 4])));
        assert_eq!(pick("[-1, ..., -1]", &[2, 3]), Ok((vec![], vec![5])));
        assert_eq!(
            pick("[5:, 0:1 , ]", &[2, 3]),
            Ok((vec![0, 1], vec![] as Vec<u64>))
        );
        assert_eq!(pick("[-9:9:2]", &[4]), Ok((vec![2], vec![0, 2])));
        assert_eq!(pick("[...]", &[]), Ok((vec![], vec![0])));
        assert_eq!(pick("[2:][1]", &[5]), Ok((vec![], vec![3])));
        let beyond = "[99999999999999999999:-99999999999999999999:-9999999999999999999]";
        assert_eq!(pick(beyond, &[3]), Ok((vec![1], vec![2])));
        for none in [
            "[3]",
            "[-4]",
            "[0,0]",
            "[...,...]",
            "[::0]",
            "[x]",
            "[1.0]",
            "[0]x",
            "0]",
            "[0",
        ] {
            assert_eq!(pick(none, &[3]), Err(Error::NotFound), "{none}");
        }
        assert_eq!(
            Selector::parse(b"[0]")
                .unwrap()
                .select(&int(2), &Shape::Null),
            Err(Error::NotFound)
        );
    }

    #[test]
    fn fields_and_arrays_within_elements() {
        let base = Box::new(int(2));
        let dims = vec![3];
        let triple = type_of(6, Class::Array { base, dims });
        let inner = type_of(8, Class::Compound(vec![member("x:y]", 2, triple)]));
        let record = type_of(20, Class::Compound(vec![member("in", 10, inner)]));
        let found = select("[in][\"x:y]\"][-1, 1:]", &record, &[4]).unwrap();
        assert_eq!(found.datatype, int(2));
        assert_eq!(found.offset, 3 * 20 + 10 + 2 + 2);
        assert_eq!(
            found.axes,
            [Axis {
                count: 2,
                stride: 2
            }]
        );
        let quoted = Selector::parse(br"['it\'s']").unwrap();
        assert_eq!(quoted, Selector(vec![Step::Field(b"it's".to_vec())]));
    }

    #[test]
    fn names_with_brackets_of_their_own() {
        let ways = |name: &'static str| {
            split(name.as_bytes())
                .map(|(name, _)| str::from_utf8(name).unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(ways("a[0][x]"), ["a[0]", "a"]);
        assert_eq!(ways("a['x[0]']"), ["a"]);
        assert!(ways("[0]").is_empty());
        assert!(ways("a[]").is_empty());
    }

    #[derive(Debug, Clone)]
    struct Bounds(Option<i64>, Option<i64>, i64);

    fn bounds() -> impl Strategy<Value = Bounds> {
        let bound = || prop::option::of(-8_i64..8);
        (
            bound(),
            bound(),
            prop_oneof![Just(1), Just(-1), 2_i64..5, -5_i64..-1],
        )
            .prop_map(|(start, stop, step)| Bounds(start, stop, step))
    }

    /// A slice, walked place by place: from the start while the end is not reached.
    fn walk(bounds: &Bounds, count: i64) -> Vec<i64> {
        let &Bounds(start, stop, step) = bounds;
        let wrap = |bound: i64| if bound < 0 { bound + count } else { bound };
        let mut place = match (start, step > 0) {
            (Some(start), true) => wrap(start).max(0),
            (Some(start), false) => wrap(start).min(count - 1),
            (None, true) => 0,
            (None, false) => count - 1,
        };
        let reached = |place: i64| match (stop, step > 0) {
            (Some(stop), true) => place >= wrap(stop),
            (Some(stop), false) => place <= wrap(stop),
            (None, _) => false,
        };
        let mut places = Vec::new();
        while (0..count).contains(&place) && !reached(place) {
            places.push(place);
            place += step;
        }
        places
    }

    proptest! {
        #[test]
        fn slices_pick_what_a_walk_meets(
            axes in prop::collection::vec((0_u64..7, bounds()), 0..4)
        ) {
            let text = |&Bounds(start, stop, step): &Bounds| {
                let bound = |bound: Option<i64>| bound.map_or(String::new(), |b| b.to_string());
                format!("{}:{}:{step}", bound(start), bound(stop))
            };
            let mut indices: Vec<String> = axes.iter().map(|(_, bounds)| text(bounds)).collect();
            indices.push("...".to_owned());
            let dims: Vec<u64> = axes.iter().map(|(count, _)| *count).collect();
            let found = select(&format!("[{}]", indices.join(",")), &int(2), &dims).unwrap();

            let mut expected = vec![0];
            for (count, bounds) in &axes {
                let along = |&place: &i64| {
                    let walked = walk(bounds, *count as i64).into_iter();
                    walked.map(move |i| place * *count as i64 + i)
                };
                expected = expected.iter().flat_map(along).collect();
            }
            let expected: Vec<u64> = expected.iter().map(|place| *place as u64).collect();
            prop_assert_eq!(picked(&found), expected);
        }
    }
}
