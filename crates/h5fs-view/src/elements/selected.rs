//! The file of the elements that a selector picks.

use h5fs_reader::array::{Bytes, CancelToken, SelectedElements};
use h5fs_reader::error::Result;

use crate::elements::raw::chunk_values;
use crate::limits;
use crate::view::View;

impl View for SelectedElements {
    fn length(&self) -> u64 {
        self.length()
    }

    fn chunk_values(&self) -> u64 {
        // The selection touches at most as many chunks as it has elements.
        let array = self.array();
        let elements = self.length() / u64::from(array.datatype.size.max(1));
        let most = elements.saturating_mul(limits::FILTERED_CHUNK_VALUES);
        chunk_values(array).min(most)
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        self.read(offset, length, cancel)
    }
}
