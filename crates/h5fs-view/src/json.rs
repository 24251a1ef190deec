//! An array as JSON: nested lists in the shape of its dimensions, a plain value for a scalar, and
//! `null` for a null dataspace. [`value`](h5fs_reader::model::value) defines the format of
//! elements.
//!
//! Each element can be written by itself. The brackets and separators around it follow from its
//! number and the dimensions. A vector on the last dimension is written on one line. If elements
//! are compounds or sequences, each element has its own line.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5fs_reader::array::{CancelToken, Engine};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::{Class, Datatype};
use h5fs_reader::model::shape::product;
use h5fs_reader::model::text_length::TextLengthCalculator;
use h5fs_reader::model::value::{TextContext, ValueWriter};
use h5fs_reader::model::{Container, NodeId};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::long_elements::{LongElementLimiter, PaceTimer};
use crate::elements::missing::MissingValues;
use crate::elements::{Elements, formatting_cost, reading_cost};
use crate::limits;
use crate::text_files::counted_text::TextUnits;

/// A function that finds a node's path, with names as in the file; `None` for a node without a
/// path. Several objects can share the function.
pub type SharedPaths = Arc<dyn Fn(NodeId) -> Result<Option<Vec<u8>>> + Send + Sync>;

/// The JSON text of an array. Writing can start at any element.
pub struct ArrayJson {
    elements: Elements,
    long_elements: LongElementLimiter,
    container: Arc<dyn Container>,
    paths: SharedPaths,
    missing: Option<MissingValues>,
    writer: ValueWriter,
    lists: NestedLists,
    /// A function that computes the length of an element's text without writing it; `None` if the
    /// datatype has no such function.
    element_length: Option<TextLengthCalculator>,
    /// The separator between two elements of a list.
    separator: &'static [u8],
    /// Number of items of variable-length sequences that were read so far.
    sequence_items_read: AtomicU64,
}

/// The nested lists of a JSON text. Their leaves are the elements or, if a dimension is zero, empty
/// lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NestedLists {
    /// Number of leaves in an innermost list, in a list of innermost lists, and so on up to the
    /// whole text.
    leaf_counts: Vec<u64>,
    /// Number of leaves.
    pub(crate) count: u64,
    /// Whether the leaves are elements, and not empty lists.
    pub(crate) of_elements: bool,
}

impl NestedLists {
    pub(crate) fn new(dims: &[u64]) -> Result<Self> {
        let zero = dims.iter().position(|&dim| dim == 0);
        let dims = dims.get(..zero.unwrap_or(dims.len())).unwrap_or_default();
        let inner = (0..dims.len()).rev().filter_map(|axis| dims.get(axis..));
        Ok(NestedLists {
            leaf_counts: inner.map(product).collect::<Result<_>>()?,
            count: product(dims)?,
            of_elements: zero.is_none(),
        })
    }

    /// Returns how many lists begin or end at the position after the first `count` leaves.
    pub(crate) fn bracket_count(&self, count: u64) -> usize {
        // Each number is a multiple of the previous one.
        let ends = self.leaf_counts.iter();
        ends.take_while(|&&run| count.is_multiple_of(run)).count()
    }
}

impl ArrayJson {
    /// Creates the JSON text of `elements`. `container` follows their pointers, and `paths`
    /// converts references to text.
    ///
    /// # Errors
    /// `Limit` for elements that are too long or too many.
    pub fn new(
        elements: Elements,
        engine: Arc<Engine>,
        container: Arc<dyn Container>,
        paths: SharedPaths,
    ) -> Result<Self> {
        let most = limits::TEXT_ELEMENT_BYTES;
        Error::check_limit(
            u64::from(elements.datatype.size),
            most,
            "size of an element as JSON",
        )?;
        Ok(ArrayJson {
            long_elements: LongElementLimiter::new(engine),
            container,
            paths,
            missing: None,
            writer: ValueWriter::new(&elements.datatype)?,
            element_length: TextLengthCalculator::from_datatype(&elements.datatype),
            lists: NestedLists::new(elements.dims.as_deref().unwrap_or_default())?,
            separator: if is_nested(&elements.datatype) {
                b",\n"
            } else {
                b", "
            },
            sequence_items_read: AtomicU64::new(0),
            elements,
        })
    }

