//! The columns of a long table, which has one row for each value of a variable: decoded values of
//! the variable and of its coordinates.

use std::ops::Range;
use std::sync::Arc;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::Result;
use h5fs_reader::model::Container;
use h5fs_reader::model::number::append_formatted;
use h5fs_reader::model::shape::product;
use h5fs_reader::model::value::TextContext;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::cf::decoding::Decoding;
use crate::cf::row_mapping::RowMapping;
use crate::csv::fields::{CellKind, Cells, ColumnReader};
use crate::csv::padding::Padding;
use crate::elements::{Elements, formatting_cost};
use crate::json::SharedPaths;

/// A column of a long table, with the decoded elements of a variable or of a coordinate.
pub struct DecodedColumn {
    name: [Vec<u8>; 1],
    elements: Elements,
    count: u64,
    decoding: Decoding,
    /// The mapping from rows to elements; `None` if each row has its own element.
    row_mapping: Option<RowMapping>,
    /// The padding of cells to the length of the longest cell; `None` unless the table is padded.
    padding: Option<Padding>,
    container: Arc<dyn Container>,
    paths: SharedPaths,
}

/// A column with the index of each row in a dimension without a coordinate variable.
pub struct RowNumberColumn {
    pub(crate) name: [Vec<u8>; 1],
    pub(crate) row_mapping: RowMapping,
    /// The padding of cells to the length of the longest cell; `None` unless the table is padded.
    pub(super) padding: Option<Padding>,
}

/// The cells of a batch of rows. Each row has its own element.
struct UnsharedCells<'a> {
    column: &'a DecodedColumn,
    bytes: Bytes,
}

/// The cells of a batch of rows. Several rows may share an element, which is read once.
struct SharedCells<'a> {
    column: &'a DecodedColumn,
    /// For each row, the index of its element among the elements in `bytes`; `None` for a row
    /// without an element.
    slots: Vec<Option<usize>>,
    bytes: Vec<u8>,
    /// For numbers and times: where the text of each element ends in `texts`, and the kind of its
    /// cell.
    cell_ends: Vec<(usize, CellKind)>,
    texts: Vec<u8>,
}

struct RowNumberCells<'a> {
    numbers: &'a RowNumberColumn,
    first: u64,
}

/// Maximum distance in elements between two needed elements that are read together. The elements
/// between them are read and discarded.
const MAX_GAP_ELEMENTS: u64 = 16;

impl DecodedColumn {
    /// Creates a column of the `stored` elements, which `decoding` decodes. `place` is the mapping
    /// from rows to elements; `None` if each row has its own element.
    ///
    /// # Errors
    /// `Limit` for a text with too many characters.
    pub(super) fn new(
        name: Vec<u8>,
        stored: Elements,
        decoding: Decoding,
        place: Option<RowMapping>,
        container: &Arc<dyn Container>,
        paths: &SharedPaths,
    ) -> Result<Self> {
        let elements = decoding.join_characters(stored)?;
        Ok(DecodedColumn {
            name: [name],
            count: product(elements.dims.as_deref().unwrap_or_default())?,
            elements,
            decoding,
            row_mapping: place,
            padding: None,
            container: Arc::clone(container),
            paths: Arc::clone(paths),
        })
    }

    /// Returns the name of the column.
    pub(crate) fn name(&self) -> &[u8] {
        &self.name[0]
    }

    /// Returns the number of elements of the variable or coordinate.
    pub(crate) fn element_count(&self) -> u64 {
        self.count
    }

    /// Returns the mapping from rows to elements; `None` if each row has its own element.
    pub(crate) fn row_mapping(&self) -> Option<&RowMapping> {
        self.row_mapping.as_ref()
    }

    /// Returns the stored elements, and their decoding.
    pub(crate) fn elements(&self) -> (&Elements, &Decoding) {
        (&self.elements, &self.decoding)
    }

