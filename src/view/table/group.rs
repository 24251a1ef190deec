//! A group as the readers of conventions see it: its members by name, and the small arrays and
//! attributes that say what they mean.

use std::cell::Cell;
use std::sync::Arc;

use crate::array::{Engine, Reader};
use crate::error::{Error, Result, if_lasting, quoted};
use crate::limits;
use crate::model::attribute_value::{self, numbers, strings};
use crate::model::paths::{resolve, resolve_names};
use crate::model::{Container, Link, LinkTarget, Node, NodeId, NodeKind};
use crate::view::table::column::Part;
use crate::wire::{to_u64, to_usize};

/// Bytes that a look at a member counts for.
const MEMBER: u64 = 64;

/// How much is still looked at to find the columns of a table.
pub(crate) struct Budget(Cell<u64>);

impl Default for Budget {
    fn default() -> Self {
        Budget(Cell::new(limits::TABLE_BYTES))
    }
}

impl Budget {
    fn spend(&self, bytes: u64) -> Result<()> {
        let left = self.0.get().checked_sub(bytes);
        let too_much = || Error::limit("bytes of the members of a table", limits::TABLE_BYTES);
        self.0.set(left.ok_or_else(too_much)?);
        Ok(())
    }
}

/// A group of a file.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    /// The file.
    pub(crate) container: &'a dyn Container,
    /// Reads its arrays.
    pub(crate) engine: &'a Arc<Engine>,
    /// Bounds the work.
    pub(crate) budget: &'a Budget,
    /// The group.
    pub(crate) id: NodeId,
}

impl<'a> Group<'a> {
    /// Another group of the same file.
    pub(crate) fn at(&self, id: NodeId) -> Group<'a> {
        Group { id, ..*self }
    }

    /// The node of a member; `None` where there is none in this file.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Option<Arc<Node>>> {
        let link = if_lasting(self.container.link(self.id, name))?.flatten();
        link.map_or(Ok(None), |link| self.followed(&link))
    }

    /// The node of a member.
    ///
    /// # Errors
    /// `Corrupt` where there is none; as [`find`](Self::find).
    pub(crate) fn member(&self, name: &[u8]) -> Result<Arc<Node>> {
        self.find(name)?
            .ok_or_else(|| missing(name, "is not there"))
    }

    /// The values of a member, by rows.
    ///
    /// # Errors
    /// `Corrupt` where it has none.
    pub(crate) fn part(&self, name: &[u8]) -> Result<Part> {
        part_of(&*self.member(name)?, name)
    }

    /// The node that a link of this group leads to, in this file.
    ///
    /// # Errors
    /// `Limit` after too many; as that cannot be found out now.
    pub(crate) fn followed(&self, link: &Link) -> Result<Option<Arc<Node>>> {
        self.budget
            .spend(MEMBER.saturating_add(to_u64(link.name.len())))?;
        let container = self.container;
        let id = match &link.target {
            LinkTarget::Hard(id) => Some(*id),
            LinkTarget::Soft(path) => if_lasting(resolve(container, self.id, path))?.flatten(),
            target @ (LinkTarget::Alias(_) | LinkTarget::Reference { file: None, .. }) => {
                if_lasting(resolve_names(container, target))?.flatten()
            }
            _ => None,
        };
        id.map_or(Ok(None), |id| if_lasting(container.node(id)))
    }

    /// The text of an attribute of the group.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(crate) fn text(&self, attribute: &[u8]) -> Result<Option<Vec<u8>>> {
        attribute_value::text(self.container, self.id, attribute)
    }

    /// The texts of an attribute of the group.
    ///
    /// # Errors
    /// As that cannot be found out now.
    pub(crate) fn texts(&self, attribute: &[u8]) -> Result<Option<Vec<Vec<u8>>>> {
        attribute_value::texts(self.container, self.id, attribute)
    }

    /// All values of a short part of an array, one after another.
    ///
    /// # Errors
    /// `Limit` for a long one; as it cannot be read.
    fn bytes(&self, part: &Part) -> Result<Vec<u8>> {
        let most = to_u64(limits::ATTRIBUTE_TEXT);
        let (rows, row) = (part.rows(), to_usize(part.row_bytes()?)?);
        let length = rows.checked_mul(to_u64(row)).filter(|&all| all <= most);
        let length = length.ok_or_else(|| Error::limit("bytes of names of a table", most))?;
        self.budget.spend(length)?;
        let reader = Reader::new(self.engine, Arc::clone(&part.array))?;
        let all = reader.read(0, to_usize(length)?)?;
        let start = to_usize(part.offset)?;
        let end = start.saturating_add(to_usize(part.datatype.size.into())?);
        let values = all.chunks_exact(row.max(1)).map(|row| row.get(start..end));
        let values = values.map(Option::unwrap_or_default);
        Ok(values.collect::<Vec<_>>().concat())
    }

    /// The bytes of the first sequence of variable length.
    ///
    /// # Errors
    /// `Limit` for a long one; as it cannot be read.
    pub(crate) fn first_sequence(&self, part: &Part) -> Result<Vec<u8>> {
        let reader = Reader::new(self.engine, Arc::clone(&part.array))?;
        let element = reader.read(0, to_usize(part.datatype.size.into())?)?;
        let length = self.container.variable_length_bytes(&element, 1)?;
        let length = length.unwrap_or(0);
        if length > limits::TEXT_ELEMENT_BYTES {
            let most = limits::TEXT_ELEMENT_BYTES;
            return Err(Error::limit("bytes of a Python pickle", most));
        }
        self.budget.spend(length)?;
        let bytes = self.container.variable_length(&element, 1, 0..length)?;
        Ok(bytes.unwrap_or_default())
    }

    /// The texts of a short part of an array: strings as they are, integers in decimal.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes); `Unsupported` for values of other kinds.
    pub(crate) fn names(&self, part: &Part) -> Result<Vec<Vec<u8>>> {
        let bytes = self.bytes(part)?;
        if let Some(numbers) = numbers(&part.datatype, &bytes) {
            let texts = numbers.iter().map(|number| number.to_string().into_bytes());
            return Ok(texts.collect());
        }
        strings(self.container, &part.datatype, &bytes)
    }
}

/// The values of `node`, by rows.
///
/// # Errors
/// `Corrupt` where it has none.
pub(crate) fn part_of(node: &Node, name: &[u8]) -> Result<Part> {
    let part = match node.kind {
        NodeKind::Group => None,
        _ => Part::of(node)?,
    };
    part.ok_or_else(|| missing(name, "is no array with rows"))
}

/// The table's member `name` is not as it must be.
pub(crate) fn missing(name: &[u8], why: &str) -> Error {
    Error::corrupt(format!("table: {} {why}", quoted(name)), None)
}
