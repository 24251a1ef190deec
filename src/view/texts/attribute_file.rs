//! An attribute as a file: its value as text, a line for each element.

use crate::error::Result;
use crate::model::Container;
use crate::model::attribute::AttributeContent;
use crate::model::value::Paths;
use crate::view::texts::attributes::value_lines;
use crate::view::texts::text::Text;

/// The value as text, each element's behind the other's and followed by a line break; nothing for a
/// value without elements. `paths` turns the target of a reference into text.
///
/// # Errors
/// Fails as [`value_lines`] does.
pub(crate) fn view(
    container: &dyn Container,
    paths: &Paths<'_>,
    content: &AttributeContent,
) -> Result<Text> {
    let mut text = value_lines(container, paths, content)?;
    if content.shape.elements()? > 0 {
        text.push(b'\n');
    }
    Ok(Text::new(text))
}
