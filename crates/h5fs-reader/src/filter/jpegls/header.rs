//! The markers of a stream and their segments (ITU-T T.87, Annex C, and ITU-T T.81, Annex B).

use crate::error::{Error, Result};
use crate::filter::jpegls::coding::PresetParameters;
use crate::wire::Count;

const START: u8 = 0xd8;
const END: u8 = 0xd9;
const FRAME: u8 = 0xf7;
const PRESET: u8 = 0xf8;
const SCAN: u8 = 0xda;
const LINES: u8 = 0xdc;
const RESTARTS: u8 = 0xdd;
const RESTART: u8 = 0xd0;

/// The parameters of the image, from the frame header (marker SOF55).
#[derive(Debug)]
pub(super) struct Frame {
    /// Number of bits of a sample.
    pub(super) bits: u32,
    pub(super) lines: usize,
    pub(super) width: usize,
    /// The identifiers of the components of the image.
    pub(super) components: Vec<u8>,
}

impl Frame {
    /// Returns the number of bytes in a sample.
    pub(super) fn sample_bytes(&self) -> usize {
        if self.bits <= 8 { 1 } else { 2 }
    }

    /// Returns the number of decoded bytes of one line of one component.
    pub(super) fn line_bytes(&self) -> usize {
        self.width.times(self.sample_bytes())
    }

    /// Returns the number of decoded bytes of one component.
    pub(super) fn plane_bytes(&self) -> usize {
        self.line_bytes().times(self.lines)
    }

    /// Returns the number of decoded bytes of all samples of the image.
    pub(super) fn bytes(&self) -> usize {
        self.plane_bytes().times(self.components.len())
    }
}

/// The interleaving of the components of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interleave {
    /// The scan has one component.
    None,
    /// The components alternate by line.
    Line,
    /// The components alternate by sample.
    Sample,
}

/// The header of a scan (marker SOS), with the parameters from earlier markers that apply to the
/// scan.
#[derive(Debug)]
pub(super) struct Scan {
    /// The indices of the scan's components in the frame.
    pub(super) components: Vec<usize>,
    pub(super) near: u8,
    pub(super) interleave: Interleave,
    pub(super) preset: PresetParameters,
    /// Number of lines between two resets of the decoder. 0 means that the decoder is never reset.
    pub(super) restart_lines: usize,
}

/// A reader of the markers of a stream, with the parameters from the markers that were read so far.
#[derive(Debug)]
pub(super) struct MarkerReader<'a> {
    rest: &'a [u8],
    frame: Option<Frame>,
    preset: PresetParameters,
    restart_lines: usize,
}

impl<'a> MarkerReader<'a> {
    /// Creates a reader of the markers in `stream`.
    ///
    /// # Errors
    /// Fails if `stream` does not begin with the start marker of an image.
    pub(super) fn new(stream: &'a [u8]) -> Result<Self> {
        let mut header = MarkerReader {
            rest: stream,
            frame: None,
            preset: PresetParameters::default(),
            restart_lines: 0,
        };
        match header.marker()? {
            START => Ok(header),
            _ => Err(corrupt("no image")),
        }
    }

    /// Returns the image's parameters.
    ///
    /// # Errors
    /// Fails if no marker has described the image.
    pub(super) fn frame(&self) -> Result<&Frame> {
        self.frame.as_ref().ok_or_else(|| corrupt("no frame"))
    }

    /// Reads the markers up to the next scan and returns the scan's parameters. Returns `None` at
    /// the end of the image.
    ///
    /// # Errors
    /// Fails if the segments before the scan are damaged, or need a feature that is not
    /// implemented.
    pub(super) fn read_scan(&mut self) -> Result<Option<Scan>> {
        loop {
            let marker = self.marker()?;
            match marker {
                END => return Ok(None),
                SCAN => {
                    let segment = self.segment()?;
                    return self.parse_scan(segment).map(Some);
                }
                FRAME if self.frame.is_some() => return Err(corrupt("two frames")),
                FRAME => self.frame = Some(frame(self.segment()?)?),
                PRESET => self.preset = preset(self.segment()?, self.frame()?.bits)?,
                RESTARTS => {
                    let number =
                        big_endian(self.segment()?).filter(|lines| *lines <= MAX_RESTART_LINES);
                    self.restart_lines = number.ok_or_else(|| corrupt("damaged DRI"))?;
                }
                0xe8 => refuse_transform(self.segment()?)?,
                0xe0..=0xef | 0xfe => drop(self.segment()?),
                LINES => return Err(unsupported("a line count after a scan")),
                0xc0..=0xcf => return Err(unsupported("a JPEG stream that is not JPEG-LS")),
                _ => return Err(corrupt(format!("marker 0x{marker:02x}"))),
            }
        }
    }

    fn parse_scan(&self, segment: &[u8]) -> Result<Scan> {
        let damaged = || corrupt("damaged SOS");
        let (&count, rest) = segment.split_first().ok_or_else(damaged)?;
        let (components, rest) = rest
            .split_at_checked(usize::from(count).times(2))
            .ok_or_else(damaged)?;
        let &[near, interleave, transform] = rest else {
            return Err(damaged());
        };
        if transform != 0 {
            return Err(unsupported("a point transform"));
        }
        let frame = self.frame()?;
        let mut places = Vec::new();
        for [name, table] in components.as_chunks().0 {
            if *table != 0 {
                return Err(unsupported("a mapping table"));
            }
            let place = frame.components.iter().position(|known| known == name);
            places.push(place.ok_or_else(damaged)?);
        }
        let interleave = match (interleave, count) {
            (0 | 1, 1) => Interleave::None,
            (1 | 2, 2) => return Err(unsupported("two components that are interleaved")),
            (1, 3 | 4) => Interleave::Line,
            (2, 3 | 4) => Interleave::Sample,
            _ => return Err(damaged()),
        };
        Ok(Scan {
            components: places,
            near,
            interleave,
            preset: self.preset,
            restart_lines: self.restart_lines,
        })
    }

