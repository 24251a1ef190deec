//! An HTML page that is being written.

use h5fs_reader::error::Error;

use crate::documents::html::markup::Html;

/// The body of an HTML page that is being written.
#[derive(Default)]
pub(super) struct PageDraft {
    /// The text after the name of the object, at the top of the page.
    pub(super) head: Html,
    pub(super) body: Html,
    /// Whether a section of the page could not be read because of a temporary error.
    pub(super) is_partial: bool,
}

impl PageDraft {
    /// Writes an error message in place of a section that cannot be read.
    pub(super) fn write_error(&mut self, error: &Error) {
        self.is_partial |= error.is_transient();
        self.body.markup("<p class=\"error\">");
        self.body.text(error.to_string()).markup("</p>\n");
    }

    pub(super) fn write_heading(&mut self, text: &'static str) {
        self.body.markup("<h2>").markup(text).markup("</h2>\n");
    }
}

/// Formats a number of bytes for display.
pub(super) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut shown = bytes as f64;
    let mut unit = None;
    for name in UNITS {
        if shown < 1024.0 {
            break;
        }
        shown /= 1024.0;
        unit = Some(name);
    }
    match unit {
        None if bytes == 1 => "1 byte".to_owned(),
        None => format!("{bytes} bytes"),
        Some(unit) if shown < 10.0 => format!("{shown:.1} {unit}"),
        Some(unit) => format!("{shown:.0} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let shown = [0, 1, 1023, 1024, 10_240, 1 << 30, u64::MAX].map(format_size);
        let expected = [
            "0 bytes",
            "1 byte",
            "1023 bytes",
            "1.0 KiB",
            "10 KiB",
            "1.0 GiB",
            "16 EiB",
        ];
        assert_eq!(shown, expected);
    }
}
