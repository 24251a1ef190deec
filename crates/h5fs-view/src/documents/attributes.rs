//! Attributes as text: attributes in the file, and attributes that the mount adds to every array.
//!
//! The value of an attribute has two formats. A file has one line for each element, as
//! [`value`](h5fs_reader::model::value) writes the element. An extended attribute has one line of
//! JSON.

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::array::{Fill, Layout};
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::datatype::{
    BitRange, ByteOrder, Charset, Class, FloatFormat, StringPadding,
};
use h5fs_reader::model::ndl::ndl_type;
use h5fs_reader::model::numpy::numpy_descr;
use h5fs_reader::model::storage::{Filter, Pipeline};
use h5fs_reader::model::value::{NodePathResolver, TextContext, ValueWriter};
use h5fs_reader::model::{Array, Container, Datatype, Node, NodeKind, Shape};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::innermost_type;
use crate::limits;

/// Formats an attribute's value as lines, one for each element, without a line break after the
/// last. The text of a null dataspace is empty. `paths` converts the target of a reference to text.
///
/// # Errors
/// `Limit` if the text is longer than [`limits::ATTRIBUTE_TEXT`]. Fails with the container's error
/// if a pointer is invalid.
pub fn value_lines(
    container: &dyn Container,
    paths: &NodePathResolver<'_>,
    content: &AttributeContent,
) -> Result<Vec<u8>> {
    value_lines_up_to(container, paths, content, limits::ATTRIBUTE_TEXT)
}

fn value_lines_up_to(
    container: &dyn Container,
    paths: &NodePathResolver<'_>,
    content: &AttributeContent,
    limit: usize,
) -> Result<Vec<u8>> {
    // Elements with an empty text still have line breaks.
    let most = to_u64(limit).saturating_add(1);
    if content.shape.elements()? > most {
        return Err(Error::limit("text of an attribute", to_u64(limit)));
    }
    let writer = ValueWriter::new(&content.datatype)?;
    let context = TextContext::new(container, paths, limit);
    let mut out = Vec::new();
    let mut rest = elements(content, &writer)?;
    for index in 0..content.shape.elements()? {
        if index > 0 {
            out.push(b'\n');
        }
        let (element, after) = rest.split_at(writer.size());
        writer.write_text(element, &context, &mut out)?;
        rest = after;
    }
    Ok(out)
}

/// Formats an attribute's value for an extended attribute. Several elements become JSON on one
/// line, in nested lists. A single element becomes its plain text, without brackets or quotes. A
/// value without elements becomes an empty text.
///
/// # Errors
/// `Limit` if the text is too long for an extended attribute. Otherwise fails like [`value_lines`].
pub fn xattr_text(
    container: &dyn Container,
    paths: &NodePathResolver<'_>,
    content: &AttributeContent,
) -> Result<Vec<u8>> {
    if has_too_many_elements(content) {
        let most = to_u64(limits::XATTR_BYTES);
        return Err(Error::limit("text of an extended attribute", most));
    }
    let writer = ValueWriter::new(&content.datatype)?;
    let context = TextContext::new(container, paths, limits::XATTR_BYTES);
    let mut out = Vec::new();
    let elements = elements(content, &writer)?;
    match content.shape.elements()? {
        0 => {}
        1 => writer.write_text(elements, &context, &mut out)?,
        _ => writer.write_json_array(elements, content.shape.dims(), &context, &mut out)?,
    }
    Ok(out)
}

/// Returns whether the value has so many elements that its text cannot fit in an extended
/// attribute.
pub fn has_too_many_elements(content: &AttributeContent) -> bool {
    // Each element takes at least a digit, and a comma and a space or brackets.
    const LEAST: u64 = 3;
    let count = content.shape.elements();
    count.is_ok_and(|count| count.saturating_mul(LEAST) > to_u64(limits::XATTR_BYTES))
}

/// Returns the stored bytes of all elements of an attribute.
fn elements<'a>(content: &'a AttributeContent, writer: &ValueWriter) -> Result<&'a [u8]> {
    let count = to_usize(content.shape.elements()?)?;
    let elements = content.elements.get(..count.saturating_mul(writer.size()));
    elements.ok_or_else(|| Error::corrupt("attribute: fewer bytes than its shape", None))
}

