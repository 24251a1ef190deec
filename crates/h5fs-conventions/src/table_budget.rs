//! The budget for finding the columns of a table, before their values are read.

use std::cell::Cell;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::memory::allocation_size;
use h5fs_reader::wire::to_u64;

use crate::limits;

/// The number of bytes that may still be read or allocated to find the columns of a table.
pub struct TableBudget(Cell<u64>);

impl Default for TableBudget {
    fn default() -> Self {
        TableBudget(Cell::new(limits::TABLE_BYTES))
    }
}

impl TableBudget {
    /// Charges `bytes` bytes that are allocated or read.
    ///
    /// # Errors
    /// `Limit` if the budget is exceeded.
    pub fn spend(&self, bytes: u64) -> Result<()> {
        let left = self.0.get().checked_sub(bytes);
        let too_much = || Error::limit("bytes of the members of a table", limits::TABLE_BYTES);
        self.0.set(left.ok_or_else(too_much)?);
        Ok(())
    }

    /// Charges the memory of a name that is `bytes` bytes long.
    ///
    /// # Errors
    /// `Limit` if the budget is exceeded.
    pub fn spend_on_name(&self, bytes: usize) -> Result<()> {
        self.spend(name_weight(bytes))
    }
}

/// Returns the memory in bytes that a name of `bytes` bytes occupies, including its `Vec`.
fn name_weight(bytes: usize) -> u64 {
    allocation_size(bytes).saturating_add(to_u64(size_of::<Vec<u8>>()))
}
