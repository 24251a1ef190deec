//! The decoder of lines of samples. Each sample is predicted from its neighbours, and the
//! prediction error is coded with the statistics of earlier errors in the same context. If the
//! neighbours are equal, a run of equal samples is coded (ITU-T T.87, Annex A, and Annex B for
//! several components).

use crate::filter::jpegls::bits::ScanBits;
use crate::filter::jpegls::coding::{CodingParameters, signed};
use crate::wire::Count;

/// Number of contexts of samples. Context 0 stands for run mode, so its statistics are not used.
const CONTEXT_COUNT: usize = 365;

/// The base-2 logarithms of the lengths of run segments, by RUNindex (table J in ITU-T T.87).
const RUN_LENGTH_LOGS: [u32; 32] = [
    0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 9, 10, 11, 12, 13,
    14, 15,
];

/// The samples of a line of one component, with one additional sample at each end.
pub(super) type SampleLine = Vec<i32>;

/// The statistics of the prediction errors in one context of regular mode.
#[derive(Debug, Clone, Copy)]
struct ErrorStatistics {
    /// The sum of the absolute prediction errors.
    sizes: u32,
    /// The number of prediction errors.
    count: u32,
    /// The sum of the prediction errors, less the part that `correction` compensates.
    bias: i32,
    /// The number that is added to a prediction to reduce its bias.
    correction: i32,
}

impl ErrorStatistics {
    /// Returns the number of low bits in the Golomb code of an error. `sizes` is the sum of the
    /// absolute errors, and `count` is the number of errors.
    #[inline(always)]
    fn low_bits(sizes: u32, count: u32) -> u32 {
        let least = count.leading_zeros().minus_or_zero(sizes.leading_zeros());
        least.wrapping_add(u32::from(count.wrapping_shl(least) < sizes))
    }

    #[inline(always)]
    fn add(&mut self, error: i32, coding: &CodingParameters) {
        self.bias = self.bias.wrapping_add(error.wrapping_mul(coding.step()));
        self.sizes = self.sizes.wrapping_add(error.unsigned_abs());
        if self.count == coding.reset {
            self.sizes = self.sizes.wrapping_shr(1);
            self.bias = self.bias.wrapping_shr(1);
            self.count = self.count.wrapping_shr(1);
        }
        self.count = self.count.wrapping_add(1);
        let count = self.count.cast_signed();
        if self.bias <= count.wrapping_neg() {
            self.bias = self.bias.wrapping_add(count).max(1_i32.wrapping_sub(count));
            self.correction = self.correction.wrapping_sub(1).max(-128);
        } else if self.bias > 0 {
            self.bias = self.bias.wrapping_sub(count).min(0);
            self.correction = self.correction.wrapping_add(1).min(127);
        }
    }
}

/// The statistics of the prediction errors in one run-interruption context (ITU-T T.87, A.7.2,
/// RItype 0 or 1).
#[derive(Debug, Clone, Copy)]
struct RunInterruptionErrors {
    sizes: u32,
    count: u32,
    negative: u32,
}

/// The state of the decoder: the coding parameters of the scan and the statistics of earlier
/// errors.
#[derive(Debug)]
pub(super) struct ScanDecoder {
    coding: CodingParameters,
    errors: [ErrorStatistics; CONTEXT_COUNT],
    /// Statistics for the samples that interrupt a run, by RItype: 0 if the sample above differs
    /// from the run, otherwise 1.
    run_interruption_errors: [RunInterruptionErrors; 2],
}

impl ScanDecoder {
    pub(super) fn new(coding: CodingParameters) -> Self {
        let sizes = coding.range.unsigned_abs().wrapping_add(32).wrapping_shr(6);
        let sizes = sizes.max(2);
        let errors = ErrorStatistics {
            sizes,
            count: 1,
            bias: 0,
            correction: 0,
        };
        let end_errors = RunInterruptionErrors {
            sizes,
            count: 1,
            negative: 0,
        };
        ScanDecoder {
            coding,
            errors: [errors; CONTEXT_COUNT],
            run_interruption_errors: [end_errors; 2],
        }
    }

