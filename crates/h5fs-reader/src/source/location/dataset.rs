//! Hugging Face datasets: `hf://datasets/OWNER/NAME[@REVISION]/PATH`, in the notation of the
//! library `huggingface_hub`. See its documentation, "Interact with the Hub through the Filesystem
//! API".

use super::percent::{IN_NAME, UNRESERVED, percent_decode, percent_encode};

/// Host that serves the files of the datasets.
const HOST: &str = "huggingface.co";

/// Converts the text after `hf://` to the URL of a web page, without the scheme.
///
/// # Errors
/// A text that describes the notation, if `rest` is not a dataset in this notation.
pub(super) fn web_page_url(rest: &str) -> Result<String, String> {
    let needed = "write a dataset as hf://datasets/OWNER/NAME[@REVISION]/PATH";
    let mut parts = rest.splitn(4, '/');
    let mut next = || parts.next().unwrap_or_default();
    let (kind, owner, named, path) = (next(), next(), next(), next());
    let (name, revision) = named.split_once('@').unwrap_or((named, "main"));
    let (revision, path) = split_revision(revision, path);
    let is_right = kind == "datasets" && is_name(owner) && is_name(name) && !revision.is_empty();
    if !is_right {
        return Err(needed.to_owned());
    }
    let (revision, path) = (
        percent_encode(revision, UNRESERVED),
        percent_encode(path, IN_NAME),
    );
    Ok(format!(
        "{HOST}/datasets/{owner}/{name}/resolve/{revision}/{path}"
    ))
}

/// Splits the revision from the path. Some reference names contain a `/`, such as `refs/pr/1` and
/// `refs/convert/parquet`. In other names, `/` is written `%2F`.
fn split_revision<'a>(revision: &str, path: &'a str) -> (Vec<u8>, &'a str) {
    let mut parts = path.splitn(3, '/');
    if let ("refs", Some(kind @ ("pr" | "convert")), Some(name)) =
        (revision, parts.next(), parts.next())
    {
        let revision = format!("refs/{kind}/{name}").into_bytes();
        return (revision, parts.next().unwrap_or_default());
    }
    (percent_decode(revision), path)
}

fn is_name(text: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !matches!(text, "" | "." | "..") && text.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_is_a_page() {
        let base = "huggingface.co/datasets/own-er/na.me/resolve";
        for (text, wanted) in [
            ("datasets/own-er/na.me/a/b c.h5", "main/a/b%20c.h5"),
            ("datasets/own-er/na.me", "main/"),
            ("datasets/own-er/na.me@v1.0/a/", "v1.0/a/"),
            ("datasets/own-er/na.me@refs/pr/1/a.h5", "refs%2Fpr%2F1/a.h5"),
            (
                "datasets/own-er/na.me@refs%2Fpr%2F1/a.h5",
                "refs%2Fpr%2F1/a.h5",
            ),
            (
                "datasets/own-er/na.me@refs/convert/parquet",
                "refs%2Fconvert%2Fparquet/",
            ),
            ("datasets/own-er/na.me/50%.h5", "main/50%25.h5"),
        ] {
            assert_eq!(web_page_url(text), Ok(format!("{base}/{wanted}")));
        }
        for wrong in [
            "",
            "datasets/owner",
            "models/owner/name/a.h5",
            "datasets/own er/name/a",
            "datasets/../name/a",
            "datasets/owner/name@/a",
        ] {
            assert!(web_page_url(wrong).is_err(), "{wrong}");
        }
    }
}
