//! The table of an array's elements, or of a selection from them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use h5fs_reader::array::{Bytes, CancelToken, Engine};
use h5fs_reader::error::Result;
use h5fs_reader::model::datatype::Class;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::model::{Container, Datatype};
use h5fs_reader::wire::to_usize;

use crate::csv::CsvTable;
use crate::csv::column::DatatypeColumns;
use crate::csv::fields::{CellKind, Cells, ColumnReader};
use crate::elements::missing::MissingValues;
use crate::elements::{Elements, reading_cost};
use crate::json::SharedPaths;
use crate::limits;

/// The CSV columns of an array's elements. Each element is a row.
pub struct ArrayColumns {
    elements: Elements,
    columns: DatatypeColumns,
    missing: Option<MissingValues>,
    container: Arc<dyn Container>,
    paths: SharedPaths,
    /// Number of items of variable-length sequences that were read so far.
    sequence_items_read: AtomicU64,
}

/// The cells of a batch of elements: the elements' bytes.
struct ArrayCells<'a> {
    fields: &'a ArrayColumns,
    bytes: Bytes,
    /// For each element of the batch, whether it is missing; empty if none is.
    missing: Vec<bool>,
}

impl ArrayColumns {
    /// Creates the columns of `elements`. The name of each column begins with `name`. Returns
    /// `None` if the elements do not have columns, such as compounds without members.
    ///
    /// # Errors
    /// `Limit` for too many columns, or an element that is too long.
    pub fn new(
        elements: Elements,
        name: &[u8],
        container: Arc<dyn Container>,
        paths: SharedPaths,
    ) -> Result<Option<Self>> {
        let columns = DatatypeColumns::from_datatype(&elements.datatype, name)?;
        Ok(columns.map(|columns| ArrayColumns {
            elements,
            columns,
            missing: None,
            container,
            paths,
            sequence_items_read: AtomicU64::new(0),
        }))
    }

    /// Sets the rule that says which elements are missing. The cells of a missing element are
    /// empty.
    pub fn with_missing(self, missing: Option<MissingValues>) -> Self {
        ArrayColumns { missing, ..self }
    }
}

/// Creates the table of `elements`, some of which may be missing. Returns `None` if the elements do
/// not have columns, such as compounds without members.
///
/// # Errors
/// `Limit` for too many columns, or an element that is too long.
pub fn table(
    elements: Elements,
    missing: Option<MissingValues>,
    engine: Arc<Engine>,
    container: Arc<dyn Container>,
    paths: SharedPaths,
) -> Result<Option<CsvTable>> {
    let dims = elements.dims.as_deref();
    let rows = dims.map_or(Ok(0), product)?;
    let is_named = has_column_names(&elements.datatype);
    let per_line = match dims {
        Some([_, .., last]) if !is_named => *last,
        _ => 1,
    };
    let is_masked = missing.is_some();
    let Some(fields) = ArrayColumns::new(elements, b"", container, paths)? else {
        return Ok(None);
    };
    let mut fields = fields.with_missing(missing);
    let values = fields.row_values().saturating_mul(rows);
    let values = values.saturating_add(fields.chunk_values());
    let width = if values > limits::COUNTED_VALUES && !is_masked {
        fields.columns.pad_columns()
    } else {
        None
    };
    // The elements were never written: the whole array is a hole.
    let content = &fields.elements.content;
    let are_equal = !is_masked && rows > 0 && values > limits::QUICK_VALUES;
    let are_equal = are_equal && matches!(content.data_at(0), Ok(None));
    let fields: Vec<Box<dyn ColumnReader>> = vec![Box::new(fields)];
    let table = if is_named {
        CsvTable::with_header(fields, rows, engine)?
    } else {
        CsvTable::without_header(fields, rows, per_line, engine)
    };
    let table = CsvTable {
        row_width: width,
        ..table
    };
    if are_equal && table.row_width.is_none() {
        return table.measure_equal_rows().map(Some);
    }
    Ok(Some(table))
}

/// Returns whether the columns of a datatype have names in the header line: those of a compound,
/// unless it is a complex number.
fn has_column_names(datatype: &Datatype) -> bool {
    matches!(datatype.class, Class::Compound(_)) && datatype.complex_part().is_none()
}

impl ColumnReader for ArrayColumns {
    fn names(&self) -> &[Vec<u8>] {
        self.columns.names()
    }

    fn row_bytes(&self) -> u64 {
        self.elements.datatype.size.into()
    }

    fn row_values(&self) -> u64 {
        let values = self.columns.value_count();
        values.saturating_add(reading_cost(self.row_bytes()))
    }

    fn sequence_items_read(&self) -> u64 {
        self.sequence_items_read.load(Ordering::Relaxed)
    }

    fn chunk_values(&self) -> u64 {
        self.elements.content.chunk_values()
    }

    fn read(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Box<dyn Cells + '_>> {
        let count = rows.end - rows.start;
        let bytes = self.elements.read(rows.start, count, cancel)?;
        let datatype = &self.elements.datatype;
        let missing = self.missing.as_ref();
        let missing = missing
            .map(|missing| missing.find_missing(datatype, rows.start, count, &bytes, cancel));
        let missing = missing.transpose()?.unwrap_or_default();
        Ok(Box::new(ArrayCells {
            fields: self,
            bytes,
            missing,
        }))
    }

    fn can_measure_cells(&self) -> bool {
        self.missing.is_none() && self.columns.can_measure_cells()
    }

    fn own_bytes(&self) -> u64 {
        self.elements.estimate_memory(2)
    }
}

impl Cells for ArrayCells<'_> {
    fn length(&self, row: usize, scratch: &mut Vec<u8>) -> Option<usize> {
        let size = usize::try_from(self.fields.elements.datatype.size).ok()?;
        let element = self.bytes.get(row * size..)?;
        self.fields.columns.cells_length(element, scratch)
    }

    fn write(&self, row: usize, column: usize, most: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        if self.missing.get(row) == Some(&true) {
            return Ok(CellKind::Missing);
        }
        let fields = self.fields;
        let size = to_usize(fields.elements.datatype.size.into())?;
        let element = &self.bytes[row * size..][..size];
        // Each cell needs a new context, because the context counts the bytes that pointers led to.
        let context = TextContext::new(&*fields.container, &*fields.paths, most);
        let cell = fields.columns.write(element, column, &context, out);
        fields
            .sequence_items_read
            .fetch_add(context.followed_elements(), Ordering::Relaxed);
        cell
    }
}