    /// Returns the JSON text with `null` in place of the elements that `missing` marks as missing.
    pub fn with_missing(self, missing: Option<MissingValues>) -> Self {
        ArrayJson { missing, ..self }
    }

    /// Writes leaves of the range `leaves` until one batch is written or `out` holds at least
    /// `enough` bytes. Returns the number of the first leaf that was not written.
    fn write_elements(
        &self,
        leaves: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let size = self.writer.size();
        let is_long = LongElementLimiter::is_long(to_u64(size));
        let room = is_long
            .then(|| self.long_elements.reserve_memory())
            .transpose()?;
        let count = self
            .elements
            .batch_elements()
            .min(leaves.end - leaves.start);
        let bytes = self.elements.read(leaves.start, count, cancel)?;
        let datatype = &self.elements.datatype;
        let missing = self.missing.as_ref();
        let missing = missing
            .map(|missing| missing.find_missing(datatype, leaves.start, count, &bytes, cancel));
        let missing = missing.transpose()?.unwrap_or_default();
        let mut leaf = Vec::new();
        let mut pace = PaceTimer::new();
        for number in 0..count {
            if number > 0 && (out.len() >= enough || pace.is_slow()) {
                return Ok(leaves.start + number);
            }
            let place = to_usize(number)?;
            if missing.get(place) == Some(&true) {
                self.write_leaf(leaves.start + number, b"null", out);
                continue;
            }
            let element = &bytes[place * size..][..size];
            self.long_elements.write(room.as_ref(), |most| {
                leaf.clear();
                // Each element needs a new context, because the context counts the bytes that
                // pointers led to.
                let context = TextContext::new(&*self.container, &*self.paths, most);
                let written = self.writer.write_json(element, &context, &mut leaf);
                self.sequence_items_read
                    .fetch_add(context.followed_elements(), Ordering::Relaxed);
                written
            })?;
            self.write_leaf(leaves.start + number, &leaf, out);
        }
        Ok(leaves.start + count)
    }

    /// Measures leaves of the range `leaves` until one batch is measured or the leaves have at
    /// least `enough` bytes. Returns the number of the first leaf that was not measured, and the
    /// length of the measured leaves in bytes.
    fn measure_elements(
        &self,
        length: &TextLengthCalculator,
        leaves: &Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        scratch: &mut Vec<u8>,
    ) -> Result<(u64, u64)> {
        let size = self.writer.size();
        let count = self
            .elements
            .batch_elements()
            .min(leaves.end - leaves.start);
        let bytes = self.elements.read(leaves.start, count, cancel)?;
        let inner = self.lists.leaf_counts.first().copied().unwrap_or(1);
        let mut measured = 0;
        for (leaf, element) in (leaves.start..).zip(bytes.chunks_exact(size)) {
            if leaf > leaves.start && measured >= enough {
                return Ok((leaf, to_u64(measured)));
            }
            let within = leaf % inner;
            measured += if (1..inner.saturating_sub(1)).contains(&within) {
                self.separator.len()
            } else {
                scratch.clear();
                self.write_leaf(leaf, b"", scratch);
                scratch.len()
            };
            let own = length.length(element, true, scratch);
            measured += own.ok_or_else(|| Error::corrupt("array: an element is cut", None))?;
        }
        Ok((leaves.start + count, to_u64(measured)))
    }