/// Returns the YAML document that describes a committed datatype: the key `type`, with the datatype
/// in the notation of NDL.
pub fn committed_text(datatype: &Datatype) -> Vec<u8> {
    format!("type: {}\n", ndl_type(datatype)).into_bytes()
}

/// Returns the extended attributes that the mount adds to a node, in listing order. The names do
/// not have the prefix `user.`. `path` is the node's path, with bytes as in the file. The list
/// omits values that are too long for an extended attribute, and fill values that contain pointers.
pub fn builtin_attributes(node: &Node, path: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut list = XattrList(Vec::new());
    if let Some(array) = node.array() {
        describe_array(array, &mut list);
    }
    if let NodeKind::CommittedDatatype(datatype) = &node.kind {
        list.text("h5fs.type", ndl_type(datatype));
    }
    if let NodeKind::Scalar(scalar) = &node.kind {
        list.text("h5fs.type", scalar.value.type_name());
    }
    list.bytes("h5fs.path", path.to_vec());
    if let Some(tag) = &node.tag {
        list.text("h5fs.tag", &**tag);
    }
    if let Some(comment) = &node.comment {
        list.bytes("h5fs.comment", comment.clone());
    }
    list.0
}

/// A list of extended attributes: names and values. Values that are too long for an extended
/// attribute are not added.
struct XattrList(Vec<(&'static str, Vec<u8>)>);

impl XattrList {
    fn bytes(&mut self, name: &'static str, value: Vec<u8>) {
        if value.len() <= limits::XATTR_BYTES {
            self.0.push((name, value));
        }
    }

    fn text(&mut self, name: &'static str, value: impl Into<String>) {
        self.bytes(name, value.into().into_bytes());
    }
}

fn describe_array(array: &Array, list: &mut XattrList) {
    let datatype = &array.datatype;
    list.text("h5fs.type", ndl_type(datatype));
    if let Some(descr) = numpy_descr(datatype) {
        list.text("h5fs.dtype", descr);
    }
    list.text("h5fs.itemsize", datatype.size.to_string());
    list.text("h5fs.shape", shape_text(&array.shape));
    list.text("h5fs.maxshape", max_shape_text(&array.shape));
    list.text("h5fs.byteorder", byte_order(datatype));
    list.text("h5fs.layout", layout_name(array.layout));
    if let Some(chunk_shape) = &array.chunk_shape {
        list.text("h5fs.chunks", format!("{chunk_shape:?}"));
    }
    if !array.pipeline.0.is_empty() {
        list.text("h5fs.filters", pipeline_text(&array.pipeline));
    }
    if let Some(text) = fill_text(array) {
        list.bytes("h5fs.fillvalue", text);
    }
    describe_class(&innermost_type(datatype).class, list);
    if let Some(bits) = partial_bits(datatype) {
        let text = format!("{}@{}", bits.precision, bits.offset);
        list.text("h5fs.precision", text);
    }
}

/// Adds the extended attributes that only some datatype classes have.
fn describe_class(class: &Class, list: &mut XattrList) {
    match class {
        Class::String { padding, charset } | Class::VariableString { padding, charset } => {
            list.text("h5fs.strpad", padding_name(*padding));
            list.text("h5fs.charset", charset_name(*charset));
        }
        Class::Ucs4(_) => {
            list.text("h5fs.strpad", padding_name(StringPadding::NullPadded));
            list.text("h5fs.charset", "ucs4");
        }
        Class::Enumeration { base, members } => {
            list.bytes("h5fs.enum", enumeration_text(base, members));
        }
        Class::Opaque { tag } if !tag.is_empty() => list.bytes("h5fs.opaque_tag", tag.clone()),
        _ => {}
    }
}

/// Formats a shape: `[1024, 1024]`, `[]` for a scalar, `null` for a null dataspace.
pub(crate) fn shape_text(shape: &Shape) -> String {
    match shape {
        Shape::Null => "null".to_owned(),
        Shape::Simple { dims, .. } => format!("{dims:?}"),
    }
}

/// Formats the maximum shape of an array like [`shape_text`], with `null` for an unlimited
/// dimension, as in NDL.
fn max_shape_text(shape: &Shape) -> String {
    let Shape::Simple { max, .. } = shape else {
        return "null".to_owned();
    };
    let dim = |dim: &Option<u64>| dim.map_or("null".to_owned(), |dim| dim.to_string());
    let dims: Vec<_> = max.iter().map(dim).collect();
    format!("[{}]", dims.join(", "))
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Compact => "compact",
        Layout::Contiguous => "contiguous",
        Layout::Chunked => "chunked",
        Layout::Virtual => "virtual",
        Layout::External => "external",
        Layout::Inline => "inline",
        Layout::Block => "block",
    }
}

fn padding_name(padding: StringPadding) -> &'static str {
    match padding {
        StringPadding::NullTerminated => "nullterm",
        StringPadding::NullPadded => "nullpad",
        StringPadding::SpacePadded => "spacepad",
    }
}

