//! The table that a Parquet file contains.

use std::ops::Range;

use h5fs_reader::error::Result;
use h5fs_reader::model::attribute_value::attribute_text;
use h5fs_reader::model::{Container, NodeId};

use crate::limits;
use crate::parquet::field::{Field, utf8_name};

/// The fields of a table, and the columns that Parquet cannot represent.
pub(super) struct ParquetFields {
    pub(super) fields: Vec<Field>,
    /// The columns that Parquet cannot represent, and the reason for each.
    pub(super) columns_without_field: Vec<(String, &'static str)>,
}

/// A table, before its Parquet file is planned.
pub struct ParquetTable {
    /// The rows of the source that the table contains.
    pub(super) rows: Range<u64>,
    /// Number of rows in a chunk of the source array; 1 if the rows do not come from chunks.
    pub(super) chunk_rows: u64,
    pub(super) fields: ParquetFields,
    /// The description of the table and its columns in the source.
    pub(super) description: KeyValueMetadata,
}

/// The description of a table: key-value pairs for the footer.
///
/// | key | value |
/// |---|---|
/// | `h5fs.path` | the path in the file |
/// | `h5fs.absent` | a line for each column that Parquet cannot represent, with the reason |
/// | `units:COLUMN`, `long_name:COLUMN`, `description:COLUMN` | the attribute of the column's array |
#[derive(Debug, Default)]
pub struct KeyValueMetadata {
    pub(super) key_values: Vec<(String, String)>,
    /// A cache of the attributes that were read last, by the node of their array. Many columns may
    /// come from one array, and then have the same attributes.
    last: Option<(NodeId, AttributeTexts)>,
}

/// The attributes of an array that describe its columns: pairs of a name and a text.
type AttributeTexts = Vec<(&'static str, String)>;

/// The attributes that describe a column.
const ATTRIBUTES: [&str; 3] = ["units", "long_name", "description"];

impl KeyValueMetadata {
    /// Creates the description of the object at `path`.
    pub fn new(path: &[u8]) -> Self {
        KeyValueMetadata {
            key_values: vec![("h5fs.path".to_owned(), utf8_name(path))],
            last: None,
        }
    }

    /// Adds the attributes of the array `node` as the description of `column`. If an attribute
    /// cannot be read because of a permanent error, its value in the footer is the error message.
    ///
    /// # Errors
    /// Fails with a temporary error of an attribute.
    pub fn add_attributes(
        &mut self,
        container: &dyn Container,
        column: &[u8],
        node: NodeId,
    ) -> Result<()> {
        if self.key_values.len() > limits::PARQUET_SAID {
            return Ok(());
        }
        let texts = match &self.last {
            Some((last, texts)) if *last == node => texts,
            _ => {
                &self
                    .last
                    .insert((node, read_column_attributes(container, node)?))
                    .1
            }
        };
        for (name, value) in texts {
            let key = format!("{name}:{}", utf8_name(column));
            self.key_values.push((key, value.clone()));
        }
        Ok(())
    }
}

/// Returns the attributes of an array that describe its columns. If an attribute cannot be read
/// because of a permanent error, the error message takes the place of its text.
///
/// # Errors
/// Fails with a temporary error of an attribute.
fn read_column_attributes(container: &dyn Container, node: NodeId) -> Result<AttributeTexts> {
    let mut texts = Vec::new();
    for name in ATTRIBUTES {
        let value = match attribute_text(container, node, name.as_bytes()) {
            Ok(None) => continue,
            Ok(Some(value)) => utf8_name(&value),
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => format!("cannot be read: {error}"),
        };
        if value.len() <= limits::PARQUET_SAID_TEXT {
            texts.push((name, value));
        }
    }
    Ok(texts)
}

impl ParquetTable {
    /// Returns the table with only the rows `rows`.
    pub fn with_rows(self, rows: Range<u64>) -> Self {
        ParquetTable { rows, ..self }
    }
}

impl ParquetFields {
    /// Returns the key-value pair that lists the columns without a field, and the reason for each.
    /// Returns `None` if all columns have a field.
    pub(super) fn omitted_columns_pair(&self) -> Option<(String, String)> {
        if self.columns_without_field.is_empty() {
            return None;
        }
        let all = self.columns_without_field.iter();
        let lines: Vec<String> = all.map(|(name, why)| format!("{name}: {why}")).collect();
        Some(("h5fs.absent".to_owned(), lines.join("\n")))
    }
}
