//! The number of rows in a row group. All row groups except the last have the same number, so that
//! the offset of a column is computed without examining other row groups.

use h5fs_reader::error::{Error, Result};

use crate::limits;

/// Default number of rows in a row group. Readers use one thread for each row group.
const DEFAULT_ROWS: u64 = 1 << 17;

/// Maximum value of the least common multiple of eight and the rows of a source chunk. The rows of
/// a group are rounded to a multiple of it. If it is greater, row groups may divide chunks.
const MAX_ROWS: u64 = 1 << 20;

/// Amount of source data in one row group, in bytes. The columns of a row group are read one after
/// another, from chunks that are decoded once.
const SOURCE_BYTES: u64 = 16 << 20;

/// The properties of a table that determine the number of rows in a row group.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowGroupParameters {
    pub(super) rows: u64,
    /// Number of rows in a chunk of the source array; 1 if the rows do not come from chunks.
    pub(super) chunk_rows: u64,
    /// Maximum length of a row in one source array, in bytes. A row contains the values of all
    /// columns in the array.
    pub(super) row_bytes: u64,
    /// Maximum number of bytes that one row adds to the data page of a column.
    pub(super) page_bytes_per_row: u64,
    pub(super) columns: u64,
}

impl RowGroupParameters {
    /// Returns the number of rows in a row group. The number is a multiple of `chunk_rows` if
    /// possible, and always of eight, because bits are packed in bytes.
    ///
    /// # Errors
    /// `Limit` if the table does not fit in a Parquet file.
    pub(super) fn group_rows(&self) -> Result<u64> {
        let unit = match lcm_with_eight(self.chunk_rows) {
            unit if unit <= MAX_ROWS => unit,
            _ => 8,
        };
        let wanted = (SOURCE_BYTES / self.row_bytes.max(1)).clamp(1, DEFAULT_ROWS);
        let rows = match wanted / unit {
            0 => unit,
            // The number is rounded down for wide rows, and up for narrow ones.
            units if wanted < DEFAULT_ROWS => units.saturating_mul(unit),
            _ => DEFAULT_ROWS.next_multiple_of(unit),
        };
        let groups = limits::PARQUET_CHUNKS / self.columns.max(1);
        let groups = groups.clamp(1, limits::PARQUET_GROUPS);
        let least = self.rows.div_ceil(groups);
        let rows = rows.max(least.checked_next_multiple_of(unit).unwrap_or(u64::MAX));
        let most = limits::PARQUET_PAGE / self.page_bytes_per_row.max(1);
        // If a page cannot hold whole chunks, the group is smaller.
        let rows = if rows <= most { rows } else { most / 8 * 8 };
        let is_enough = rows >= 8 && rows >= least;
        let too_many = || Error::limit("rows of a Parquet file", most.saturating_mul(groups));
        is_enough.then_some(rows).ok_or_else(too_many)
    }
}

/// Returns the least common multiple of `unit` and eight.
fn lcm_with_eight(unit: u64) -> u64 {
    let unit = unit.max(1);
    let twos = unit.trailing_zeros().min(3);
    unit.saturating_mul(8 >> twos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(demand: RowGroupParameters) -> u64 {
        demand.group_rows().unwrap()
    }

    const NARROW: RowGroupParameters = RowGroupParameters {
        rows: 10_000_000,
        chunk_rows: 1,
        row_bytes: 8,
        page_bytes_per_row: 8,
        columns: 8,
    };

    #[test]
    fn a_group_is_a_whole_number_of_chunks() {
        assert_eq!(rows(NARROW), 1 << 17);
        for unit in [1, 7, 10, 1000, 65_536, 100_000, 1 << 20] {
            let group = rows(RowGroupParameters {
                chunk_rows: unit,
                ..NARROW
            });
            assert_eq!((group % unit, group % 8), (0, 0), "{unit}");
            assert!((1 << 17..=1 << 20).contains(&group), "{unit}: {group}");
        }
        // Chunks of more rows than a group may have are split.
        let group = rows(RowGroupParameters {
            chunk_rows: 1 << 21,
            ..NARROW
        });
        assert_eq!(group, 1 << 17);
    }

    #[test]
    fn wide_rows_have_small_groups() {
        let wide = RowGroupParameters {
            row_bytes: 8000,
            chunk_rows: 64,
            columns: 1000,
            rows: 100_000,
            ..NARROW
        };
        assert_eq!(rows(wide), (16 << 20) / 8000 / 64 * 64);
        // The number of groups is limited, so that the footer stays small.
        let long = RowGroupParameters {
            rows: 100_000_000,
            ..wide
        };
        assert!(long.rows.div_ceil(rows(long)) * 1000 <= limits::PARQUET_CHUNKS);
    }

    #[test]
    fn too_large_tables_are_rejected() {
        let groups = RowGroupParameters {
            rows: 1 << 40,
            ..NARROW
        };
        assert!(groups.rows.div_ceil(rows(groups)) <= limits::PARQUET_GROUPS);
        let long = RowGroupParameters {
            rows: 1 << 62,
            ..NARROW
        };
        assert!(matches!(long.group_rows(), Err(Error::Limit { .. })));
        let heavy = RowGroupParameters {
            page_bytes_per_row: 1 << 30,
            ..NARROW
        };
        assert!(matches!(heavy.group_rows(), Err(Error::Limit { .. })));
    }
}
