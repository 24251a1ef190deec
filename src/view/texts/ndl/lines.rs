//! A document as maps within maps: a key a line, in YAML's block form or in JSON.

use crate::model::ndl::{Flow, Syntax, is_long_key, text_in};

/// Appends keys and values, indented.
pub(super) struct Lines<'a> {
    out: &'a mut Vec<u8>,
    syntax: Syntax,
    place: Place,
}

/// Where the next key stands.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// How many keys it stands below.
    depth: usize,
    /// Whether the map that it stands in has another one before it.
    is_next: bool,
}

impl<'a> Lines<'a> {
    /// Goes on behind `out`, at `place`.
    pub(super) fn new(out: &'a mut Vec<u8>, syntax: Syntax, place: Place) -> Self {
        Lines { out, syntax, place }
    }

    /// The syntax.
    pub(super) fn syntax(&self) -> Syntax {
        self.syntax
    }

    /// Where the next key stands.
    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Bytes that there are, with those that were there before.
    pub(super) fn length(&self) -> usize {
        self.out.len()
    }

    /// A value without anything in it.
    pub(super) fn flow(&self) -> Flow {
        Flow::new(self.syntax)
    }

    /// Begins the document.
    pub(super) fn begin(&mut self) {
        if self.syntax == Syntax::Json {
            self.out.push(b'{');
        }
    }

    /// Ends the document.
    pub(super) fn end(&mut self) {
        if self.syntax == Syntax::Json {
            self.out.extend_from_slice(b"\n}\n");
        }
    }

    /// A comment, which JSON does not have; `text` stands on one line.
    pub(super) fn comment(&mut self, text: &str) {
        if self.syntax == Syntax::Yaml {
            self.indent();
            self.write(&format!("# {text}\n"));
        }
    }

    /// A key and its value, which is in flow form.
    pub(super) fn pair(&mut self, key: &[u8], value: &str) {
        self.key(key);
        match self.syntax {
            Syntax::Yaml => self.write(&format!(" {value}\n")),
            Syntax::Json => self.write(&format!(" {value}")),
        }
    }

    /// A key; what `inside` writes stands below it.
    pub(super) fn map(&mut self, key: &[u8], inside: impl FnOnce(&mut Self)) {
        self.open(key);
        inside(self);
        self.close();
    }

    /// A key; what follows until [`Lines::close`] stands below it.
    pub(super) fn open(&mut self, key: &[u8]) {
        self.key(key);
        self.write(match self.syntax {
            Syntax::Yaml => "\n",
            Syntax::Json => " {",
        });
        self.place.depth += 1;
        self.place.is_next = false;
    }

    /// Nothing stands below the last key.
    pub(super) fn nothing(&mut self) {
        if self.syntax == Syntax::Yaml {
            self.indent();
            self.write("{}\n");
        }
    }

    /// Ends what stands below the last key.
    pub(super) fn close(&mut self) {
        self.place.depth = self.place.depth.saturating_sub(1);
        if self.syntax == Syntax::Json {
            if self.place.is_next {
                self.write("\n");
                self.indent();
            }
            self.write("}");
        }
        self.place.is_next = true;
    }

    fn key(&mut self, key: &[u8]) {
        if self.syntax == Syntax::Json {
            self.write(if self.place.is_next { ",\n" } else { "\n" });
        }
        self.indent();
        let mut text = self.flow();
        if self.syntax == Syntax::Yaml && is_long_key(key) {
            text.push("? ");
            text.text(key);
            text.push("\n");
            self.write(&text.finish());
            self.indent();
        } else {
            text.text(key);
            self.write(&text.finish());
        }
        self.write(":");
        self.place.is_next = true;
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

/// Text in a comment.
pub(super) fn comment_text(text: &[u8]) -> String {
    text_in(Syntax::Yaml, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(syntax: Syntax, write: impl FnOnce(&mut Lines<'_>)) -> String {
        let mut out = Vec::new();
        let mut lines = Lines::new(&mut out, syntax, Place::default());
        lines.begin();
        write(&mut lines);
        lines.end();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn maps_within_maps() {
        let write = |lines: &mut Lines<'_>| {
            lines.comment("why");
            lines.map(b"/a", |lines| {
                lines.pair(b"k", "1");
                lines.map(b"m", |lines| lines.pair(b"no", "[2, 3]"));
                lines.pair(b"z", "null");
            });
            lines.map(b"/b", Lines::nothing);
        };
        let yaml = "# why\n/a:\n  k: 1\n  m:\n    \"no\": [2, 3]\n  z: null\n/b:\n  {}\n";
        assert_eq!(written(Syntax::Yaml, write), yaml);
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
        assert_eq!(written(Syntax::Json, write), json);
    }

    #[test]
    fn a_long_key_is_said_to_be_one() {
        let write = |lines: &mut Lines<'_>| {
            lines.map(b"/a b", |lines| lines.pair(&[b'x'; 200], "[1]"));
        };
        let expected = format!("/a b:\n  ? \"{0}\"\n  : [1]\n", "x".repeat(200));
        assert_eq!(written(Syntax::Yaml, write), expected);
    }
}
