//! A document of nested maps with one key on each line, in YAML's block style or in JSON.

use h5fs_reader::model::ndl::{FlowWriter, Syntax, is_long_key, quoted_text};

/// A writer that appends indented keys and values of nested maps.
pub(super) struct MapWriter<'a> {
    out: &'a mut Vec<u8>,
    syntax: Syntax,
    place: KeyPosition,
}

/// The position of the next key in the nested maps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KeyPosition {
    /// Number of enclosing maps, which is the level of indentation.
    depth: usize,
    /// Whether the current map already has a key.
    has_key: bool,
}

impl<'a> MapWriter<'a> {
    /// Creates a writer that appends to `out`. Writing resumes at `place`.
    pub(super) fn new(out: &'a mut Vec<u8>, syntax: Syntax, place: KeyPosition) -> Self {
        MapWriter { out, syntax, place }
    }

    /// Returns the syntax of the document.
    pub(super) fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Returns the position of the next key.
    pub(super) fn key_position(&self) -> KeyPosition {
        self.place
    }

    /// Returns the length of the output buffer in bytes, including what it contained before.
    pub(super) fn length(&self) -> usize {
        self.out.len()
    }

    /// Creates a writer for a value in flow style (on one line), in the syntax of the document.
    pub(super) fn flow_writer(&self) -> FlowWriter {
        FlowWriter::new(self.syntax)
    }

    /// Writes the opening brace of the document, in JSON only.
    pub(super) fn begin(&mut self) {
        if self.syntax == Syntax::Json {
            self.out.push(b'{');
        }
    }

    /// Writes the closing brace of the document, in JSON only.
    pub(super) fn end(&mut self) {
        if self.syntax == Syntax::Json {
            self.out.extend_from_slice(b"\n}\n");
        }
    }

    /// Writes a comment, in YAML only. `text` has one line.
    pub(super) fn write_comment(&mut self, text: &str) {
        if self.syntax == Syntax::Yaml {
            self.indent();
            self.write(&format!("# {text}\n"));
        }
    }

    /// Writes a key and its value, which is in flow style (on one line).
    pub(super) fn write_pair(&mut self, key: &[u8], value: &str) {
        self.write_key(key);
        match self.syntax {
            Syntax::Yaml => self.write(&format!(" {value}\n")),
            Syntax::Json => self.write(&format!(" {value}")),
        }
    }

    /// Writes a key whose value is a map. `inside` writes the keys of this map.
    pub(super) fn write_map(&mut self, key: &[u8], inside: impl FnOnce(&mut Self)) {
        self.open_map(key);
        inside(self);
        self.close_map();
    }

    /// Opens a map as the value of a key. All keys until [`MapWriter::close_map`] belong to this
    /// map.
    pub(super) fn open_map(&mut self, key: &[u8]) {
        self.write_key(key);
        self.write(match self.syntax {
            Syntax::Yaml => "\n",
            Syntax::Json => " {",
        });
        self.place.depth += 1;
        self.place.has_key = false;
    }

    /// Writes `{}` for an opened map without keys, in YAML. In JSON, [`open_map`](Self::open_map)
    /// and [`close_map`](Self::close_map) write the braces.
    pub(super) fn write_empty_map(&mut self) {
        if self.syntax == Syntax::Yaml {
            self.indent();
            self.write("{}\n");
        }
    }

    /// Closes the innermost open map.
    pub(super) fn close_map(&mut self) {
        self.place.depth = self.place.depth.saturating_sub(1);
        if self.syntax == Syntax::Json {
            if self.place.has_key {
                self.write("\n");
                self.indent();
            }
            self.write("}");
        }
        self.place.has_key = true;
    }

    fn write_key(&mut self, key: &[u8]) {
        if self.syntax == Syntax::Json {
            self.write(if self.place.has_key { ",\n" } else { "\n" });
        }
        self.indent();
        let mut text = self.flow_writer();
        if self.syntax == Syntax::Yaml && is_long_key(key) {
            text.push("? ");
            text.write_text(key);
            text.push("\n");
            self.write(&text.finish());
            self.indent();
        } else {
            text.write_text(key);
            self.write(&text.finish());
        }
        self.write(":");
        self.place.has_key = true;
    }

    fn indent(&mut self) {
        let depth = match self.syntax {
            Syntax::Yaml => self.place.depth,
            Syntax::Json => self.place.depth + 1,
        };
        self.out.extend(std::iter::repeat_n(b' ', depth * 2));
    }

    fn write(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }
}

/// Formats text for a comment, on one line.
pub(super) fn comment_text(text: &[u8]) -> String {
    quoted_text(Syntax::Yaml, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_map_text(syntax: Syntax, write: impl FnOnce(&mut MapWriter<'_>)) -> String {
        let mut out = Vec::new();
        let mut lines = MapWriter::new(&mut out, syntax, KeyPosition::default());
        lines.begin();
        write(&mut lines);
        lines.end();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nested_maps_are_indented() {
        let write = |lines: &mut MapWriter<'_>| {
            lines.write_comment("why");
            lines.write_map(b"/a", |lines| {
                lines.write_pair(b"k", "1");
                lines.write_map(b"m", |lines| lines.write_pair(b"no", "[2, 3]"));
                lines.write_pair(b"z", "null");
            });
            lines.write_map(b"/b", MapWriter::write_empty_map);
        };
        let yaml = "# why\n/a:\n  k: 1\n  m:\n    \"no\": [2, 3]\n  z: null\n/b:\n  {}\n";
        assert_eq!(write_map_text(Syntax::Yaml, write), yaml);
        let json = r#"{
  "/a": {
    "k": 1,
    "m": {
      "no": [2, 3]
    },
    "z": null
  },
  "/b": {}
}
"#;
        assert_eq!(write_map_text(Syntax::Json, write), json);
    }

    #[test]
    fn a_long_key_is_marked_in_yaml() {
        let write = |lines: &mut MapWriter<'_>| {
            lines.write_map(b"/a b", |lines| lines.write_pair(&[b'x'; 200], "[1]"));
        };
        let expected = format!("/a b:\n  ? \"{0}\"\n  : [1]\n", "x".repeat(200));
        assert_eq!(write_map_text(Syntax::Yaml, write), expected);
    }
}
