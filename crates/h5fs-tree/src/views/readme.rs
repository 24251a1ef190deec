//! `.h5fs/README.txt`: a description of `.h5fs`, for people and programs that find a mount.

use h5fs_reader::error::Result;
use h5fs_reader::wire::to_u64;
use h5fs_view::text_files::text::InMemoryContent;
use h5fs_view::view::View;

use crate::nodes::node::{FsNode, TargetInode};
use crate::stat::{FileKind, LookupEntry};
use crate::views::guide::GUIDE;

/// Name of the file in `.h5fs`.
pub(crate) const NAME: &[u8] = b"README.txt";

const INTRODUCTION: &str = "\
This is a read-only mount of HDF5 or ASDF data, made by h5fs. Groups are directories. Datasets and
blocks are files with their elements in C order, without filters. Attributes are extended
attributes (getfattr -d -m - PATH) and files in .h5fs/attrs.

.h5fs shows the same data in other forms. h5fs computes each file when a program reads it. Any
range can be read, and nothing is stored. In these names, PATH is the path of a dataset or of a
group, as in the mount:

";

const SELECTORS: &str = "
A selector in brackets after the name of a dataset reads a part, with NumPy's rules:
    temperature[0:10]    temperature[3,::2]    csv/table[name].csv    png/image[7].png
Named dimensions select by their coordinates, as xarray's .sel does, or by position:
    temperature[time=2020-03,latitude=~60]    temperature[longitude=10:20,time@-1]

The commands h5fs ls and h5fs cat read the same names without a mount. The manual page is
h5fs-views(7).
";

/// Width in characters of the column with the paths.
const PATH_WIDTH: usize = 26;

/// Width in characters of a line.
const LINE_WIDTH: usize = 100;

/// The file `.h5fs/README.txt`.
pub(crate) struct Readme;

impl FsNode for Readme {
    fn kind(&self) -> FileKind {
        FileKind::File
    }

    fn stat(&self, target: &TargetInode<'_>) -> Result<LookupEntry> {
        Ok(target.sized_entry(to_u64(text().len())))
    }

    fn open(&self, _: &TargetInode<'_>) -> Result<Box<dyn View>> {
        Ok(Box::new(InMemoryContent::new(text())))
    }
}

/// Returns the text of the file.
pub(crate) fn text() -> Vec<u8> {
    let mut text = INTRODUCTION.to_owned();
    for row in GUIDE {
        let (last, others) = row.paths.split_last().unwrap_or((&"", &[]));
        for path in others {
            text.push_str(&format!("    {path}\n"));
        }
        let content = row.content.replace('`', "");
        let mut line = format!("    {last:PATH_WIDTH$}");
        for word in content.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > LINE_WIDTH {
                text.push_str(&line);
                text.push('\n');
                line = format!("    {:PATH_WIDTH$}", "");
            }
            line.push(' ');
            line.push_str(word);
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str(SELECTORS);
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_every_path_in_short_lines() {
        let text = String::from_utf8(text()).unwrap();
        let paths = GUIDE.iter().flat_map(|row| row.paths);
        for path in paths {
            assert!(
                text.lines().any(|line| line.trim_start().starts_with(path)),
                "{path}"
            );
        }
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(
            longest.is_some_and(|longest| longest <= LINE_WIDTH),
            "{text}"
        );
        assert!(
            text.contains("temperature[0:10]") && !text.contains('`'),
            "{text}"
        );
    }
}
