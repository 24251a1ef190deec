//! A bin of a line plot: a group of consecutive numbers, of which only the minimum and maximum are
//! drawn.

/// Maximum number of bins in a line plot.
pub(super) const BINS: u64 = 640;

/// What is known about the numbers in a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bin {
    /// None of the numbers was read.
    Unread,
    /// The numbers that were read are missing or not finite.
    Empty,
    /// The minimum and maximum of the finite numbers.
    Range(f64, f64),
}

impl Bin {
    pub(super) fn add(&mut self, number: f64) {
        *self = match *self {
            Bin::Range(least, most) if number.is_finite() => {
                Bin::Range(least.min(number), most.max(number))
            }
            Bin::Unread | Bin::Empty if number.is_finite() => Bin::Range(number, number),
            Bin::Unread => Bin::Empty,
            known => known,
        };
    }
}
