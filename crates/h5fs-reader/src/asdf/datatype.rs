//! The `datatype` of an ndarray (schema `core/ndarray`: scalar types, strings, structures).

use crate::asdf::fields::{self, Fields, MeteredDocument};
use crate::asdf::yaml::NodeIndex;
use crate::error::{Error, Result, quote};
use crate::limits;
use crate::model::datatype::{ByteOrder, Charset, Class, Datatype, Member, StringPadding};
use crate::wire::{Count, to_u64};

/// Parses the datatype that `node` describes. `order` is the byte order of a type that does not
/// state one.
///
/// # Errors
/// - `Unsupported` for a scalar type with an unknown name.
/// - `Corrupt` if the node is not a datatype, or if one element would exceed 4 GiB.
/// - `Limit` if it is nested too deeply, has too many fields or too long names, or takes too much
///   work.
pub(crate) fn parse(
    document: MeteredDocument<'_>,
    node: NodeIndex,
    order: ByteOrder,
) -> Result<Datatype> {
    let mut parser = Parser {
        document,
        fields_left: limits::DATATYPE_MEMBERS,
        name_bytes_left: limits::FIELD_NAMES,
    };
    parser.datatype(node, order, limits::DATATYPE_DEPTH)
}

/// Parses the byte order in `node`.
///
/// # Errors
/// `Corrupt` if it is neither `big` nor `little`.
pub(crate) fn byte_order(document: MeteredDocument<'_>, node: NodeIndex) -> Result<ByteOrder> {
    match document.text(node) {
        Some("big") => Ok(ByteOrder::Big),
        Some("little") => Ok(ByteOrder::Little),
        _ => Err(fields::corrupt(
            document,
            node,
            "byteorder is neither big nor little",
        )),
    }
}

struct Parser<'a> {
    document: MeteredDocument<'a>,
    /// Number of fields that this datatype may still have.
    fields_left: usize,
    /// Number of bytes that the names of all further fields may have together.
    name_bytes_left: usize,
}

impl Parser<'_> {
    fn datatype(&mut self, node: NodeIndex, order: ByteOrder, depth: usize) -> Result<Datatype> {
        fields::charge_node(self.document, node)?;
        let Some(deeper) = depth.checked_sub(1) else {
            let most = to_u64(limits::DATATYPE_DEPTH);
            return Err(Error::limit("depth of a datatype", most));
        };
        if let Some(name) = self.document.text(node) {
            return scalar(name, order).ok_or_else(|| {
                let what = format!("ndarray: datatype {}", quote(name.as_bytes()));
                Error::unsupported(what, self.document.file_offset(node))
            });
        }
        let items = self.document.document().items(node);
        let items =
            items.ok_or_else(|| self.corrupt(node, "datatype is neither text nor a list"))?;
        if let &[kind, length] = items
            && let Some(name @ ("ascii" | "ucs4")) = self.document.text(kind)
            && let Some(length) = fields::integer(self.document, length)?
        {
            return string(name, length, order)
                .ok_or_else(|| self.corrupt(node, "length of a string"));
        }
        self.structure(node, items, order, deeper)
    }

    fn structure(
        &mut self,
        node: NodeIndex,
        items: &[NodeIndex],
        order: ByteOrder,
        depth: usize,
    ) -> Result<Datatype> {
        let mut members = Vec::new();
        let mut size: u32 = 0;
        for (number, &item) in items.iter().enumerate() {
            let most = limits::DATATYPE_MEMBERS;
            let left = self.fields_left.checked_sub(1);
            self.fields_left = left.ok_or_else(|| Error::limit("fields", to_u64(most)))?;
            let (name, datatype) = self.field(item, order, depth)?;
            let offset = size;
            size = size
                .checked_add(datatype.size)
                .ok_or_else(|| self.corrupt(node, "a datatype of 4 GiB or more"))?;
            members.push(Member {
                name: match name {
                    Some(name) if !name.is_empty() => name.as_bytes().to_vec(),
                    // NumPy and the reference library assign these names.
                    _ => format!("f{number}").into_bytes(),
                },
                offset,
                datatype,
            });
        }
        Ok(Datatype {
            size,
            class: Class::Compound(members),
        })
    }

    fn field(
        &mut self,
        node: NodeIndex,
        order: ByteOrder,
        depth: usize,
    ) -> Result<(Option<String>, Datatype)> {
        if self.document.pairs(node).is_none() {
            return Ok((None, self.datatype(node, order, depth)?));
        }
        let fields = Fields::new(self.document, node)?;
        let order = match fields.get("byteorder") {
            Some(order) => byte_order(self.document, order)?,
            None => order,
        };
        let base = self.datatype(fields.required("datatype")?, order, depth)?;
        let datatype = match fields.get("shape") {
            Some(shape) => self.array(shape, base)?,
            None => base,
        };
        let name = fields.get("name").map(|name| self.name(name));
        Ok((name.transpose()?, datatype))
    }

    fn name(&mut self, node: NodeIndex) -> Result<String> {
        let name = self.document.key_text(node);
        let most = to_u64(limits::FIELD_NAMES);
        self.name_bytes_left = (self.name_bytes_left.checked_sub(name.len()))
            .ok_or_else(|| Error::limit("bytes of the names of fields", most))?;
        Ok(name.to_owned())
    }

    fn array(&self, shape: NodeIndex, base: Datatype) -> Result<Datatype> {
        let bad = || self.corrupt(shape, "shape of a field");
        let items = self.document.items(shape).ok_or_else(bad)?;
        if items.len() > limits::RANK {
            return Err(bad());
        }
        let dim = |&item: &NodeIndex| {
            let dim = fields::integer(self.document, item)?;
            dim.and_then(|dim| u32::try_from(dim).ok()).ok_or_else(bad)
        };
        let dims: Vec<u32> = items.iter().map(dim).collect::<Result<_>>()?;
        if dims.is_empty() {
            return Ok(base);
        }
        let size = dims
            .iter()
            .try_fold(base.size, |size, &dim| size.checked_mul(dim));
        Ok(Datatype {
            size: size.ok_or_else(bad)?,
            class: Class::Array {
                base: Box::new(base),
                dims,
            },
        })
    }

    fn corrupt(&self, node: NodeIndex, what: &str) -> Error {
        fields::corrupt(self.document, node, what)
    }
}

