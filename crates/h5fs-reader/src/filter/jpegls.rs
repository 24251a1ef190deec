//! Filter 32018, FCIDECOMP: a chunk is an image in JPEG-LS (ITU-T T.87), lossless or nearly
//! lossless, with the markers of an image at its start. The filter's parameters are used only by
//! its encoder. Samples of more than 8 bits have two bytes, the low one first, whatever the byte
//! order of the datatype. The encoder reads the chunk's bytes in this order.
//!
//! If each component has its own scan, the components follow each other in the chunk. If one scan
//! contains all components, the samples of a pixel are adjacent.

mod bits;
mod coding;
mod header;
mod model;
#[cfg(test)]
mod tests;

use bits::ScanBits;
use coding::CodingParameters;
use header::{Frame, Interleave, MarkerReader, Scan, corrupt};
use model::{SampleLine, ScanDecoder};

use crate::error::Result;
use crate::filter::{DecodedLength, DecoderResources};
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{WantedCheck, check_wanted};
use crate::wire::Count;

/// Number of samples that are decoded between two calls of `is_wanted`.
const CANCEL_CHECK_SAMPLES: usize = 1 << 19;

/// Returns the decoded bytes of the image `stream`.
///
/// # Errors
/// `Corrupt` for a damaged or truncated stream, or a decoded length that `length` does not allow.
/// `Unsupported` names a rare part of the standard, such as mapping tables and colour transforms.
/// [`Error::cancelled`](crate::error::Error::cancelled) if `is_wanted`, called after each half
/// million samples, returns false.
pub fn decode(
    stream: &[u8],
    length: DecodedLength,
    context: &DecoderResources,
    is_wanted: &WantedCheck<'_>,
) -> Result<Buffer> {
    let mut header = MarkerReader::new(stream)?;
    let mut next = header.read_scan()?;
    let frame = header.frame()?;
    let total = length.check("JPEG-LS", frame.bytes())?;
    let mut missing: Vec<usize> = (0..frame.components.len()).collect();
    let mut output = context.pool.buffer(total)?;
    while let Some(scan) = next {
        for component in &scan.components {
            let place = missing.iter().position(|missing| missing == component);
            missing.remove(place.ok_or_else(|| corrupt("component in two scans"))?);
        }
        decode_scan(&mut header, &scan, &mut output, is_wanted)?;
        next = header.read_scan()?;
    }
    if missing.is_empty() {
        Ok(output)
    } else {
        Err(corrupt("component without a scan"))
    }
}

fn decode_scan(
    header: &mut MarkerReader<'_>,
    scan: &Scan,
    output: &mut [u8],
    is_wanted: &WantedCheck<'_>,
) -> Result<()> {
    let frame = header.frame()?;
    let coding = CodingParameters::new(frame.bits, scan.near, &scan.preset)
        .ok_or_else(|| corrupt("parameters outside their range"))?;
    let mut rows = SampleRows::new(frame, scan, output)?;
    let (lines, width) = (frame.lines, frame.width);
    let interval = match scan.restart_lines {
        0 => lines,
        interval => interval,
    };
    let mut unasked = 0_usize;
    for (number, first) in (0..lines).step_by(interval).enumerate() {
        if let Some(number) = number.checked_sub(1) {
            header.skip_restart(number)?;
        }
        let mut bits = ScanBits::new(header.read_entropy_coded());
        let mut state = ScanState::new(ScanDecoder::new(coding), scan, width);
        for line in first..lines.min(first.plus(interval)) {
            if unasked == 0 {
                check_wanted(is_wanted)?;
            }
            unasked = unasked.plus(width.times(scan.components.len()));
            if unasked >= CANCEL_CHECK_SAMPLES {
                unasked = 0;
            }
            state
                .next_line(&mut bits, scan.interleave)
                .ok_or_else(|| corrupt("damaged, or ends too early"))?;
            rows.write(line, &state.lines);
        }
        if !bits.has_only_padding() {
            return Err(corrupt("more bits than the samples need"));
        }
    }
    Ok(())
}

/// The state of the decoder in a scan. Each restart marker resets it.
struct ScanState {
    model: ScanDecoder,
    above: Vec<SampleLine>,
    lines: Vec<SampleLine>,
    /// For each component, its index into the table of run lengths (RUNindex in ITU-T T.87). All
    /// components share the first index if their samples alternate.
    runs: Vec<usize>,
}

impl ScanState {
    fn new(model: ScanDecoder, scan: &Scan, width: usize) -> Self {
        let lines = vec![vec![0; width.plus(2)]; scan.components.len()];
        ScanState {
            model,
            above: lines.clone(),
            lines,
            runs: vec![0; scan.components.len()],
        }
    }

    fn next_line(&mut self, bits: &mut ScanBits<'_>, interleave: Interleave) -> Option<()> {
        std::mem::swap(&mut self.above, &mut self.lines);
        if interleave == Interleave::Sample {
            let run = self.runs.first_mut()?;
            return self
                .model
                .decode_interleaved_line(bits, &self.above, &mut self.lines, run);
        }
        let lines = self.above.iter().zip(&mut self.lines);
        for ((above, line), run) in lines.zip(&mut self.runs) {
            self.model.decode_line(bits, above, line, run)?;
        }
        Some(())
    }
}

/// The part of the output that receives the samples of a scan.
struct SampleRows<'a> {
    output: &'a mut [u8],
    row_bytes: usize,
    sample_bytes: usize,
}

impl<'a> SampleRows<'a> {
    fn new(frame: &Frame, scan: &Scan, output: &'a mut [u8]) -> Result<Self> {
        let (components, plane) = (scan.components.len(), frame.plane_bytes());
        let output = match *scan.components.as_slice() {
            [component] => {
                let start = component.times(plane);
                output.get_mut(start..start.plus(plane))
            }
            _ if components == frame.components.len() => Some(output),
            _ => None,
        };
        Ok(SampleRows {
            output: output.ok_or_else(|| corrupt("scan of some components"))?,
            row_bytes: frame.line_bytes().times(components),
            sample_bytes: frame.sample_bytes(),
        })
    }

    /// Writes line `number` of the scan: one line of samples of each component.
    fn write(&mut self, number: usize, lines: &[SampleLine]) {
        let start = number.times(self.row_bytes);
        let row = self.output.get_mut(start..start.plus(self.row_bytes));
        let row = row.unwrap_or_default();
        if self.sample_bytes == 1 {
            write_samples::<1>(row, lines);
        } else {
            write_samples::<2>(row, lines);
        }
    }
}

/// Writes the first sample of each of the `lines`, then the second sample of each, and so on. Each
/// sample takes `BYTES` bytes.
fn write_samples<const BYTES: usize>(row: &mut [u8], lines: &[SampleLine]) {
    for (component, line) in lines.iter().enumerate() {
        let places = row.as_chunks_mut::<BYTES>().0.iter_mut();
        let places = places.skip(component).step_by(lines.len().max(1));
        for (place, sample) in places.zip(line.iter().skip(1)) {
            let bytes = sample.to_le_bytes();
            *place = *bytes.first_chunk().unwrap_or(&[0; BYTES]);
        }
    }
}
