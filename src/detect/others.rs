//! Files of other formats, which are named so that their readers find the right tool.

use crate::source::Source;

/// A format that h5fs does not read.
struct Other {
    /// Where its mark stands, and the mark.
    mark: (u64, &'static [u8]),
    name: &'static str,
    /// A tool that reads it.
    tool: &'static str,
}

const fn other(offset: u64, mark: &'static [u8], name: &'static str, tool: &'static str) -> Other {
    let mark = (offset, mark);
    Other { mark, name, tool }
}

const OTHERS: [Other; 16] = [
    other(
        0,
        b"CDF\x01",
        "a netCDF-3 file",
        "ncdump and nccopy -k nc4 read it",
    ),
    other(
        0,
        b"CDF\x02",
        "a netCDF-3 file",
        "ncdump and nccopy -k nc4 read it",
    ),
    other(
        0,
        b"CDF\x05",
        "a netCDF-3 file",
        "ncdump and nccopy -k nc4 read it",
    ),
    other(
        0,
        b"MATLAB 5.0 MAT-file",
        "a MATLAB 5 file",
        "scipy.io.loadmat reads it",
    ),
    other(0, b"SIMPLE  =", "a FITS file", "astropy.io.fits reads it"),
    other(
        0,
        b"\x0e\x03\x13\x01",
        "an HDF4 file",
        "hdp and h4toh5 read it",
    ),
    other(
        0,
        b"PK\x03\x04",
        "a zip archive",
        "unzip and ratarmount read it",
    ),
    other(0, b"\x1f\x8b", "a gzip file", "gunzip reads it"),
    other(0, b"BZh", "a bzip2 file", "bunzip2 reads it"),
    other(0, b"\xfd7zXZ\0", "an xz file", "unxz reads it"),
    other(
        0,
        b"\x28\xb5\x2f\xfd",
        "a Zstandard file",
        "unzstd reads it",
    ),
    other(257, b"ustar", "a tar archive", "tar and ratarmount read it"),
    other(0, b"PAR1", "a Parquet file", "pyarrow and DuckDB read it"),
    other(0, b"ARROW1", "an Arrow file", "pyarrow reads it"),
    other(0, b"GRIB", "a GRIB file", "wgrib2 and cfgrib read it"),
    other(0, b"\x93NUMPY", "a NumPy file", "numpy.load reads it"),
];

/// What `source` is, and which tool reads it.
pub(super) fn describe(source: &dyn Source) -> Option<String> {
    let found = OTHERS.iter().find(|other| {
        let (offset, mark) = other.mark;
        let mut there = [0; 32];
        there
            .get_mut(..mark.len())
            .is_some_and(|there| source.read_at(offset, there).is_ok() && there == mark)
    })?;
    Some(format!("{}: {}", found.name, found.tool))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::memory::MemorySource;

    #[test]
    fn each_is_known_by_its_mark() {
        for other in &OTHERS {
            let (offset, mark) = other.mark;
            let mut bytes = vec![0; usize::try_from(offset).unwrap()];
            bytes.extend_from_slice(mark);
            let described = describe(&MemorySource::new(bytes)).unwrap();
            assert!(described.starts_with(other.name), "{described}");
        }
        assert_eq!(describe(&MemorySource::new(b"some text".to_vec())), None);
        assert_eq!(describe(&MemorySource::new(b"P".to_vec())), None);
    }
}
