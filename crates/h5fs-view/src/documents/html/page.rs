//! The frame of a page: its head, its style and the breadcrumb trail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::documents::html::markup::Html;
use crate::documents::html::object::PageObject;
use crate::documents::html::page_draft::PageDraft;
use crate::documents::html::script;

const STYLE: &str = include_str!("style.css");

/// Returns the complete HTML page with the content of `draft`.
pub(super) fn complete_page(object: &PageObject<'_>, draft: &PageDraft) -> Vec<u8> {
    let mut html = Html::default();
    let source = object.site.source_name();
    let trail = object.site.breadcrumbs();
    let name = trail.as_ref().and_then(|trail| trail.last());
    let name = name.map(|step| &*step.name).filter(|name| !name.is_empty());
    html.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.markup("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    html.markup("img-src 'self' file: data:; style-src '")
        .text(style_hash());
    html.markup("'; ");
    if object.site.script_url().is_some() {
        html.markup("script-src 'self'; connect-src 'self'; ");
    }
    html.markup("base-uri 'none'; form-action 'none'\">\n");
    html.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.markup("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.markup("<meta name=\"referrer\" content=\"no-referrer\">\n");
    // The first display waits for the whole page, because the columns of a table would move when
    // further rows arrive.
    html.markup("<link rel=\"expect\" href=\"#end\" blocking=\"render\">\n");
    // An explicit icon prevents the browser from requesting one.
    html.markup("<link rel=\"icon\" href=\"data:,\">\n<title>");
    if let Some(name) = name {
        html.text(name).markup(" – ");
    }
    html.text(&source).markup("</title>\n<style>");
    html.markup(STYLE).markup("</style>\n");
    script::write_head(object, &mut html);
    html.markup("</head>\n<body>\n");
    html.markup("<nav>");
    for (number, step) in trail.iter().flatten().enumerate() {
        let text = match &*step.name {
            [] => &*source,
            name => name,
        };
        if number > 0 {
            html.markup("<span>/</span>");
        }
        match &step.url {
            Some(url) => html.link(url, text),
            None => html.text(text),
        };
    }
    html.markup("</nav>\n<main>\n<div class=\"head\"><h1>")
        .text(name.unwrap_or(&source));
    html.markup("</h1>\n").append_html(&draft.head);
    html.markup("</div>\n").append_html(&draft.body);
    html.markup("<div id=\"end\"></div>\n</main>\n</body>\n</html>\n");
    html.finish()
}

/// Returns the hash of the style sheet for the content security policy.
fn style_hash() -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(STYLE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the colour `name` in a block of the style sheet.
    fn colour(block: &str, name: &str) -> [f64; 3] {
        let key = format!("--{name}: #");
        let at = block.find(&key).expect("a colour") + key.len();
        let digits: String = block[at..]
            .chars()
            .take_while(char::is_ascii_hexdigit)
            .collect();
        let parts = match digits.len() {
            3 => digits
                .chars()
                .map(|digit| format!("{digit}{digit}"))
                .collect(),
            _ => digits
                .as_bytes()
                .chunks(2)
                .map(|pair| String::from_utf8_lossy(pair).into_owned())
                .collect::<Vec<_>>(),
        };
        let part =
            |number: usize| f64::from(u8::from_str_radix(&parts[number], 16).unwrap()) / 255.0;
        [part(0), part(1), part(2)]
    }

    /// Computes the contrast ratio by WCAG 2.2, "contrast ratio" and "relative luminance".
    fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
        let luminance = |colour: [f64; 3]| {
            let linear = |part: f64| match part {
                part if part <= 0.04045 => part / 12.92,
                part => ((part + 0.055) / 1.055).powf(2.4),
            };
            let [red, green, blue] = colour.map(linear);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// Level AA requires 4.5 for text, and 3 for lines.
    #[test]
    fn texts_stand_out_from_their_ground() {
        let black_on_white = contrast([0.0; 3], [1.0; 3]);
        assert!((black_on_white - 21.0).abs() < 1e-9);
        let blocks: Vec<&str> = STYLE.split(":root {").skip(1).collect();
        assert_eq!(blocks.len(), 3, "light, dark, print");
        for block in blocks {
            let ratio = |one, other| contrast(colour(block, one), colour(block, other));
            for (text, ground) in [
                ("text", "ground"),
                ("text", "panel"),
                ("soft", "ground"),
                ("soft", "panel"),
                ("link", "ground"),
                ("link", "panel"),
                ("error", "error-ground"),
            ] {
                let ratio = ratio(text, ground);
                assert!(ratio >= 4.5, "{text} on {ground}: {ratio}");
            }
            assert!(ratio("line", "panel") >= 3.0);
        }
    }
}
