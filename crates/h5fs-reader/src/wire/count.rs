//! Saturating arithmetic on sizes. The name of each operation states why saturation is correct.

/// A number of items, which is never negative and is compared with limits. A position in a file is
/// not a `Count`. Such positions use [`Extent`](crate::wire::Extent) or checked arithmetic.
pub trait Count: Copy {
    /// Returns this number minus `taken`, or 0 if `taken` is larger.
    #[must_use]
    fn minus_or_zero(self, taken: Self) -> Self;

    /// Returns this number plus one. The number counts items in memory, or items that are visited
    /// one by one, and thus never reaches the maximum of the type.
    #[must_use]
    fn plus_one(self) -> Self;

    /// Returns the sum of this number and `more`. Either both numbers are known to be small, or the
    /// sum is only compared with a limit, which the type's maximum exceeds. Sizes of memory are
    /// such sums.
    #[must_use]
    fn plus(self, more: Self) -> Self;

    /// Returns the product of this number and `count`, under the conditions of
    /// [`plus`](Self::plus).
    #[must_use]
    fn times(self, count: Self) -> Self;

    /// Returns the sum of all `parts`, under the conditions of [`plus`](Self::plus).
    fn sum(parts: impl IntoIterator<Item = Self>) -> Self;
}

macro_rules! count {
    ($($number:ty)*) => { $(
        #[allow(clippy::disallowed_methods, reason = "each has a name that says why it saturates")]
        impl Count for $number {
            fn minus_or_zero(self, taken: Self) -> Self {
                self.saturating_sub(taken)
            }

            fn plus_one(self) -> Self {
                self.saturating_add(1)
            }

            fn plus(self, more: Self) -> Self {
                self.saturating_add(more)
            }

            fn times(self, count: Self) -> Self {
                self.saturating_mul(count)
            }

            fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
                parts.into_iter().fold(0, Self::saturating_add)
            }
        }
    )* };
}

count!(u8 u16 u32 u64 u128 usize);
