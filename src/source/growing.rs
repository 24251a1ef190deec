//! A file that grows while it is read: what a writer has not finished yet is looked at again.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::limits;
use crate::source::Source;
use crate::source::file::FileSource;

/// How long to wait before what was half written is read again. With [`limits::GROWING_ATTEMPTS`] it stays
/// under half a second.
const PAUSE: Duration = Duration::from_millis(4);

/// How long after the last write nothing is half written any more: a file that only claims to have a writer
/// must not make each look at its damage take that long.
const SETTLED: Duration = Duration::from_secs(1);

/// A file with the length that it has at the moment.
#[derive(Debug)]
pub struct GrowingFile(pub Arc<FileSource>);

impl Source for GrowingFile {
    fn length(&self) -> u64 {
        let now = self.0.metadata().map_or(0, |metadata| metadata.len());
        now.max(self.0.length())
    }

    fn read_at(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.0.read_at(at, buffer)
    }

    fn is_growing(&self) -> bool {
        true
    }

    fn is_unsettled(&self) -> bool {
        let age = self.0.fingerprint().map(|now| now.age());
        age.is_ok_and(|age| age.is_none_or(|age| age < SETTLED))
    }
}

/// What `read` gives. Where it finds `source` damaged while that grows, it may have met something half
/// written, and is called again, some times.
///
/// # Errors
/// As `read` says in the end.
pub fn settled<T>(source: &dyn Source, mut read: impl FnMut() -> Result<T>) -> Result<T> {
    let mut left = limits::GROWING_ATTEMPTS;
    loop {
        left = left.saturating_sub(1);
        match read() {
            Err(Error::Corrupt { .. }) if left > 0 && source.is_unsettled() => sleep(PAUSE),
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> (tempfile::NamedTempFile, Arc<FileSource>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        let source = FileSource::open(file.path(), None).unwrap();
        (file, Arc::new(source))
    }

    #[test]
    fn what_is_appended_can_be_read() {
        let (written, source) = file(b"old");
        let growing = GrowingFile(Arc::clone(&source));
        std::fs::write(written.path(), b"old and new").unwrap();
        let mut end = [0; 3];
        growing.read_at(8, &mut end).unwrap();
        assert_eq!((&end, growing.length(), source.length()), (b"new", 11, 3));
    }

    #[test]
    fn damage_passes_only_while_the_file_grows() {
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
        assert_eq!(settled(&growing, &mut half_written), Ok(3));
        assert!(settled(&*source, half_written).is_err());
        let mut looks = 0;
        let missing: Result<()> = settled(&growing, || {
            looks += 1;
            Err(Error::NotFound)
        });
        assert_eq!((missing, looks), (Err(Error::NotFound), 1));
        assert!(settled::<()>(&growing, || Err(Error::corrupt("for good", None))).is_err());
    }

    #[test]
    fn damage_that_nobody_is_writing_is_looked_at_once() {
        let (written, source) = file(b"");
        let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
        written.as_file().set_modified(long_ago).unwrap();
        let mut looks = 0;
        let damaged: Result<()> = settled(&GrowingFile(source), || {
            looks += 1;
            Err(Error::corrupt("for good", None))
        });
        assert_eq!((damaged.is_err(), looks), (true, 1));
    }
}
