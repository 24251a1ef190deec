//! A bin of a line: the minimum and maximum of its numbers.

/// Maximum number of bins of a line.
pub(super) const BINS: u64 = 640;

/// The known range of the numbers in a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bin {
    /// None of the numbers was read.
    Unread,
    /// The numbers that were read are missing or not finite.
    Nothing,
    /// The minimum and maximum of the finite numbers.
    Range(f64, f64),
}

impl Bin {
    pub(super) fn add(&mut self, number: f64) {
        *self = match *self {
            Bin::Range(least, most) if number.is_finite() => {
                Bin::Range(least.min(number), most.max(number))
            }
            Bin::Unread | Bin::Nothing if number.is_finite() => Bin::Range(number, number),
            Bin::Unread => Bin::Nothing,
            known => known,
        };
    }
}
