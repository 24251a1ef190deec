//! Whether a mount answers: a thread looks through it every so often, and the seconds are counted
//! that a look takes.
//!
//! Seconds are counted one by one, each after a wait: so the time for which a machine sleeps, or a
//! supervisor is stopped together with its worker, counts as one second at most.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::mount::mounts::{MountChanges, OwnMount, ask};
use crate::limits;

/// A step of a look through the mount.
#[derive(Debug)]
pub(in crate::cli) enum Look {
    /// The mount was asked something.
    Asked,
    /// It answered; `ENOTCONN` where nobody serves it.
    Answered(nix::Result<()>),
    /// The kernel has ended its filesystem. No look follows.
    Ended,
}

/// Looks at once, and every so often, as long as there is somebody to `tell`.
pub(in crate::cli) fn watch(mount: OwnMount, tell: impl Fn(Look) -> bool + Send + 'static) {
    thread::spawn(move || {
        let changes = MountChanges::watch().ok();
        loop {
            let answer = match mount.root() {
                Some(root) => {
                    if !tell(Look::Asked) {
                        return;
                    }
                    ask(&root)
                }
                // A mount that another one covers is asked for nothing.
                None => Ok(()),
            };
            if !tell(Look::Answered(answer)) {
                return;
            }
            if ends_within(&mount, changes.as_ref(), limits::MOUNT_LOOK) {
                tell(Look::Ended);
                return;
            }
        }
    });
}

/// Waits for this time, or until the kernel has ended the mount's filesystem. Returns whether it has.
fn ends_within(mount: &OwnMount, changes: Option<&MountChanges>, time: Duration) -> bool {
    /// The kernel ends a filesystem a moment after it has changed the table of mounts.
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

/// For how long the mount has not answered.
#[derive(Debug, Default)]
pub(in crate::cli) struct Unanswered(Option<u32>);

impl Unanswered {
    pub(in crate::cli) fn asked(&mut self) {
        self.0 = Some(0);
    }

    pub(in crate::cli) fn answered(&mut self) {
        self.0 = None;
    }

    pub(in crate::cli) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Counts a second, unless the worker `waits` for a disk. Whether that is more than a mount may
    /// take.
    pub(in crate::cli) fn second_passed(&mut self, waits: impl FnOnce() -> bool) -> bool {
        let Some(seconds) = &mut self.0 else {
            return false;
        };
        if !waits() {
            *seconds += 1;
        }
        *seconds >= limits::MOUNT_UNANSWERED
    }
}

/// Whether a thread of this process waits for a disk or for a server; proc(5), /proc/PID/stat,
/// `state`.
pub(in crate::cli) fn waits_for_disk(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let mut threads = threads.into_iter().flatten().flatten();
    threads.any(|thread| state(&thread.path()) == Some('D'))
}

fn state(thread: &Path) -> Option<char> {
    let stat = std::fs::read_to_string(thread.join("stat")).ok()?;
    // The name before it may hold anything.
    let (_, after) = stat.rsplit_once(") ")?;
    after.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_given_up_after_so_many_seconds_without_an_answer() {
        let mut unanswered = Unanswered::default();
        assert!(!unanswered.is_open() && !unanswered.second_passed(|| false));
        unanswered.asked();
        for _ in 1..limits::MOUNT_UNANSWERED {
            assert!(!unanswered.second_passed(|| false));
            assert!(!unanswered.second_passed(|| true), "a slow disk");
        }
        assert!(unanswered.second_passed(|| false));
        unanswered.answered();
        assert!(!unanswered.is_open());
        unanswered.asked();
        assert!(!unanswered.second_passed(|| false), "counted anew");
    }

    #[test]
    fn a_thread_that_runs_waits_for_no_disk() {
        assert_eq!(state(Path::new("/proc/thread-self")), Some('R'));
        assert_eq!(state(Path::new("/nowhere")), None);
        assert!(!waits_for_disk(u32::MAX));
    }
}
