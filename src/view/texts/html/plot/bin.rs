//! A bin of a line: the least and the greatest of the numbers in it.

/// Bins of a line.
pub(super) const BINS: u64 = 640;

/// What is known of the numbers in a bin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Bin {
    /// None of them was read.
    Unread,
    /// Those that were read are not finite, or missing.
    Nothing,
    /// They are within these bounds.
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
