//! The columns of a long listing: their content and their alignment.

use h5fs_tree::{FileKind, Ino, Requests, Stat};

use crate::cli::text::printable::printable_bytes;

/// Number of columns: mode, type, shape, chunks, filters, stored bytes, bytes.
pub(in crate::cli) const COLUMNS: usize = 7;

/// Index of the first column with numbers. This column and all later columns are aligned to the
/// right.
const FIRST_NUMBER: usize = 5;

/// Text of a column without content, so that every line has the same number of words.
const EMPTY_CELL: &str = "-";

/// The texts in the columns of a line. Only texts with field names may contain spaces.
pub(in crate::cli) type Cells = [String; COLUMNS];

/// Returns the texts in the columns for one file. Sizes are in bytes, or in units such as K if
/// `human` is set.
pub(in crate::cli) fn cells_of_file(
    filesystem: &dyn Requests,
    ino: Ino,
    stat: &Stat,
    human: bool,
) -> Cells {
    let fact = |name: &str| match stat.kind {
        FileKind::File => filesystem.getxattr(ino, name.as_bytes()).ok(),
        FileKind::Directory | FileKind::Symlink => None,
    };
    let text =
        |name| fact(name).map_or_else(|| EMPTY_CELL.to_owned(), |value| without_spaces(&value));
    let number = |number: u64| match stat.kind {
        FileKind::Directory => EMPTY_CELL.to_owned(),
        FileKind::File | FileKind::Symlink if human => human_readable(number),
        FileKind::File | FileKind::Symlink => number.to_string(),
    };
    let kind = fact("user.h5fs.type");
    [
        format_mode(stat),
        kind.map_or_else(|| EMPTY_CELL.to_owned(), |kind| type_name(&kind)),
        text("user.h5fs.shape"),
        text("user.h5fs.chunks"),
        text("user.h5fs.filters"),
        number(stat.blocks.saturating_mul(512)),
        number(stat.size),
    ]
}

/// Formats a size as `ls -h` does: rounded up, with one decimal place below ten.
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

/// Returns the name of an NDL type without its fields: `compound` for `{compound: [{x: float64}]}`.
fn type_name(text: &[u8]) -> String {
    let name = text.strip_prefix(b"{").map_or(text, |inside| {
        let end = inside.iter().position(|&byte| byte == b':');
        end.and_then(|end| inside.get(..end)).unwrap_or(inside)
    });
    without_spaces(name)
}

/// Removes the spaces after the commas of a list, so that it is one word.
fn without_spaces(value: &[u8]) -> String {
    printable_bytes(value).replace(", ", ",")
}

/// Formats the file type and the permissions as ls(1) does.
fn format_mode(stat: &Stat) -> String {
    let kind = match stat.kind {
        FileKind::Directory => 'd',
        FileKind::File => '-',
        FileKind::Symlink => 'l',
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

/// The widths of the columns in characters. Widths only grow.
#[derive(Debug, Default)]
pub(in crate::cli) struct ColumnWidths([usize; COLUMNS]);

impl ColumnWidths {
    /// Widens the columns to the widths of these texts.
    pub(in crate::cli) fn widen_to(&mut self, cells: &Cells) {
        for (width, cell) in self.0.iter_mut().zip(cells) {
            *width = (*width).max(cell.chars().count());
        }
    }

    /// Formats the texts of a line in their columns. A space follows each column.
    pub(in crate::cli) fn align(&self, cells: &Cells) -> String {
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
    fn modes_are_formatted_as_in_ls() {
        let stat = Stat {
            ino: 1,
            kind: FileKind::Directory,
            size: 0,
            blocks: 0,
            permissions: 0o750,
            links: 1,
            uid: 0,
            gid: 0,
            modified: (0, 0),
        };
        assert_eq!(format_mode(&stat), "drwxr-x---");
    }

    /// The expected texts are the output of `ls -h` and `numfmt --to=iec --round=up`.
    #[test]
    fn sizes_are_human_readable() {
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
        assert_eq!(without_spaces(b"[10, 20, 30]"), "[10,20,30]");
        assert_eq!(without_spaces(b"shuffle, a\nb(4)"), "shuffle,a\\nb(4)");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_text() {
        let row = |texts: [&str; COLUMNS]| texts.map(str::to_owned);
        let long = row(["-r--r--r--", "float64", "[2]", "-", "-", "512", "16"]);
        let short = row(["-r--r--r--", "int8", "[10]", "-", "-", "0", "10000"]);
        let mut widths = ColumnWidths::default();
        widths.widen_to(&long);
        widths.widen_to(&short);
        assert_eq!(
            widths.align(&long),
            "-r--r--r-- float64 [2]  - - 512    16 "
        );
        assert_eq!(
            widths.align(&short),
            "-r--r--r-- int8    [10] - -   0 10000 "
        );
    }
}
