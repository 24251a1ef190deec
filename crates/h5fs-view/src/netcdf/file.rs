//! A computed netCDF file, of which any range of bytes can be read.

use std::ops::Range;

use h5fs_reader::array::{Bytes, CancelToken};
use h5fs_reader::error::{Error, Result};
use h5fs_reader::wire::{to_u64, to_usize};

use crate::elements::overlapping_bytes;
use crate::netcdf::layout::{Layout, VariablePlace};
use crate::view::View;

/// Number of bytes of records to assemble at a time.
const BATCH: u64 = 1 << 20;

/// A netCDF file whose bytes are computed when they are read.
pub struct NetcdfFile {
    header: Vec<u8>,
    records_begin: u64,
    record_bytes: u64,
    length: u64,
    /// The variables without records, in the order of their offsets.
    fixed: Vec<FileVariable>,
    /// The variables with records, in the order of their offsets.
    recorded: Vec<FileVariable>,
}

/// The data of a variable, and the location of the data in the file.
struct FileVariable {
    place: VariablePlace,
    /// The values of all records, one after another, without padding.
    content: Box<dyn View>,
    /// The bytes of one value of the padding.
    padding: &'static [u8],
}

/// The values of a variable that are in a range of the file.
struct RecordPart<'a> {
    variable: &'a FileVariable,
    /// The offset of `bytes` in the variable's content.
    start: u64,
    bytes: Bytes,
}

impl NetcdfFile {
    /// Creates the file with the header `header`. `contents` has the values of each variable, and
    /// the bytes of one value of its padding.
    pub(super) fn new(
        header: Vec<u8>,
        layout: Layout,
        contents: Vec<(Box<dyn View>, &'static [u8])>,
    ) -> Self {
        let places = layout.places.into_iter().zip(contents);
        let variables = places.map(|(place, (content, padding))| FileVariable {
            place,
            content,
            padding,
        });
        let (recorded, fixed) = variables.partition(|variable| variable.place.is_record);
        NetcdfFile {
            header,
            records_begin: layout.records_begin,
            record_bytes: layout.record_bytes,
            length: layout.length,
            fixed,
            recorded,
        }
    }

    /// Returns the variable without records that contains the byte at `offset`.
    fn fixed_at(&self, offset: u64) -> Option<&FileVariable> {
        let after = self
            .fixed
            .partition_point(|variable| variable.place.begin <= offset);
        // Variables without bytes begin where the next variable begins.
        let found = self.fixed.get(after.checked_sub(1)?)?;
        (offset - found.place.begin < found.place.padded_bytes).then_some(found)
    }

    /// Appends the bytes of records from `at` to at most `end`. Returns the offset after them.
    fn read_records(
        &self,
        at: u64,
        end: u64,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let record_bytes = self.record_bytes.max(1);
        let (first, last) = (at - self.records_begin, end - self.records_begin);
        let batch = (BATCH / record_bytes).max(1);
        let batch_end = (first / record_bytes + batch).saturating_mul(record_bytes);
        let range = first..last.min(batch_end);
        let mut parts = Vec::new();
        for variable in &self.recorded {
            parts.push(self.record_part(variable, &range, cancel)?);
        }
        for record in range.start / record_bytes..range.end.div_ceil(record_bytes) {
            for part in &parts {
                part.write(self.records_begin, record, record_bytes, &range, out)?;
            }
        }
        cancel.next_batch(at, self.records_begin + range.end)
    }

    /// Reads those values of a variable that are in `range`, a range of offsets from the first
    /// record on.
    fn record_part<'a>(
        &self,
        variable: &'a FileVariable,
        range: &Range<u64>,
        cancel: &CancelToken,
    ) -> Result<RecordPart<'a>> {
        let offset = |at: u64| {
            let (record, within) = (at / self.record_bytes, at % self.record_bytes);
            let within = within.saturating_sub(variable.place.begin - self.records_begin);
            let bytes = variable.place.bytes;
            record
                .saturating_mul(bytes)
                .saturating_add(within.min(bytes))
        };
        let (start, end) = (offset(range.start), offset(range.end));
        Ok(RecordPart {
            variable,
            start,
            bytes: variable.read(start..end, cancel)?,
        })
    }
}

