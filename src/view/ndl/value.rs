//! Values on one line: lists within lists as the dimensions are.
//!
//! | datatype | value |
//! |---|---|
//! | integer, float, bit field | the number |
//! | string | text; a null one `null` |
//! | enumeration | the number, as in the language's own examples; ASDF booleans 0 and 1 |
//! | compound, complex | a map by member, `{x: 1.0, y: 2}` |
//! | array, variable-length sequence | a list |
//! | object reference | the target's path as text, `null` |
//! | region reference | `{target: path, start: [0, 0], opposite: [2, 5]}`, the block's corners |
//! | the same, several blocks | `{target: path, blocks: [{start: …, opposite: …}, …]}` |
//! | the same, points | `{target: path}` |
//! | opaque, time, numbers over 128 bits | text, `0x` and hexadecimal digits |

use crate::error::{Error, Result};
use crate::limits;
use crate::model::datatype::{Bits, ByteOrder, Class, Member, ReferenceKind};
use crate::model::ndl::{Flow, Syntax};
use crate::model::number;
use crate::model::region::{Axis, Region};
use crate::model::shape::product;
use crate::model::value::{Context, ValueWriter};
use crate::model::{Datatype, NodeKind, Reference};
use crate::view::ndl::source::Source;
use crate::wire::{to_u64, to_usize};

/// Writes elements of one datatype.
struct Writer {
    size: usize,
    kind: Kind,
}

enum Kind {
    Number(ValueWriter),
    Bits {
        order: ByteOrder,
        bits: Bits,
        otherwise: ValueWriter,
    },
    Text(ValueWriter),
    Region,
    Bool,
    Enumeration(Box<Writer>),
    Compound(Vec<Field>),
    Array {
        base: Box<Writer>,
        dims: Vec<u64>,
    },
    Sequence(Box<Writer>),
}

struct Field {
    name: Vec<u8>,
    offset: usize,
    writer: Writer,
}

/// The value of elements of `datatype`, `dims` and C order.
///
/// # Errors
/// `Limit` where the text becomes too long; as the container where a pointer leads nowhere.
pub(super) fn value(
    source: &Source,
    syntax: Syntax,
    datatype: &Datatype,
    dims: &[u64],
    elements: &[u8],
) -> Result<String> {
    let writer = Writer::new(datatype)?;
    let paths = &*source.paths;
    let context = Context::new(&*source.container, paths, limits::NDL_VALUE_BYTES);
    let out = Text {
        source,
        context,
        out: Flow::new(syntax),
    };
    out.lists(&writer, dims, elements)
}

impl Writer {
    fn new(datatype: &Datatype) -> Result<Self> {
        let plain = || ValueWriter::new(datatype);
        let kind = match &datatype.class {
            Class::Integer { .. } | Class::Float(_) => Kind::Number(plain()?),
            &Class::Bitfield { order, bits } => Kind::Bits {
                order,
                bits,
                otherwise: plain()?,
            },
            Class::Reference(ReferenceKind::Region) => Kind::Region,
            Class::Time { .. }
            | Class::Opaque { .. }
            | Class::String { .. }
            | Class::VariableString { .. }
            | Class::Ucs4(_)
            | Class::Reference(_) => Kind::Text(plain()?),
            Class::Bool => Kind::Bool,
            Class::Enumeration { base, .. } => Kind::Enumeration(Box::new(Writer::new(base)?)),
            Class::Complex(base) => {
                let field = |name: &[u8], offset| -> Result<Field> {
                    Ok(Field {
                        name: name.to_vec(),
                        offset: to_usize(offset)?,
                        writer: Writer::new(base)?,
                    })
                };
                Kind::Compound(vec![field(b"r", 0)?, field(b"i", base.size.into())?])
            }
            Class::Compound(members) => {
                Kind::Compound(members.iter().map(Field::new).collect::<Result<_>>()?)
            }
            Class::Array { base, dims } => Kind::Array {
                base: Box::new(Writer::new(base)?),
                dims: dims.iter().copied().map(u64::from).collect(),
            },
            Class::VariableLength(base) => Kind::Sequence(Box::new(Writer::new(base)?)),
        };
        let size = to_usize(datatype.size.into())?;
        Ok(Writer { size, kind })
    }
}

impl Field {
    fn new(member: &Member) -> Result<Self> {
        Ok(Field {
            name: member.name.clone(),
            offset: to_usize(member.offset.into())?,
            writer: Writer::new(&member.datatype)?,
        })
    }
}

