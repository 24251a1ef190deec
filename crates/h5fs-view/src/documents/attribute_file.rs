//! A file with the value of an attribute as text, one line for each element.

use h5fs_reader::error::Result;
use h5fs_reader::model::Container;
use h5fs_reader::model::attribute::AttributeContent;
use h5fs_reader::model::value::NodePathResolver;

use crate::documents::attributes::value_lines;
use crate::text_files::text::InMemoryContent;

/// Creates the file with the text of an attribute's value. Each element is followed by a line
/// break. The file of a value without elements is empty. `paths` converts the target of a reference
/// to text.
///
/// # Errors
/// Fails as [`value_lines`] does.
pub fn view(
    container: &dyn Container,
    paths: &NodePathResolver<'_>,
    content: &AttributeContent,
) -> Result<InMemoryContent> {
    let mut text = value_lines(container, paths, content)?;
    if content.shape.elements()? > 0 {
        text.push(b'\n');
    }
    Ok(InMemoryContent::new(text))
}
