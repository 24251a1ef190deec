//! How much memory this process takes.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The kernel's word on the memory of this process, opened while it could be; proc(5),
/// /proc/PID/status.
#[derive(Debug, Clone)]
pub struct Resident(Arc<File>);

impl Resident {
    /// Opens it; `None` where there is no `/proc`.
    #[must_use]
    pub fn open() -> Option<Self> {
        let file = File::open("/proc/self/status").ok()?;
        Some(Resident(Arc::new(file)))
    }

    /// Bytes of memory that are resident now.
    pub(in crate::fs) fn bytes(&self) -> Option<u64> {
        let mut text = [0; 4096];
        let length = self.0.read_at(&mut text, 0).ok()?;
        Self::bytes_in(str::from_utf8(text.get(..length)?).ok()?)
    }

    /// The same in the text of such a file.
    #[must_use]
    pub fn bytes_in(status: &str) -> Option<u64> {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
        kibibytes.checked_mul(1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_seen() {
        let resident = Resident::open().unwrap();
        let before = resident.bytes().unwrap();
        let taken = vec![1_u8; 64 << 20];
        assert!(
            resident.bytes().unwrap() >= before + (32 << 20),
            "{}",
            taken.len()
        );
        assert_eq!(Resident::bytes_in("VmRSS:\t    12 kB\n"), Some(12_288));
        assert_eq!(Resident::bytes_in("Name:\th5fs\n"), None);
    }
}
