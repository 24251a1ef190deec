//! The means that decoders use one after another: memory, and the state of codecs that is slow to
//! make.

use crate::memory::buffer::BufferPool;

/// The means of one decode at a time, whatever its filters are. No content of a chunk is in it.
#[derive(Default)]
pub struct Context {
    /// Where the memory of results comes from.
    pub(super) pool: BufferPool,
    /// The tables of libdeflate, some kilobytes.
    pub(super) deflate: Option<libdeflater::Decompressor>,
    /// The context of Zstandard: to make one for every chunk is a twentieth of the work.
    pub(super) zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Context {
    /// A context whose decoders take their memory from `pool`.
    pub fn new(pool: &BufferPool) -> Self {
        Context {
            pool: pool.clone(),
            ..Context::default()
        }
    }

    /// Where the memory of results comes from.
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.pool
    }
}
