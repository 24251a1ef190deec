//! Access to a group for the table conventions: its members by name, and the small arrays and
//! attributes that describe them.

use std::sync::Arc;

use h5fs_conventions::table_budget::TableBudget;
use h5fs_reader::array::{Engine, Reader};
use h5fs_reader::error::{Error, Result, quote};
use h5fs_reader::model::attribute_value::{self, decode_integers, decode_strings};
use h5fs_reader::model::paths::{resolve_alias, resolve_path};
use h5fs_reader::model::{Container, Link, LinkTarget, Node, NodeId, NodeKind};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;
use crate::table::column::{RowField, table_weight_error};

/// The attribute in which AnnData names the encoding of an object.
pub(super) const ENCODING: &[u8] = b"encoding-type";

/// Number of bytes charged to the budget for each examined member.
const MEMBER_COST: u64 = 64;

/// A group of a file, with the objects that are needed to read its members.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    /// The file that contains the group.
    pub container: &'a dyn Container,
    /// The engine that reads arrays of the file.
    pub engine: &'a Arc<Engine>,
    /// The budget that limits how much is read to find the columns of a table.
    pub budget: &'a TableBudget,
    /// The node of the group.
    pub id: NodeId,
}

impl<'a> Group<'a> {
    /// Returns the group `id` of the same file.
    pub(crate) fn group_at(&self, id: NodeId) -> Group<'a> {
        Group { id, ..*self }
    }

    /// Returns the node of the member `name`; `None` if the member does not exist, or its link
    /// leads to another file. A name with a `/` is also tried as a path, because writers in Python
    /// create `CD4/CD8` as the member `CD8` of `CD4`.
    ///
    /// # Errors
    /// Fails if the member cannot be read.
    pub(crate) fn find_member(&self, name: &[u8]) -> Result<Option<Arc<Node>>> {
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
        self.follow_link(&link)
    }

    /// Returns the node of a member that must exist.
    ///
    /// # Errors
    /// `Corrupt` if the member does not exist; otherwise fails as
    /// `find_member` does.
    pub fn member(&self, name: &[u8]) -> Result<Arc<Node>> {
        let found = self.find_member(name);
        let found =
            found.map_err(|error| error.with_context(format_args!("table: {}", quote(name))))?;
        found.ok_or_else(|| malformed_member_error(name, "does not exist"))
    }

    /// Returns the field that covers whole rows of the array `name` in the group.
    ///
    /// # Errors
    /// `Corrupt` if the member does not exist; `Unsupported` if the member does not have rows. The
    /// error names the encoding of a member that is a group.
    pub(crate) fn member_field(&self, name: &[u8]) -> Result<RowField> {
        let node = self.member(name)?;
        if matches!(node.kind, NodeKind::Group)
            && let Some(encoding) = self.group_at(node.id).attribute_text(ENCODING)?
        {
            let attribute = str::from_utf8(ENCODING).unwrap_or_default();
            let form = format!("{attribute} {}", quote(&encoding));
            return Err(unsupported_member_error(name, &form));
        }
        node_field(&node, name)
    }

    /// Returns the object that a link of this group leads to; `None` if the object is in another
    /// file, or does not exist.
    ///
    /// # Errors
    /// `Limit` if the budget is exceeded. Fails if the link cannot be followed.
    pub fn follow_link(&self, link: &Link) -> Result<Option<Arc<Node>>> {
        self.budget
            .spend(MEMBER_COST.saturating_add(to_u64(link.name.len())))?;
        let container = self.container;
        let id = match &link.target {
            LinkTarget::Hard(id) => Some(*id),
            LinkTarget::Soft(path) => none_if_unreachable(resolve_path(container, self.id, path))?,
            target @ (LinkTarget::Alias(_) | LinkTarget::Reference { file: None, .. }) => {
                none_if_unreachable(resolve_alias(container, target))?
            }
            LinkTarget::Damaged(error) => return Err(error.clone()),
            _ => None,
        };
        id.map(|id| container.node(id)).transpose()
    }

    /// Returns the text of an attribute of the group; `None` if the attribute does not exist or is
    /// not a single text.
    ///
    /// # Errors
    /// Fails if the attribute cannot be read.
    pub fn attribute_text(&self, attribute: &[u8]) -> Result<Option<Vec<u8>>> {
        attribute_value::attribute_text(self.container, self.id, attribute)
    }

    /// Returns the names that an attribute of the group lists. The list is empty if the attribute
    /// is absent, or empty with any datatype.
    ///
    /// # Errors
    /// `Unsupported` if the attribute does not contain text. Fails if the attribute cannot be read.
    pub fn attribute_names(&self, attribute: &[u8]) -> Result<Vec<Vec<u8>>> {
        if let Some(names) = attribute_value::attribute_texts(self.container, self.id, attribute)? {
            return Ok(names);
        }
        let content = attribute_value::attribute_content(self.container, self.id, attribute)?;
        if content.is_none_or(|content| content.elements.is_empty()) {
            return Ok(Vec::new());
        }
        let what = Error::unsupported("a list of names of this type", None);
        Err(attribute_value::with_attribute_name(what, attribute))
    }

    /// Reads all values of the field `part`, and returns their bytes one after another.
    ///
    /// # Errors
    /// `Limit` if the array is too long, or has more rows than a table may have columns. Fails if
    /// the array cannot be read.
    fn read_values(&self, part: &RowField) -> Result<Vec<u8>> {
        let most = to_u64(limits::CSV_COLUMNS);
        Error::check_limit(part.rows(), most, "names of a table")?;
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

    /// Reads the first variable-length sequence of the field `part`, and returns its bytes.
    ///
    /// # Errors
    /// `Limit` for a long sequence. Fails if the sequence cannot be read.
    pub(crate) fn read_first_sequence(&self, part: &RowField) -> Result<Vec<u8>> {
        let reader = Reader::new(self.engine, Arc::clone(&part.array))?;
        let element = reader.read(0, to_usize(part.datatype.size.into())?)?;
        let length = self.container.variable_length_bytes(&element, 1)?;
        let length = length.unwrap_or(0);
        Error::check_limit(
            length,
            limits::TEXT_ELEMENT_BYTES,
            "bytes of a Python pickle",
        )?;
        self.budget.spend(length)?;
        let bytes = self
            .container
            .read_variable_length(&element, 1, 0..length)?;
        Ok(bytes.unwrap_or_default())
    }

    /// Reads all integers of the field `part`, which must have few rows; `None` if its values are
    /// not integers.
    ///
    /// # Errors
    /// Fails as [`read_names`](Self::read_names) does.
    pub(crate) fn read_integers(&self, part: &RowField) -> Result<Option<Vec<i128>>> {
        Ok(decode_integers(&part.datatype, &self.read_values(part)?))
    }

    /// Reads all texts of the field `part`, which must have few rows. Strings are unchanged, and
    /// integers become decimal texts.
    ///
    /// # Errors
    /// `Limit` for too many or too long texts; `Unsupported` for other values. Fails if the array
    /// cannot be read.
    pub(crate) fn read_names(&self, part: &RowField) -> Result<Vec<Vec<u8>>> {
        let bytes = self.read_values(part)?;
        if let Some(numbers) = decode_integers(&part.datatype, &bytes) {
            let texts = numbers.iter().map(|number| number.to_string().into_bytes());
            return Ok(texts.collect());
        }
        decode_strings(self.container, &part.datatype, &bytes)
    }
}

