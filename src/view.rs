//! What the files of the mount hold, and the texts beside them.

pub mod attributes;