    /// Decodes one line of one component. `above` is the line above, and `run` is the component's
    /// index into [`RUN_LENGTH_LOGS`]. Returns `None` if the bits are damaged or too few.
    pub(super) fn decode_line(
        &mut self,
        bits: &mut ScanBits<'_>,
        above: &[i32],
        line: &mut [i32],
        run: &mut usize,
    ) -> Option<()> {
        if self.coding.near == 0 {
            self.decode_line_with::<false>(bits, above, line, run)
        } else {
            self.decode_line_with::<true>(bits, above, line, run)
        }
    }

    #[inline(always)]
    fn decode_line_with<const NEAR: bool>(
        &mut self,
        whole: &mut ScanBits<'_>,
        above: &[i32],
        line: &mut [i32],
        run: &mut usize,
    ) -> Option<()> {
        // A local copy stays in registers while a line is decoded.
        let mut bits = *whole;
        let width = line.len().checked_sub(2)?;
        let (mut corner, mut up) = (*above.first()?, *above.get(1)?);
        let mut left = up;
        *line.first_mut()? = left;
        let mut before = self.coding.gradient_level(up.wrapping_sub(corner));
        let mut at = 1_usize;
        while at <= width {
            let ahead = *above.get(at.plus_one())?;
            let behind = self.coding.gradient_level(ahead.wrapping_sub(up));
            let context = behind
                .wrapping_mul(81)
                .wrapping_add(before.wrapping_mul(9))
                .wrapping_add(self.coding.gradient_level(corner.wrapping_sub(left)));
            if context != 0 {
                left =
                    self.decode_sample::<NEAR>(&mut bits, context, predicted(left, up, corner))?;
                *line.get_mut(at)? = left;
                (corner, up, before) = (up, ahead, behind);
                at = at.plus_one();
                continue;
            }
            let length = decode_run_length(&mut bits, width.plus_one().minus_or_zero(at), run)?;
            let end = at.plus(length);
            line.get_mut(at..end)?.fill(left);
            at = end;
            if at <= width {
                let above = *above.get(at)?;
                let sample = self.decode_run_interruption(&mut bits, left, above, *run)?;
                *line.get_mut(at)? = sample;
                *run = run.minus_or_zero(1);
                left = sample;
                at = at.plus_one();
            }
            (corner, up) = (*above.get(at.minus_or_zero(1))?, *above.get(at)?);
            before = self.coding.gradient_level(up.wrapping_sub(corner));
        }
        *line.last_mut()? = left;
        *whole = bits;
        Some(())
    }

    /// Decodes one line of each of several components whose samples alternate. Returns `None` if
    /// the bits are damaged or too few.
    pub(super) fn decode_interleaved_line(
        &mut self,
        bits: &mut ScanBits<'_>,
        above: &[SampleLine],
        lines: &mut [SampleLine],
        run: &mut usize,
    ) -> Option<()> {
        let width = lines.first()?.len().checked_sub(2)?;
        for (line, above) in lines.iter_mut().zip(above) {
            *line.first_mut()? = *above.get(1)?;
        }
        let mut at = 1_usize;
        while at <= width {
            let mut contexts = [0; 4];
            for ((line, above), context) in lines.iter().zip(above).zip(&mut contexts) {
                *context = self.context(Neighbours::at(line, above, at)?);
            }
            if contexts != [0; 4] {
                for ((line, above), context) in lines.iter_mut().zip(above).zip(contexts) {
                    let prediction = Neighbours::at(line, above, at)?.predicted();
                    *line.get_mut(at)? = if self.coding.near == 0 {
                        self.decode_sample::<false>(bits, context, prediction)?
                    } else {
                        self.decode_sample::<true>(bits, context, prediction)?
                    };
                }
                at = at.plus_one();
                continue;
            }
            let length = decode_run_length(bits, width.plus_one().minus_or_zero(at), run)?;
            let end = at.plus(length);
            for line in lines.iter_mut() {
                let left = *line.get(at.minus_or_zero(1))?;
                line.get_mut(at..end)?.fill(left);
            }
            at = end;
            if at <= width {
                for (line, above) in lines.iter_mut().zip(above) {
                    let (left, above) = (*line.get(at.minus_or_zero(1))?, *above.get(at)?);
                    *line.get_mut(at)? =
                        self.decode_interruption_from_above(bits, left, above, *run)?;
                }
                *run = run.minus_or_zero(1);
                at = at.plus_one();
            }
        }
        for line in lines {
            *line.last_mut()? = *line.get(width)?;
        }
        Some(())
    }