/// Returns `None` in place of the error for a link that is circular, or whose target does not exist
/// or is in another file. Other results are returned unchanged.
fn none_if_unreachable(found: Result<Option<NodeId>>) -> Result<Option<NodeId>> {
    match found {
        Err(Error::Unsupported { .. } | Error::Limit { .. } | Error::NotFound) => Ok(None),
        found => found,
    }
}

/// Returns the field that covers whole rows of the array `node`. `name` is the member's name, for
/// the error.
///
/// # Errors
/// `Unsupported` if the node does not have rows.
pub(crate) fn node_field(node: &Node, name: &[u8]) -> Result<RowField> {
    let part = match node.kind {
        NodeKind::Group => None,
        _ => RowField::from_node(node)?,
    };
    part.ok_or_else(|| match node.kind {
        NodeKind::Group => unsupported_member_error(name, "a group"),
        _ => unsupported_member_error(name, "a member without rows"),
    })
}

/// Returns the error for a member called `name` whose encoding or type is not supported. `form`
/// describes the encoding or type.
pub(crate) fn unsupported_member_error(name: &[u8], form: &str) -> Error {
    Error::unsupported(format!("table: {}: {form}", quote(name)), None)
}

/// Returns the error for a malformed or absent member `name`, which means that the file is damaged.
/// `why` is the reason.
pub(crate) fn malformed_member_error(name: &[u8], why: &str) -> Error {
    Error::corrupt(format!("table: {} {why}", quote(name)), None)
}

/// Checks the size of a table. `bytes` is the memory of its columns. `is_whole` is false if the
/// group has more links than are examined.
///
/// # Errors
/// `Limit` if the memory exceeds the limit, or if `is_whole` is false.
pub(crate) fn check_table_size(bytes: u64, is_whole: bool) -> Result<()> {
    if bytes > limits::TABLE_BYTES {
        return Err(table_weight_error());
    }
    if !is_whole {
        let most = to_u64(limits::TABLE_MEMBERS);
        return Err(Error::limit("members of a table", most));
    }
    Ok(())
}
