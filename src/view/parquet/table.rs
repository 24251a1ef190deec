//! A table, as it is to be shown.

use std::ops::Range;

use crate::error::Result;
use crate::limits;
use crate::model::attribute_value::text;
use crate::model::{Container, NodeId};
use crate::view::parquet::field::{Field, shown};

/// The fields of a table, and what else its file says.
pub(super) struct Fields {
    pub(super) fields: Vec<Field>,
    /// Columns that have no field, and why.
    pub(super) absent: Vec<(String, &'static str)>,
}

/// A table.
pub(crate) struct Table {
    /// The rows of the source that it has.
    pub(super) rows: Range<u64>,
    /// Rows that chunks of the source have together; 1 where that does not matter.
    pub(super) unit: u64,
    pub(super) fields: Fields,
    /// What the source says of the table and its columns.
    pub(super) description: Description,
}

/// What the source says of a table: keys and values for the footer.
///
/// | key | value |
/// |---|---|
/// | `h5fs.path` | the path in the file |
/// | `h5fs.absent` | a line for each part that has no column, with the reason |
/// | `units:COLUMN`, `long_name:COLUMN`, `description:COLUMN` | the attribute of the column's array |
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(super) pairs: Vec<(String, String)>,
    /// The array that was looked at last, and its attributes: many columns may be parts of one array,
    /// which has some attributes for each of them.
    last: Option<(NodeId, Texts)>,
}

/// The attributes of an array that describe its columns.
type Texts = Vec<(&'static str, String)>;

/// The attributes that describe a column.
const ATTRIBUTES: [&str; 3] = ["units", "long_name", "description"];

impl Description {
    /// That of the object at `path`.
    pub(crate) fn of(path: &[u8]) -> Self {
        Description {
            pairs: vec![("h5fs.path".to_owned(), shown(path))],
            last: None,
        }
    }

    /// Adds what the attributes of an array say of its column. Of one that cannot be read, the
    /// reason is said.
    ///
    /// # Errors
    /// Fails if an attribute cannot be read now.
    pub(crate) fn add(
        &mut self,
        container: &dyn Container,
        column: &[u8],
        node: NodeId,
    ) -> Result<()> {
        if self.pairs.len() > limits::PARQUET_SAID {
            return Ok(());
        }
        let texts = match &self.last {
            Some((last, texts)) if *last == node => texts,
            _ => &self.last.insert((node, texts(container, node)?)).1,
        };
        for (name, value) in texts {
            let key = format!("{name}:{}", shown(column));
            self.pairs.push((key, value.clone()));
        }
        Ok(())
    }
}

/// The attributes of an array that describe its columns. Of one that cannot be read, the reason is
/// said.
///
/// # Errors
/// Fails if an attribute cannot be read now.
fn texts(container: &dyn Container, node: NodeId) -> Result<Texts> {
    let mut texts = Vec::new();
    for name in ATTRIBUTES {
        let value = match text(container, node, name.as_bytes()) {
            Ok(None) => continue,
            Ok(Some(value)) => shown(&value),
            Err(error) if error.is_passing() => return Err(error),
            Err(error) => format!("cannot be read: {error}"),
        };
        if value.len() <= limits::PARQUET_SAID_TEXT {
            texts.push((name, value));
        }
    }
    Ok(texts)
}

impl Table {
    /// These rows of it.
    pub(crate) fn part(self, rows: Range<u64>) -> Self {
        Table { rows, ..self }
    }
}

impl Fields {
    /// The key and the value that say which columns have no field, and why.
    pub(super) fn absent(&self) -> Option<(String, String)> {
        if self.absent.is_empty() {
            return None;
        }
        let all = self.absent.iter();
        let lines: Vec<String> = all.map(|(name, why)| format!("{name}: {why}")).collect();
        Some(("h5fs.absent".to_owned(), lines.join("\n")))
    }
}