    fn context(&self, near: Neighbours) -> i32 {
        let level = |to: i32, from: i32| self.coding.gradient_level(to.wrapping_sub(from));
        level(near.ahead, near.up)
            .wrapping_mul(81)
            .wrapping_add(level(near.up, near.corner).wrapping_mul(9))
            .wrapping_add(level(near.corner, near.left))
    }

    /// Decodes a sample in regular mode, that is, outside a run (A.4 to A.6).
    #[inline(always)]
    fn decode_sample<const NEAR: bool>(
        &mut self,
        bits: &mut ScanBits<'_>,
        context: i32,
        prediction: i32,
    ) -> Option<i32> {
        let coding = &self.coding;
        let sign = context.wrapping_shr(31);
        let place = usize::try_from(context.unsigned_abs()).ok()?;
        let errors = self.errors.get_mut(place)?;
        let prediction = prediction
            .wrapping_add(signed(errors.correction, sign))
            .max(0)
            .min(coding.max_value);
        let low_bits = ErrorStatistics::low_bits(errors.sizes, errors.count);
        let most_zeros = coding.limit.wrapping_sub(coding.error_bits).wrapping_sub(1);
        let code = bits
            .read_golomb(low_bits, most_zeros, coding.error_bits)?
            .cast_signed();
        if !(0..=coding.range).contains(&code) {
            return None;
        }
        let mut error = code.wrapping_shr(1) ^ (code & 1).wrapping_neg();
        let doubled = errors.bias.wrapping_mul(2);
        if !NEAR && low_bits == 0 && doubled <= errors.count.cast_signed().wrapping_neg() {
            error = !error;
        }
        errors.add(error, coding);
        Some(reconstructed::<NEAR>(
            coding,
            prediction,
            signed(error, sign),
        ))
    }

    /// Decodes the sample that interrupts a run (A.7.2), in a scan whose samples do not alternate.
    fn decode_run_interruption(
        &mut self,
        bits: &mut ScanBits<'_>,
        left: i32,
        above: i32,
        run: usize,
    ) -> Option<i32> {
        if left.wrapping_sub(above).wrapping_abs() > self.coding.near {
            return self.decode_interruption_from_above(bits, left, above, run);
        }
        let error = self.decode_interruption_error(bits, 1, run)?;
        Some(reconstructed::<true>(&self.coding, left, error))
    }

    /// Decodes the sample that interrupts a run if the sample above differs from the run (RItype
    /// 0). The sample above is the prediction. The sign of the error is inverted if the run's value
    /// is larger than the sample above.
    fn decode_interruption_from_above(
        &mut self,
        bits: &mut ScanBits<'_>,
        left: i32,
        above: i32,
        run: usize,
    ) -> Option<i32> {
        let error = self.decode_interruption_error(bits, 0, run)?;
        let sign = above.wrapping_sub(left).wrapping_shr(31);
        Some(reconstructed::<true>(
            &self.coding,
            above,
            signed(error, sign),
        ))
    }

