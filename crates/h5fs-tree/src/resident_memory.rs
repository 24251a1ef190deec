//! The memory usage of this process.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The open file /proc/PID/status of this process, in which the kernel reports its memory usage;
/// proc(5). The file must be opened before the process gives up the right to open files.
#[derive(Debug, Clone)]
pub struct ResidentMemory(Arc<File>);

impl ResidentMemory {
    /// Opens the file. Returns `None` if `/proc` is not available.
    #[must_use]
    pub fn open() -> Option<Self> {
        let file = File::open("/proc/self/status").ok()?;
        Some(ResidentMemory(Arc::new(file)))
    }

    /// Returns the resident memory of this process in bytes.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let mut text = [0; 4096];
        let length = self.0.read_at(&mut text, 0).ok()?;
        Self::parse_resident_bytes(str::from_utf8(text.get(..length)?).ok()?)
    }

    /// Parses the resident memory in bytes from `status`, the text of /proc/PID/status.
    #[must_use]
    pub fn parse_resident_bytes(status: &str) -> Option<u64> {
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
            ResidentMemory::parse_resident_bytes("VmRSS:\t    12 kB\n"),
            Some(12_288)
        );
        assert_eq!(ResidentMemory::parse_resident_bytes("Name:\th5fs\n"), None);
    }
}
