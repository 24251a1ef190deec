//! Files of the views whose content is text.

pub mod asdf_json;
pub mod attribute_file;
pub mod attributes;
pub mod chunks;
pub mod h5grove;
pub mod html;
pub mod ndl;