    fn decode_interruption_error(
        &mut self,
        bits: &mut ScanBits<'_>,
        kind: u32,
        run: usize,
    ) -> Option<i32> {
        let coding = &self.coding;
        let errors = self
            .run_interruption_errors
            .get_mut(usize::try_from(kind).ok()?)?;
        let more = errors.count.wrapping_shr(1).wrapping_mul(kind);
        let low_bits = ErrorStatistics::low_bits(errors.sizes.wrapping_add(more), errors.count);
        let run_bits = RUN_LENGTH_LOGS.get(run)?.wrapping_add(1);
        let most_zeros = coding
            .limit
            .wrapping_sub(run_bits)
            .checked_sub(coding.error_bits.wrapping_add(1))?;
        let code = bits.read_golomb(low_bits, most_zeros, coding.error_bits)?;
        if code > coding.range.unsigned_abs() {
            return None;
        }
        let folded = code.wrapping_add(kind);
        let size = folded.wrapping_add(1).wrapping_shr(1);
        let are_mostly_negative = errors.negative.wrapping_mul(2) >= errors.count;
        let is_usual_sign = (low_bits != 0 || are_mostly_negative) == (folded & 1 == 1);
        let is_negative = size != 0 && is_usual_sign;
        errors.negative = errors.negative.wrapping_add(u32::from(is_negative));
        let grown = code.wrapping_add(1).wrapping_sub(kind).wrapping_shr(1);
        errors.sizes = errors.sizes.wrapping_add(grown);
        if errors.count == coding.reset {
            errors.sizes = errors.sizes.wrapping_shr(1);
            errors.count = errors.count.wrapping_shr(1);
            errors.negative = errors.negative.wrapping_shr(1);
        }
        errors.count = errors.count.wrapping_add(1);
        let sign = i32::from(is_negative).wrapping_neg();
        Some(signed(size.cast_signed(), sign))
    }
}

/// The decoded neighbours of a sample: to the left (Ra in ITU-T T.87), above the left one (Rc),
/// above (Rb), and above the next sample (Rd).
#[derive(Debug, Clone, Copy)]
struct Neighbours {
    left: i32,
    corner: i32,
    up: i32,
    ahead: i32,
}

impl Neighbours {
    fn at(line: &[i32], above: &[i32], at: usize) -> Option<Self> {
        let &[corner, up, ahead] = above.get(at.minus_or_zero(1)..)?.first_chunk()?;
        let left = *line.get(at.minus_or_zero(1))?;
        Some(Neighbours {
            left,
            corner,
            up,
            ahead,
        })
    }

    fn predicted(self) -> i32 {
        predicted(self.left, self.up, self.corner)
    }
}

/// Predicts a sample from its neighbours: at an edge, the neighbour beyond the edge, otherwise the
/// point on the plane of the three neighbours (A.4.1).
#[inline(always)]
fn predicted(left: i32, up: i32, corner: i32) -> i32 {
    let plane = left.wrapping_add(up).wrapping_sub(corner);
    plane.max(left.min(up)).min(left.max(up))
}

/// Returns the sample for a prediction and an error of `error` steps (A.4.4, A.4.5).
#[inline(always)]
fn reconstructed<const NEAR: bool>(coding: &CodingParameters, prediction: i32, error: i32) -> i32 {
    if !NEAR {
        let sample = prediction.wrapping_add(error);
        return if sample < 0 {
            sample.wrapping_add(coding.range)
        } else if sample > coding.max_value {
            sample.wrapping_sub(coding.range)
        } else {
            sample
        };
    }
    let mut sample = prediction.wrapping_add(error.wrapping_mul(coding.step()));
    let turn = coding.range.wrapping_mul(coding.step());
    if sample < coding.near.wrapping_neg() {
        sample = sample.wrapping_add(turn);
    } else if sample > coding.max_value.wrapping_add(coding.near) {
        sample = sample.wrapping_sub(turn);
    }
    sample.max(0).min(coding.max_value)
}

/// Decodes the length of a run of at most `room` samples, and adapts the index `run` into
/// [`RUN_LENGTH_LOGS`] (A.7.1).
fn decode_run_length(bits: &mut ScanBits<'_>, room: usize, run: &mut usize) -> Option<usize> {
    let mut length = 0_usize;
    while length < room {
        let log = *RUN_LENGTH_LOGS.get(*run)?;
        if bits.read(1)? == 0 {
            let more = usize::try_from(bits.read(log)?).ok()?;
            return Some(length.plus(more)).filter(|length| *length < room);
        }
        let longer = length.plus(1 << log);
        if longer <= room {
            *run = run.plus_one().min(31);
        }
        length = longer.min(room);
    }
    Some(length)
}