    /// Returns the entropy-coded bytes up to the next marker, and moves to that marker.
    pub(super) fn read_entropy_coded(&mut self) -> &'a [u8] {
        let is_marker = |pair: &[u8]| matches!(pair, [0xff, 0x80..=0xff]);
        let end = self.rest.windows(2).position(is_marker);
        let (bytes, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        bytes
    }

    /// Skips the marker of restart `number`.
    ///
    /// # Errors
    /// Fails if that marker is missing.
    pub(super) fn skip_restart(&mut self, number: usize) -> Result<()> {
        match usize::from(self.marker()?) {
            marker if marker == usize::from(RESTART) | number & 7 => Ok(()),
            _ => Err(corrupt("no restart marker")),
        }
    }

    /// Reads the next marker: one or more bytes 0xff, and the byte that identifies the marker.
    /// Returns that byte.
    fn marker(&mut self) -> Result<u8> {
        let filled = self.rest.iter().take_while(|byte| **byte == 0xff).count();
        match self.rest.get(filled..).and_then(<[u8]>::split_first) {
            Some((&marker, rest)) if filled > 0 => {
                self.rest = rest;
                Ok(marker)
            }
            _ => Err(corrupt("a marker is missing")),
        }
    }

    /// Reads the segment that follows the last marker.
    fn segment(&mut self) -> Result<&'a [u8]> {
        let cut = || corrupt("ends too early");
        let (length, rest) = self.rest.split_first_chunk().ok_or_else(cut)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let length = length
            .checked_sub(2)
            .ok_or_else(|| corrupt("segment without its length"))?;
        let (segment, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        self.rest = rest;
        Ok(segment)
    }
}

/// The largest number of lines between two restart markers that is accepted.
const MAX_RESTART_LINES: usize = 0xffff;

fn frame(segment: &[u8]) -> Result<Frame> {
    let damaged = || corrupt("damaged SOF55");
    let Some((&[bits, l1, l0, w1, w0, count], components)) = segment.split_first_chunk() else {
        return Err(damaged());
    };
    let (lines, width) = (
        usize::from(u16::from_be_bytes([l1, l0])),
        usize::from(u16::from_be_bytes([w1, w0])),
    );
    let (components, rest) = components.as_chunks::<3>();
    let is_whole = rest.is_empty() && components.len() == usize::from(count) && count > 0;
    if !is_whole || !(2..=16).contains(&bits) {
        return Err(damaged());
    }
    if lines == 0 || width == 0 {
        return Err(unsupported(
            "an image whose size is not in the frame header",
        ));
    }
    let mut names = Vec::new();
    for &[name, sampling, _] in components {
        if sampling != 0x11 {
            return Err(unsupported("components of several sizes"));
        }
        if names.contains(&name) {
            return Err(damaged());
        }
        names.push(name);
    }
    Ok(Frame {
        bits: u32::from(bits),
        lines,
        width,
        components: names,
    })
}

/// Reads the preset coding parameters from an LSE segment. Rejects a maximum sample value that is
/// not the largest number of `bits` bits. CharLS, the only known encoder, writes such a value and
/// ignores it.
fn preset(segment: &[u8], bits: u32) -> Result<PresetParameters> {
    let [1, numbers @ ..] = segment else {
        return Err(match segment.first() {
            Some(2 | 3) => unsupported("mapping tables"),
            Some(4) => unsupported("an image of more than 65535 lines or columns"),
            _ => corrupt("unknown LSE"),
        });
    };
    match *numbers.as_chunks().0 {
        [largest, t1, t2, t3, reset] if numbers.len() == 10 => {
            let largest = u32::from(u16::from_be_bytes(largest));
            if largest != 0 && largest != 1_u32.wrapping_shl(bits).wrapping_sub(1) {
                return Err(unsupported(
                    "a maximum sample value that differs from the maximum of its bits",
                ));
            }
            Ok(PresetParameters {
                thresholds: [t1, t2, t3].map(u16::from_be_bytes),
                reset: u16::from_be_bytes(reset),
            })
        }
        _ => Err(corrupt("damaged LSE")),
    }
}

/// Rejects an application segment with which some encoders state a colour transform.
fn refuse_transform(segment: &[u8]) -> Result<()> {
    match segment {
        [b'm', b'r', b'f', b'x', 1..=255] => Err(unsupported("a colour transform")),
        _ => Ok(()),
    }
}

fn big_endian(bytes: &[u8]) -> Option<usize> {
    let fold = |number: usize, byte: &u8| number.wrapping_shl(8) | usize::from(*byte);
    (2..=4)
        .contains(&bytes.len())
        .then(|| bytes.iter().fold(0, fold))
}

pub(super) fn corrupt(why: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("JPEG-LS: {why}"), None)
}

fn unsupported(what: &str) -> Error {
    Error::unsupported(format!("JPEG-LS: {what}"), None)
}
