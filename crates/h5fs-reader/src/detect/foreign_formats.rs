//! Recognition of files that are neither HDF5 nor ASDF, so that an error can name the format and a
//! tool that reads it.

use crate::source::{Source, read_block};

/// A format that h5fs does not read.
struct ForeignFormat {
    /// The offset of the format's signature, and the signature.
    signature: (u64, &'static [u8]),
    name: &'static str,
    /// A clause that names a tool for the format, such as `gunzip reads it`.
    tool: &'static str,
}

const fn format(
    offset: u64,
    mark: &'static [u8],
    name: &'static str,
    tool: &'static str,
) -> ForeignFormat {
    let mark = (offset, mark);
    ForeignFormat {
        signature: mark,
        name,
        tool,
    }
}

const FOREIGN_FORMATS: [ForeignFormat; 24] = [
    format(
        0,
        b"CDF\x01",
        "a netCDF-3 file",
        "ncdump and nccopy -k nc4 read it",
    ),
    format(
        0,
        b"CDF\x02",
        "a netCDF-3 file",
        "ncdump and nccopy -k nc4 read it",
    ),
    format(
        0,
        b"CDF\x05",
        "a netCDF-3 file",
        "ncdump and nccopy -k nc4 read it",
    ),
    format(
        0,
        b"MATLAB 5.0 MAT-file",
        "a MATLAB 5 file",
        "scipy.io.loadmat reads it",
    ),
    format(0, b"SIMPLE  =", "a FITS file", "astropy.io.fits reads it"),
    format(
        0,
        b"\x0e\x03\x13\x01",
        "an HDF4 file",
        "hdp and h4toh5 read it",
    ),
    format(
        0,
        b"PK\x03\x04",
        "a zip archive",
        "unzip and ratarmount read it",
    ),
    format(0, b"\x1f\x8b", "a gzip file", "gunzip reads it"),
    format(0, b"BZh", "a bzip2 file", "bunzip2 reads it"),
    format(0, b"\xfd7zXZ\0", "an xz file", "unxz reads it"),
    format(
        0,
        b"\x28\xb5\x2f\xfd",
        "a Zstandard file",
        "unzstd reads it",
    ),
    format(257, b"ustar", "a tar archive", "tar and ratarmount read it"),
    format(0, b"PAR1", "a Parquet file", "pyarrow and DuckDB read it"),
    format(0, b"ARROW1", "an Arrow file", "pyarrow reads it"),
    format(0, b"GRIB", "a GRIB file", "wgrib2 and cfgrib read it"),
    format(0, b"\x93NUMPY", "a NumPy file", "numpy.load reads it"),
    format(
        0,
        b"version https://git-lfs.github.com/",
        "a pointer of Git LFS",
        "git lfs pull fetches the file",
    ),
    format(
        0,
        b"/annex/objects/",
        "a pointer of git-annex",
        "git annex get fetches the file",
    ),
    format(
        0,
        b"SQLite format 3\0",
        "an SQLite database",
        "sqlite3 reads it",
    ),
    format(
        0,
        b"\x89PNG\r\n\x1a\n",
        "a PNG picture",
        "a viewer of pictures shows it",
    ),
    format(
        0,
        b"\xff\xd8\xff",
        "a JPEG picture",
        "a viewer of pictures shows it",
    ),
    format(0, b"II*\0", "a TIFF picture", "tifffile and GDAL read it"),
    format(0, b"MM\0*", "a TIFF picture", "tifffile and GDAL read it"),
    format(0, b"%PDF-", "a PDF document", "a viewer of PDF shows it"),
];

/// Number of bytes at the start of a text file that are read to identify its format.
const BEGINNING: u64 = 512;

/// The description of an HTML page that a server sends instead of a file.
const HTML_PAGE: &str = "an HTML page, perhaps a server's word on why there is no file";

/// Returns whether `source` is an HTML page that a server sends instead of a file, such as a login
/// page.
pub(super) fn is_html_page(source: &dyn Source) -> bool {
    describe(source).is_some_and(|found| found == HTML_PAGE)
}

/// Describes the format of `source`, and names the tool that reads this format. Returns `None` for
/// an unknown format.
pub(super) fn describe(source: &dyn Source) -> Option<String> {
    describe_by_signature(source).or_else(|| {
        let length = source.length().min(BEGINNING);
        let beginning = read_block(source, 0, length, "beginning of a file").ok()?;
        describe_by_text(&beginning).map(str::to_owned)
    })
}

/// Describes a file whose format has a signature, and names a tool for it. Returns `None` if no
/// signature matches.
fn describe_by_signature(source: &dyn Source) -> Option<String> {
    let found = FOREIGN_FORMATS.iter().find(|other| {
        let (offset, mark) = other.signature;
        let mut there = [0; 48];
        there
            .get_mut(..mark.len())
            .is_some_and(|there| source.read_at(offset, there).is_ok() && there == mark)
    })?;
    Some(format!("{}: {}", found.name, found.tool))
}

/// Describes a text file that starts with `beginning`: HTML, XML or JSON. Also describes a file
/// that starts with zeros. Returns `None` for any other text.
fn describe_by_text(beginning: &[u8]) -> Option<&'static str> {
    if !beginning.is_empty() && beginning.iter().all(|&byte| byte == 0) {
        return Some("it begins with zeros, as what was never written or not brought here whole");
    }
    let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
    let text = text.trim_ascii_start();
    let begins = |mark: &[u8]| {
        let start = text.get(..mark.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(mark))
    };
    if begins(b"<!doctype html") || begins(b"<html") || begins(b"<head") {
        return Some(HTML_PAGE);
    }
    if begins(b"<?xml") {
        return Some("an XML document, perhaps a server's word on why there is no file");
    }
    let (first, rest) = text.split_first()?;
    let second = rest.trim_ascii_start().first();
    let is_json = match first {
        b'{' => matches!(second, Some(b'"' | b'}')),
        b'[' => matches!(second, Some(b'[' | b']' | b'{' | b'"' | b'-' | b'0'..=b'9')),
        _ => false,
    };
    is_json.then_some("a JSON document: jq reads it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    #[test]
    fn formats_are_recognized_by_signature() {
        for other in &FOREIGN_FORMATS {
            let (offset, mark) = other.signature;
            let mut bytes = vec![0; usize::try_from(offset).unwrap()];
            bytes.extend_from_slice(mark);
            let described = describe(&MemorySource::new(bytes)).unwrap();
            assert!(described.starts_with(other.name), "{described}");
        }
        assert_eq!(describe(&MemorySource::new(b"some text".to_vec())), None);
        assert_eq!(describe(&MemorySource::new(b"P".to_vec())), None);
    }

    #[test]
    fn text_formats_are_recognized_by_their_beginning() {
        let described = |text: &str| describe(&MemorySource::new(text.as_bytes().to_vec()));
        for (text, name) in [
            ("<!DOCTYPE html>\n<html>", "an HTML page"),
            ("\u{feff}\n <HTML lang=en>", "an HTML page"),
            ("<?xml version=\"1.0\"?><Error>", "an XML document"),
            ("{\n  \"a\": 1}", "a JSON document"),
            ("[1, 2]", "a JSON document"),
            ("{}", "a JSON document"),
            ("\0\0\0", "it begins with zeros"),
        ] {
            let described = described(text).unwrap();
            assert!(described.starts_with(name), "{described}");
        }
        for text in ["", "{", "[section]\nkey = 1", "{a: 1}", "<", "a <html>"] {
            assert_eq!(described(text), None, "{text}");
        }
    }
}