impl FileVariable {
    /// Reads a range of the variable's values.
    fn read(&self, range: Range<u64>, cancel: &CancelToken) -> Result<Bytes> {
        let length = to_usize(range.end.saturating_sub(range.start))?;
        if length == 0 {
            return Ok(Bytes::from(Vec::new()));
        }
        let bytes = self.content.read_for(range.start, length, cancel)?;
        if bytes.len() == length {
            Ok(bytes)
        } else {
            Err(Error::corrupt("array: fewer elements than its shape", None))
        }
    }

    /// Appends the padding in `range`, which is a range of offsets in the padded variable.
    fn write_padding(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        let first = range.start.max(self.place.bytes);
        let last = range.end.min(self.place.padded_bytes);
        let values = self.padding.iter().cycle().copied();
        let before = usize::try_from(first - self.place.bytes).unwrap_or_default();
        let count = usize::try_from(last.saturating_sub(first)).unwrap_or_default();
        out.extend(values.skip(before % self.padding.len().max(1)).take(count));
    }

    /// Appends the bytes of a variable without records from `at` to at most `end`, offsets in the
    /// file. Returns the offset after them.
    fn read_fixed(
        &self,
        at: u64,
        end: u64,
        cancel: &CancelToken,
        out: &mut Vec<u8>,
    ) -> Result<u64> {
        let VariablePlace {
            begin,
            bytes,
            padded_bytes,
            ..
        } = self.place;
        let range = at - begin..(end - begin).min(padded_bytes);
        let values = self.read(range.start..range.end.min(bytes), cancel)?;
        out.extend_from_slice(&values);
        self.write_padding(&range, out);
        cancel.next_batch(at, begin + range.end)
    }
}

impl RecordPart<'_> {
    /// Appends the bytes of the variable in record number `record` that are in `range`, a range of
    /// offsets from the first record on.
    fn write(
        &self,
        records_begin: u64,
        record: u64,
        record_bytes: u64,
        range: &Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let place = self.variable.place;
        let begin = record.saturating_mul(record_bytes) + (place.begin - records_begin);
        // The records of a single variable are not padded.
        let padded = place.padded_bytes.min(record_bytes);
        let within = |at: u64| at.saturating_sub(begin).min(padded);
        let part = within(range.start)..within(range.end);
        let first = record.saturating_mul(place.bytes);
        let values = first + part.start.min(place.bytes)..first + part.end.min(place.bytes);
        let values = overlapping_bytes(&self.bytes, self.start, &values);
        out.extend_from_slice(self.bytes.get(values).unwrap_or_default());
        self.variable.write_padding(&part, out);
        Ok(())
    }
}

impl View for NetcdfFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn own_bytes(&self) -> u64 {
        let variables = self.fixed.iter().chain(&self.recorded);
        let contents = variables.map(|variable| {
            let own = to_u64(size_of::<FileVariable>());
            own.saturating_add(variable.content.own_bytes())
        });
        contents.fold(to_u64(self.header.len()), u64::saturating_add)
    }

    fn read_for(&self, offset: u64, length: usize, cancel: &CancelToken) -> Result<Bytes> {
        let end = offset.saturating_add(to_u64(length)).min(self.length);
        let mut out = Vec::new();
        let header = overlapping_bytes(&self.header, 0, &(offset..end));
        out.extend_from_slice(self.header.get(header).unwrap_or_default());
        let mut at = offset.max(to_u64(self.header.len()));
        while at < end.min(self.records_begin) {
            let variable = self.fixed_at(at).ok_or(Error::NotFound)?;
            at = variable.read_fixed(at, end, cancel, &mut out)?;
        }
        while at < end {
            at = self.read_records(at, end, cancel, &mut out)?;
        }
        Ok(out.into())
    }

    fn read_now(&self, offset: u64, length: usize) -> Result<Option<Bytes>> {
        let Some(variable) = self.fixed_at(offset) else {
            return Ok(None);
        };
        let start = offset - variable.place.begin;
        if start.saturating_add(to_u64(length)) > variable.place.bytes {
            return Ok(None);
        }
        variable.content.read_now(start, length)
    }

    fn stops_on_cancel(&self) -> bool {
        let mut variables = self.fixed.iter().chain(&self.recorded);
        variables.any(|variable| variable.content.stops_on_cancel())
    }
}

#[cfg(test)]
mod tests;
