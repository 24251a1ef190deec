//! The list of objects and attributes that the computed file does not have.

use h5fs_reader::error::quote;

use crate::limits;

/// Name of the root attribute that lists what is absent, one line for each object or attribute.
pub(super) const ATTRIBUTE_NAME: &[u8] = b"_h5fs_absent";

/// The objects and attributes that the computed file does not have, each with the reason.
#[derive(Debug, Default)]
pub(super) struct Absences {
    text: String,
    /// The number of absences that the text does not list.
    unlisted: u64,
}

impl Absences {
    /// Adds the object at `path`.
    pub(super) fn add(&mut self, path: &[u8], reason: &str) {
        let line = format!("{}: {reason}\n", quote(path));
        if self.text.len().saturating_add(line.len()) > limits::HDF5_FILE_ABSENCES {
            self.unlisted = self.unlisted.saturating_add(1);
        } else {
            self.text.push_str(&line);
        }
    }

    /// Adds the attribute `name` of the object at `path`.
    pub(super) fn add_attribute(&mut self, path: &[u8], name: &[u8], reason: &str) {
        let path = if path.is_empty() { b"/" } else { path };
        self.add(path, &format!("attribute {}: {reason}", quote(name)));
    }

    /// Adds the absences of `other` behind its own.
    pub(super) fn append(&mut self, other: &Absences) {
        self.text.push_str(&other.text);
        self.unlisted = self.unlisted.saturating_add(other.unlisted);
    }

    /// Returns the value of the attribute, or `None` if nothing is absent.
    pub(super) fn text(&self) -> Option<String> {
        let mut text = self.text.trim_end().to_owned();
        if self.unlisted > 0 {
            text.push_str(&format!("\nand {} more", self.unlisted));
        }
        (!text.is_empty()).then_some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_absence_is_a_line() {
        let mut absences = Absences::default();
        assert_eq!(absences.text(), None);
        absences.add(b"/a", "a reason");
        absences.add_attribute(b"", b"units", "another reason");
        let text = "/a: a reason\n/: attribute units: another reason";
        assert_eq!(absences.text().as_deref(), Some(text));
    }

    #[test]
    fn a_long_list_ends_with_a_count() {
        let mut absences = Absences::default();
        for number in 0..limits::HDF5_FILE_ABSENCES {
            absences.add(number.to_string().as_bytes(), "a reason");
        }
        let text = absences.text().unwrap();
        assert!(text.len() < limits::HDF5_FILE_ABSENCES + 100 && text.ends_with(" more"));
    }
}
