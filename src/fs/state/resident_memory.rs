//! The memory usage of this process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The kernel's report of this process's memory; proc(5), /proc/PID/status. The file is opened
/// while the process may still open files.
#[derive(Debug, Clone)]
pub struct ResidentMemory(Arc<File>);

impl ResidentMemory {
    /// Opens the report. Returns `None` without `/proc`.
    #[must_use]
    pub fn open() -> Option<Self> {
        let file = File::open("/proc/self/status").ok()?;
        Some(ResidentMemory(Arc::new(file)))
    }

    /// Returns the bytes of resident memory.
    pub(in crate::fs) fn bytes(&self) -> Option<u64> {
        let mut text = [0; 4096];
        let length = self.0.read_at(&mut text, 0).ok()?;
        Self::bytes_in(str::from_utf8(text.get(..length)?).ok()?)
    }

    /// Parses the bytes of resident memory in the text of such a report.
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
        let resident = ResidentMemory::open().unwrap();
        let before = resident.bytes().unwrap();
        let taken = vec![1_u8; 64 << 20];
        assert!(
            resident.bytes().unwrap() >= before + (32 << 20),
            "{}",
            taken.len()
        );
        assert_eq!(
            ResidentMemory::bytes_in("VmRSS:\t    12 kB\n"),
            Some(12_288)
        );
        assert_eq!(ResidentMemory::bytes_in("Name:\th5fs\n"), None);
    }
}
