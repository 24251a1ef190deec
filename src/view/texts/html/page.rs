//! The frame of a page: its head, its style, the way from the root.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::view::texts::html::markup::Html;
use crate::view::texts::html::object::Object;

const STYLE: &str = include_str!("style.css");

/// The page with this body.
pub(super) fn framed(object: &Object<'_>, body: &Html) -> Vec<u8> {
    let mut html = Html::default();
    let source = object.site.source_name();
    let trail = object.site.trail();
    let name = trail.as_ref().and_then(|trail| trail.last());
    let name = name.map(|step| &*step.name).filter(|name| !name.is_empty());
    html.markup("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    html.markup("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; ");
    html.markup("img-src 'self' file: data:; style-src '")
        .text(digest());
    html.markup("'; base-uri 'none'; form-action 'none'\">\n");
    html.markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n");
    html.markup("<meta name=\"color-scheme\" content=\"light dark\">\n");
    html.markup("<meta name=\"referrer\" content=\"no-referrer\">\n");
    // A browser asks a server for an icon, unless it is told of one.
    html.markup("<link rel=\"icon\" href=\"data:,\">\n<title>");
    if let Some(name) = name {
        html.text(name).markup(" – ");
    }
    html.text(&source).markup("</title>\n<style>");
    html.markup(STYLE).markup("</style>\n</head>\n<body>\n");
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
    html.markup("</nav>\n<main>\n<h1>")
        .text(name.unwrap_or(&source));
    html.markup("</h1>\n").piece(body);
    html.markup("</main>\n</body>\n</html>\n");
    html.finish()
}

/// The digest of the style, as a policy names it.
fn digest() -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(STYLE)))
}
