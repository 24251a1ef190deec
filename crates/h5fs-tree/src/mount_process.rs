//! The process that serves a mount: its process ID and its memory usage.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::parent_id;
use std::process;
use std::sync::Arc;

/// This process, as `.h5fs/status` describes it.
#[derive(Debug, Clone)]
pub struct MountProcess {
    /// The open file /proc/PID/status, in which the kernel reports the memory usage; proc(5). `None`
    /// if `/proc` is not available.
    status: Option<Arc<File>>,
    pid: u32,
    supervisor: u32,
}

impl MountProcess {
    /// Returns the description of this process, which the supervisor started. Must be called before
    /// the process gives up the right to open files.
    #[must_use]
    pub fn open() -> Self {
        MountProcess {
            status: File::open("/proc/self/status").ok().map(Arc::new),
            pid: process::id(),
            supervisor: parent_id(),
        }
    }

    /// Returns the lines of `.h5fs/status` about the process: names and values. The process IDs are
    /// those of the process's own namespace.
    pub(crate) fn facts(&self) -> [(&'static str, String); 2] {
        [
            ("pid", self.pid.to_string()),
            ("supervisor pid", self.supervisor.to_string()),
        ]
    }

    /// Returns the resident memory of this process in bytes.
    pub(crate) fn resident_bytes(&self) -> Option<u64> {
        let mut text = [0; 4096];
        let length = self.status.as_ref()?.read_at(&mut text, 0).ok()?;
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
    fn allocated_memory_is_resident_after_writing() {
        let process = MountProcess::open();
        let before = process.resident_bytes().unwrap();
        let taken = vec![1_u8; 64 << 20];
        assert!(
            process.resident_bytes().unwrap() >= before + (32 << 20),
            "{}",
            taken.len()
        );
        assert_eq!(
            MountProcess::parse_resident_bytes("VmRSS:\t    12 kB\n"),
            Some(12_288)
        );
        assert_eq!(MountProcess::parse_resident_bytes("Name:\th5fs\n"), None);
    }

    #[test]
    fn the_facts_have_the_process_ids() {
        let own = process::id().to_string();
        assert_eq!(MountProcess::open().facts()[0], ("pid", own));
    }
}
