//! A text as a field of CSV (RFC 4180).

/// Appends a text as a cell, in quotes if readers could misinterpret it.
pub fn append_field(text: &[u8], out: &mut Vec<u8>) {
    if needs_quotes(text) {
        append_quoted(text, out);
    } else {
        out.extend_from_slice(text);
    }
}

/// Returns whether readers could misinterpret a text without quotes.
pub fn needs_quotes(text: &[u8]) -> bool {
    let has_syntax = text.iter().any(|byte| b",\"\r\n".contains(byte));
    has_syntax || text.trim_ascii().len() < text.len() || text.is_empty()
}

/// Appends a text in quotes.
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
