//! Paths of web services whose listings are not at the path of the files.
//!
//! All paths are percent-encoded and do not start with `/`.

/// File name of the THREDDS catalog of a directory.
pub(crate) const THREDDS_CATALOG: &str = "catalog.xml";

/// Path segments of a THREDDS server before a directory: in the URL of the directory's catalog, and
/// in the URLs of its files.
pub(crate) const THREDDS_SERVICES: [&str; 2] = ["thredds/catalog/", "thredds/fileServer/"];

/// Returns the path of the files whose catalog is in `directory`. Both paths are percent-encoded
/// and do not start with `/`. Returns `None` if the directory does not belong to THREDDS.
pub(crate) fn thredds_files(directory: &str) -> Option<String> {
    let [catalogs, files] = THREDDS_SERVICES;
    let at = directory.find(catalogs)?;
    let (before, behind) = directory.split_at(at);
    let is_whole = before.is_empty() || before.ends_with('/');
    let beneath = behind.strip_prefix(catalogs).filter(|_| is_whole)?;
    Some(format!("{before}{files}{beneath}"))
}

/// Returns the path of the file list of an InvenioRDM record, whose files are in `directory`.
/// Returns `None` if `directory` is not `records/ID/files/`.
pub(crate) fn record_listing(directory: &str) -> Option<String> {
    let number = directory
        .strip_prefix("records/")?
        .strip_suffix("/files/")?;
    let is_number = !number.is_empty()
        && number
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    is_number.then(|| format!("api/records/{number}/files"))
}

/// Returns the path of the Hugging Face API that lists `directory` of a dataset. Both paths are
/// percent-encoded and do not start with `/`. Returns `None` if `directory` is not
/// `datasets/OWNER/NAME/resolve/REVISION/…`.
pub(crate) fn dataset_listing(directory: &str) -> Option<String> {
    let parts: Vec<&str> = directory.strip_suffix('/')?.splitn(6, '/').collect();
    let (["datasets", owner, name, "resolve", revision], path) = parts.split_at_checked(5)? else {
        return None;
    };
    let whole = [owner, name, revision].iter().all(|part| !part.is_empty());
    let tree = format!("api/datasets/{owner}/{name}/tree/{revision}");
    whole.then(|| path.iter().fold(tree, |tree, path| tree + "/" + path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_thredds_catalog() {
        assert_eq!(
            thredds_files("a/thredds/catalog/b%20c/").as_deref(),
            Some("a/thredds/fileServer/b%20c/")
        );
        for other in [
            "",
            "thredds/",
            "mythredds/catalog/a/",
            "thredds/fileServer/a/",
        ] {
            assert_eq!(thredds_files(other), None, "{other}");
        }
    }

    #[test]
    fn a_record_is_listed_at_another_path() {
        let found = record_listing("records/123456/files/");
        assert_eq!(found.as_deref(), Some("api/records/123456/files"));
        for other in [
            "records/files/",
            "records//files/",
            "records/1/files/a/",
            "a/records/1/files/",
        ] {
            assert_eq!(record_listing(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_of_files_has_a_tree() {
        for (directory, wanted) in [
            ("datasets/o/n/resolve/main/", "api/datasets/o/n/tree/main"),
            (
                "datasets/o/n/resolve/refs%2Fpr%2F1/a/b%20c/",
                "api/datasets/o/n/tree/refs%2Fpr%2F1/a/b%20c",
            ),
        ] {
            assert_eq!(dataset_listing(directory).as_deref(), Some(wanted));
        }
        for other in [
            "",
            "/",
            "datasets/o/n/resolve/",
            "datasets/o/n/blob/main/",
            "datasets/o//resolve/main/",
            "datasets/o/n/resolve/main",
        ] {
            assert_eq!(dataset_listing(other), None, "{other}");
        }
    }
}
