//! What of an object besides its content can be read: for a command that looks for damage, not at data.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::fs::inode::What;
use crate::fs::{Filesystem, Ino};
use crate::view::attributes;

impl Filesystem {
    /// Reads every attribute of an object, also those that are shown nowhere, and hands on what is wrong
    /// with which (its name as in the file).
    ///
    /// # Errors
    /// As the object itself or its list of attributes is damaged.
    pub fn examine(&self, ino: Ino, damaged: &mut dyn FnMut(&[u8], Error)) -> Result<()> {
        let (live, entry) = self.standing(ino)?;
        match entry.what {
            What::Group | What::Object => {}
            What::Damaged => return Err(self.damage(&live, &entry)),
            What::Blocks => return self.examine_blocks(&live),
            _ => return Ok(()),
        }
        let container = &*live.container;
        let node = container.node(entry.node)?;
        container.attributes(node.id, &mut |attribute| {
            // That of a reference is no part of the value: the object's path need not be looked for.
            let value = attribute
                .content
                .and_then(|content| attributes::value_text(container, &|_| Ok(None), &content));
            if let Err(error) = value {
                damaged(&attribute.name, error);
            }
            ControlFlow::Continue(())
        })?;
        node.error.clone().map_or(Ok(()), Err)
    }
}
