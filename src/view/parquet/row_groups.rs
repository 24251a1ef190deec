//! How many rows a group has: the same number in all but the last, so that the place of a column in
//! a group is found without a look at the others.

use crate::error::{Error, Result};
use crate::limits;

/// Rows of a group, as far as nothing else is asked for. Readers take one group a thread.
const ROWS: u64 = 1 << 17;

/// Rows of a group, at most, for the sake of whole chunks.
const MOST_ROWS: u64 = 1 << 20;

/// Bytes of the source that a group takes: its columns are read one after another, from chunks that
/// are decoded once.
const SOURCE_BYTES: u64 = 16 << 20;

/// What decides on the rows of a group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    pub(super) rows: u64,
    /// Rows that chunks of the source have together.
    pub(super) unit: u64,
    /// Bytes of the source that a row of any column takes, all of the row together.
    pub(super) row_bytes: u64,
    /// Bytes that a row takes of a page, at most.
    pub(super) page_bytes: u64,
    pub(super) columns: u64,
}

impl Demand {
    /// The rows of a group: a whole number of chunks where that can be, of eight where bits stand
    /// in bytes.
    ///
    /// # Errors
    /// `Limit` where no such file can hold the table.
    pub(super) fn rows_of_group(&self) -> Result<u64> {
        let unit = match eights(self.unit) {
            unit if unit <= MOST_ROWS => unit,
            _ => 8,
        };
        let wanted = (SOURCE_BYTES / self.row_bytes.max(1)).clamp(1, ROWS);
        let rows = match wanted / unit {
            0 => unit,
            // As many as are wanted or, of narrow rows, a few more.
            units if wanted < ROWS => units.saturating_mul(unit),
            _ => ROWS.next_multiple_of(unit),
        };
        let groups = limits::PARQUET_CHUNKS / self.columns.max(1);
        let groups = groups.clamp(1, limits::PARQUET_GROUPS);
        let least = self.rows.div_ceil(groups);
        let rows = rows.max(least.checked_next_multiple_of(unit).unwrap_or(u64::MAX));
        let most = limits::PARQUET_PAGE / self.page_bytes.max(1);
        // Below whole chunks, if a page holds no more.
        let rows = if rows <= most { rows } else { most / 8 * 8 };
        let is_enough = rows >= 8 && rows >= least;
        let too_many = || Error::limit("rows of a Parquet file", most.saturating_mul(groups));
        is_enough.then_some(rows).ok_or_else(too_many)
    }
}

/// The smallest multiple that is one of eight, too.
fn eights(unit: u64) -> u64 {
    let unit = unit.max(1);
    let twos = unit.trailing_zeros().min(3);
    unit.saturating_mul(8 >> twos)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(demand: Demand) -> u64 {
        demand.rows_of_group().unwrap()
    }

    const NARROW: Demand = Demand {
        rows: 10_000_000,
        unit: 1,
        row_bytes: 8,
        page_bytes: 8,
        columns: 8,
    };

    #[test]
    fn a_group_is_a_whole_number_of_chunks() {
        assert_eq!(rows(NARROW), 1 << 17);
        for unit in [1, 7, 10, 1000, 65_536, 100_000, 1 << 20] {
            let group = rows(Demand { unit, ..NARROW });
            assert_eq!((group % unit, group % 8), (0, 0), "{unit}");
            assert!((1 << 17..=1 << 20).contains(&group), "{unit}: {group}");
        }
        // Chunks of more rows than a group may have are cut.
        let group = rows(Demand {
            unit: 1 << 21,
            ..NARROW
        });
        assert_eq!(group, 1 << 17);
    }

    #[test]
    fn wide_rows_come_in_small_groups() {
        let wide = Demand {
            row_bytes: 8000,
            unit: 64,
            columns: 1000,
            rows: 100_000,
            ..NARROW
        };
        assert_eq!(rows(wide), (16 << 20) / 8000 / 64 * 64);
        // But in few enough for a footer that can be read.
        let long = Demand {
            rows: 100_000_000,
            ..wide
        };
        assert!(long.rows.div_ceil(rows(long)) * 1000 <= limits::PARQUET_CHUNKS);
    }

    #[test]
    fn what_no_file_can_hold_is_refused() {
        let groups = Demand {
            rows: 1 << 40,
            ..NARROW
        };
        assert!(groups.rows.div_ceil(rows(groups)) <= limits::PARQUET_GROUPS);
        let long = Demand {
            rows: 1 << 62,
            ..NARROW
        };
        assert!(matches!(long.rows_of_group(), Err(Error::Limit { .. })));
        let heavy = Demand {
            page_bytes: 1 << 30,
            ..NARROW
        };
        assert!(matches!(heavy.rows_of_group(), Err(Error::Limit { .. })));
    }
}