pub(crate) fn charset_name(charset: Charset) -> &'static str {
    match charset {
        Charset::Ascii => "ascii",
        Charset::Utf8 => "utf-8",
    }
}

/// Returns the byte order of all numbers of more than one byte: `mixed` if they differ, `none`
/// without such numbers.
pub(crate) fn byte_order(datatype: &Datatype) -> &'static str {
    let mut orders = Vec::new();
    collect_orders(datatype, &mut orders);
    orders.dedup();
    match orders.as_slice() {
        [] => "none",
        [ByteOrder::Little] => "little",
        [ByteOrder::Big] => "big",
        [ByteOrder::Vax] => "vax",
        _ => "mixed",
    }
}

fn collect_orders(datatype: &Datatype, orders: &mut Vec<ByteOrder>) {
    match &datatype.class {
        Class::Integer { order, .. }
        | Class::Time { order, .. }
        | Class::Bitfield { order, .. }
        | Class::Float(FloatFormat { order, .. })
        | Class::Ucs4(order) => {
            if datatype.size > 1 {
                orders.push(*order);
            }
        }
        Class::Enumeration { base, .. }
        | Class::VariableLength(base)
        | Class::Array { base, .. }
        | Class::Complex(base) => collect_orders(base, orders),
        Class::Compound(members) => members
            .iter()
            .for_each(|member| collect_orders(&member.datatype, orders)),
        Class::String { .. }
        | Class::Bool
        | Class::Opaque { .. }
        | Class::Reference(_)
        | Class::VariableString { .. } => {}
    }
}

/// Formats a filter pipeline: `shuffle, deflate(4)`.
pub(crate) fn pipeline_text(pipeline: &Pipeline) -> String {
    let filters: Vec<_> = pipeline.0.iter().map(filter_text).collect();
    filters.join(", ")
}

/// Formats a filter as its name. Parentheses contain the level of `deflate`, or the number of a
/// filter that is not a standard filter of HDF5.
fn filter_text(filter: &Filter) -> String {
    let name = filter_name(filter);
    match (filter.id, filter.parameters.first()) {
        (1, Some(level)) => format!("{name}({level})"),
        (1..=6, _) => name,
        (id, _) if name == "filter" => {
            format!("{}({id})", h5fs_reader::filter::name(id).unwrap_or(&name))
        }
        (id, _) => format!("{name}({id})"),
    }
}

/// Returns the name of a filter: the name of a standard filter of HDF5, otherwise the name in the
/// file, or `filter` without a name.
pub(crate) fn filter_name(filter: &Filter) -> String {
    const STANDARD: [&str; 6] = [
        "deflate",
        "shuffle",
        "fletcher32",
        "szip",
        "nbit",
        "scaleoffset",
    ];
    let standard = usize::from(filter.id).checked_sub(1);
    if let Some(name) = standard.and_then(|index| STANDARD.get(index)) {
        return (*name).to_owned();
    }
    // Some writers append the address of their documentation to the name: `bitshuffle; see
    // https://…`.
    let name = filter.name.as_deref().unwrap_or_default();
    let name = name.split([';', ',']).next().unwrap_or_default().trim();
    if name.is_empty() { "filter" } else { name }.to_owned()
}

/// Returns the fill value of an array as text; `None` if the array does not have one (as in ASDF),
/// or if its text is too long or contains pointers.
fn fill_text(array: &Array) -> Option<Vec<u8>> {
    let datatype = &array.datatype;
    let size = usize::try_from(datatype.size).ok()?;
    let no_fill = matches!(array.layout, Layout::Inline | Layout::Block);
    let unknown = datatype.has_pointers() && !array.fill.is_zero();
    if no_fill || unknown || size > limits::XATTR_BYTES {
        return None;
    }
    let zeros;
    let element = match &array.fill {
        Fill::Value(element) => element,
        Fill::Zero => {
            zeros = vec![0; size];
            &zeros[..]
        }
    };
    let mut out = Vec::new();
    let context = TextContext::without_pointers(limits::XATTR_BYTES);
    let written = ValueWriter::new(datatype)
        .and_then(|writer| writer.write_text(element, &context, &mut out));
    written.is_ok().then_some(out)
}

