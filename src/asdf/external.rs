//! Other ASDF files that ndarrays take their data from ("Low-level file layout": Exploded form). An
//! ndarray whose `source` is a URI has its elements in the first block of that file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::asdf::content::Contents;
use crate::asdf::{block, header};
use crate::error::{Error, Result};
use crate::limits;
use crate::source::SharedSource;
use crate::source::neighbours::Neighbours;
use crate::wire::to_u64;

/// The other files, opened when they are first asked for. What may be opened is for the neighbours
/// to say.
#[derive(Debug)]
pub struct Externals {
    neighbours: Arc<Neighbours>,
    files: Mutex<HashMap<Vec<u8>, Result<Arc<Contents>>>>,
}

impl Externals {
    /// The other files beside a source.
    pub fn new(neighbours: Arc<Neighbours>) -> Self {
        Externals {
            neighbours,
            files: Mutex::default(),
        }
    }

    /// The blocks of the file called `name`. The answer is kept, unless the file cannot be
    /// had.
    ///
    /// # Errors
    /// `Io` where the file is missing or may not be opened, otherwise as it is no ASDF file.
    pub fn open(&self, name: &[u8]) -> Result<Arc<Contents>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(name) {
            return known.clone();
        }
        if files.len() >= limits::EXTERNAL_FILES {
            let most = to_u64(limits::EXTERNAL_FILES);
            return Err(Error::limit("other files of an ASDF file", most));
        }
        let opened = self.contents(name).map(Arc::new);
        if !matches!(&opened, Err(error) if error.is_passing()) {
            files.insert(name.to_vec(), opened.clone());
        }
        opened
    }

    fn contents(&self, name: &[u8]) -> Result<Contents> {
        let Some(file) = self.neighbours.open(name)? else {
            let what = format!("other ASDF file {}", name.escape_ascii());
            return Err(Error::io(&std::io::ErrorKind::NotFound.into(), what));
        };
        let source: SharedSource = file;
        let header = header::read(&*source)?;
        let blocks = block::walk(&*source, header.end)?;
        Ok(Contents::new(source, blocks))
    }
}
