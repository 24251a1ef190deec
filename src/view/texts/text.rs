//! Content that is whole in memory: short texts, pictures.

use std::sync::{Arc, Mutex, Weak};

use crate::array::{Bytes, CancelToken, Engine, HeldMemory};
use crate::error::Result;
use crate::memory::lock::lock;
use crate::view::View;
use crate::wire::{to_u64, to_usize};

/// A short text; its copies share the bytes.
#[derive(Clone)]
pub(crate) struct Text {
    bytes: Arc<Vec<u8>>,
    is_of_the_moment: bool,
    /// What the copies that are open take together.
    held: Arc<Mutex<Weak<HeldMemory>>>,
    open: Option<Arc<HeldMemory>>,
}

impl Text {
    /// A text whose length `stat` tells.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Text {
            bytes: Arc::new(bytes),
            is_of_the_moment: false,
            held: Arc::default(),
            open: None,
        }
    }

    /// A text that tells how things are now.
    pub(crate) fn of_the_moment(bytes: Vec<u8>) -> Self {
        Text {
            is_of_the_moment: true,
            ..Self::new(bytes)
        }
    }

    /// Whether another copy of it is there.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }

    /// A copy for an open file: all those that are open at a time count once.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) where all that is open takes too much memory.
    pub(crate) fn opened(&self, engine: &Engine) -> Result<Self> {
        let mut held = lock(&self.held);
        let memory = match held.upgrade() {
            Some(memory) => memory,
            None => Arc::new(engine.hold(self.weight())?),
        };
        *held = Arc::downgrade(&memory);
        let open = Some(memory);
        Ok(Text {
            open,
            ..self.clone()
        })
    }

    /// Bytes of memory that it takes.
    pub(crate) fn weight(&self) -> u64 {
        to_u64(self.bytes.capacity())
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl View for Text {
    fn length(&self) -> u64 {
        to_u64(self.bytes.len())
    }

    fn is_of_the_moment(&self) -> bool {
        self.is_of_the_moment
    }

    fn own_bytes(&self) -> u64 {
        match self.open {
            Some(_) => 0,
            None => self.weight(),
        }
    }

    fn read_for(&self, offset: u64, length: usize, _: &CancelToken) -> Result<Bytes> {
        let start = to_usize(offset)?.min(self.bytes.len());
        let end = start.saturating_add(length).min(self.bytes.len());
        Ok(Bytes::from(self.bytes[start..end].to_vec()))
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        self.read_at(offset, length).map(Some)
    }
}
