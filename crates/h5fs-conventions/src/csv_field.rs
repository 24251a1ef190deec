//! A text as a field of CSV (RFC 4180).

/// Appends a text as a CSV field, in quotes if CSV parsers could misinterpret the unquoted text.
pub fn append_field(text: &[u8], out: &mut Vec<u8>) {
    if needs_quotes(text) {
        append_quoted(text, out);
    } else {
        out.extend_from_slice(text);
    }
}

/// Returns whether CSV parsers could misinterpret the text without quotes.
pub fn needs_quotes(text: &[u8]) -> bool {
    let has_syntax = text.iter().any(|byte| b",\"\r\n".contains(byte));
    has_syntax || text.trim_ascii().len() < text.len() || text.is_empty()
}

/// Appends a text as a quoted CSV field. Quotes in the text are doubled.
pub fn append_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
