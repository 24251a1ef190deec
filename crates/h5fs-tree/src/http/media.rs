//! Media types of paths; RFC 9110, section 8.3.
//!
//! Only content that h5fs has generated gets a specific type. The bytes of a source are never a
//! page, a script or a picture, whatever their names suggest.

/// Media type of bytes that a browser downloads and does not display.
const BYTES: &str = "application/octet-stream";

const TEXT: &str = "text/plain; charset=utf-8";

/// Media type of the HTML page about an object.
pub(super) const PAGE: &str = "text/html; charset=utf-8";

const JSON: &str = "application/json";

const YAML: &str = "application/yaml";

/// Media type of HDF5 files.
const HDF5: &str = "application/x-hdf5";

/// Media type of netCDF classic files.
const NETCDF: &str = "application/x-netcdf";

/// Returns the media type of the file at a path. `view` contains the names after the last `.h5fs`
/// of the path, or is `None` if the path has no `.h5fs`.
pub(super) fn media_type(view: Option<&[Vec<u8>]>) -> &'static str {
    let Some([tree, inside @ ..]) = view else {
        return BYTES;
    };
    let Some(last) = inside.last() else {
        return document_media_type(tree);
    };
    // Both are generated documents, but their trees also contain bytes of the source.
    match &tree[..] {
        b"file.zarr" | b"joined.zarr" if last == b"zarr.json" => JSON,
        b"attrs" => TEXT,
        _ => view_media_type(tree, last),
    }
}

/// Returns the media type of the file `name` directly in `.h5fs`.
fn document_media_type(name: &[u8]) -> &'static str {
    match name {
        b"ndl.yaml" | b"tree.yaml" => YAML,
        b"tree.json" => JSON,
        b"file.h5" => HDF5,
        b"file.nc" => NETCDF,
        b"status" | b"errors" | b"metrics" => TEXT,
        _ => BYTES,
    }
}

/// Returns the media type of the file `name` in the tree of views `tree`.
fn view_media_type(tree: &[u8], name: &[u8]) -> &'static str {
    let suffix = name.iter().rposition(|byte| *byte == b'.');
    let suffix = suffix.and_then(|at| name.get(at..)).unwrap_or_default();
    match (tree, suffix) {
        (b"html", b".html") => PAGE,
        (b"png" | b"html", b".png") => "image/png",
        (b"tiff", b".tif") => "image/tiff",
        (b"fits", b".fits") => "application/fits",
        (b"hdf5", b".h5") => HDF5,
        (b"netcdf", b".nc") => NETCDF,
        (b"csv" | b"cf", b".csv") => "text/csv; charset=utf-8",
        (b"chunks", b".tsv") => "text/tab-separated-values; charset=utf-8",
        (b"text", b".txt") => TEXT,
        (b"json" | b"ndl", b".json") => JSON,
        (b"ndl", b".yaml") => YAML,
        (b"parquet" | b"cf", b".parquet") => "application/vnd.apache.parquet",
        _ => BYTES,
    }
}

/// Returns whether the media type `kind` is a text, which is worth compressing.
pub(super) fn is_text(kind: &str) -> bool {
    kind.starts_with("text/") || [JSON, YAML].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_our_own_documents() {
        let kind = |path: &str| {
            let names = path.split('/').map(|name| name.as_bytes().to_vec());
            media_type(Some(&names.collect::<Vec<_>>()))
        };
        assert_eq!(media_type(None), BYTES);
        for (path, expected) in [
            ("html/index.html", "text/html; charset=utf-8"),
            ("html/a.html", "text/html; charset=utf-8"),
            ("parquet/t.parquet", "application/vnd.apache.parquet"),
            ("cf/t.csv", "text/csv; charset=utf-8"),
            ("png/a/000001.png", "image/png"),
            ("tiff/a.tif", "image/tiff"),
            ("netcdf/a.nc", NETCDF),
            ("file.nc", NETCDF),
            ("hdf5/a.h5", HDF5),
            ("file.h5", HDF5),
            ("npy/a.npy", BYTES),
            ("file.zarr/a/zarr.json", JSON),
            ("file.zarr/a/c/0/0", BYTES),
            ("attrs/a/@x.html", TEXT),
            ("status", TEXT),
            ("tree.json", JSON),
            ("html/a.png", "image/png"),
            ("page.html", BYTES),
            ("a.svg", BYTES),
            ("original/page.html", BYTES),
            ("external/page.html", BYTES),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
        assert!(is_text("text/csv; charset=utf-8") && is_text(JSON) && !is_text(BYTES));
    }
}