    /// Appends leaf number `number`, whose text is `leaf`, with the separator and the brackets
    /// around it.
    fn write_leaf(&self, number: u64, leaf: &[u8], out: &mut Vec<u8>) {
        let lists = &self.lists;
        let begins = lists.bracket_count(number);
        let blanks = |count| std::iter::repeat_n(b' ', count);
        if number > 0 && begins > 0 {
            out.extend_from_slice(b",\n");
            out.extend(blanks(lists.leaf_counts.len() - begins));
        } else if number > 0 {
            out.extend_from_slice(self.separator);
            if self.separator.ends_with(b"\n") {
                out.extend(blanks(lists.leaf_counts.len()));
            }
        }
        out.extend(std::iter::repeat_n(b'[', begins));
        out.extend_from_slice(leaf);
        let ends = lists.bracket_count(number + 1);
        out.extend(std::iter::repeat_n(b']', ends));
        if number + 1 == lists.count {
            out.push(b'\n');
        }
    }
}

/// A unit of the text is a leaf of the nested lists: an element or, if a dimension is zero, an
/// empty list.
impl TextUnits for ArrayJson {
    fn count(&self) -> u64 {
        self.lists.count
    }

    fn value_count(&self) -> u64 {
        let datatype = &self.elements.datatype;
        let of_one = formatting_cost(datatype).saturating_add(reading_cost(datatype.size.into()));
        let values = of_one.saturating_mul(self.lists.count);
        values.saturating_add(self.elements.content.chunk_values())
    }

    fn write(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let empty: &[u8] = match self.elements.dims {
            Some(_) if self.lists.of_elements => {
                return self.write_elements(&units, enough, cancel, out);
            }
            Some(_) => b"[]",
            None => b"null",
        };
        for number in units.clone() {
            if number > units.start && out.len() >= enough {
                return Ok(number);
            }
            self.write_leaf(number, empty, out);
        }
        Ok(units.end)
    }

    fn measure(
        &self,
        units: Range<u64>,
        enough: usize,
        cancel: &CancelToken,
        scratch: &mut Vec<u8>,
    ) -> Result<(u64, u64)> {
        let has_elements = self.elements.dims.is_some() && self.lists.of_elements;
        let length = self.element_length.as_ref();
        if let Some(length) = length.filter(|_| has_elements && self.missing.is_none()) {
            return self.measure_elements(length, &units, enough, cancel, scratch);
        }
        let next = self.write(units, enough, cancel, scratch)?;
        Ok((next, to_u64(scratch.len())))
    }

    fn sequence_items_read(&self) -> u64 {
        self.sequence_items_read.load(Ordering::Relaxed)
    }

    fn own_bytes(&self) -> u64 {
        self.elements.estimate_memory(2)
    }
}

