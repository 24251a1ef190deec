//! Commands and Python expressions that read the object, for users to copy.

use h5fs_reader::error::line::is_bidi_control;

use crate::documents::html::markup::Html;
use crate::documents::html::object::PageObject;
use crate::documents::html::page_site::SiblingFile;

/// Writes commands that read the object. `files` are the files of the mount that show the object.
pub(super) fn write(object: &PageObject<'_>, files: &[SiblingFile], html: &mut Html) {
    let lines = command_lines(object, files);
    if lines.is_empty() {
        return;
    }
    html.markup("<details class=\"copy\"><summary>Lines to copy</summary>\n");
    html.markup(
        "<p class=\"note\">for a shell in the directory of the file, and for Python and DuckDB at \
         the mount point</p>\n",
    );
    for line in lines {
        html.markup("<pre>").long_text(line).markup("</pre>\n");
    }
    html.markup("</details>\n");
}

fn command_lines(object: &PageObject<'_>, files: &[SiblingFile]) -> Vec<String> {
    let named = |tree: &[u8]| {
        let file = files.iter().find(|file| file.tree == tree)?;
        safe_text(&file.path)
    };
    let source = object.site.source_name();
    let source = safe_text(&source);
    let mut lines: Vec<String> = safe_text(object.path)
        .into_iter()
        .map(str::to_owned)
        .collect();
    if let Some((source, path)) = source.zip(named(b""))
        && object.node.array().is_some()
    {
        lines.push(format!(
            "h5fs cat {} {}",
            quote_for_shell(source),
            quote_for_shell(path)
        ));
    }
    if let Some(path) = named(b"npy") {
        lines.push(format!(
            "numpy.load({}, mmap_mode=\"r\")",
            python_literal(path)
        ));
    }
    if let Some(path) = named(b"parquet") {
        let path = path.replace('\'', "''");
        lines.push(format!("SELECT * FROM '{path}'"));
    }
    if object.site.is_root() {
        lines.push("xarray.open_zarr(\".h5fs/file.zarr\")".to_owned());
    }
    lines
}

/// Returns bytes as text; `None` if they contain characters that are not safe to copy to a command.
fn safe_text(bytes: &[u8]) -> Option<&str> {
    let text = str::from_utf8(bytes).ok()?;
    let is_odd = |c: char| c.is_control() || is_bidi_control(c);
    (!text.is_empty() && !text.contains(is_odd)).then_some(text)
}

/// Quotes a path for a POSIX shell. A path that begins with `-` gets the prefix `./`.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%".contains(byte);
    let word = match word.strip_prefix('-') {
        Some(_) => format!("./{word}"),
        None => word.to_owned(),
    };
    if word.as_bytes().iter().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Formats a Python string literal.
fn python_literal(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_word() {
        assert_eq!(quote_for_shell("entry/data/counts"), "entry/data/counts");
        assert_eq!(quote_for_shell("a b"), "'a b'");
        assert_eq!(
            quote_for_shell("it's; rm -rf $HOME"),
            "'it'\\''s; rm -rf $HOME'"
        );
        assert_eq!(quote_for_shell("-rf"), "./-rf");
        assert_eq!(python_literal("a\"+b\\"), "\"a\\\"+b\\\\\"");
        assert_eq!(safe_text("line\nfeed".as_bytes()), None);
        assert_eq!(safe_text("gnp\u{202e}x".as_bytes()), None);
    }
}
