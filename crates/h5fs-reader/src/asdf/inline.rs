//! Inline data: an ndarray whose elements are scalars of the tree, converted to bytes.
//!
//! Elements are converted as NumPy does, because the reference library reads them with NumPy. NumPy
//! masks a null. Here, a null becomes zero, and [`null_flags`] finds it. A scalar that NumPy would
//! write differently, such as `yes` with a text datatype, is an error.

use crate::asdf::datatype;
use crate::asdf::fields::{MeteredDocument, charge_node, corrupt};
use crate::asdf::number::{self, Number};
use crate::asdf::yaml::NodeIndex;
use crate::asdf::yaml::resolve::CoreTag;
use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{ByteOrder, Class, Datatype};
use crate::model::shape;
use crate::wire::{Count, to_u64, to_usize};

/// Number of bytes that are charged for each part of a number in base 60, because each part is
/// parsed as a number.
const SEXAGESIMAL_PART_COST: u64 = 24;

/// The datatype, the dimensions and the elements of an inline ndarray, in C order.
#[derive(Debug, PartialEq)]
pub(crate) struct InlineElements {
    /// The datatype of an element.
    pub(crate) datatype: Datatype,
    /// The length of each dimension.
    pub(crate) dims: Vec<u64>,
    /// The bytes of the elements.
    pub(crate) bytes: Vec<u8>,
}

/// Converts the nested lists at `data`, the elements of an inline ndarray. Without a datatype, the
/// datatype is inferred from the scalars, and `order` is its byte order.
///
/// # Errors
/// `Corrupt` if lists of one level have different lengths or an element does not fit the datatype.
/// `Limit` if aliases repeat too many elements, or if reading the elements takes too much work.
pub(crate) fn read(
    document: MeteredDocument<'_>,
    data: NodeIndex,
    datatype: Option<Datatype>,
    order: ByteOrder,
) -> Result<InlineElements> {
    let dims = extent(document, data, datatype.as_ref())?;
    let datatype = match datatype {
        Some(datatype) => datatype,
        None => infer_datatype(document, data, &dims, order)?,
    };
    let is_text = matches!(datatype.class, Class::String { .. } | Class::Ucs4(_));
    if is_text && datatype.size == 0 {
        return Err(corrupt(document, data, "inline data: text with length 0"));
    }
    let size = shape::product(&dims)?.times(u64::from(datatype.size));
    Error::check_limit(size, limits::INLINE_BYTES, "bytes of inline data")?;
    document.budget().spend(size)?;
    let mut bytes = Vec::with_capacity(to_usize(size)?);
    visit_elements(document, data, &dims, &mut |element| {
        if is_text && document.core_tag(element) == Some(CoreTag::Null) {
            put_text("0", &datatype, &mut bytes)
        } else {
            append_element(document, element, &datatype, &mut bytes)
        }
    })?;
    Ok(InlineElements {
        datatype,
        dims,
        bytes,
    })
}

/// Returns one byte for each element of the inline data at `data`, whose dimensions are `dims`, in
/// C order: 1 if the element is null. Returns `None` if no element is null.
///
/// # Errors
/// Fails as [`read`] does.
pub(crate) fn null_flags(
    document: MeteredDocument<'_>,
    data: NodeIndex,
    dims: &[u64],
) -> Result<Option<Vec<u8>>> {
    if dims.contains(&0) {
        return Ok(None);
    }
    let mut nulls = Vec::new();
    visit_elements(document, data, dims, &mut |element| {
        charge_node(document, element)?;
        let is_null = document.core_tag(element) == Some(CoreTag::Null);
        nulls.push(u8::from(is_null));
        Ok(())
    })?;
    Ok(nulls.contains(&1).then_some(nulls))
}

