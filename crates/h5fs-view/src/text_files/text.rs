//! Files whose content is entirely in memory: short texts and pictures.

use std::sync::{Arc, Mutex, Weak};

use h5fs_reader::array::{Bytes, CancelToken, Engine, MemoryReservation};
use h5fs_reader::error::Result;
use h5fs_reader::memory::lock::lock;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::view::View;

/// The content of a file that is entirely in memory. Clones of a `InMemoryContent` share the bytes.
#[derive(Clone)]
pub struct InMemoryContent {
    bytes: Arc<Vec<u8>>,
    is_of_the_moment: bool,
    /// The charge to the memory budget. All open clones share it.
    shared_charge: Arc<Mutex<Weak<MemoryReservation>>>,
    open_charge: Option<Arc<MemoryReservation>>,
}

impl InMemoryContent {
    /// Creates content that the kernel may cache.
    pub fn new(bytes: Vec<u8>) -> Self {
        InMemoryContent {
            bytes: Arc::new(bytes),
            is_of_the_moment: false,
            shared_charge: Arc::default(),
            open_charge: None,
        }
    }

    /// Creates content about the current state of the mount, which may differ at each open. The
    /// kernel must not cache it.
    pub fn new_of_current_state(bytes: Vec<u8>) -> Self {
        InMemoryContent {
            is_of_the_moment: true,
            ..Self::new(bytes)
        }
    }

    /// Returns whether another clone of the content exists.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.bytes) > 1
    }

    /// Creates a clone for an open file. All clones that are open at the same time are charged to
    /// the memory budget only once.
    ///
    /// # Errors
    /// `Io` (`ENOMEM`) if the memory budget of the mount has too little left.
    pub fn open_copy(&self, engine: &Engine) -> Result<Self> {
        let mut held = lock(&self.shared_charge);
        let memory = match held.upgrade() {
            Some(memory) => memory,
            None => Arc::new(engine.reserve_memory(self.weight())?),
        };
        *held = Arc::downgrade(&memory);
        let open = Some(memory);
        Ok(InMemoryContent {
            open_charge: open,
            ..self.clone()
        })
    }

    /// Returns the memory in bytes that the text occupies.
    pub fn weight(&self) -> u64 {
        to_u64(self.bytes.capacity())
    }

    /// Returns all bytes of the text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl View for InMemoryContent {
    fn length(&self) -> u64 {
        to_u64(self.bytes.len())
    }

    fn changes_at_each_open(&self) -> bool {
        self.is_of_the_moment
    }

    fn own_bytes(&self) -> u64 {
        match self.open_charge {
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
