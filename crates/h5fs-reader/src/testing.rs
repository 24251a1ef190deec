//! Helpers for the tests of all crates: waiting for events, skipping, and values of arrays.
//! [`source::remote::fake`](crate::source::remote::fake) has a fetcher in memory.

#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a helper of tests may panic"
)]

use std::io::Write;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::memory::request_budget::RequestBudget;
use crate::model::datatype::{ByteOrder, Class, Datatype, Member, ReferenceKind};
use crate::model::{Attribute, Container, Link, LinkStream, Node, NodeId, Reference};

/// Time that a test waits for an expected event. It ends a test that hangs, and is long enough for
/// a very busy machine.
const PATIENCE: Duration = Duration::from_secs(200);

/// Waits until `is` returns true.
#[track_caller]
pub fn eventually(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Reports that the calling test is skipped, and why. The report is written directly to standard
/// error, because libtest hides the output of a passing test.
///
/// # Panics
/// Panics if `$H5FS_MAY_SKIP` is set and does not name the test.
#[track_caller]
pub fn skip(why: &str) {
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
    if let Ok(names) = std::env::var("H5FS_MAY_SKIP") {
        let may_skip = names.split_whitespace().any(|name| name == test);
        assert!(may_skip, "{test} must not be skipped here: {why}");
    }
}

/// Returns the processor time of this thread, which a busy machine increases only slightly.
pub fn processor_time() -> Duration {
    let schedule = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds = schedule.split(' ').next().unwrap().parse().unwrap();
    Duration::from_nanos(nanoseconds)
}

/// A container that contains only pointer targets. A variable-length element is one byte: the index
/// of its bytes in the list, or null if the index is out of range. A reference is one byte: a
/// node's number, 0 for null.
pub struct Heap(
    /// The bytes of each pointer target.
    pub Vec<Vec<u8>>,
);

impl Container for Heap {
    fn for_request(self: Arc<Self>, _: &RequestBudget) -> Arc<dyn Container> {
        self
    }
    fn root(&self) -> NodeId {
        NodeId::for_test(0)
    }
    fn node(&self, _: NodeId) -> Result<Arc<Node>> {
        Err(Error::NotFound)
    }
    fn link(&self, _: NodeId, _: &[u8]) -> Result<Option<Link>> {
        Ok(None)
    }
    fn links(&self, _: NodeId) -> Result<Box<dyn LinkStream>> {
        Err(Error::NotFound)
    }
    fn attributes(&self, _: NodeId, _: &mut dyn FnMut(Attribute) -> ControlFlow<()>) -> Result<()> {
        Ok(())
    }
    fn attribute(&self, _: NodeId, _: &[u8]) -> Result<Option<Attribute>> {
        Ok(None)
    }
    fn variable_length_bytes(&self, element: &[u8], _: u64) -> Result<Option<u64>> {
        let bytes = self.0.get(usize::from(element[0]));
        Ok(bytes.map(|bytes| bytes.len() as u64))
    }
    fn read_variable_length(
        &self,
        element: &[u8],
        _: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        let bytes = self.0.get(usize::from(element[0]));
        Ok(bytes.map(|bytes| bytes[part.start as usize..part.end as usize].to_vec()))
    }
    fn text_length(&self, element: &[u8]) -> Result<u64> {
        let bytes = self.0.get(usize::from(element[0]));
        let text = bytes.and_then(|bytes| bytes.split(|&byte| byte == 0).next());
        Ok(text.map_or(0, |text| text.len() as u64))
    }
    fn reference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        let node = NodeId::for_test(element[0].into());
        Ok(match (kind, element[0]) {
            (_, 0) => Reference::Null,
            (ReferenceKind::Object, 0xFF) => Reference::Dangling(u64::MAX - 1),
            (ReferenceKind::Standard, 1) => Reference::Attribute {
                node,
                name: b"units".to_vec(),
            },
            (ReferenceKind::Standard, _) => Reference::External {
                file: b"other.h5".to_vec(),
                address: 0x60,
            },
            _ => Reference::Object(node),
        })
    }
}

/// Returns a datatype of this size in bytes.
pub fn type_of(size: u32, class: Class) -> Datatype {
    Datatype { size, class }
}

/// Returns the member of a compound datatype.
pub fn member(name: &str, offset: u32, datatype: Datatype) -> Member {
    Member {
        name: name.as_bytes().to_vec(),
        offset,
        datatype,
    }
}

/// Returns a signed little-endian integer of this size in bytes.
pub fn int(size: u16) -> Datatype {
    Datatype::integer(size, true, ByteOrder::Little)
}