/// Returns the scalar type called `name`, or `None` if the name is unknown.
pub(crate) fn scalar(name: &str, order: ByteOrder) -> Option<Datatype> {
    let complex = |base: Datatype| Datatype {
        size: base.size.times(2),
        class: Class::Complex(Box::new(base)),
    };
    Some(match name {
        "int8" => Datatype::integer(1, true, order),
        "uint8" => Datatype::integer(1, false, order),
        "int16" => Datatype::integer(2, true, order),
        "uint16" => Datatype::integer(2, false, order),
        "int32" => Datatype::integer(4, true, order),
        "uint32" => Datatype::integer(4, false, order),
        "int64" => Datatype::integer(8, true, order),
        "uint64" => Datatype::integer(8, false, order),
        "float16" => Datatype::ieee(2, order),
        "float32" => Datatype::ieee(4, order),
        "float64" => Datatype::ieee(8, order),
        "complex64" => complex(Datatype::ieee(4, order)),
        "complex128" => complex(Datatype::ieee(8, order)),
        "bool8" => Datatype {
            size: 1,
            class: Class::Bool,
        },
        _ => return None,
    })
}

/// Returns the type `[ascii, length]` or `[ucs4, length]`, or `None` if `length` is negative or the
/// size of an element in bytes exceeds 32 bits.
fn string(kind: &str, length: i128, order: ByteOrder) -> Option<Datatype> {
    let length = u32::try_from(length).ok()?;
    match kind {
        "ascii" => Some(Datatype {
            size: length,
            class: Class::String {
                padding: StringPadding::NullPadded,
                charset: Charset::Ascii,
            },
        }),
        _ => Some(ucs4(length.checked_mul(4)?, order)),
    }
}

/// Returns a text type of four bytes per character, with `size` bytes in total.
pub(crate) fn ucs4(size: u32, order: ByteOrder) -> Datatype {
    Datatype {
        size,
        class: Class::Ucs4(order),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asdf::yaml::compose::compose;
    use crate::memory::request_budget::RequestBudget;

    fn parse_text(text: &str) -> Result<Datatype> {
        let document = compose(text.as_bytes(), 0).unwrap();
        let budget = RequestBudget::default();
        let document = MeteredDocument::new(&document, &budget);
        parse(document, NodeIndex::ROOT, ByteOrder::Big)
    }

    #[test]
    fn strings_and_structures_are_distinguished() {
        assert_eq!(parse_text("[ascii, 4]").unwrap().size, 4);
        assert_eq!(parse_text("[ucs4, 4]").unwrap().size, 16);
        assert_eq!(parse_text("[ascii, 0]").unwrap().size, 0);
        let Class::Compound(members) = parse_text("[int32, int32]").unwrap().class else {
            panic!("a structure");
        };
        assert_eq!(
            (members[1].name.as_slice(), members[1].offset),
            (&b"f1"[..], 4)
        );
    }

    #[test]
    fn fields_inherit_the_byte_order() {
        let text = "[{name: a, datatype: [{name: b, datatype: int16}], byteorder: little},\
                     {name: c, datatype: float32, shape: [2, 3]}]";
        let datatype = parse_text(text).unwrap();
        assert_eq!(datatype.size, 2 + 24);
        let Class::Compound(members) = datatype.class else {
            panic!("a structure");
        };
        let inner = vec![Member {
            name: b"b".to_vec(),
            offset: 0,
            datatype: Datatype::integer(2, true, ByteOrder::Little),
        }];
        assert_eq!(members[0].datatype.class, Class::Compound(inner));
        let array = Class::Array {
            base: Box::new(Datatype::ieee(4, ByteOrder::Big)),
            dims: vec![2, 3],
        };
        assert_eq!(members[1].datatype.class, array);
    }

    #[test]
    fn repeated_names_count_each_time() {
        let name = "n".repeat(limits::FIELD_NAMES / 4);
        let fields = |count: usize| {
            let field = format!("&f {{name: {name}, datatype: int8}}");
            parse_text(&format!("[{field}{}]", ", *f".repeat(count - 1)))
        };
        assert_eq!(fields(4).unwrap().size, 4);
        assert!(matches!(fields(5), Err(Error::Limit { .. })));
    }

    #[test]
    fn invalid_datatypes_are_rejected() {
        for bad in [
            "int7",
            "{a: 1}",
            "[ascii, -1]",
            "[[ascii]]",
            "[{name: a}]",
            "&a [*a]",
        ] {
            assert!(parse_text(bad).is_err(), "{bad}");
        }
        assert!(parse_text("[{datatype: int8, shape: [70000, 70000]}]").is_err());
    }
}
