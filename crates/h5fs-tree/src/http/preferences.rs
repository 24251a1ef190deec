//! Parses header fields in which clients state preferences; RFC 9110, section 12.

use http::{HeaderMap, HeaderName};

/// Returns the values of all header fields called `name`. Values that are not text are skipped.
pub(super) fn header_values<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'h str> {
    let fields = headers.get_all(name).into_iter();
    fields.filter_map(|field| field.to_str().ok())
}

/// Returns the weight (quality value) that the header fields `name` give to `word`, from 0 to 1. A
/// word that is not listed literally has weight 0.
pub(super) fn quality_value(headers: &HeaderMap, name: &HeaderName, word: &str) -> f32 {
    let members = header_values(headers, name).flat_map(|text| split_outside_quotes(text, ','));
    let weights = members.filter_map(|member| {
        let mut parts = split_outside_quotes(member, ';').map(str::trim);
        let is_it = parts.next()?.eq_ignore_ascii_case(word);
        let mut given = parts.filter_map(|part| part.split_once('='));
        let given = given.find(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        // An invalid number counts as 0.
        let weight = given.map_or(1.0, |(_, text)| text.trim().parse().unwrap_or(0.0));
        is_it.then(|| f32::clamp(weight, 0.0, 1.0))
    });
    weights.fold(0.0, f32::max)
}

/// Splits a text at each `separator` that is outside quotes.
fn split_outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    text.split(move |character| {
        is_quoted ^= character == '"';
        character == separator && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::ACCEPT;

    #[test]
    fn weights_are_those_of_the_rfc() {
        let json = |fields: &[&str]| {
            let mut headers = HeaderMap::new();
            for field in fields {
                headers.append(ACCEPT, field.parse().unwrap());
            }
            quality_value(&headers, &ACCEPT, "application/json")
        };
        for (fields, expected) in [
            (&[][..], 0.0),
            (&["application/json"], 1.0),
            (&["text/html, Application/JSON ; Q=0.5"], 0.5),
            (&["text/html", "application/json;q=0.25"], 0.25),
            (&["application/json;charset=utf-8;q=0.75"], 0.75),
            (&["text/html, application/json;q=0"], 0.0),
            (&["application/json;q=0.000, text/html"], 0.0),
            (&["application/json;q=much"], 0.0),
            (&["application/json;q=7"], 1.0),
            (&["application/json;q=NaN"], 0.0),
            (&["application/jsonl, xapplication/json"], 0.0),
            (&["text/plain;as=\", application/json\""], 0.0),
            (&["*/*"], 0.0),
        ] {
            assert_eq!(json(fields), expected, "{fields:?}");
        }
    }
}
