//! Reads in progress. They are cancelled when the thread that reads closes the file.
//!
//! If a signal interrupts a read, the kernel sends `FUSE_INTERRUPT`, but fuser does not pass this
//! request on. But a thread that closes a file has stopped reading it. Its reads still in progress
//! are read-ahead, or were abandoned when it was killed. If another thread waits for the same
//! pages, the kernel repeats the request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use h5fs_reader::array::{CancelToken, Canceller};
use h5fs_reader::memory::lock::lock;

/// A reader: the handle of an open file, and the ID of a thread that reads the file.
type HandleReader = (u64, u32);

/// The reads in progress of each reader.
#[derive(Default)]
pub(super) struct ReadRegistry(Mutex<HashMap<HandleReader, ActiveReads>>);

/// The number of reads in progress of one reader, and the object that cancels them.
#[derive(Default)]
struct ActiveReads {
    count: usize,
    canceller: Canceller,
}

/// A guard for a read in progress. Dropping the guard ends the registration.
pub(super) struct ActiveRead {
    readers: Arc<ReadRegistry>,
    reader: HandleReader,
    pub(super) cancel: CancelToken,
}

impl ReadRegistry {
    /// Registers a read of the file `handle` by the thread `thread`. A thread ID of 0 means that
    /// the thread is unknown.
    pub(super) fn begin_read(readers: &Arc<ReadRegistry>, handle: u64, thread: u32) -> ActiveRead {
        let reader = (handle, thread);
        let mut all = readers.lock();
        let reads = all.entry(reader).or_default();
        reads.count += 1;
        let cancel = match thread {
            0 => CancelToken::default(),
            _ => reads.canceller.token(),
        };
        drop(all);
        ActiveRead {
            readers: Arc::clone(readers),
            reader,
            cancel,
        }
    }

    /// Cancels all reads of the file `handle` by the thread `thread`, because the thread has closed
    /// the file.
    pub(super) fn cancel_closed(&self, handle: u64, thread: u32) {
        if let Some(reads) = self.lock().get(&(handle, thread)) {
            reads.canceller.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<HandleReader, ActiveReads>> {
        lock(&self.0)
    }
}

impl Drop for ActiveRead {
    fn drop(&mut self) {
        let mut all = self.readers.lock();
        if let Some(reads) = all.get_mut(&self.reader) {
            reads.count -= 1;
            if reads.count == 0 {
                all.remove(&self.reader);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_a_file_cancels_its_reads() {
        let readers = Arc::new(ReadRegistry::default());
        let begin = |handle, thread| ReadRegistry::begin_read(&readers, handle, thread);
        let reads = [
            begin(1, 7),
            begin(1, 7),
            begin(1, 8),
            begin(2, 7),
            begin(1, 0),
        ];
        let held = |reads: &[ActiveRead]| -> Vec<bool> {
            reads
                .iter()
                .map(|read| !read.cancel.is_cancelled())
                .collect()
        };
        readers.cancel_closed(1, 0);
        readers.cancel_closed(3, 7);
        assert_eq!(held(&reads), [true; 5]);
        readers.cancel_closed(1, 7);
        assert_eq!(held(&reads), [false, false, true, true, true]);
        assert!(!begin(1, 7).cancel.is_cancelled());
        drop(reads);
        assert!(readers.lock().is_empty());
    }
}