/// Returns the dimensions of the inline data at `data`: the length of the first list on each level.
/// Does not check the other lists.
///
/// # Errors
/// `Limit` if there are too many dimensions, or more elements than aliases may repeat.
pub(crate) fn extent(
    document: MeteredDocument<'_>,
    data: NodeIndex,
    datatype: Option<&Datatype>,
) -> Result<Vec<u64>> {
    let is_record = |node| match datatype.map(|datatype| &datatype.class) {
        Some(Class::Compound(members)) => {
            let datatypes = members.iter().map(|member| &member.datatype);
            fits_record(document, node, datatypes)
        }
        _ => false,
    };
    let mut dims = Vec::new();
    let mut here = data;
    while let Some(items) = document.items(here)
        && !is_record(here)
    {
        dims.push(to_u64(items.len()));
        Error::check_limit(dims.len(), limits::RANK, "rank")?;
        match items.first() {
            Some(&first) => here = first,
            None => break,
        }
    }
    // An empty list counts as one element, because an empty list that aliases repeat costs as much
    // as an element.
    let most = to_u64(limits::TREE_NODES);
    let lists: Vec<u64> = dims.iter().map(|&dim| dim.max(1)).collect();
    if shape::product(&lists)? > most {
        return Err(Error::limit("elements of inline data", most));
    }
    Ok(dims)
}

/// Returns whether the list at `node` can be one record with fields of these `datatypes`: it has
/// one item for each field, and an item is a list exactly if the field is a structure or an array.
fn fits_record<'a>(
    document: MeteredDocument<'_>,
    node: NodeIndex,
    datatypes: impl ExactSizeIterator<Item = &'a Datatype>,
) -> bool {
    let Some(items) = document.items(node) else {
        return false;
    };
    let is_list =
        |datatype: &Datatype| matches!(datatype.class, Class::Compound(_) | Class::Array { .. });
    items.len() == datatypes.len()
        && datatypes
            .zip(items)
            .all(|(datatype, &item)| is_list(datatype) == document.items(item).is_some())
}

/// Calls `visit` with each element of the nested lists at `node`, in C order. Fails if the lists do
/// not have the lengths `dims`.
fn visit_elements(
    document: MeteredDocument<'_>,
    node: NodeIndex,
    dims: &[u64],
    visit: &mut dyn FnMut(NodeIndex) -> Result<()>,
) -> Result<()> {
    let Some((&dim, inner)) = dims.split_first() else {
        return visit(node);
    };
    charge_node(document, node)?;
    match document.items(node) {
        Some(items) if to_u64(items.len()) == dim => items
            .iter()
            .try_for_each(|&item| visit_elements(document, item, inner, visit)),
        _ => Err(corrupt(
            document,
            node,
            "inline data: lists of different lengths",
        )),
    }
}

/// Infers the datatype that can represent all elements: text, complex128, float64, int64, uint64 or
/// bool8. As in NumPy, integers become float64 if some require int64 and others uint64.
fn infer_datatype(
    document: MeteredDocument<'_>,
    data: NodeIndex,
    dims: &[u64],
    order: ByteOrder,
) -> Result<Datatype> {
    let (mut has_text, mut has_complex, mut has_float) = (false, false, dims.contains(&0));
    let (mut has_bool, mut has_null) = (false, false);
    let (mut has_int, mut has_uint, mut width) = (false, false, 1);
    visit_elements(document, data, dims, &mut |element| {
        let bad = |what: &str| corrupt(document, element, &format!("inline data: {what}"));
        match scalar_number(document, element)? {
            Some(Number::Complex(..)) => has_complex = true,
            Some(Number::Float(_)) => has_float = true,
            Some(Number::Int(value)) if i64::try_from(value).is_ok() => has_int = true,
            Some(Number::Int(value)) if u64::try_from(value).is_ok() => has_uint = true,
            Some(Number::Int(_)) => return Err(bad("a number beyond 64 bits")),
            Some(Number::Bool(_)) => has_bool = true,
            None if document.core_tag(element) == Some(CoreTag::Null) => has_null = true,
            None if document.text(element).is_some() => has_text = true,
            None => return Err(bad("not a scalar")),
        }
        let text = document.text(element).unwrap_or_default();
        width = text.chars().count().max(width);
        Ok(())
    })?;
    let bad = |what: &str| corrupt(document, data, &format!("inline data: {what}"));
    if has_text {
        if has_complex || has_float || has_int || has_uint || has_bool || has_null {
            return Err(bad("text and other scalars without a datatype"));
        }
        let width = u32::try_from(width).ok();
        let width = width.and_then(|width| width.checked_mul(4));
        return width
            .map(|width| datatype::ucs4(width, order))
            .ok_or_else(|| bad("text too long"));
    }
    let name = if has_complex {
        "complex128"
    } else if has_float || has_int && has_uint {
        "float64"
    } else if has_int {
        "int64"
    } else if has_uint {
        "uint64"
    } else {
        "bool8"
    };
    datatype::scalar(name, order).ok_or_else(|| bad("unknown datatype"))
}

