//! The stage: a file in memory through which the parsing process receives the bytes that it
//! requests.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use h5fs_reader::error::io_error_message;
use h5fs_reader::source::remote::message::FailureKind;
use rustix::fs::{FallocateFlags, fallocate};

use crate::fetch_error::FetchError;

/// The stage. Only the fetcher writes to it.
#[derive(Debug)]
pub(crate) struct Stage(File);

impl Stage {
    pub(crate) fn new(file: File) -> Self {
        Stage(file)
    }

    /// Writes `bytes` to the stage. `region` is the offset in the stage at which the bytes of the
    /// object start, and `at` is the offset in the object.
    ///
    /// # Errors
    /// `NoRoom` if memory is exhausted, or if the offset overflows.
    pub(crate) fn write(&self, region: u64, at: u64, bytes: &[u8]) -> Result<(), FetchError> {
        let no_room = |error: io::Error| {
            FetchError::new(
                FailureKind::NoRoom,
                format!("the cache in memory: {}", io_error_message(&error)),
            )
        };
        let place = region.checked_add(at);
        let place = place.ok_or_else(|| no_room(io::ErrorKind::InvalidInput.into()))?;
        self.0.write_all_at(bytes, place).map_err(no_room)
    }

    /// Releases the memory of `length` bytes of the stage, which start at the offset `place`.
    pub(crate) fn drop_bytes(&self, place: u64, length: u64) {
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if let Err(errno) = fallocate(&self.0, hole, place, length) {
            log::debug!("the cache in memory: dropping {length} bytes: {errno}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn staged_bytes_stay_until_they_are_dropped() {
        let file = File::from(memfd_create("stage", MemfdFlags::CLOEXEC).unwrap());
        let stage = Stage::new(file.try_clone().unwrap());
        let region = 1 << 50;
        stage.write(region, 1 << 20, &[7; 65536]).unwrap();
        let mut seen = [0; 4];
        file.read_exact_at(&mut seen, region + (1 << 20)).unwrap();
        assert_eq!(seen, [7; 4]);
        assert_eq!(file.metadata().unwrap().blocks() * 512, 65536);
        stage.drop_bytes(region + (1 << 20), 65536);
        assert_eq!(file.metadata().unwrap().blocks(), 0);
        let beyond = stage.write(u64::MAX, 1, b"x").unwrap_err();
        assert_eq!(beyond.failure, FailureKind::NoRoom);
    }
}
