//! A group as the readers of conventions see it: its members by name, and the small arrays and
//! attributes that say what they mean.

use std::sync::Arc;

use crate::array::{Engine, Reader};
use crate::error::{Error, Result, quoted};
use crate::limits;
use crate::model::attribute_value::{self, numbers, strings};
use crate::model::paths::{resolve, resolve_names};
use crate::model::{Container, Link, LinkTarget, Node, NodeId, NodeKind};
use crate::view::table::budget::Budget;
use crate::view::table::column::{Part, too_heavy};
use crate::wire::{to_u64, to_usize};

/// The attribute that says how AnnData encodes an object.
pub(super) const ENCODING: &[u8] = b"encoding-type";

/// Bytes that a look at a member counts for.
const MEMBER: u64 = 64;

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

    /// The node of a member; `None` where there is none in this file. A name with a `/` is a path,
    /// as writers in Python make one of it: `CD4/CD8` is a member of `CD4`.
    ///
    /// # Errors
    /// Fails if that cannot be found out.
    pub(crate) fn find(&self, name: &[u8]) -> Result<Option<Arc<Node>>> {
        let link = match self.container.link(self.id, name)? {
            None if name.contains(&b'/') => Link {
                name: name.to_vec(),
                target: LinkTarget::Soft(name.to_vec()),
                order: None,
                is_to_group: false,
            },
            None => return Ok(None),
            Some(link) => link,
        };
        self.followed(&link)
    }

    /// The node of a member.
    ///
    /// # Errors
    /// `Corrupt` where there is none; else fails as [`find`](Self::find) does.
    pub(crate) fn member(&self, name: &[u8]) -> Result<Arc<Node>> {
        let found = self.find(name);
        let found = found.map_err(|error| error.of(format_args!("table: {}", quoted(name))))?;
        found.ok_or_else(|| missing(name, "is not there"))
    }

    /// The values of a member, by rows.
    ///
    /// # Errors
    /// `Unsupported` where it has none, with the encoding that the member names.
    pub(crate) fn part(&self, name: &[u8]) -> Result<Part> {
        let node = self.member(name)?;
        if matches!(node.kind, NodeKind::Group)
            && let Some(encoding) = self.at(node.id).text(ENCODING)?
        {
            let attribute = str::from_utf8(ENCODING).unwrap_or_default();
            let form = format!("{attribute} {}", quoted(&encoding));
            return Err(unknown(name, &form));
        }
        part_of(&node, name)
    }

    /// The node that a link of this group leads to, in this file.
    ///
    /// # Errors
    /// `Limit` after too many; fails if that cannot be found out.
    pub(crate) fn followed(&self, link: &Link) -> Result<Option<Arc<Node>>> {
        self.budget
            .spend(MEMBER.saturating_add(to_u64(link.name.len())))?;
        let container = self.container;
        let id = match &link.target {
            LinkTarget::Hard(id) => Some(*id),
            LinkTarget::Soft(path) => if_somewhere(resolve(container, self.id, path))?,
            target @ (LinkTarget::Alias(_) | LinkTarget::Reference { file: None, .. }) => {
                if_somewhere(resolve_names(container, target))?
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
            _ => None,
        };
        id.map(|id| container.node(id)).transpose()
    }

    /// The text of an attribute of the group.
    ///
    /// # Errors
    /// Fails if that cannot be found out now.
    pub(crate) fn text(&self, attribute: &[u8]) -> Result<Option<Vec<u8>>> {
        attribute_value::text(self.container, self.id, attribute)
    }

    /// The names that an attribute of the group lists; none where it is not there, or is empty,
    /// whatever its type is then.
    ///
    /// # Errors
    /// `Unsupported` where its type is another one; fails if it cannot be read.
    pub(crate) fn names_in(&self, attribute: &[u8]) -> Result<Vec<Vec<u8>>> {
        if let Some(names) = attribute_value::texts(self.container, self.id, attribute)? {
            return Ok(names);
        }
        let content = attribute_value::content(self.container, self.id, attribute)?;
        if content.is_none_or(|content| content.elements.is_empty()) {
            return Ok(Vec::new());
        }
        let what = Error::unsupported("a list of names of this type", None);
        Err(attribute_value::of_attribute(what, attribute))
    }

    /// All values of a short part of an array, one after another.
    ///
    /// # Errors
    /// `Limit` for a long one, and for more than a table may have columns; fails if it cannot be
    /// read.
    fn bytes(&self, part: &Part) -> Result<Vec<u8>> {
        let most = to_u64(limits::CSV_COLUMNS);
        if part.rows() > most {
            return Err(Error::limit("names of a table", most));
        }
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
    /// `Limit` for a long one; fails if it cannot be read.
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

    /// The numbers of a short part of an array; `None` where they are no integers.
    ///
    /// # Errors
    /// Fails as [`names`](Self::names) does.
    pub(crate) fn numbers(&self, part: &Part) -> Result<Option<Vec<i128>>> {
        Ok(numbers(&part.datatype, &self.bytes(part)?))
    }

    /// The texts of a short part of an array: strings as they are, integers in decimal.
    ///
    /// # Errors
    /// `Limit` for too many or too long ones; fails if they cannot be read; `Unsupported` for
    /// values of other kinds.
    pub(crate) fn names(&self, part: &Part) -> Result<Vec<Vec<u8>>> {
        let bytes = self.bytes(part)?;
        if let Some(numbers) = numbers(&part.datatype, &bytes) {
            let texts = numbers.iter().map(|number| number.to_string().into_bytes());
            return Ok(texts.collect());
        }
        strings(self.container, &part.datatype, &bytes)
    }
}

/// Where a link leads; `None` where that is another file, or a circle.
fn if_somewhere(found: Result<Option<NodeId>>) -> Result<Option<NodeId>> {
    match found {
        Err(Error::Unsupported { .. } | Error::Limit { .. } | Error::NotFound) => Ok(None),
        found => found,
    }
}

/// The values of `node`, by rows.
///
/// # Errors
/// `Unsupported` where it has none.
pub(crate) fn part_of(node: &Node, name: &[u8]) -> Result<Part> {
    let part = match node.kind {
        NodeKind::Group => None,
        _ => Part::of(node)?,
    };
    part.ok_or_else(|| match node.kind {
        NodeKind::Group => unknown(name, "a group"),
        _ => unknown(name, "a member without rows"),
    })
}

/// The table's member `name` has a form that is not read.
pub(crate) fn unknown(name: &[u8], form: &str) -> Error {
    Error::unsupported(format!("table: {}: {form}", quoted(name)), None)
}

/// The table's member `name` is not as it must be: the file is damaged.
pub(crate) fn missing(name: &[u8], why: &str) -> Error {
    Error::corrupt(format!("table: {} {why}", quoted(name)), None)
}

/// Refuses a table whose columns take so many `bytes` of memory, or of whose group not all members
/// were met.
///
/// # Errors
/// `Limit` then.
pub(crate) fn refuse_large(bytes: u64, is_whole: bool) -> Result<()> {
    if bytes > limits::TABLE_BYTES {
        return Err(too_heavy());
    }
    if !is_whole {
        let most = to_u64(limits::TABLE_MEMBERS);
        return Err(Error::limit("members of a table", most));
    }
    Ok(())
}
