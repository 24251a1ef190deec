//! Integers of any size in decimal digits.

use crate::wire::Count;
use std::fmt::Write;

/// An integer: its digits in groups of nine, lowest group first.
#[derive(Debug, Default)]
pub(super) struct Decimal(Vec<u32>);

/// The base of a group: one more than the largest number of nine decimal digits.
const GROUP_BASE: u64 = 1_000_000_000;

impl Decimal {
    /// Returns the number with these digits in `radix`, 10 or a power of two up to 16. Returns
    /// `None` for an empty text or other digits.
    pub(super) fn from_digits(digits: &str, radix: u32) -> Option<Self> {
        // The number of digits that fit a factor of 32 bits.
        let together = match radix {
            2 => 30,
            8 => 10,
            10 => 9,
            _ => 7,
        };
        if digits.is_empty() {
            return None;
        }
        let mut number = Decimal::default();
        for digits in digits.as_bytes().chunks(together) {
            if !digits.iter().all(u8::is_ascii_alphanumeric) {
                return None;
            }
            let count = u32::try_from(digits.len()).ok()?;
            let digits = std::str::from_utf8(digits).ok()?;
            let part = u32::from_str_radix(digits, radix).ok()?;
            number.multiply_and_add(radix.checked_pow(count)?, part);
        }
        Some(number)
    }

    /// Multiplies the number by `factor` and adds `addend`.
    pub(super) fn multiply_and_add(&mut self, factor: u32, addend: u32) {
        let mut carry = u64::from(addend);
        for group in &mut self.0 {
            // The result is below 2^64, because each factor and the carry are below 2^32.
            let product = u64::from(*group).times(u64::from(factor));
            let sum = product.plus(carry);
            *group = low(sum);
            carry = sum.checked_div(GROUP_BASE).unwrap_or(0);
        }
        while carry > 0 {
            self.0.push(low(carry));
            carry = carry.checked_div(GROUP_BASE).unwrap_or(0);
        }
    }

    /// Returns the digits without leading zeros.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for group in self.0.iter().rev() {
            let _infallible = if text.is_empty() {
                write!(text, "{group}")
            } else {
                write!(text, "{group:09}")
            };
        }
        if text.is_empty() {
            "0".to_owned()
        } else {
            text
        }
    }
}

/// Returns the lowest nine decimal digits of a number.
fn low(number: u64) -> u32 {
    let group = number.checked_rem(GROUP_BASE).unwrap_or(0);
    u32::try_from(group).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two() {
        // Expected: 2^100 in Python, and the last digits and the length of 2^1000.
        let of = |digits: &str, radix| Decimal::from_digits(digits, radix).unwrap().text();
        let bits = format!("1{}", "0".repeat(100));
        assert_eq!(of(&bits, 2), "1267650600228229401496703205376");
        let digits = format!("10{}", "0".repeat(24));
        assert_eq!(of(&digits, 16), of(&bits, 2));
        let digits = format!("2{}", "0".repeat(33));
        assert_eq!(of(&digits, 8), of(&bits, 2));
        let large = of(&format!("1{}", "0".repeat(250)), 16);
        assert_eq!(large.len(), 302);
        assert!(large.starts_with("10715086071862673209484250490600018105"));
        assert!(large.ends_with("42167660429831652624386837205668069376"));
    }

    #[test]
    fn leading_zeros_are_dropped() {
        let of = |digits: &str| Decimal::from_digits(digits, 10).map(|number| number.text());
        assert_eq!(
            of("1000000000000000000001").unwrap(),
            "1000000000000000000001"
        );
        assert_eq!(of("000").unwrap(), "0");
        assert!(
            of("12-4").is_none() && of("+1").is_none() && of("1a").is_none() && of("").is_none()
        );
    }
}
