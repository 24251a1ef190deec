//! Filter 32018, FCIDECOMP: a chunk is a stream of JPEG-LS (ITU-T T.87), lossless or nearly so, with
//! the markers of an image before it. The filter's parameters only serve its encoder. Samples of
//! more than 8 bits have two bytes, the low one first, whatever the byte order of the datatype: the
//! encoder takes the chunk's bytes so.
//!
//! Components of scans of their own lie one after the other in the chunk; samples of scans of all
//! components lie beside each other.

mod bits;
mod coding;
mod header;
mod model;
#[cfg(test)]
mod tests;

use bits::Bits;
use coding::Coding;
use header::{Frame, Header, Interleave, Scan, corrupt};
use model::{Line, Model};

use crate::error::Result;
use crate::filter::{Context, Length};
use crate::memory::buffer::Buffer;
use crate::memory::cancel::{IsWanted, still};
use crate::wire::Count;

/// Samples that are decoded until `is_wanted` is asked again.
const UNASKED: usize = 1 << 19;

/// The bytes of the image `stream`.
///
/// # Errors
/// `Corrupt` for a damaged or truncated stream, or one of another length; `Unsupported` for mapping
/// tables, colour transforms and other rare parts of the standard, by name; as `is_wanted` says
/// after each half million of samples.
pub fn decode(
    stream: &[u8],
    length: Length,
    context: &Context,
    is_wanted: &IsWanted<'_>,
) -> Result<Buffer> {
    let mut header = Header::new(stream)?;
    let mut next = header.scan()?;
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
        next = header.scan()?;
    }
    if missing.is_empty() {
        Ok(output)
    } else {
        Err(corrupt("component without a scan"))
    }
}

fn decode_scan(
    header: &mut Header<'_>,
    scan: &Scan,
    output: &mut [u8],
    is_wanted: &IsWanted<'_>,
) -> Result<()> {
    let frame = header.frame()?;
    let coding = Coding::new(frame.bits, scan.near, &scan.preset)
        .ok_or_else(|| corrupt("parameters outside their range"))?;
    let mut rows = Rows::new(frame, scan, output)?;
    let (lines, width) = (frame.lines, frame.width);
    let interval = match scan.restart_lines {
        0 => lines,
        interval => interval,
    };
    let mut unasked = 0_usize;
    for (number, first) in (0..lines).step_by(interval).enumerate() {
        if let Some(number) = number.checked_sub(1) {
            header.restart(number)?;
        }
        let mut bits = Bits::new(header.entropy());
        let mut state = State::new(Model::new(coding), scan, width);
        for line in first..lines.min(first.with_more(interval)) {
            if unasked == 0 {
                still(is_wanted)?;
            }
            unasked = unasked.with_more(width.times(scan.components.len()));
            if unasked >= UNASKED {
                unasked = 0;
            }
            state
                .next_line(&mut bits, scan.interleave)
                .ok_or_else(|| corrupt("damaged, or ends too early"))?;
            rows.write(line, &state.lines);
        }
        if !bits.are_read() {
            return Err(corrupt("more bits than samples"));
        }
    }
    Ok(())
}

/// The state of the decoder of a scan that begins anew at each restart.
struct State {
    model: Model,
    above: Vec<Line>,
    lines: Vec<Line>,
    /// For each component, its place in the lengths of runs; one for all where samples alternate.
    runs: Vec<usize>,
}

impl State {
    fn new(model: Model, scan: &Scan, width: usize) -> Self {
        let lines = vec![vec![0; width.with_more(2)]; scan.components.len()];
        State {
            model,
            above: lines.clone(),
            lines,
            runs: vec![0; scan.components.len()],
        }
    }

    fn next_line(&mut self, bits: &mut Bits<'_>, interleave: Interleave) -> Option<()> {
        std::mem::swap(&mut self.above, &mut self.lines);
        if interleave == Interleave::Sample {
            let run = self.runs.first_mut()?;
            return self.model.samples(bits, &self.above, &mut self.lines, run);
        }
        let lines = self.above.iter().zip(&mut self.lines);
        for ((above, line), run) in lines.zip(&mut self.runs) {
            self.model.line(bits, above, line, run)?;
        }
        Some(())
    }
}

/// Where the samples of a scan go.
struct Rows<'a> {
    output: &'a mut [u8],
    row_bytes: usize,
    sample_bytes: usize,
}

impl<'a> Rows<'a> {
    fn new(frame: &Frame, scan: &Scan, output: &'a mut [u8]) -> Result<Self> {
        let (components, plane) = (scan.components.len(), frame.plane_bytes());
        let output = match *scan.components.as_slice() {
            [component] => {
                let start = component.times(plane);
                output.get_mut(start..start.with_more(plane))
            }
            _ if components == frame.components.len() => Some(output),
            _ => None,
        };
        Ok(Rows {
            output: output.ok_or_else(|| corrupt("scan of some components"))?,
            row_bytes: frame.line_bytes().times(components),
            sample_bytes: frame.sample_bytes(),
        })
    }

    /// Writes the samples of a line of each component.
    fn write(&mut self, number: usize, lines: &[Line]) {
        let start = number.times(self.row_bytes);
        let row = self.output.get_mut(start..start.with_more(self.row_bytes));
        let row = row.unwrap_or_default();
        if self.sample_bytes == 1 {
            write_samples::<1>(row, lines);
        } else {
            write_samples::<2>(row, lines);
        }
    }
}

/// The first sample of each line, then the second, and so on; each in so many bytes.
fn write_samples<const BYTES: usize>(row: &mut [u8], lines: &[Line]) {
    for (component, line) in lines.iter().enumerate() {
        let places = row.as_chunks_mut::<BYTES>().0.iter_mut();
        let places = places.skip(component).step_by(lines.len().max(1));
        for (place, sample) in places.zip(line.iter().skip(1)) {
            let bytes = sample.to_le_bytes();
            *place = *bytes.first_chunk().unwrap_or(&[0; BYTES]);
        }
    }
}
