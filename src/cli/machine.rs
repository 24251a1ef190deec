//! The memory that this process may use: the machine's memory, or less if a control group limits it
//! (cgroups(7)), as in a container.

use std::fs;
use std::path::{Path, PathBuf};

/// Directory where control groups are mounted.
const CGROUPS: &str = "/sys/fs/cgroup";

/// Returns the memory in bytes that this process may use. Returns `None` if it is unknown.
pub(crate) fn usable_memory() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.and_then(|text| total_memory(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = cgroup_memory_limit(Path::new(CGROUPS), &groups);
    machine.into_iter().chain(limit).min()
}

/// Parses the line `MemTotal:  16384 kB` of /proc/meminfo. Returns the size in bytes.
fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// Returns the smallest memory limit in bytes of the control groups of a process. `mounted` is the
/// directory where control groups are mounted, and `groups` is the text of /proc/PID/cgroup.
/// Returns `None` if no group has a limit.
fn cgroup_memory_limit(mounted: &Path, groups: &str) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, group) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
        let (top, name) = match controllers {
            // Version 2.
            "" => (mounted.to_owned(), "memory.max"),
            _ if controllers
                .split(',')
                .any(|controller| controller == "memory") =>
            {
                (mounted.join("memory"), "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        ancestors(&top, group)
            .iter()
            .filter_map(|group| read_limit(&group.join(name)))
            .collect()
    });
    limits.min()
}

/// Returns the directories of a control group and of all groups that contain it. In a container,
/// only the last of them exist, because its own group is mounted at `top`.
fn ancestors(top: &Path, group: &str) -> Vec<PathBuf> {
    let group = Path::new(group.trim_start_matches('/'));
    let groups = group.ancestors().map(|group| top.join(group));
    groups.collect()
}

/// Reads a limit in bytes. Returns `None` for the word `max`, and for the largest number of pages,
/// which mean no limit.
fn read_limit(file: &Path) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 60;
    let text = fs::read_to_string(file).ok()?;
    let limit = text.trim().parse().ok();
    limit.filter(|limit| *limit < NO_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_machine() {
        let text = "MemTotal:       16384 kB\nMemFree:  1 kB\n";
        assert_eq!(total_memory(text), Some(16 << 20));
        assert_eq!(total_memory("MemFree: 1 kB\n"), None);
    }

    /// Returns the limit of the group `/pod/own`, where the files have these texts.
    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<u64> {
        let mounted = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = mounted.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        cgroup_memory_limit(mounted.path(), groups)
    }

    #[test]
    fn the_smallest_limit_of_all_groups_applies() {
        let own = ("pod/own/memory.max", "200000000\n");
        assert_eq!(limit("0::/pod/own\n", &[own]), Some(200_000_000));
        let pod = ("pod/memory.max", "100000000\n");
        assert_eq!(limit("0::/pod/own\n", &[own, pod]), Some(100_000_000));
        let none = ("pod/own/memory.max", "max\n");
        assert_eq!(limit("0::/pod/own\n", &[none]), None);
    }

    #[test]
    fn a_container_sees_its_own_group_at_the_top() {
        assert_eq!(limit("0::/\n", &[("memory.max", "7\n")]), Some(7));
        assert_eq!(limit("0::/pod/own\n", &[("memory.max", "7\n")]), Some(7));
    }

    #[test]
    fn cgroup_version_1_uses_another_file() {
        let groups = "9:name=systemd:/x\n4:cpu,memory:/pod/own\n0::/\n";
        let own = ("memory/pod/own/memory.limit_in_bytes", "5000\n");
        let top = ("memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit(groups, &[own, top]), Some(5000));
        assert_eq!(limit(groups, &[top]), None);
        assert_eq!(limit("4:cpu:/pod\n", &[own]), None);
    }
}