/// A value while it is written.
struct Text<'a> {
    source: &'a Source,
    context: Context<'a>,
    out: Flow,
}

impl Text<'_> {
    /// All elements, in brackets as the dimensions are.
    fn lists(mut self, writer: &Writer, dims: &[u64], elements: &[u8]) -> Result<String> {
        self.nest(writer, dims, elements)?;
        Ok(self.out.finish())
    }

    fn nest(&mut self, writer: &Writer, dims: &[u64], elements: &[u8]) -> Result<()> {
        let Some((&count, inner)) = dims.split_first() else {
            return self.element(writer, part(elements, 0, writer.size)?);
        };
        let size = to_usize(product(inner)?)?.saturating_mul(writer.size);
        self.out.push("[");
        for index in 0..count {
            if index > 0 {
                self.out.push(", ");
            }
            let start = to_usize(index)?.saturating_mul(size);
            self.nest(writer, inner, part(elements, start, size)?)?;
            self.check()?;
        }
        self.out.push("]");
        Ok(())
    }

    fn element(&mut self, writer: &Writer, element: &[u8]) -> Result<()> {
        match &writer.kind {
            Kind::Number(plain) => {
                let text = self.plain(plain, element)?;
                self.out.number(&text);
            }
            Kind::Bits {
                order,
                bits,
                otherwise,
            } => match number::bits(element, *order, *bits) {
                Some(bits) => self.out.append(format_args!("{bits}")),
                None => self.text(otherwise, element)?,
            },
            Kind::Text(plain) => self.text(plain, element)?,
            Kind::Region => self.region(element)?,
            Kind::Bool => {
                let set = element.iter().any(|&byte| byte != 0);
                self.out.push(if set { "1" } else { "0" });
            }
            Kind::Enumeration(base) => self.element(base, element)?,
            Kind::Compound(fields) => self.compound(fields, element)?,
            Kind::Array { base, dims } => self.nest(base, dims, element)?,
            Kind::Sequence(base) => self.sequence(base, element)?,
        }
        self.check()
    }

    fn compound(&mut self, fields: &[Field], element: &[u8]) -> Result<()> {
        self.out.push("{");
        for (index, field) in fields.iter().enumerate() {
            self.out.push(if index > 0 { ", " } else { "" });
            self.out.key(&field.name);
            let element = part(element, field.offset, field.writer.size)?;
            self.element(&field.writer, element)?;
        }
        self.out.push("}");
        Ok(())
    }

    fn sequence(&mut self, base: &Writer, element: &[u8]) -> Result<()> {
        let container = &self.source.container;
        let size = to_u64(base.size);
        let length = container.variable_length_bytes(element, size)?;
        let length = length.unwrap_or(0);
        if length > to_u64(limits::NDL_VALUE_BYTES) {
            return Err(too_long());
        }
        let elements = container.variable_length(element, size, 0..length)?;
        let elements = elements.unwrap_or_default();
        let count = elements.len().checked_div(base.size).unwrap_or(0);
        self.nest(base, &[to_u64(count)], &elements)
    }

    fn region(&mut self, element: &[u8]) -> Result<()> {
        let container = &self.source.container;
        let found = container.reference(ReferenceKind::Region, element)?;
        let node = match found {
            Reference::Region(node) => node,
            Reference::Dangling(at) => {
                return Err(Error::corrupt("region reference: leads nowhere", at));
            }
            _ => {
                self.out.push("null");
                return Ok(());
            }
        };
        let path = (self.source.paths)(node)?;
        let path = path.unwrap_or_else(|| format!("@{:#x}", node.number()).into_bytes());
        self.out.push("{");
        self.out.key(b"target");
        self.out.text(&path);
        let target = container.node(node)?;
        if let NodeKind::Array(array) = &target.kind
            && let Some(region) = container.region(element)?
        {
            write_blocks(&region, array.shape.dims(), &mut self.out)?;
        }
        self.out.push("}");
        Ok(())
    }

    /// An element's text, `null` where there is none.
    fn text(&mut self, plain: &ValueWriter, element: &[u8]) -> Result<()> {
        let mut json = Vec::new();
        plain.json(element, &self.context, &mut json)?;
        match json.as_slice() {
            b"null" => self.out.push("null"),
            _ => {
                let text = self.plain(plain, element)?;
                self.out.text(&text);
            }
        }
        Ok(())
    }

    fn plain(&self, plain: &ValueWriter, element: &[u8]) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        plain.text(element, &self.context, &mut text)?;
        Ok(text)
    }

    fn check(&self) -> Result<()> {
        match self.out.length() > limits::NDL_VALUE_BYTES {
            true => Err(too_long()),
            false => Ok(()),
        }
    }
}

