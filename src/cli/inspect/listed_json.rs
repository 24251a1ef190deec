//! `h5fs ls --json`: an entry as a JSON object.

use h5fs_reader::model::text::JsonObject;

use crate::cli::inspect::columns::{COLUMNS, Cells};

/// The names of the JSON fields for the columns of a long listing. The flag says whether the text
/// in the column is valid JSON.
const FIELDS: [(&str, bool); COLUMNS] = [
    ("mode", false),
    ("type", false),
    ("shape", true),
    ("chunks", true),
    ("filters", false),
    ("stored_bytes", true),
    ("bytes", true),
];

/// An entry of a listing, as a JSON object.
pub(in crate::cli) struct JsonEntry<'a> {
    pub(in crate::cli) path: &'a [u8],
    pub(in crate::cli) cells: &'a Cells,
    /// The target of a symbolic link.
    pub(in crate::cli) target: Option<&'a [u8]>,
    /// The errors of the listed object, as texts.
    pub(in crate::cli) faults: &'a [String],
}

impl JsonEntry<'_> {
    /// Formats the entry as one line.
    pub(in crate::cli) fn json_line(&self) -> String {
        let kind = match self.cells[0].as_bytes().first() {
            Some(b'd') => "directory",
            Some(b'l') => "symlink",
            _ => "file",
        };
        let mut object = JsonObject::default();
        object.add_text("path", self.path);
        object.add_text("kind", kind);
        for ((name, is_json), cell) in FIELDS.into_iter().zip(self.cells) {
            match &cell[..] {
                "-" => {}
                cell if is_json => object.add_json(name, cell),
                cell => object.add_text(name, cell),
            }
        }
        if let Some(target) = self.target {
            object.add_text("target", target);
        }
        if !self.faults.is_empty() {
            object.add_text("error", self.faults.join("; "));
        }
        object.finish()
    }
}
