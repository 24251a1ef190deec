//! Reads of files that a writer may not have finished. If a structure looks damaged, the read is
//! repeated.

use std::thread::sleep;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::source::Source;

/// Number of reads of one structure of a growing file before the file counts as damaged.
const ATTEMPTS: u32 = 100;

/// Pause before half-written bytes are read again. All `ATTEMPTS` together take less than half a
/// second.
const PAUSE: Duration = Duration::from_millis(4);

/// Calls `read` and returns its result. If `read` reports damage while `source` grows, the bytes
/// may be half written. `read` is then called again, up to `ATTEMPTS` times in total.
///
/// # Errors
/// Fails with the last error of `read`.
pub(crate) fn retry_while_growing<T>(
    source: &dyn Source,
    mut read: impl FnMut() -> Result<T>,
) -> Result<T> {
    for _ in 1..ATTEMPTS {
        match read() {
            Err(Error::Corrupt { .. }) if source.is_recently_written() => sleep(PAUSE),
            done => return done,
        }
    }
    read()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::local::file::{FileSource, GrowingFile};

    fn file(content: &[u8]) -> (tempfile::NamedTempFile, Arc<FileSource>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let source = FileSource::open(file.path(), None).unwrap();
        (file, Arc::new(source))
    }

    #[test]
    fn appended_bytes_can_be_read() {
        let (written, source) = file(b"old");
        let growing = GrowingFile(Arc::clone(&source));
        std::fs::write(written.path(), b"old and new").unwrap();
        let mut end = [0; 3];
        growing.read_at(8, &mut end).unwrap();
        assert_eq!((&end, growing.length(), source.length()), (b"new", 11, 3));
    }

    #[test]
    fn damage_is_retried_only_while_the_file_grows() {
        let (_written, source) = file(b"");
        let growing = GrowingFile(Arc::clone(&source));
        let mut looks = 0;
        let mut half_written = || {
            looks += 1;
            match looks {
                1 | 2 | 4 => Err(Error::corrupt("checksum", None)),
                _ => Ok(looks),
            }
        };
        assert_eq!(retry_while_growing(&growing, &mut half_written), Ok(3));
        assert!(retry_while_growing(&*source, half_written).is_err());
        let mut looks = 0;
        let missing: Result<()> = retry_while_growing(&growing, || {
            looks += 1;
            Err(Error::NotFound)
        });
        assert_eq!((missing, looks), (Err(Error::NotFound), 1));
        assert!(
            retry_while_growing::<()>(&growing, || Err(Error::corrupt("for good", None))).is_err()
        );
    }

    #[test]
    fn damage_without_a_writer_is_not_retried() {
        let (written, source) = file(b"");
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
        written.as_file().set_modified(long_ago).unwrap();
        let mut looks = 0;
        let damaged: Result<()> = retry_while_growing(&GrowingFile(source), || {
            looks += 1;
            Err(Error::corrupt("for good", None))
        });
        assert_eq!((damaged.is_err(), looks), (true, 1));
    }
}