    /// Passes the element of each row to `take`, or `None` for a row without an element.
    ///
    /// # Errors
    /// Fails if an element cannot be read, and as `take` does.
    pub(crate) fn visit_rows(
        &self,
        rows: Range<u64>,
        cancel: &CancelToken,
        take: &mut dyn FnMut(Option<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let size = self.size()?;
        if let Some(place) = &self.row_mapping {
            let cells = self.read_shared(place, rows, cancel)?;
            let slots = cells.slots.iter();
            return slots
                .map(|slot| slot.map(|slot| &cells.bytes[slot * size..][..size]))
                .try_for_each(take);
        }
        let bytes = self
            .elements
            .read(rows.start, rows.end - rows.start, cancel)?;
        bytes.chunks_exact(size.max(1)).map(Some).try_for_each(take)
    }

    fn size(&self) -> Result<usize> {
        to_usize(self.elements.datatype.size.into())
    }

    fn write(&self, element: &[u8], most: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        let context = TextContext::new(&*self.container, &*self.paths, most);
        let start = out.len();
        let cell = self.decoding.write_text(element, &context, out)?;
        match self.padding {
            Some(padding) if cell != CellKind::Missing => padding.pad(start, out)?,
            _ => {}
        }
        Ok(cell)
    }

    /// Returns whether every row has an element.
    fn has_element_per_row(&self) -> bool {
        let place = self.row_mapping.as_ref();
        place.is_none_or(|place| place.upper_bound() < self.count)
    }

    /// Reads each element of `rows` once, and formats it unless its decoded value is a text.
    fn read_and_format_shared(
        &self,
        place: &RowMapping,
        rows: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<SharedCells<'_>> {
        let mut cells = self.read_shared(place, rows, cancel)?;
        if !matches!(self.decoding, Decoding::Texts(_) | Decoding::Characters) {
            cells.format_all_elements(self.size()?)?;
        }
        Ok(cells)
    }

    /// Reads each element of `rows` once, without formatting it.
    fn read_shared(
        &self,
        place: &RowMapping,
        rows: Range<u64>,
        cancel: &CancelToken,
    ) -> Result<SharedCells<'_>> {
        let of_rows: Vec<u64> = rows.map(|row| place.element_of_row(row)).collect();
        let mut wanted: Vec<u64> = of_rows.clone();
        wanted.dedup();
        wanted.sort_unstable();
        wanted.dedup();
        // A coordinate may be shorter than the variable's dimension.
        wanted.truncate(wanted.partition_point(|&element| element < self.count));
        let size = self.size()?;
        let mut cells = SharedCells {
            column: self,
            slots: element_slots(&of_rows, &wanted),
            bytes: Vec::with_capacity(wanted.len() * size),
            cell_ends: Vec::new(),
            texts: Vec::new(),
        };
        for near in wanted.chunk_by(|a, b| b - a <= MAX_GAP_ELEMENTS) {
            let [first, .., last] = near else {
                cells
                    .bytes
                    .extend_from_slice(&self.elements.read(near[0], 1, cancel)?);
                continue;
            };
            let bytes = self.elements.read(*first, last - first + 1, cancel)?;
            for element in near {
                let start = to_usize(element - first)? * size;
                cells.bytes.extend_from_slice(&bytes[start..start + size]);
            }
        }
        Ok(cells)
    }
}

/// Returns, for each row, where `wanted` contains the row's element number. `of_rows` has the
/// element number of each row, and `wanted` is sorted. Returns `None` for a row whose element
/// number is not in `wanted`.
fn element_slots(of_rows: &[u64], wanted: &[u64]) -> Vec<Option<usize>> {
    let mut last: Option<usize> = None;
    let each = of_rows.iter().map(|element| {
        // The index in `wanted` is usually that of the previous row, or the next one.
        let near = last.into_iter().flat_map(|slot| [slot, slot + 1]);
        let near = { near }.find(|&slot| wanted.get(slot) == Some(element));
        let slot = near.or_else(|| wanted.binary_search(element).ok());
        last = slot;
        slot
    });
    each.collect()
}

impl SharedCells<'_> {
    /// Formats the text of each element that was read.
    fn format_all_elements(&mut self, size: usize) -> Result<()> {
        for element in self.bytes.chunks_exact(size.max(1)) {
            let cell = self.column.write(element, usize::MAX, &mut self.texts)?;
            self.cell_ends.push((self.texts.len(), cell));
        }
        Ok(())
    }
}

