//! Sources in memory, for decoded blocks and for tests without files on disk.

use crate::error::{Error, Result};
use crate::memory::cancel::WantedCheck;
use crate::source::Source;
use crate::wire::{to_u64, to_usize};

/// A source that is a byte vector.
#[derive(Debug, Clone)]
pub struct MemorySource(Vec<u8>);

impl MemorySource {
    /// Creates a source from `bytes`.
    pub fn new(bytes: Vec<u8>) -> Self {
        MemorySource(bytes)
    }
}

impl Source for MemorySource {
    fn length(&self) -> u64 {
        to_u64(self.0.len())
    }

    fn read_cancellable(&self, at: u64, buffer: &mut [u8], _: &WantedCheck<'_>) -> Result<()> {
        let start = to_usize(at)?;
        let bytes = start
            .checked_add(buffer.len())
            .and_then(|end| self.0.get(start..end));
        let bytes =
            bytes.ok_or_else(|| Error::corrupt("bytes reach past the end of the file", at))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_inside_and_refuses_outside() {
        let source = MemorySource::new(vec![1, 2, 3]);
        let mut two = [0; 2];
        source.read_at(1, &mut two).unwrap();
        assert_eq!(two, [2, 3]);
        assert!(source.read_at(2, &mut two).is_err());
        assert!(source.read_at(u64::MAX, &mut two).is_err());
    }
}
