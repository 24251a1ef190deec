//! Query parameters that grant access to anyone who has the URL: presigned URLs, and shared access
//! signatures.

/// Query parameters of Amazon's older signatures, of CloudFront and of Google.
const SIGNATURE: &[&str] = &[
    "AWSAccessKeyId",
    "Expires",
    "GoogleAccessId",
    "Key-Pair-Id",
    "Policy",
    "Signature",
];

/// Query parameters of Azure's shared access signatures. The names are short and may have another
/// meaning in other URLs.
const AZURE: &[&str] = &[
    "rscc", "rscd", "rsce", "rscl", "rsct", "saoid", "scid", "sdd", "se", "si", "sig", "sip",
    "ske", "skoid", "sks", "skt", "sktid", "skv", "sp", "spr", "sr", "srt", "ss", "st", "suoid",
    "sv",
];

/// Returns the query without the parameters that differ between signed URLs of the same object.
pub fn without_signature(query: &str) -> String {
    let is_of_azure = is_of_azure(query);
    let kept: Vec<_> = query
        .split('&')
        .filter(|part| !is_of_signature(part, is_of_azure))
        .collect();
    kept.join("&")
}

/// Returns whether a query has a signature.
pub fn is_signed(query: &str) -> bool {
    let is_of_azure = is_of_azure(query);
    query
        .split('&')
        .any(|part| is_of_signature(part, is_of_azure))
}

fn is_of_azure(query: &str) -> bool {
    let has = |wanted: &str| query.split('&').any(|part| name(part) == wanted);
    ["sig", "sv"].into_iter().all(has) && ["se", "si"].into_iter().any(has)
}

fn is_of_signature(part: &str, is_of_azure: bool) -> bool {
    let name = name(part);
    let starts = ["X-Amz-", "X-Goog-"];
    starts.iter().any(|start| name.starts_with(start))
        || SIGNATURE.contains(&name)
        || is_of_azure && AZURE.contains(&name)
}

fn name(part: &str) -> &str {
    part.split('=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_recognized_by_their_parameters() {
        for (query, rest) in [
            ("versionId=1&X-Amz-Signature=2&X-Amz-Date=3", "versionId=1"),
            ("X-Goog-Signature=2&alt=media", "alt=media"),
            ("Expires=1&Signature=2&Key-Pair-Id=3", ""),
            ("sv=1&sr=b&se=2&sig=3&versionid=4", "versionid=4"),
            ("sv=1&sr=b&si=policy&sig=3", ""),
        ] {
            assert_eq!(
                (without_signature(query).as_str(), is_signed(query)),
                (rest, true)
            );
        }
        for query in ["", "sv=1&sig=2", "list-type=2&prefix=a", "x-amz-date"] {
            assert_eq!(
                (without_signature(query).as_str(), is_signed(query)),
                (query, false)
            );
        }
    }
}
