//! Credentials of clouds other than Amazon's.

use super::*;

/// Tokens and shared access signatures are not sent in clear text over a network.
#[test]
fn tokens_and_signatures_go_over_https_alone() {
    let directory = tempfile::tempdir().unwrap();
    let user = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s",
                   "refresh_token": "sesame"}"#;
    let signature = "AccountName=acct;SharedAccessSignature=sv=1&sig=sesame";
    let key = "AccountName=acct;AccountKey=c2VzYW1l";
    for (source, text, is_hidden_alone) in [
        ("gs://b/a.h5", user, true),
        ("az://acct/c/a.h5", signature, true),
        ("az://acct/c/a.h5", key, false),
    ] {
        let file = directory.path().join("credentials");
        std::fs::write(&file, text).unwrap();
        let made = |endpoint: &str| {
            let url = |text: &str| match Location::parse(text.into()) {
                Ok(Location::Url(url)) => url,
                other => panic!("{other:?}"),
            };
            let settings = RemoteSettings {
                endpoint: Some(url(endpoint)),
                credentials: Some(file.clone()),
                anonymous: false,
                ..quick()
            };
            prepare(&url(source), &settings).map(|_| ())
        };
        for hidden in ["https://192.0.2.1/", "http://127.0.0.1:9/"] {
            assert_eq!(made(hidden), Ok(()), "{source} {hidden}");
        }
        let seen = made("http://192.0.2.1/");
        assert_eq!(seen.is_err(), is_hidden_alone, "{source}");
        let told = seen
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            told.is_empty() || told.contains("only over https"),
            "{told}"
        );
    }
}