impl ColumnReader for DecodedColumn {
    fn names(&self) -> &[Vec<u8>] {
        &self.name
    }

    fn row_bytes(&self) -> u64 {
        /// Estimated memory in bytes per row, in addition to the stored element, if rows share
        /// elements: the text of the element, and the entries that find it.
        const SHARED_ROW_BYTES: u64 = 64;
        let shared = if self.row_mapping.is_some() {
            SHARED_ROW_BYTES
        } else {
            0
        };
        u64::from(self.elements.datatype.size) + shared
    }

    fn row_values(&self) -> u64 {
        formatting_cost(&self.elements.datatype)
    }

    fn chunk_values(&self) -> u64 {
        self.elements.content.chunk_values()
    }

    fn read(&self, rows: Range<u64>, cancel: &CancelToken) -> Result<Box<dyn Cells + '_>> {
        Ok(match &self.row_mapping {
            Some(place) => Box::new(self.read_and_format_shared(place, rows, cancel)?),
            None => Box::new(UnsharedCells {
                column: self,
                bytes: self
                    .elements
                    .read(rows.start, rows.end - rows.start, cancel)?,
            }),
        })
    }

    fn pad_columns(&mut self) -> Option<u64> {
        let padding = self.decoding.padding()?;
        self.padding = Some(padding);
        Some(to_u64(padding.width()) + 1)
    }

    fn can_be_empty(&self) -> bool {
        self.decoding.can_be_missing() || !self.has_element_per_row()
    }

    fn can_stretch_numbers(&self) -> bool {
        // A coordinate has a value in every row, even if its type can represent missing values.
        self.row_mapping.is_some()
            && self.has_element_per_row()
            && self.decoding.is_undecoded_float()
    }

    fn own_bytes(&self) -> u64 {
        self.elements.estimate_memory(2)
    }
}

impl Cells for UnsharedCells<'_> {
    fn write(&self, row: usize, _: usize, most: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        let size = self.column.size()?;
        let element = &self.bytes[row * size..][..size];
        self.column.write(element, most, out)
    }
}

impl Cells for SharedCells<'_> {
    fn write(&self, row: usize, _: usize, most: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        let Some(slot) = self.slots[row] else {
            return Ok(CellKind::Missing);
        };
        let Some(&(end, cell)) = self.cell_ends.get(slot) else {
            let size = self.column.size()?;
            return self
                .column
                .write(&self.bytes[slot * size..][..size], most, out);
        };
        let start = match slot.checked_sub(1) {
            Some(before) => self.cell_ends[before].0,
            None => 0,
        };
        out.extend_from_slice(&self.texts[start..end]);
        Ok(cell)
    }
}

impl ColumnReader for RowNumberColumn {
    fn names(&self) -> &[Vec<u8>] {
        &self.name
    }

    fn row_bytes(&self) -> u64 {
        0
    }

    fn row_values(&self) -> u64 {
        1
    }

    fn read(&self, rows: Range<u64>, _: &CancelToken) -> Result<Box<dyn Cells + '_>> {
        Ok(Box::new(RowNumberCells {
            numbers: self,
            first: rows.start,
        }))
    }

    fn pad_columns(&mut self) -> Option<u64> {
        let padding = Padding::for_integers_to(self.row_mapping.upper_bound());
        self.padding = Some(padding);
        Some(to_u64(padding.width()) + 1)
    }

    fn own_bytes(&self) -> u64 {
        0
    }
}

impl Cells for RowNumberCells<'_> {
    fn write(&self, row: usize, _: usize, _: usize, out: &mut Vec<u8>) -> Result<CellKind> {
        let number = self
            .numbers
            .row_mapping
            .element_of_row(self.first + row as u64);
        let start = out.len();
        append_formatted(out, format_args!("{number}"));
        if let Some(padding) = self.numbers.padding {
            padding.pad(start, out)?;
        }
        Ok(CellKind::Unquoted)
    }
}
