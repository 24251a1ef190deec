//! Arithmetic on sizes that needs no error, each operation under the name of its reason.

/// A number of things: never less than none, and compared with bounds. A position in a file is none
/// of them: it is an [`Extent`](crate::wire::Extent), or checked.
pub trait Count: Copy {
    /// What is left of it after `taken`: nothing, if that is more.
    #[must_use]
    fn left_after(self, taken: Self) -> Self;

    /// The number after this one. It counts what is in memory, or what is passed one by one, and so
    /// never comes to the largest.
    #[must_use]
    fn one_more(self) -> Self;

    /// The sum with `more`. Either both are known to be small, or it is only compared with a bound,
    /// which the largest number is over: such is the weight of something, and the effort for it.
    #[must_use]
    fn with_more(self, more: Self) -> Self;

    /// The product with `count`, for the same reasons.
    #[must_use]
    fn times(self, count: Self) -> Self;

    /// The sum of all `parts`, for the same reasons.
    fn together(parts: impl IntoIterator<Item = Self>) -> Self;
}

macro_rules! count {
    ($($number:ty)*) => { $(
        #[allow(clippy::disallowed_methods, reason = "each has a name that says why it saturates")]
        impl Count for $number {
            fn left_after(self, taken: Self) -> Self {
                self.saturating_sub(taken)
            }

            fn one_more(self) -> Self {
                self.saturating_add(1)
            }

            fn with_more(self, more: Self) -> Self {
                self.saturating_add(more)
            }

            fn times(self, count: Self) -> Self {
                self.saturating_mul(count)
            }

            fn together(parts: impl IntoIterator<Item = Self>) -> Self {
                parts.into_iter().fold(0, Self::saturating_add)
            }
        }
    )* };
}

count!(u8 u16 u32 u64 u128 usize);