/// Returns the number that a scalar represents according to its YAML type, or `None` for another
/// scalar. Charges a number's text twice, because it is parsed more than once.
fn scalar_number(document: MeteredDocument<'_>, node: NodeIndex) -> Result<Option<Number>> {
    charge_node(document, node)?;
    let text = document.text(node).unwrap_or_default();
    if text.len() <= limits::NUMBER_TEXT {
        let sixtieths = to_u64(text.matches(':').count());
        let bytes = sixtieths.times(SEXAGESIMAL_PART_COST);
        document.budget().spend(to_u64(text.len()).plus(bytes))?;
    }
    Ok(number::scalar_number(&document, node))
}

/// Encodes the element at `node` in `datatype` and appends its bytes.
fn append_element(
    document: MeteredDocument<'_>,
    node: NodeIndex,
    datatype: &Datatype,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let bad = |what: &str| corrupt(document, node, &format!("inline data: {what}"));
    match &datatype.class {
        Class::Compound(members) => {
            charge_node(document, node)?;
            let items = document.items(node).unwrap_or_default();
            if items.len() != members.len() {
                return Err(bad("a record with a wrong number of fields"));
            }
            let mut fields = members.iter().zip(items);
            fields.try_for_each(|(member, &item)| {
                append_element(document, item, &member.datatype, bytes)
            })
        }
        Class::Array { base, dims } => {
            let dims: Vec<u64> = dims.iter().copied().map(u64::from).collect();
            visit_elements(document, node, &dims, &mut |element| {
                append_element(document, element, base, bytes)
            })
        }
        Class::String { .. } | Class::Ucs4(_) => {
            let text = text_as_written(document, node)?;
            if matches!(datatype.class, Class::String { .. }) && !text.is_ascii() {
                return Err(bad("text is not ASCII"));
            }
            put_text(text, datatype, bytes)
        }
        _ => {
            let is_null = document.core_tag(node) == Some(CoreTag::Null);
            let number = match scalar_number(document, node)? {
                Some(number) => number,
                None if is_null => Number::Int(0),
                None => {
                    number::number_in_text(&document, node).ok_or_else(|| bad("not a number"))?
                }
            };
            let element = number::encode_number(number, datatype);
            bytes.extend(element.ok_or_else(|| bad("a number that the datatype cannot hold"))?);
            Ok(())
        }
    }
}

/// Appends `text` as one element of a text datatype: ASCII or UCS-4, truncated or padded with
/// zeros.
fn put_text(text: &str, datatype: &Datatype, bytes: &mut Vec<u8>) -> Result<()> {
    let Class::Ucs4(order) = datatype.class else {
        return append_padded(text.bytes(), datatype.size, bytes);
    };
    let characters = text.chars().map(u32::from);
    let units = characters.flat_map(|character| match order {
        ByteOrder::Big => character.to_be_bytes(),
        _ => character.to_le_bytes(),
    });
    append_padded(units, datatype.size, bytes)
}

/// Returns the text of the scalar at `node`, which is an element of a text datatype. A number or a
/// date is accepted only if Python writes it in the same way.
fn text_as_written<'a>(document: MeteredDocument<'a>, node: NodeIndex) -> Result<&'a str> {
    let number = scalar_number(document, node)?;
    let text = document.document().text(node);
    let text = text.ok_or_else(|| corrupt(document, node, "inline data: not text"))?;
    let is_same = match (document.core_tag(node), number) {
        (_, Some(Number::Int(value))) => value.to_string() == text,
        (_, Some(Number::Float(value))) => format!("{value:?}") == text,
        (Some(CoreTag::Timestamp), None) => text.len() == "2001-12-14".len(),
        (None | Some(CoreTag::Str | CoreTag::Value), None) => true,
        _ => false,
    };
    if is_same {
        Ok(text)
    } else {
        Err(corrupt(
            document,
            node,
            "inline data: neither text nor a number in canonical form",
        ))
    }
}

