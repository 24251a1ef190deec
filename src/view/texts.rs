//! Files of the views whose content is text.

pub(crate) mod asdf_json;
pub(crate) mod attribute_file;
pub(crate) mod attributes;
pub(crate) mod bounds;
pub(crate) mod chunks;
pub(crate) mod counted_text;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod ndl;
pub(crate) mod streamed;
pub(crate) mod text;
