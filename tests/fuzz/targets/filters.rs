//! Fuzzes every filter. The input consists of the filter's number, the number of parameters, the
//! chunk's length, the parameters, and the stored bytes.

#![no_main]

use h5fs_reader::filter::{DecoderResources, decode};
use h5fs_reader::model::storage::{Filter, Pipeline};

const FILTERS: [u16; 17] = [
    1, 2, 3, 4, 5, 6, 305, 307, 32000, 32001, 32003, 32004, 32008, 32013, 32015, 32026, 32018,
];

/// Maximum length of a chunk in bytes. Longer chunks would only cost time.
const CHUNK: usize = 1 << 20;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some(([which, count, low, middle, high], rest)) = bytes.split_first_chunk() else {
        return;
    };
    let length = usize::from(*low) | usize::from(*middle) << 8 | usize::from(*high) << 16;
    let words = usize::from(*count % 24).min(rest.len() / 4);
    let (parameters, stored) = rest.split_at(4 * words);
    let (parameters, _) = parameters.as_chunks();
    let filter = Filter {
        id: FILTERS[usize::from(*which) % FILTERS.len()],
        name: None,
        parameters: parameters
            .iter()
            .map(|word| u32::from_le_bytes(*word))
            .collect(),
    };
    let length = length % CHUNK;
    let stored = stored.to_vec().into();
    let (pipeline, context) = (Pipeline(vec![filter]), &mut DecoderResources::default());
    if let Ok(decoded) = decode(&pipeline, 0, stored, length, context, &|| true) {
        assert_eq!(decoded.len(), length);
    }
});
