//! A source that counts the round trips that reading it would need if it were remote. Ranges that
//! are announced before a read arrive in the same round trip as the bytes of the read.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a helper of tests may panic"
)]

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::memory::cancel::WantedCheck;
use crate::memory::lock::lock;
use crate::source::memory::MemorySource;
use crate::source::{SharedSource, Source, Urgency};
use crate::wire::{Count, Extent, to_u64};

/// A source that behaves like a remote one, without delays.
pub struct RoundTripRecorder {
    source: SharedSource,
    /// Size of the blocks in which bytes arrive.
    block: u64,
    record: Mutex<RequestLog>,
}

#[derive(Default)]
struct RequestLog {
    /// All announced ranges.
    announced: Vec<(u64, u64, Urgency)>,
    /// Ranges requested since the last round trip.
    in_flight: Vec<(u64, u64)>,
    /// Start and end of the ranges that have arrived: ascending and disjoint.
    arrived: Vec<(u64, u64)>,
    trips: usize,
    pages: Option<(u64, u64)>,
}

impl RequestLog {
    fn has_arrived(&self, start: u64, end: u64) -> bool {
        let before = self.arrived.partition_point(|&(from, _)| from <= start);
        let range = before
            .checked_sub(1)
            .and_then(|index| self.arrived.get(index));
        start >= end || range.is_some_and(|&(_, until)| end <= until)
    }

    fn record_arrival(&mut self, block: u64) {
        let whole = |(start, end): (u64, u64)| {
            let before = start.checked_rem(block).unwrap_or(0);
            let end = end.checked_next_multiple_of(block).unwrap_or(u64::MAX);
            (start.minus_or_zero(before), end)
        };
        let came = std::mem::take(&mut self.in_flight);
        self.arrived.extend(came.into_iter().map(whole));
        self.arrived.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in std::mem::take(&mut self.arrived) {
            match merged.last_mut() {
                Some((_, until)) if start <= *until => *until = end.max(*until),
                _ => merged.push((start, end)),
            }
        }
        self.arrived = merged;
        self.trips = self.trips.plus_one();
    }
}

impl RoundTripRecorder {
    /// Creates a source of `bytes`. Exactly the requested bytes arrive, not whole blocks.
    pub fn new(bytes: Vec<u8>) -> Arc<Self> {
        Self::with_block_size(Arc::new(MemorySource::new(bytes)), 1)
    }

    /// Creates a source whose bytes arrive in blocks of `block` bytes.
    pub fn with_block_size(source: SharedSource, block: u64) -> Arc<Self> {
        Arc::new(RoundTripRecorder {
            source,
            block,
            record: Mutex::default(),
        })
    }

    /// Returns the number of round trips so far.
    pub fn round_trips(&self) -> usize {
        lock(&self.record).trips
    }

    /// Returns the number of bytes that have arrived.
    pub fn bytes(&self) -> u64 {
        let here = &lock(&self.record).arrived;
        let lengths = here.iter().map(|(start, end)| end.minus_or_zero(*start));
        u64::sum(lengths)
    }

    /// Returns the announced ranges.
    pub fn announced_ranges(&self) -> Vec<(u64, u64, Urgency)> {
        lock(&self.record).announced.clone()
    }

    /// Returns the base and the length of the pages that a caller has announced with
    /// `set_metadata_pages`.
    pub fn pages(&self) -> Option<(u64, u64)> {
        lock(&self.record).pages
    }

    /// Resets the record: no bytes have arrived, and the counts are zero.
    pub fn reset(&self) {
        *lock(&self.record) = RequestLog::default();
    }
}

impl fmt::Debug for RoundTripRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recording({:?})", self.source)
    }
}

impl Source for RoundTripRecorder {
    fn length(&self) -> u64 {
        self.source.length()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn prefetch(&self, ranges: &[(u64, u64)], urgency: Urgency) {
        let mut record = lock(&self.record);
        for &(at, length) in ranges {
            record.announced.push((at, length, urgency));
            record
                .in_flight
                .push((at, Extent::saturating(at, length).end()));
        }
    }

    fn is_available(&self, at: u64, length: u64) -> bool {
        lock(&self.record).has_arrived(at, Extent::saturating(at, length).end())
    }

    fn set_metadata_pages(&self, base: u64, length: u64) {
        lock(&self.record).pages = Some((base, length));
    }

    fn read_cancellable(
        &self,
        at: u64,
        buffer: &mut [u8],
        is_wanted: &WantedCheck<'_>,
    ) -> Result<()> {
        let end = Extent::saturating(at, to_u64(buffer.len())).end();
        let mut record = lock(&self.record);
        if !record.has_arrived(at, end) {
            record.in_flight.push((at, end));
            record.record_arrival(self.block);
        }
        drop(record);
        self.source.read_cancellable(at, buffer, is_wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_ranges_arrive_with_the_next_read() {
        let far = RoundTripRecorder::with_block_size(Arc::new(MemorySource::new(vec![7; 100])), 10);
        far.prefetch(&[(31, 2), (80, 20)], Urgency::Expected);
        assert!(!far.is_available(31, 2));
        far.read_at(5, &mut [0; 3]).unwrap();
        assert!(
            far.is_available(30, 10)
                && far.is_available(0, 10)
                && far.is_available(80, 20)
                && !far.is_available(8, 3)
        );
        far.read_at(85, &mut [0; 10]).unwrap();
        assert_eq!((far.round_trips(), far.bytes()), (1, 40));
        far.read_at(9, &mut [0; 2]).unwrap();
        assert_eq!((far.round_trips(), far.bytes()), (2, 50));
    }
}
