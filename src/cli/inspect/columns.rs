//! The columns of a long listing: their content for a file, and their alignment.

use crate::cli::words::printable::printable_bytes;
use crate::fs::{Ino, Kind, Requests, Stat};

/// Mode, type, shape, chunks, filters, stored bytes, bytes.
pub(in crate::cli) const COLUMNS: usize = 7;

/// The first column whose texts are numbers, which stand at its right edge, as those behind it do.
const FIRST_NUMBER: usize = 5;

/// The text of an empty cell, so that every line has as many words.
const NOTHING: &str = "-";

/// A line's texts, none with a space in it but field names' own.
pub(in crate::cli) type Cells = [String; COLUMNS];

/// The cells of one file, with `human` sizes or in bytes.
pub(in crate::cli) fn cells(
    filesystem: &dyn Requests,
    ino: Ino,
    stat: &Stat,
    human: bool,
) -> Cells {
    let fact = |name: &str| match stat.kind {
        Kind::File => filesystem.getxattr(ino, name.as_bytes()).ok(),
        Kind::Directory | Kind::Symlink => None,
    };
    let text = |name| fact(name).map_or_else(|| NOTHING.to_owned(), |value| squeezed(&value));
    let number = |number: u64| match stat.kind {
        Kind::Directory => NOTHING.to_owned(),
        Kind::File | Kind::Symlink if human => human_readable(number),
        Kind::File | Kind::Symlink => number.to_string(),
    };
    let kind = fact("user.h5fs.type");
    [
        mode(stat),
        kind.map_or_else(|| NOTHING.to_owned(), |kind| type_name(&kind)),
        text("user.h5fs.shape"),
        text("user.h5fs.chunks"),
        text("user.h5fs.filters"),
        number(stat.blocks.saturating_mul(512)),
        number(stat.size),
    ]
}

/// Bytes as `ls -h` writes them: rounded up, with a digit behind the point below ten.
fn human_readable(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
    if bytes < 1024 {
        return bytes.to_string();
    }
    let mut text = String::new();
    for (unit, shift) in UNITS.iter().zip((10_u32..).step_by(10)) {
        let scale = 1_u128 << shift;
        let tenths = (u128::from(bytes) * 10).div_ceil(scale);
        text = match tenths {
            ..100 => format!("{}.{}{unit}", tenths / 10, tenths % 10),
            _ => format!("{}{unit}", u128::from(bytes).div_ceil(scale)),
        };
        if u128::from(bytes).div_ceil(scale) < 1024 {
            break;
        }
    }
    text
}

/// The name of an NDL type without what it is made of: `compound` of `{compound: [{x: float64}]}`.
fn type_name(text: &[u8]) -> String {
    let name = text.strip_prefix(b"{").map_or(text, |inside| {
        let end = inside.iter().position(|&byte| byte == b':');
        end.and_then(|end| inside.get(..end)).unwrap_or(inside)
    });
    squeezed(name)
}

/// A list without the spaces behind its commas.
fn squeezed(value: &[u8]) -> String {
    printable_bytes(value).replace(", ", ",")
}

/// Kind and permissions as ls(1) writes them.
fn mode(stat: &Stat) -> String {
    let kind = match stat.kind {
        Kind::Directory => 'd',
        Kind::File => '-',
        Kind::Symlink => 'l',
    };
    let bits = (0..9).rev().zip("rwxrwxrwx".chars());
    let shown = bits.map(|(bit, letter)| {
        if stat.permissions >> bit & 1 == 1 {
            letter
        } else {
            '-'
        }
    });
    std::iter::once(kind).chain(shown).collect()
}

/// How wide the columns are, in characters; they only grow.
#[derive(Debug, Default)]
pub(in crate::cli) struct Widths([usize; COLUMNS]);

impl Widths {
    /// Makes room for these texts.
    pub(in crate::cli) fn fit(&mut self, cells: &Cells) {
        for (width, cell) in self.0.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    /// The texts in their columns, with a space behind each.
    pub(in crate::cli) fn aligned(&self, cells: &Cells) -> String {
        let mut line = String::new();
        for (column, (&width, cell)) in self.0.iter().zip(cells).enumerate() {
            let padded = if column < FIRST_NUMBER {
                format!("{cell:<width$} ")
            } else {
                format!("{cell:>width$} ")
            };
            line.push_str(&padded);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_as_ls_writes_them() {
        let stat = Stat {
            ino: 1,
            kind: Kind::Directory,
            size: 0,
            blocks: 0,
            permissions: 0o750,
            links: 1,
            uid: 0,
            gid: 0,
            modified: (0, 0),
        };
        assert_eq!(mode(&stat), "drwxr-x---");
    }

    /// As `ls -h` and `numfmt --to=iec --round=up` write them.
    #[test]
    fn sizes_for_people() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (10_138, "10K"),
            (10_240, "10K"),
            (10_241, "11K"),
            (1_047_552, "1023K"),
            (1_047_553, "1.0M"),
            (12 << 30, "12G"),
            (u64::MAX, "16E"),
        ] {
            assert_eq!(human_readable(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn types_are_named_and_lists_are_one_word() {
        assert_eq!(type_name(b"float64"), "float64");
        assert_eq!(type_name(b"{vlen: {base: {array: 1}}}"), "vlen");
        assert_eq!(squeezed(b"[10, 20, 30]"), "[10,20,30]");
        assert_eq!(squeezed(b"shuffle, a\nb(4)"), "shuffle,a\\nb(4)");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let row = |texts: [&str; COLUMNS]| texts.map(str::to_owned);
        let long = row(["-r--r--r--", "float64", "[2]", "-", "-", "512", "16"]);
        let short = row(["-r--r--r--", "int8", "[10]", "-", "-", "0", "10000"]);
        let mut widths = Widths::default();
        widths.fit(&long);
        widths.fit(&short);
        assert_eq!(
            widths.aligned(&long),
            "-r--r--r-- float64 [2]  - - 512    16 "
        );
        assert_eq!(
            widths.aligned(&short),
            "-r--r--r-- int8    [10] - -   0 10000 "
        );
    }
}
