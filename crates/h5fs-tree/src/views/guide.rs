//! The user documentation of `.h5fs`: the table of docs/views.md and of h5fs-views(7).

/// A row of the table: paths of files or directories below `.h5fs`, and what they contain.
pub struct GuideRow {
    /// The paths; `PATH`, `NAME` and the like are placeholders.
    pub paths: &'static [&'static str],
    /// The description of the content, with backticks around literal text.
    pub content: &'static str,
    /// The section of docs/views.md, or the other document, with more details; empty if there is
    /// none.
    pub more: &'static str,
}

const fn row(
    paths: &'static [&'static str],
    content: &'static str,
    more: &'static str,
) -> GuideRow {
    GuideRow {
        paths,
        content,
        more,
    }
}

/// Everything below `.h5fs`, starting with the most popular views.
pub static GUIDE: &[GuideRow] = &[
    row(
        &["npy/PATH.npy"],
        "NumPy's format, also for `numpy.load(…, mmap_mode='r')`; booleans, complex numbers and \
         padded strings have the NumPy types that h5py returns",
        "",
    ),
    row(
        &["csv/PATH.csv"],
        "the table of an array, or of a group of columns",
        "#csv",
    ),
    row(
        &["parquet/PATH.parquet"],
        "the same tables for SQL engines and data frames",
        "#parquet",
    ),
    row(
        &["cf/PATH.npy", "cf/PATH.csv", "cf/PATH.parquet"],
        "netCDF's variables by the CF conventions",
        "#netcdf-variables-by-the-cf-conventions",
    ),
    row(&["json/PATH.json"], "every type, as JSON", "#json"),
    row(
        &["text/PATH.txt"],
        "strings and characters, one per line",
        "#text",
    ),
    row(
        &["tiff/PATH.tif"],
        "numbers as pictures with unchanged values",
        "#tiff",
    ),
    row(
        &["png/PATH.png", "png/PATH/000017.png"],
        "a picture for any viewer; of a stack, one for each index",
        "#png",
    ),
    row(
        &["fits/PATH.fits"],
        "numbers as an image, records and groups of columns as a table, for astronomers' tools",
        "#fits",
    ),
    row(
        &["html/index.html", "html/PATH.html", "html/PATH.png"],
        "a page about the file and about each object; the picture on the page of an array",
        "#pages",
    ),
    row(
        &["refs/PATH/I"],
        "the elements of an array of references, as links",
        "#references",
    ),
    row(
        &["ndl.yaml", "ndl/PATH.yaml"],
        "Ndarray Data Language 0.6.1: types, shapes, storage, values of attributes and of coordinates",
        "",
    ),
    row(
        &["tree.json", "ndl/PATH.json"],
        "the same documents as JSON",
        "",
    ),
    row(&["asdf.json"], "ASDF: the whole tree as JSON", ""),
    row(
        &["attrs/PATH/@NAME"],
        "the value of an attribute as text, one element per line; in the name of a child, `%40` \
         stands for an `@` at the beginning",
        "",
    ),
    row(
        &["file.zarr/", "stored.zarr/"],
        "the file as a Zarr v3 store, its chunks decoded or as they are stored",
        "zarr.md",
    ),
    row(
        &["kerchunk.json"],
        "the chunks of `stored.zarr` as references into the source, for fsspec, xarray and dask",
        "zarr.md",
    ),
    row(
        &["file.h5", "hdf5/PATH.h5"],
        "the file, a group or a dataset as an HDF5 file without filters, virtual datasets and \
         external files, for every HDF5 tool",
        "#hdf5-and-netcdf-tools",
    ),
    row(
        &["file.nc", "netcdf/PATH.nc"],
        "the root, any group, or an array with its coordinates, as a netCDF classic file",
        "#netcdf-classic-files",
    ),
    row(
        &["chunks/PATH.tsv"],
        "the stored chunks, one per line: first element, file offset, stored bytes, filter mask",
        "",
    ),
    row(
        &["offsets/PATH"],
        "for a dataset of variable length: where each element begins in the dataset's file, and \
         where the last one ends, as little-endian int64",
        "",
    ),
    row(
        &["mask/PATH"],
        "ASDF: the mask of an array; for inline data with nulls, one byte per element, 1 for null",
        "",
    ),
    row(&["blocks/N"], "ASDF: block N, decompressed", ""),
    row(&["tree.yaml"], "ASDF: the YAML text of the file", ""),
    row(
        &["assembled/PATH"],
        "ASDF: the array that the chunks of a `chunked-ndarray` form together; `npy`, `csv` and \
         `json` have it too, and `PATH[0,:]` is a part of it",
        "",
    ),
    row(
        &["external/FILE"],
        "another file that a link leads to: its path below the source's directory, with `%2F` for \
         `/`",
        "",
    ),
    row(
        &["original/PATH"],
        "in the mount of a directory: the unchanged bytes of each file",
        "directories.md",
    ),
    row(
        &["joined/", "joined.zarr"],
        "in the mount of a directory: all its data files as one file; `joined[PATTERN]/`: the \
         files that match",
        "joined.md",
    ),
    row(
        &["members.csv"],
        "in `joined/.h5fs`: the joined files, and the place of each file",
        "joined.md",
    ),
    row(&["status"], "version, cache, bytes served …", ""),
    row(
        &["errors"],
        "the last 1000 parts that could not be read: time, object, reason",
        "",
    ),
    row(&["metrics"], "the numbers of `status` for Prometheus", ""),
    row(
        &["README.txt"],
        "a description of `.h5fs`, for people and programs",
        "",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::archive;
    use crate::views;
    use crate::views::trees::{ROOT_FILES, TREES};

    fn paths() -> impl Iterator<Item = &'static str> {
        GUIDE.iter().flat_map(|row| row.paths).copied()
    }

    /// The guide must contain exactly the names that a directory `.h5fs` may list.
    #[test]
    fn the_guide_lists_all_views() {
        let trees = TREES.iter().map(|tree| tree.name);
        let files = ROOT_FILES.iter().map(|file| file.name);
        let names = trees
            .chain(files)
            .chain(views::names_beside_trees())
            .chain(archive::view_names())
            .map(|name| str::from_utf8(name).unwrap());
        let told = paths().map(|path| path.split('/').next().unwrap());
        assert_eq!(told.collect::<BTreeSet<_>>(), names.collect());
    }

    #[test]
    fn the_guide_has_each_suffix() {
        for tree in TREES {
            let name = str::from_utf8(tree.name).unwrap();
            for form in tree.forms {
                let suffix = str::from_utf8(form.suffix).unwrap();
                let mut of_tree = paths().filter(|path| path.split('/').next() == Some(name));
                assert!(
                    of_tree.any(|path| path.ends_with(suffix)),
                    "{name}: {suffix}"
                );
            }
        }
    }

    #[test]
    fn the_document_has_the_table() {
        let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/views.md");
        let text = fs::read_to_string(document).unwrap();
        let (_, table) = text.split_once("| path | content |\n|---|---|\n").unwrap();
        let lines: Vec<&str> = table.lines().take_while(|line| !line.is_empty()).collect();
        let rows: Vec<String> = GUIDE.iter().map(in_markdown).collect();
        assert_eq!(lines, rows);
    }

    fn in_markdown(row: &GuideRow) -> String {
        let paths: Vec<String> = row.paths.iter().map(|path| format!("`{path}`")).collect();
        let more = match row.more {
            "" => String::new(),
            part if part.starts_with('#') => format!(" ([below]({part}))"),
            document => format!(" ([{document}]({document}))"),
        };
        format!("| {} | {}{more} |", paths.join(", "), row.content)
    }
}