/// Formats the members of an enumeration: `FALSE=0, TRUE=1`, with names as in the file.
fn enumeration_text(base: &Datatype, members: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    let context = TextContext::without_pointers(usize::MAX);
    let Ok(writer) = ValueWriter::new(base) else {
        return out;
    };
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        out.extend_from_slice(name);
        out.push(b'=');
        // A value that is shorter than its datatype is damaged. Its name is written without a
        // value.
        let _shown = writer.write_text(value, &context, &mut out);
    }
    out
}

/// Returns the position of a number's bits in its bytes; `None` if the number uses all bits, or if
/// the datatype is not a number.
fn partial_bits(datatype: &Datatype) -> Option<BitRange> {
    let datatype = innermost_type(datatype);
    let bits = match &datatype.class {
        Class::Integer { bits, .. } | Class::Bitfield { bits, .. } | Class::Time { bits, .. } => {
            *bits
        }
        Class::Float(format) => format.bits,
        Class::Enumeration { base, .. } | Class::Complex(base) => return partial_bits(base),
        _ => return None,
    };
    let whole = bits.offset == 0 && Some(u32::from(bits.precision)) == datatype.size.checked_mul(8);
    (!whole).then_some(bits)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use h5fs_reader::model::NodeId;
    use h5fs_reader::testing::{Heap, int, type_of};

    use super::*;

    fn integers(shape: Shape, elements: &[i16]) -> AttributeContent {
        let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes()).collect();
        AttributeContent {
            datatype: int(2),
            shape,
            elements: bytes.into(),
        }
    }

    #[test]
    fn each_element_has_a_line() {
        let lines = |content: &AttributeContent, limit| {
            value_lines_up_to(&Heap(vec![]), &|_| Ok(None), content, limit)
        };
        let content = integers(Shape::fixed(vec![2, 2]), &[1, -2, 3, 400]);
        assert_eq!(lines(&content, 10), Ok(b"1\n-2\n3\n400".to_vec()));
        assert!(matches!(
            lines(&content, 9),
            Err(Error::Limit { max: 9, .. })
        ));
        assert_eq!(
            lines(&integers(Shape::fixed(vec![]), &[7]), 9),
            Ok(b"7".to_vec())
        );
        assert_eq!(lines(&integers(Shape::Null, &[]), 9), Ok(vec![]));
        let short = integers(Shape::fixed(vec![3]), &[1, 2]);
        assert!(matches!(lines(&short, 99), Err(Error::Corrupt { .. })));
    }

    fn xattr(content: &AttributeContent) -> Result<String> {
        let text = xattr_text(&Heap(vec![]), &|_| Ok(None), content)?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn several_elements_are_one_line_of_json() {
        let of = |dims: &[u64], elements: &[i16]| {
            xattr(&integers(Shape::fixed(dims.to_vec()), elements)).unwrap()
        };
        assert_eq!(of(&[2], &[180, 340]), "[180, 340]");
        assert_eq!(of(&[2, 1, 2], &[1, 2, 3, 4]), "[[[1, 2]], [[3, 4]]]");
        assert_eq!(of(&[], &[7]), "7");
        assert_eq!(of(&[1, 1], &[7]), "7");
        assert_eq!(of(&[0, 3], &[]), "");
        assert_eq!(xattr(&integers(Shape::Null, &[])).unwrap(), "");
        let padding = StringPadding::NullPadded;
        let charset = Charset::Utf8;
        let mut strings = AttributeContent {
            datatype: type_of(3, Class::String { padding, charset }),
            shape: Shape::fixed(vec![3]),
            elements: b"a\"\n\xffb\0\0\0\0".as_slice().into(),
        };
        assert_eq!(xattr(&strings).unwrap(), r#"["a\"\n", "\udcffb", ""]"#);
        strings.shape = Shape::fixed(vec![1]);
        assert_eq!(xattr(&strings).unwrap(), "a\"\n");
    }

    #[test]
    fn the_length_of_an_xattr_is_limited() {
        // The text has brackets, one digit for each element, and ", " between two elements.
        let bytes = |count: usize| 3 * count;
        let of = |count: usize, value: i16| {
            let content = integers(Shape::fixed(vec![count as u64]), &vec![value; count]);
            xattr(&content).map(|text| text.len())
        };
        let most = limits::XATTR_BYTES / 3;
        assert_eq!(of(most, 7), Ok(bytes(most)));
        assert!(matches!(of(most + 1, 7), Err(Error::Limit { .. })));
        assert!(matches!(of(most, 77), Err(Error::Limit { .. })));
        let last = [vec![7; most - 1], vec![777]].concat();
        let content = integers(Shape::fixed(vec![most as u64]), &last);
        assert!(matches!(xattr(&content), Err(Error::Limit { .. })));
    }

    fn filter(id: u16, name: Option<&str>, parameters: &[u32]) -> Filter {
        Filter {
            id,
            name: name.map(str::to_owned),
            parameters: parameters.to_vec(),
        }
    }

    #[test]
    fn an_array_is_described() {
        let bitshuffle = "bitshuffle; see https://github.com/kiyo-masui/bitshuffle";
        let pipeline = Pipeline(vec![
            filter(2, Some("shuffle"), &[4]),
            filter(1, None, &[4]),
            filter(32008, Some(bitshuffle), &[]),
            filter(32017, None, &[]),
        ]);
        let array = Array {
            datatype: Datatype::ieee(4, ByteOrder::Big),
            shape: Shape::Simple {
                dims: vec![10, 20],
                max: vec![None, Some(20)],
            },
            fill: Fill::Value(1.5_f32.to_be_bytes().as_slice().into()),
            layout: Layout::Chunked,
            chunk_shape: Some(vec![5, 20]),
            pipeline,
            storage: Err(Error::NotFound),
        };
        let node = Node {
            id: NodeId::for_test(96),
            kind: NodeKind::Array(Arc::new(array)),
            link_count: 1,
            modified: None,
            comment: Some(b"why".to_vec()),
            tag: None,
            assembled_array: None,
            error: None,
        };
        let expected = [
            ("h5fs.type", "float32"),
            ("h5fs.dtype", ">f4"),
            ("h5fs.itemsize", "4"),
            ("h5fs.shape", "[10, 20]"),
            ("h5fs.maxshape", "[null, 20]"),
            ("h5fs.byteorder", "big"),
            ("h5fs.layout", "chunked"),
            ("h5fs.chunks", "[5, 20]"),
            (
                "h5fs.filters",
                "shuffle, deflate(4), bitshuffle(32008), SZ(32017)",
            ),
            ("h5fs.fillvalue", "1.5"),
            ("h5fs.path", "/a"),
            ("h5fs.comment", "why"),
        ];
        let expected = expected.map(|(name, value)| (name, value.as_bytes().to_vec()));
        assert_eq!(builtin_attributes(&node, b"/a"), expected);
    }

    #[test]
    fn some_classes_have_further_attributes() {
        let describe = |datatype: &Datatype| {
            let mut list = XattrList(Vec::new());
            describe_class(&innermost_type(datatype).class, &mut list);
            let text = |value| String::from_utf8(value).unwrap();
            let pairs = list.0.into_iter();
            pairs
                .map(|(name, value)| format!("{name}: {}", text(value)))
                .collect::<Vec<_>>()
        };
        let string = Class::String {
            padding: StringPadding::SpacePadded,
            charset: Charset::Utf8,
        };
        let expected = ["h5fs.strpad: spacepad", "h5fs.charset: utf-8"];
        assert_eq!(describe(&type_of(4, string)), expected);
        let members = vec![(b"FALSE".to_vec(), vec![0]), (b"TRUE".to_vec(), vec![1])];
        let base = Box::new(int(1));
        let boolean = type_of(1, Class::Enumeration { base, members });
        assert_eq!(describe(&boolean), ["h5fs.enum: FALSE=0, TRUE=1"]);

        let mut padded = int(4);
        assert_eq!(partial_bits(&padded), None);
        let bits = BitRange {
            offset: 8,
            precision: 12,
        };
        if let Class::Integer { bits: place, .. } = &mut padded.class {
            *place = bits;
        }
        assert_eq!(partial_bits(&padded), Some(bits));
    }
}
