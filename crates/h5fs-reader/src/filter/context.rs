//! Resources that decoders reuse: buffers, and codec state that is slow to create.

use crate::memory::buffer::BufferPool;

/// The resources for decoding one chunk at a time, whatever its filters. The context keeps no
/// content of a chunk.
#[derive(Default)]
pub struct DecoderResources {
    /// The pool that provides the buffers of results.
    pub(super) pool: BufferPool,
    /// The decompressor of libdeflate, with tables of some kilobytes. Created when it is first
    /// needed.
    pub(super) deflate: Option<libdeflater::Decompressor>,
    /// The decompression context of Zstandard, created when it is first needed. Creating one for
    /// every chunk would take a twentieth of the decoding time.
    pub(super) zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl DecoderResources {
    /// Creates a context whose decoders take their buffers from `pool`.
    pub fn new(pool: &BufferPool) -> Self {
        DecoderResources {
            pool: pool.clone(),
            ..DecoderResources::default()
        }
    }

    /// Returns the pool that provides the buffers of results.
    pub(crate) fn pool(&self) -> &BufferPool {
        &self.pool
    }
}