/// Writes the corners of the blocks of a region of an array of extent `dims`, as further keys.
fn write_blocks(region: &Region, dims: &[u64], out: &mut Flow) -> Result<()> {
    let corners = match region {
        Region::Nothing => Vec::new(),
        Region::All => {
            let last = dims.iter().map(|dim| dim.saturating_sub(1)).collect();
            vec![(vec![0; dims.len()], last)]
        }
        Region::Blocks(blocks) => blocks.clone(),
        Region::Regular(axes) => {
            let mut corners = vec![(Vec::new(), Vec::new())];
            for axis in axes {
                corners = with_axis(&corners, axis)?;
            }
            corners
        }
    };
    if let [(start, opposite)] = corners.as_slice() {
        out.next(b"start");
        out.append(format_args!("{start:?}"));
        out.next(b"opposite");
        out.append(format_args!("{opposite:?}"));
        return Ok(());
    }
    out.next(b"blocks");
    out.list(corners.iter(), |(start, opposite), out| {
        out.map(b"start", |out| {
            out.append(format_args!("{start:?}"));
            out.next(b"opposite");
            out.append(format_args!("{opposite:?}"));
        });
    });
    Ok(())
}

/// First and last corner, both inside.
type Corners = (Vec<u64>, Vec<u64>);

/// The blocks with one dimension more, in which `axis` may have several blocks.
fn with_axis(blocks: &[Corners], axis: &Axis) -> Result<Vec<Corners>> {
    // Of each at least 16 bytes are written.
    const MOST: u64 = (limits::NDL_VALUE_BYTES / 16) as u64;
    let length = axis.length.unwrap_or(u64::MAX);
    let along = length.div_ceil(axis.block.max(1));
    if along.saturating_mul(to_u64(blocks.len())) > MOST {
        return Err(too_long());
    }
    let places = (0..along).map(|number| {
        let start = axis
            .start
            .saturating_add(number.saturating_mul(axis.stride));
        let rest = length - number * axis.block;
        (
            start,
            start.saturating_add(rest.min(axis.block)).saturating_sub(1),
        )
    });
    let places: Vec<(u64, u64)> = places.collect();
    let longer = |corner: &[u64], place: u64| [corner, &[place]].concat();
    let mut all = Vec::new();
    for (first, last) in blocks {
        let added = places.iter();
        all.extend(added.map(|&(start, end)| (longer(first, start), longer(last, end))));
    }
    Ok(all)
}

fn too_long() -> Error {
    Error::limit("text of a value", to_u64(limits::NDL_VALUE_BYTES))
}

/// `size` bytes from `start` on.
fn part(bytes: &[u8], start: usize, size: usize) -> Result<&[u8]> {
    let end = start.checked_add(size);
    end.and_then(|end| bytes.get(start..end))
        .ok_or_else(|| Error::corrupt("value: fewer bytes than its shape", None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_by_the_corners_of_their_blocks() {
        let axis = |start, stride, block, length| Axis {
            start,
            stride,
            block,
            length: Some(length),
        };
        let blocks = |region: &Region, dims: &[u64]| {
            let mut out = Flow::new(Syntax::Yaml);
            write_blocks(region, dims, &mut out).map(|()| out.finish())
        };
        assert_eq!(
            blocks(&Region::All, &[768, 3200]).unwrap(),
            ", start: [0, 0], opposite: [767, 3199]"
        );
        let one = Region::Regular(vec![axis(2, 9, 3, 3), axis(0, 4, 4, 4)]);
        assert_eq!(
            blocks(&one, &[9, 9]).unwrap(),
            ", start: [2, 0], opposite: [4, 3]"
        );
        let cut = Region::Regular(vec![axis(1, 3, 2, 3)]);
        assert_eq!(
            blocks(&cut, &[9]).unwrap(),
            ", blocks: [{start: [1], opposite: [2]}, {start: [4], opposite: [4]}]"
        );
        let endless = Region::Regular(vec![axis(0, 2, 1, u64::MAX)]);
        assert!(blocks(&endless, &[9]).is_err());
    }
}
