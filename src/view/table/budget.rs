//! What finding the columns of a table may look at and make.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::limits;
use crate::memory::piece;
use crate::wire::to_u64;

/// How much is still looked at to find the columns of a table.
pub(crate) struct Budget(Cell<u64>);

impl Default for Budget {
    fn default() -> Self {
        Budget(Cell::new(limits::TABLE_BYTES))
    }
}

impl Budget {
    /// Counts bytes that are made.
    ///
    /// # Errors
    /// `Limit` for too many.
    pub(crate) fn spend(&self, bytes: u64) -> Result<()> {
        let left = self.0.get().checked_sub(bytes);
        let too_much = || Error::limit("bytes of the members of a table", limits::TABLE_BYTES);
        self.0.set(left.ok_or_else(too_much)?);
        Ok(())
    }

    /// Counts a name of so many bytes that is made.
    ///
    /// # Errors
    /// `Limit` for too many.
    pub(crate) fn spend_on_name(&self, bytes: usize) -> Result<()> {
        self.spend(name_weight(bytes))
    }
}

/// Bytes of memory that a name of so many bytes takes.
fn name_weight(bytes: usize) -> u64 {
    piece(bytes).saturating_add(to_u64(size_of::<Vec<u8>>()))
}