/// Returns whether the text of an element is itself an object or a list.
fn is_nested(datatype: &Datatype) -> bool {
    matches!(
        datatype.class,
        Class::Compound(_) | Class::VariableLength(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text_files::counted_text::CountedFile;
    use crate::text_files::text::InMemoryContent;
    use crate::view::View;
    use h5fs_reader::model::datatype::ByteOrder;
    use h5fs_reader::testing::{Heap, int, member, type_of};

    fn units(
        datatype: &Datatype,
        dims: Option<&[u64]>,
        bytes: &[u8],
        engine: Arc<Engine>,
    ) -> ArrayJson {
        let elements = Elements {
            datatype: datatype.clone(),
            dims: dims.map(<[u64]>::to_vec),
            content: Box::new(InMemoryContent::new(bytes.to_vec())),
        };
        let heap = Heap(vec![vec![7, 8]]);
        ArrayJson::new(elements, engine, Arc::new(heap), Arc::new(|_| Ok(None))).unwrap()
    }

    fn json(datatype: &Datatype, dims: Option<&[u64]>, bytes: &[u8]) -> String {
        let view = CountedFile::from_units(units(datatype, dims, bytes, Engine::new(0, 1)));
        let mut text = Vec::new();
        // Reading single bytes stops the writer after each element.
        for at in 0..1000 {
            text.extend_from_slice(&view.read_at(at, 1).unwrap());
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn lists_are_nested_by_dimension() {
        assert_eq!(json(&int(1), None, &[]), "null\n");
        assert_eq!(json(&int(1), Some(&[]), &[5]), "5\n");
        assert_eq!(json(&int(1), Some(&[3]), &[1, 2, 3]), "[1, 2, 3]\n");
        let expected = "[[[1, 2],\n  [3, 4]],\n [[5, 6],\n  [7, 8]]]\n";
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(json(&int(1), Some(&[2, 2, 2]), &bytes), expected);
        assert_eq!(json(&int(1), Some(&[0]), &[]), "[]\n");
        assert_eq!(json(&int(1), Some(&[2, 0, 3]), &[]), "[[], []]\n");
    }

    #[test]
    fn nan_is_null() {
        let double = Datatype::ieee(8, ByteOrder::Little);
        let numbers = [1.5, f64::NAN, f64::NEG_INFINITY].map(f64::to_le_bytes);
        let text = json(&double, Some(&[3]), numbers.as_flattened());
        assert_eq!(text, "[1.5, null, \"-inf\"]\n");
        let members = vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])];
        let base = Box::new(int(1));
        let boolean = type_of(1, Class::Enumeration { base, members });
        let text = json(&boolean, Some(&[3]), &[1, 0, 2]);
        assert_eq!(text, "[true, false, true]\n");
    }

    /// The measured length equals the written length, and both stop at the same element.
    #[test]
    fn measured_lengths_equal_written_lengths() {
        let numbers = [0.5, f64::NAN, f64::INFINITY, -1e300, 123_456.0, -0.0].map(f64::to_le_bytes);
        let bytes = numbers.as_flattened().repeat(40);
        let double = Datatype::ieee(8, ByteOrder::Little);
        for dims in [&[240][..], &[4, 60], &[120, 2], &[5, 48, 1], &[2, 3, 40]] {
            let elements = Elements {
                datatype: double.clone(),
                dims: Some(dims.to_vec()),
                content: Box::new(InMemoryContent::new(bytes.clone())),
            };
            let heap = Arc::new(Heap(Vec::new()));
            let none: SharedPaths = Arc::new(|_| Ok(None));
            let json = ArrayJson::new(elements, Engine::new(0, 1), heap, none).unwrap();
            let cancel = &CancelToken::default();
            let mut at = 0;
            while at < 240 {
                let (mut written, mut scratch) = (Vec::new(), Vec::new());
                let next = json.write(at..240, 100, cancel, &mut written).unwrap();
                let measured = json.measure(at..240, 100, cancel, &mut scratch);
                assert_eq!(measured, Ok((next, to_u64(written.len()))), "{dims:?}");
                at = next;
            }
        }
    }

    #[test]
    fn a_longer_element_is_counted_while_it_is_written() {
        let engine = Engine::new(0, 1);
        let _all = engine.reserve_memory(limits::OPEN_BYTES).unwrap();
        let text = |size: usize| {
            let class = Class::Compound(vec![member("v", 0, int(1))]);
            let record = type_of(u32::try_from(size).unwrap(), class);
            let mut text = Vec::new();
            let json = units(&record, Some(&[]), &vec![5; size], Arc::clone(&engine));
            json.write(0..1, 100, &CancelToken::default(), &mut text)
                .map(|_| text)
        };
        let short = text(limits::UNCOUNTED_ELEMENT).unwrap();
        assert_eq!(&*short, b"{\"v\": 5}\n");
        let refused = text(limits::UNCOUNTED_ELEMENT + 1).unwrap_err();
        assert!(matches!(refused, Error::Io { .. }), "{refused}");
    }

    #[test]
    fn each_compound_element_has_a_line() {
        let sequence = type_of(1, Class::VariableLength(Box::new(int(1))));
        let record = type_of(1, Class::Compound(vec![member("v", 0, sequence)]));
        let expected = "[{\"v\": [7, 8]},\n {\"v\": []}]\n";
        assert_eq!(json(&record, Some(&[2]), &[0, 255]), expected);
    }
}
