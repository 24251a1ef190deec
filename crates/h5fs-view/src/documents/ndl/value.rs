//! Values in an NDL document. A value is on one line, as nested lists in the shape of its
//! dimensions.
//!
//! | datatype | value |
//! |---|---|
//! | integer, float, bit field | the number |
//! | string | text; a null string `null` |
//! | enumeration | the number, as in the language's own examples; ASDF booleans 0 and 1 |
//! | compound, complex | a map by member, `{x: 1.0, y: 2}` |
//! | array, variable-length sequence | a list |
//! | object reference | the target's path as text, `null` |
//! | region reference | `{target: path, start: [0, 0], opposite: [2, 5]}`, the corners of the block |
//! | region reference with several blocks | `{target: path, blocks: [{start: …, opposite: …}, …]}` |
//! | region reference with points | `{target: path}` |
//! | opaque, time, numbers over 128 bits | text, `0x` and hexadecimal digits |

use h5fs_reader::error::{Error, Result};
use h5fs_reader::model::datatype::ReferenceKind;
use h5fs_reader::model::ndl::{FlowWriter, Syntax};
use h5fs_reader::model::region::{Region, RegionAxis};
use h5fs_reader::model::value::{TextContext, plain_text};
use h5fs_reader::model::walk::{ElementWalker, Value, ValueSink};
use h5fs_reader::model::{Container, Datatype, NodeKind, Reference};
use h5fs_reader::wire::to_u64;

use crate::documents::ndl::source::NdlSource;
use crate::limits;

/// Formats elements of type `datatype` and dimensions `dims` as a value in NDL. `elements` are
/// their bytes in C order.
///
/// # Errors
/// `Limit` if the text is too long. Fails with the container's error if a pointer is invalid.
pub(super) fn format_value(
    source: &NdlSource,
    syntax: Syntax,
    datatype: &Datatype,
    dims: &[u64],
    elements: &[u8],
) -> Result<String> {
    let walk = ElementWalker::new(datatype, &|name| {
        let mut key = FlowWriter::new(syntax);
        key.write_key(name);
        key.finish()
    })?;
    let container = &*source.container;
    let mut text = NdlValueWriter {
        container,
        context: TextContext::new(container, &*source.paths, limits::NDL_VALUE_BYTES),
        out: FlowWriter::new(syntax),
    };
    walk.walk_list(elements, dims, &mut text)?;
    Ok(text.out.finish())
}

/// A value of an NDL document while it is written.
struct NdlValueWriter<'a> {
    container: &'a dyn Container,
    context: TextContext<'a>,
    out: FlowWriter,
}

impl ValueSink for NdlValueWriter<'_> {
    fn context(&self) -> &TextContext<'_> {
        &self.context
    }

    fn length(&self) -> usize {
        self.out.length()
    }

    fn push_text(&mut self, text: &str) {
        self.out.push(text);
    }

    fn write_value(&mut self, value: Value<'_>, stored: &[u8]) -> Result<bool> {
        match value {
            Value::EnumMember { .. } | Value::ByteStrings(_) | Value::Complex(_) => {
                return Ok(false);
            }
            Value::Bits(pattern, _) => self.out.append(format_args!("{pattern}")),
            Value::Bool(set) => self.out.push(if set { "1" } else { "0" }),
            Value::Null | Value::Reference(_, Reference::Null) => self.out.push("null"),
            Value::Reference(ReferenceKind::Region, target) => {
                self.write_region(&target, stored)?;
            }
            Value::Integer(_) | Value::Real(_) => {
                let number = plain_text(value, stored, &self.context)?;
                self.out.write_number(&number);
            }
            _ => {
                let text = plain_text(value, stored, &self.context)?;
                self.out.write_text(&text);
            }
        }
        Ok(true)
    }
}

impl NdlValueWriter<'_> {
    fn write_region(&mut self, target: &Reference, stored: &[u8]) -> Result<()> {
        let node = match *target {
            Reference::Region(node) => node,
            Reference::Dangling(at) => {
                return Err(Error::corrupt("region reference: it has no target", at));
            }
            _ => {
                self.out.push("null");
                return Ok(());
            }
        };
        self.out.push("{");
        self.out.write_key(b"target");
        self.out.write_text(&self.context.node_path(node)?);
        let target = self.container.node(node)?;
        if let NodeKind::Array(array) = &target.kind
            && let Some(region) = self.container.region(stored)?
        {
            write_blocks(&region, array.shape.dims(), &mut self.out)?;
        }
        self.out.push("}");
        Ok(())
    }
}

/// Writes the first and last corner of each block of a region. `dims` are the dimensions of the
/// array.
fn write_blocks(region: &Region, dims: &[u64], out: &mut FlowWriter) -> Result<()> {
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
                corners = extend_blocks(&corners, axis)?;
            }
            corners
        }
    };
    if let [(start, opposite)] = corners.as_slice() {
        out.next_key(b"start");
        out.append(format_args!("{start:?}"));
        out.next_key(b"opposite");
        out.append(format_args!("{opposite:?}"));
        return Ok(());
    }
    out.next_key(b"blocks");
    out.write_list(corners.iter(), |(start, opposite), out| {
        out.write_map(b"start", |out| {
            out.append(format_args!("{start:?}"));
            out.next_key(b"opposite");
            out.append(format_args!("{opposite:?}"));
        });
    });
    Ok(())
}

/// The first and the last corner of a block, both inclusive.
type Corners = (Vec<u64>, Vec<u64>);

/// Extends each of `blocks` by one dimension. In this dimension, `axis` may select several blocks.
fn extend_blocks(blocks: &[Corners], axis: &RegionAxis) -> Result<Vec<Corners>> {
    // Each block takes at least 16 bytes of text.
    const MOST: u64 = (limits::NDL_VALUE_BYTES / 16) as u64;
    let length = axis.length.unwrap_or(u64::MAX);
    let along = length.div_ceil(axis.block.max(1));
    if along.saturating_mul(to_u64(blocks.len())) > MOST {
        return Err(value_too_long_error());
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

fn value_too_long_error() -> Error {
    Error::limit("text of a value", to_u64(limits::NDL_VALUE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_are_shown_by_block_corners() {
        let axis = |start, stride, block, length| RegionAxis {
            start,
            stride,
            block,
            length: Some(length),
        };
        let blocks = |region: &Region, dims: &[u64]| {
            let mut out = FlowWriter::new(Syntax::Yaml);
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
