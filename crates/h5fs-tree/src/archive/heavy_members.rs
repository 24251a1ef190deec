//! A limit for the total memory of the heavy data files (members) that requests use at the same
//! time. A member is heavy if it occupies more than [`MAX_LIGHT_BYTES`] bytes.
//!
//! A closed member occupies its memory until its last request ends. Requests to heavy members
//! therefore wait, in order of arrival, until all running ones together are within
//! [`limits::HEAVY_AT_WORK`]. Reopening a heavy member takes long. So a member stays admitted for a
//! while after its last request, and the next request of the same program starts without waiting.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5fs_reader::error::Result;
use h5fs_reader::memory::cancel::CancelToken;
use h5fs_reader::memory::gate::{AdmissionGate, AdmissionQueue, fits};

use crate::limits;
use crate::requests::Ino;

/// Maximum memory in bytes of a light member. Requests to light members do not wait for admission.
pub(super) const MAX_LIGHT_BYTES: u64 = limits::OPEN_MOUNTED_BYTES / 4;

/// Time for which a member without requests stays admitted, so that the next request of the same
/// program does not wait.
const IDLE_ADMISSION_TIME: Duration = Duration::from_millis(10);

/// Time after its admission for which further requests to a member start without waiting. After
/// that, the member waits for admission again.
const ADMISSION_TIME: Duration = Duration::from_secs(1);

/// The heavy members that are admitted: their requests may run.
#[derive(Default)]
pub(super) struct HeavyMembers(Arc<AdmissionGate<BusyMembers>>);

type BusyMembers = HashMap<Ino, BusyMember>;

struct BusyMember {
    weight: u64,
    requests: usize,
    admitted_at: Instant,
    /// Time when the member's last request ended.
    idle_since: Instant,
}

/// A guard for a running request to a heavy member. Dropping the guard ends the request.
pub(super) struct HeavyRequest<'a> {
    heavy: &'a HeavyMembers,
    entry: Ino,
}

impl HeavyMembers {
    /// Waits until a request to the member with the inode number `entry` and `weight` bytes of
    /// memory may start. A request to a light member starts at once, and returns `None`.
    ///
    /// # Errors
    /// [`Error::cancelled`](h5fs_reader::error::Error::cancelled) if the request is cancelled, or
    /// if it runs in a quick slot and must be tried again in a heavy slot.
    pub(super) fn begin_request(
        &self,
        entry: Ino,
        weight: u64,
        cancel: &CancelToken,
    ) -> Result<Option<HeavyRequest<'_>>> {
        if weight <= MAX_LIGHT_BYTES {
            return Ok(None);
        }
        if !self.begin_if_admitted(entry) {
            cancel.require_heavy_slot()?;
            let admit =
                |members: &mut BusyMembers, _: &AdmissionQueue| admit(members, entry, weight);
            self.0
                .enter((0, weight), admit, || cancel.check_cancelled())?;
        }
        Ok(Some(HeavyRequest { heavy: self, entry }))
    }

    /// Starts a request to the member `entry` if the member is still admitted. Returns whether the
    /// request was started.
    fn begin_if_admitted(&self, entry: Ino) -> bool {
        self.0.with_guarded(|members, _| {
            let own = members.get_mut(&entry);
            let own =
                own.filter(|own| own.is_active() && own.admitted_at.elapsed() < ADMISSION_TIME);
            own.map(|own| own.requests = own.requests.saturating_add(1))
                .is_some()
        })
    }
}

impl BusyMember {
    /// Creates the state of a member that has no requests.
    fn new() -> Self {
        let now = Instant::now();
        BusyMember {
            weight: 0,
            requests: 0,
            admitted_at: now,
            idle_since: now,
        }
    }

    /// Registers a request to this member, after the member was admitted with `weight` bytes of
    /// memory.
    fn add_request(&mut self, weight: u64) {
        self.weight = self.weight.max(weight);
        self.requests = self.requests.saturating_add(1);
        self.admitted_at = Instant::now();
    }

    fn is_active(&self) -> bool {
        self.requests > 0
            || self.idle_since.elapsed() < IDLE_ADMISSION_TIME
                && self.admitted_at.elapsed() < ADMISSION_TIME
    }
}

/// Admits the member and registers a request to it, if its memory and the memory of the other
/// admitted members are within the limit. Returns whether the member was admitted.
fn admit(members: &mut BusyMembers, entry: Ino, weight: u64) -> bool {
    members.retain(|_, at_work| at_work.is_active());
    let others = members.iter().filter(|(other, _)| **other != entry);
    let taken = others.fold(0, |sum: u64, (_, at_work)| {
        sum.saturating_add(at_work.weight)
    });
    let has_room = fits(taken, weight, limits::HEAVY_AT_WORK);
    if has_room {
        let own = members.entry(entry).or_insert_with(BusyMember::new);
        own.add_request(weight);
    }
    has_room
}

impl Drop for HeavyRequest<'_> {
    fn drop(&mut self) {
        self.heavy.0.update_guarded(|members| {
            if let Some(own) = members.get_mut(&self.entry) {
                own.requests = own.requests.saturating_sub(1);
                own.idle_since = Instant::now();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use h5fs_reader::testing::eventually;

    use super::*;

    fn begin(heavy: &HeavyMembers, entry: Ino, weight: u64) -> Option<HeavyRequest<'_>> {
        heavy
            .begin_request(entry, weight, &CancelToken::default())
            .unwrap()
    }

    const HALF: u64 = limits::HEAVY_AT_WORK / 2;

    #[test]
    fn the_weight_of_busy_heavy_members_is_limited() {
        let heavy = HeavyMembers::default();
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for entry in 0..16 {
                let (heavy, now, most) = (&heavy, &now, &most);
                scope.spawn(move || {
                    let _request = begin(heavy, entry, HALF);
                    most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
                    eventually("two are at work", || most.load(Ordering::Relaxed) > 1);
                    std::thread::sleep(Duration::from_millis(2));
                    now.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        assert_eq!(most.into_inner(), 2);
        let is_over = |own: &BusyMember| own.requests == 0;
        assert!(
            heavy
                .0
                .with_guarded(|members, _| members.values().all(is_over))
        );
    }

    #[test]
    fn a_member_counts_once_and_light_ones_never() {
        let heavy = HeavyMembers::default();
        let requests: Vec<_> = (0..3).map(|_| begin(&heavy, 1, HALF)).collect();
        let other = begin(&heavy, 2, HALF);
        assert!(begin(&heavy, 3, MAX_LIGHT_BYTES).is_none());
        assert_eq!(requests.iter().flatten().count(), 3);
        assert!(other.is_some());
    }

    #[test]
    fn a_member_is_readmitted_until_another_takes_its_memory() {
        let heavy = HeavyMembers::default();
        drop(begin(&heavy, 1, 2 * HALF));
        assert!(heavy.begin_if_admitted(1));
        drop(HeavyRequest {
            heavy: &heavy,
            entry: 1,
        });
        drop(begin(&heavy, 2, 2 * HALF));
        assert!(!heavy.begin_if_admitted(1));
    }

    #[test]
    fn a_single_member_may_exceed_the_limit() {
        let heavy = HeavyMembers::default();
        assert!(begin(&heavy, 1, 3 * HALF).is_some());
    }
}
