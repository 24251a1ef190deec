//! Reads lines from another process.

use std::io::{BufRead, BufReader, Read};

use crate::cli::text::printable::printable_untrusted;
use crate::limits;

/// Calls `take` with each line, without control characters, until the input ends. A line longer
/// than the limit is split into parts.
pub(in crate::cli) fn each_line(input: impl Read, mut take: impl FnMut(&str)) {
    const BOUND: u64 = limits::REPORT_BYTES as u64;
    let mut input = BufReader::new(input);
    let mut line = Vec::new();
    while input
        .by_ref()
        .take(BOUND)
        .read_until(b'\n', &mut line)
        .is_ok_and(|length| length > 0)
    {
        take(&printable_untrusted(&String::from_utf8_lossy(
            line.trim_ascii_end(),
        )));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_escaped_and_limited() {
        let long = vec![b'x'; limits::REPORT_BYTES + 1];
        let input = [b"a\x1b[2J\n\n".as_slice(), &long].concat();
        let mut lines = Vec::new();
        each_line(&input[..], |line| lines.push(line.to_owned()));
        assert_eq!(lines[..2], ["a\\u{1b}[2J", ""]);
        let rest: Vec<_> = lines[2..].iter().map(String::len).collect();
        assert_eq!(rest, [limits::REPORT_BYTES, 1]);
    }
}
