//! The description of a datatype in h5grove's metadata.

use h5fs_reader::model::Datatype;
use h5fs_reader::model::datatype::{
    ByteOrder, Charset, Class, Member, ReferenceKind, StringPadding,
};
use h5fs_reader::model::number::{self, Integer};
use h5fs_reader::model::numpy::numpy_descr;
use h5fs_reader::model::text::{JsonObject, json_text};

use crate::documents::h5grove::converted_type;
use crate::elements::numpy_datatype;

/// Returns the description of a datatype as JSON. Numbers for classes, orders, character sets and
/// paddings are those of libhdf5.
pub fn type_metadata(datatype: &Datatype) -> String {
    describe(datatype).finish()
}

fn describe(datatype: &Datatype) -> JsonObject {
    let mut about = JsonObject::default();
    about.add_json("class", class_number(&datatype.class));
    about.add_json("dtype", numpy_name(datatype));
    about.add_json("size", memory_size(datatype));
    match &datatype.class {
        Class::Integer { order, signed, .. } => {
            about.add_json("order", order_number(*order));
            about.add_json("sign", u8::from(*signed));
        }
        Class::Float(format) => about.add_json("order", order_number(format.order)),
        Class::Bitfield { order, .. } => about.add_json("order", order_number(*order)),
        Class::String { padding, charset } => add_text_kind(&mut about, *padding, *charset, false),
        Class::VariableString { padding, charset } => {
            add_text_kind(&mut about, *padding, *charset, true);
        }
        Class::Ucs4(_) => {
            add_text_kind(&mut about, StringPadding::NullPadded, Charset::Utf8, false);
        }
        Class::Opaque { tag } => about.add_text("tag", tag),
        Class::Compound(members) => {
            let members: Vec<String> = members.iter().map(describe_member).collect();
            about.add_json("members", format_args!("[{}]", members.join(", ")));
        }
        Class::Enumeration { base, members } => {
            let mut names = JsonObject::default();
            for (name, value) in members {
                let number = match &base.class {
                    &Class::Integer {
                        order,
                        signed,
                        bits,
                    } => number::decode_integer(value, order, signed, bits),
                    _ => None,
                };
                names.add_json(name, number.unwrap_or(Integer::Unsigned(0)));
            }
            about.add_json("members", names.finish());
            about.add_json("base", type_metadata(base));
        }
        Class::Bool => {
            about.add_json("members", r#"{"FALSE": 0, "TRUE": 1}"#);
            let base = Datatype::integer(1, true, ByteOrder::Little);
            about.add_json("base", type_metadata(&base));
        }
        Class::VariableLength(base) => about.add_json("base", type_metadata(base)),
        Class::Array { base, dims } => {
            about.add_json("dims", format_args!("{dims:?}"));
            about.add_json("base", type_metadata(base));
        }
        Class::Time { .. } | Class::Reference(_) | Class::Complex(_) => {}
    }
    about
}

fn describe_member(member: &Member) -> String {
    let mut about = describe(&member.datatype);
    about.add_text("name", &member.name);
    about.finish()
}

fn add_text_kind(
    about: &mut JsonObject,
    padding: StringPadding,
    charset: Charset,
    is_variable: bool,
) {
    let charset = match charset {
        Charset::Ascii => 0,
        Charset::Utf8 => 1,
    };
    let padding = match padding {
        StringPadding::NullTerminated => 0,
        StringPadding::NullPadded => 1,
        StringPadding::SpacePadded => 2,
    };
    about.add_json("cset", charset);
    about.add_json("strpad", padding);
    about.add_json("vlen", is_variable);
}

/// Returns the number of the class, as `H5T_class_t`.
fn class_number(class: &Class) -> u8 {
    match class {
        Class::Integer { .. } => 0,
        Class::Float(_) => 1,
        Class::Time { .. } => 2,
        Class::String { .. } | Class::VariableString { .. } | Class::Ucs4(_) => 3,
        Class::Bitfield { .. } => 4,
        Class::Opaque { .. } => 5,
        Class::Compound(_) => 6,
        Class::Reference(_) => 7,
        Class::Enumeration { .. } | Class::Bool => 8,
        Class::VariableLength(_) => 9,
        Class::Array { .. } => 10,
        Class::Complex(_) => 11,
    }
}

/// Returns the number of the byte order, as `H5T_order_t`.
fn order_number(order: ByteOrder) -> u8 {
    match order {
        ByteOrder::Little => 0,
        ByteOrder::Big => 1,
        ByteOrder::Vax => 2,
    }
}

/// Returns the size in bytes of an element in memory, as libhdf5 reports it. Pointers have other
/// sizes in memory than in a file.
fn memory_size(datatype: &Datatype) -> u64 {
    match &datatype.class {
        Class::VariableString { .. } => 8,
        Class::VariableLength(_) => 16,
        Class::Reference(ReferenceKind::Object) => 8,
        Class::Reference(ReferenceKind::Region) => 12,
        Class::Reference(ReferenceKind::Standard) => 64,
        Class::Array { base, dims } => dims.iter().fold(memory_size(base), |size, &dim| {
            size.saturating_mul(dim.into())
        }),
        Class::Compound(members) => members.iter().fold(datatype.size.into(), |size, member| {
            let stored = u64::from(member.datatype.size);
            let size = size.saturating_add(memory_size(&member.datatype));
            size.saturating_sub(stored)
        }),
        _ => datatype.size.into(),
    }
}

/// Returns NumPy's name of the type as JSON: a text, or an object with the name of each field.
fn numpy_name(datatype: &Datatype) -> String {
    match &numpy_datatype(datatype).class {
        Class::Compound(members) => {
            let mut names = JsonObject::default();
            for member in members {
                names.add_json(&member.name, numpy_name(&member.datatype));
            }
            names.finish()
        }
        Class::VariableString { .. } | Class::VariableLength(_) | Class::Reference(_) => {
            json_text(b"|O")
        }
        Class::Array { base, dims } => {
            let size = dims.iter().fold(numpy_size(base), |size, &dim| {
                size.saturating_mul(dim.into())
            });
            json_text(format!("|V{size}").as_bytes())
        }
        _ => match numpy_descr(&numpy_datatype(datatype)) {
            Some(name) => json_text(name.as_bytes()),
            None => json_text(fallback_name(datatype).as_bytes()),
        },
    }
}

/// Returns the name of the type to which h5py converts elements in a format that NumPy does not
/// have.
fn fallback_name(datatype: &Datatype) -> String {
    let converted = converted_type(datatype);
    let converted = converted.and_then(|converted| numpy_descr(&converted));
    converted.unwrap_or_else(|| match &datatype.class {
        Class::Float(format) if format.order == ByteOrder::Big => format!(">f{}", datatype.size),
        Class::Float(_) => format!("<f{}", datatype.size),
        Class::Bitfield { order, .. } => {
            let whole = u16::try_from(datatype.size).unwrap_or_default();
            numpy_descr(&Datatype::integer(whole, false, *order)).unwrap_or_default()
        }
        _ => format!("|V{}", datatype.size),
    })
}

/// Returns the size in bytes of an element in NumPy, where each pointer has 8 bytes.
fn numpy_size(datatype: &Datatype) -> u64 {
    match &datatype.class {
        Class::VariableString { .. } | Class::VariableLength(_) | Class::Reference(_) => 8,
        Class::Array { base, dims } => dims.iter().fold(numpy_size(base), |size, &dim| {
            size.saturating_mul(dim.into())
        }),
        _ => datatype.size.into(),
    }
}
