//! Random words that cannot be guessed, for tokens and boundaries.

use std::fmt::Write;

use h5fs_reader::error::{Error, Result};
use ring::rand::{SecureRandom, SystemRandom};

/// Number of random bytes in a word.
const BYTES: usize = 16;

/// Returns a new random word of 128 bits, as hexadecimal digits.
///
/// # Errors
/// Fails if the operating system cannot provide random numbers.
pub fn random_word() -> Result<String> {
    let mut bytes = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::Usage("the system has no random numbers".to_owned()))?;
    Ok(hex_digits(&bytes))
}

/// Returns bytes as hexadecimal digits.
pub(super) fn hex_digits(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_words_are_the_same() {
        let (one, other) = (random_word().unwrap(), random_word().unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 2 * BYTES && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