/// Appends `text` to `bytes`, truncated or padded with zeros to `size` bytes.
fn append_padded(text: impl Iterator<Item = u8>, size: u32, bytes: &mut Vec<u8>) -> Result<()> {
    let size = to_usize(u64::from(size))?;
    let end = bytes.len().plus(size);
    bytes.extend(text.take(size));
    bytes.resize(end, 0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::fields;
    use crate::asdf::yaml::compose::compose;
    use crate::memory::request_budget::RequestBudget;

    fn inline(data: &str, datatype: &str) -> Result<InlineElements> {
        let document = compose(format!("[{data}, {datatype}]").as_bytes(), 0).unwrap();
        let order = ByteOrder::Little;
        let budget = fields::description_budget(&RequestBudget::default());
        let document = MeteredDocument::new(&document, &budget);
        let &[data, datatype] = document.items(NodeIndex::ROOT).unwrap() else {
            panic!("two items");
        };
        let datatype = match document.core_tag(datatype) {
            Some(CoreTag::Null) => None,
            _ => Some(datatype::parse(document, datatype, order).unwrap()),
        };
        read(document, data, datatype, order)
    }

    #[test]
    fn datatypes_are_inferred_from_scalars() {
        let name = |data| inline(data, "~").unwrap().datatype;
        let scalar = |name| datatype::scalar(name, ByteOrder::Little).unwrap();
        assert_eq!(name("[1, true, 2.5]"), scalar("float64"));
        assert_eq!(name("[1, true, 2]"), scalar("int64"));
        let most = "[18446744073709551615, true]";
        assert_eq!(name(most), scalar("uint64"));
        assert_eq!(name("[18446744073709551615, 0]"), scalar("float64"));
        assert_eq!(name("['']"), datatype::ucs4(4, ByteOrder::Little));
        assert_eq!(name("[yes, off]"), scalar("bool8"));
        assert_eq!(
            name("['\\u00e9', ab]"),
            datatype::ucs4(24, ByteOrder::Little)
        );
        assert_eq!(
            name("[\"\\u00e9\", ab]"),
            datatype::ucs4(8, ByteOrder::Little)
        );
    }

    #[test]
    fn lists_become_dimensions() {
        let array = inline("[[1, 2, 3], [4, 5, 6]]", "int16").unwrap();
        assert_eq!(array.dims, [2, 3]);
        assert_eq!(array.bytes, [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
        assert_eq!(inline("[[], []]", "int8").unwrap().dims, [2, 0]);
        assert!(inline("[[1, 2], [3]]", "int8").is_err());
        assert!(inline("[300]", "uint8").is_err());
        assert!(inline("&a [*a, *a]", "uint8").is_err());
    }

    #[test]
    fn records_are_lists() {
        let array = inline("[[M1, 7], [toolong, 8]]", "[[ascii, 3], uint16]").unwrap();
        assert_eq!(array.dims, [2]);
        assert_eq!(array.bytes, b"M1\0\x07\0too\x08\0");
    }

    /// Expected bytes: `numpy.array(VALUES, DTYPE).tobytes()`.
    #[test]
    fn numbers_are_stored_as_numpy_stores_them() {
        let bytes = |data, datatype: &str| inline(data, datatype).unwrap().bytes;
        let big = |data, datatype| {
            let field = format!("[{{datatype: {datatype}, byteorder: big}}]");
            bytes(data, &field)
        };
        assert_eq!(bytes("[-128]", "int8"), [128]);
        assert_eq!(big("[[65535]]", "uint16"), [255, 255]);
        assert_eq!(
            big("[[-2147483648], [7]]", "int32"),
            [128, 0, 0, 0, 0, 0, 0, 7]
        );
        assert_eq!(bytes("[4294967295]", "uint32"), [255; 4]);
        assert_eq!(
            bytes("[-9223372036854775808]", "int64"),
            [0, 0, 0, 0, 0, 0, 0, 128]
        );
        assert_eq!(bytes("[18446744073709551615]", "uint64"), [255; 8]);
        assert_eq!(
            bytes("[-1.5, 65504, 1.0e-7]", "float16"),
            [0, 190, 255, 123, 2, 0]
        );
        assert_eq!(
            big("[[0.1], [-3.0e+38]]", "float32"),
            [61, 204, 204, 205, 255, 97, 177, 230]
        );
        assert_eq!(
            big("[[0.1]]", "float64"),
            [63, 185, 153, 153, 153, 153, 153, 154]
        );
        assert_eq!(
            bytes("[!core/complex-1.0.0 1.5-2j, 3]", "complex64"),
            [0, 0, 192, 63, 0, 0, 0, 192, 0, 0, 64, 64, 0, 0, 0, 0]
        );
        assert_eq!(
            bytes("[0, 2, -0.5, !core/complex-1.0.0 1j, false]", "bool8"),
            [0, 1, 1, 1, 0]
        );
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        for (data, datatype) in [
            ("[-1]", "uint8"),
            ("[32768]", "int16"),
            ("[1.0e+20]", "int64"),
            ("[.nan]", "int8"),
            ("[!core/complex-1.0.0 1j]", "float64"),
            ("[word]", "int8"),
            ("[é]", "[ascii, 4]"),
            ("[[1, 2], [3]]", "[{datatype: int8}, {datatype: int8}]"),
            ("[-1, 18446744073709551616]", "~"),
        ] {
            assert!(inline(data, datatype).is_err(), "{data} as {datatype}");
        }
    }

    /// Expected bytes: `numpy.array(VALUES, DTYPE).tobytes()`.
    #[test]
    fn scalars_become_text_only_unchanged() {
        let texts = "[ab, 12, -1.5, '0x1', 2001-12-14, =, ~]";
        let same = ["ab", "12", "-1.5", "0x1", "2001-12-14", "=", "0"];
        let bytes = inline(texts, "[ascii, 10]").unwrap().bytes;
        assert_eq!(bytes.len(), 10 * same.len());
        for (bytes, text) in bytes.chunks(10).zip(same) {
            assert_eq!(String::from_utf8_lossy(bytes).trim_end_matches('\0'), text);
        }
        assert_eq!(inline("[0]", "[ucs4, 1]").unwrap().bytes, b"0\0\0\0");
        for other in [
            "yes",
            "0x10",
            "010",
            "1_0",
            "1:30",
            "1.0e+30",
            ".nan",
            "1.",
            "+1",
            "!!float 1",
            "!!binary aGVsbG8=",
            "!core/complex-1.0.0 1+2j",
            "2001-12-14t21:59:43",
        ] {
            for datatype in ["[ascii, 12]", "[ucs4, 12]", "[[ascii, 12]]"] {
                let list = format!("[{other}]");
                assert!(inline(&list, datatype).is_err(), "{other}");
            }
        }
        assert!(inline("[[~]]", "[[ascii, 4]]").is_err());
        assert!(inline("[ab]", "[ascii, 0]").is_err());
        for mixed in ["[1, a]", "[1.5, a]", "[true, a]", "[~, a]"] {
            assert!(inline(mixed, "~").is_err(), "{mixed}");
        }
    }

    #[test]
    fn repeated_lists_and_texts_count_each_time() {
        let mut lists = "&l0 []".to_owned();
        for level in 1..10 {
            let below = format!(", *l{}", level - 1).repeat(9);
            lists = format!("&l{level} [{lists}{below}]");
        }
        let shape = "10, ".repeat(9);
        let field = format!("[{{datatype: [ascii, 0], shape: [{shape} 0]}}]");
        let text = format!("&t {}", "q".repeat(1 << 20));
        let texts = format!("[{text}{}]", ", *t".repeat(400));
        for (data, datatype) in [
            (&*format!("[[{lists}], [*l9]]"), &*field),
            (&texts, "[ascii, 1]"),
            (&texts, "~"),
        ] {
            let read = inline(data, datatype);
            assert!(matches!(read, Err(Error::Limit { .. })), "{datatype}");
        }
    }

    /// Checks numbers that are text in YAML 1.1: those without a point, or with an exponent without
    /// a sign.
    #[test]
    fn numeric_text_is_a_number_for_a_numeric_datatype() {
        assert_eq!(
            inline("[1e5, \"7\"]", "float64").unwrap().bytes,
            [1e5_f64.to_le_bytes(), 7_f64.to_le_bytes()].concat()
        );
        assert_eq!(inline("[~, \"7\"]", "int8").unwrap().bytes, [0, 7]);
    }

    #[test]
    fn fields_may_be_arrays_and_text() {
        let datatype = "[{datatype: int8, shape: [2, 2]}, {datatype: [ucs4, 2], byteorder: big}]";
        let array = inline("[[[[1, 2], [3, 4]], é]]", datatype).unwrap();
        assert_eq!(array.dims, [1]);
        assert_eq!(array.bytes, b"\x01\x02\x03\x04\0\0\0\xe9\0\0\0\0");
    }
}
