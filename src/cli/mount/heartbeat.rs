//! Checks whether a mount answers. One thread probes the mount at intervals, and another counts the
//! seconds that a probe takes.
//!
//! The seconds are counted one by one, each after a wait. A time when the machine sleeps, or when
//! the supervisor and its worker are stopped, therefore counts as at most one second.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::mount::mounts::{MountChanges, OwnMount, probe};
use crate::limits;

/// An event while the supervisor checks that the mount answers.
#[derive(Debug)]
pub(in crate::cli) enum ProbeStep {
    /// A request was sent to the mount.
    Sent,
    /// The mount answered, with `ENOTCONN` if no process serves it.
    Answered(nix::Result<()>),
    /// The kernel has ended the mount's filesystem. No further request is sent.
    Ended,
}

/// Sends a request to the mount at once, and then every [`limits::MOUNT_LOOK`], in a thread.
/// Reports each event to `tell`, until `tell` returns false.
pub(in crate::cli) fn probe_at_intervals(
    mount: OwnMount,
    tell: impl Fn(ProbeStep) -> bool + Send + 'static,
) {
    thread::spawn(move || {
        let changes = MountChanges::watch().ok();
        loop {
            let answer = match mount.root() {
                Some(root) => {
                    if !tell(ProbeStep::Sent) {
                        return;
                    }
                    probe(&root)
                }
                // A mount that another mount covers receives no request.
                None => Ok(()),
            };
            if !tell(ProbeStep::Answered(answer)) {
                return;
            }
            if has_ended_within(&mount, changes.as_ref(), limits::MOUNT_LOOK) {
                tell(ProbeStep::Ended);
                return;
            }
        }
    });
}

/// Waits for the time `time`, or until the kernel has ended the mount's filesystem. Returns whether
/// the filesystem has ended.
fn has_ended_within(mount: &OwnMount, changes: Option<&MountChanges>, time: Duration) -> bool {
    /// Maximum time between a change of the mount table and the end of the unmounted filesystem.
    const MOMENT: Duration = Duration::from_millis(200);
    let end = Instant::now() + time;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match changes {
            Some(changes) if changes.wait(left) => thread::sleep(MOMENT.min(left)),
            Some(_) => {}
            None => thread::sleep(left),
        }
        if mount.has_ended() {
            return true;
        }
        if left.is_zero() {
            return false;
        }
    }
}

/// The number of seconds for which the last request to the mount has not been answered. `None` if
/// it was answered.
#[derive(Debug, Default)]
pub(in crate::cli) struct UnansweredTime(Option<u32>);

impl UnansweredTime {
    pub(in crate::cli) fn start(&mut self) {
        self.0 = Some(0);
    }

    pub(in crate::cli) fn reset(&mut self) {
        self.0 = None;
    }

    pub(in crate::cli) fn is_waiting(&self) -> bool {
        self.0.is_some()
    }

    /// Counts one second, unless `waits` returns true because the worker waits for a disk. Returns
    /// whether the mount has not answered for longer than the limit.
    pub(in crate::cli) fn count_second(&mut self, waits: impl FnOnce() -> bool) -> bool {
        let Some(seconds) = &mut self.0 else {
            return false;
        };
        if !waits() {
            *seconds += 1;
        }
        *seconds >= limits::MOUNT_UNANSWERED
    }
}

/// Returns whether a thread of the process with this ID waits for a disk or a server. See proc(5),
/// /proc/PID/stat, `state`.
pub(in crate::cli) fn waits_for_disk(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.any(|thread| thread_state(&thread.path()) == Some('D'))
}

fn thread_state(thread: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(thread.join("stat")).ok()?;
    // The process name before the state may contain any character.
    let (_, after) = stat.rsplit_once(") ")?;
    after.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unanswered_mount_is_abandoned_after_the_limit() {
        let mut unanswered = UnansweredTime::default();
        assert!(!unanswered.is_waiting() && !unanswered.count_second(|| false));
        unanswered.start();
        for _ in 1..limits::MOUNT_UNANSWERED {
            assert!(!unanswered.count_second(|| false));
            assert!(!unanswered.count_second(|| true), "a slow disk");
        }
        assert!(unanswered.count_second(|| false));
        unanswered.reset();
        assert!(!unanswered.is_waiting());
        unanswered.start();
        assert!(!unanswered.count_second(|| false), "counted anew");
    }

    #[test]
    fn a_running_thread_does_not_wait_for_a_disk() {
        assert_eq!(thread_state(Path::new("/proc/thread-self")), Some('R'));
        assert_eq!(thread_state(Path::new("/nowhere")), None);
        assert!(!waits_for_disk(u32::MAX));
    }
}
