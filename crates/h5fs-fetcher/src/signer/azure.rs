//! Credentials of Azure's storage: a shared key, or a shared access signature.
//!
//! | credentials | source |
//! |---|---|
//! | a shared access signature, or the key of the account | the connection string in `credentials=FILE` or `AZURE_STORAGE_CONNECTION_STRING` |
//! | a shared access signature | `AZURE_STORAGE_SAS_TOKEN` |
//! | the key of the account | `AZURE_STORAGE_KEY` |
//!
//! A signature is added to the query of each request. A key signs each request ("Authorize with
//! Shared Key" in the reference of Azure's storage services).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::source::location::percent::percent_decode;
use h5fs_reader::source::location::{Location, Url};
use h5fs_reader::source::remote::message::FailureKind;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use ring::hmac;

use crate::fetch_error::FetchError;
use crate::settings::RemoteSettings;
use crate::signer::files::{CredentialFiles, no_credentials_message};
use crate::signer::profile;

/// The credentials and the server of a storage account, from the options and the environment.
#[derive(Default)]
pub(crate) struct AzureAccount {
    /// A shared access signature, in the form of a query.
    pub(crate) signature: Option<String>,
    /// The URL of the account's server, if it is not the default server. Its host or path contains
    /// the account's name.
    pub(crate) endpoint: Option<Url>,
    key: Option<hmac::Key>,
}

impl AzureAccount {
    /// Finds the credentials of the account `name`.
    ///
    /// # Errors
    /// `Usage` if a named file or variable cannot be parsed, or belongs to another account.
    pub(crate) fn find(
        settings: &RemoteSettings,
        files: &CredentialFiles,
        name: &str,
    ) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        if let Some(path) = &settings.credentials {
            let path = profile::expand_home(path.clone());
            let text = files.open(&path).and_then(profile::read_small_file);
            let parsed = text
                .map_err(|error| io_error_message(&error))
                .and_then(|text| Self::parse(text.trim(), name));
            let failed = |reason| Error::Usage(format!("{}: {reason}", path.display()));
            return parsed.map_err(failed);
        }
        if let Some(text) = variable("AZURE_STORAGE_CONNECTION_STRING") {
            let failed =
                |reason| Error::Usage(format!("AZURE_STORAGE_CONNECTION_STRING: {reason}"));
            return Self::parse(&text, name).map_err(failed);
        }
        let signature = variable("AZURE_STORAGE_SAS_TOKEN");
        let key = variable("AZURE_STORAGE_KEY").map(|text| {
            let wrong = || Error::Usage("AZURE_STORAGE_KEY is not a key".to_owned());
            parse_key(&text).ok_or_else(wrong)
        });
        Ok(AzureAccount {
            signature: signature.map(|text| strip_question_mark(&text).to_owned()),
            endpoint: None,
            key: key.transpose()?,
        })
    }

    /// Parses a connection string:
    /// `AccountName=…;AccountKey=…;SharedAccessSignature=…;BlobEndpoint=…`. `name` is the expected
    /// account.
    fn parse(text: &str, name: &str) -> std::result::Result<Self, String> {
        let mut account = AzureAccount::default();
        let mut has_any = false;
        for part in text.split([';', '\n']) {
            let Some((word, value)) = part.trim().split_once('=') else {
                continue;
            };
            match word {
                "AccountName" if value != name => {
                    return Err("it belongs to another account".to_owned());
                }
                "AccountKey" => {
                    let key = parse_key(value).ok_or("its AccountKey is not a key")?;
                    account.key = Some(key);
                }
                "SharedAccessSignature" => {
                    account.signature = Some(strip_question_mark(value).to_owned());
                }
                "BlobEndpoint" => {
                    let location = Location::parse(value.into()).ok();
                    let url = location.and_then(|location| location.url().cloned());
                    account.endpoint = url.filter(Url::is_server);
                    if account.endpoint.is_none() {
                        return Err("its BlobEndpoint is not the URL of a server".to_owned());
                    }
                }
                _ => {}
            }
            has_any = true;
        }
        if has_any {
            Ok(account)
        } else {
            Err("not a connection string".to_owned())
        }
    }

    /// Returns the signer for the account `name`. It signs nothing if the requests have a shared
    /// access signature.
    pub(crate) fn signer(&self, name: &str) -> AccountKey {
        AccountKey {
            account: name.to_owned(),
            key: self.key.clone(),
            has_signature: self.signature.is_some(),
        }
    }
}

/// The shared key of an account, if there is one.
pub(crate) struct AccountKey {
    account: String,
    key: Option<hmac::Key>,
    has_signature: bool,
}

impl AccountKey {
    /// Signs a GET request for `uri`. Returns all headers of the request.
    ///
    /// # Errors
    /// `Denied` if there are no credentials.
    pub(crate) fn sign(
        &self,
        uri: &Uri,
        mut headers: HeaderMap,
    ) -> std::result::Result<HeaderMap, FetchError> {
        if self.has_signature {
            return Ok(headers);
        }
        let Some(key) = &self.key else {
            let text = no_credentials_message("for a public container, use `anonymous`");
            return Err(FetchError::new(FailureKind::Denied, text));
        };
        let wrong = || FetchError::permanent("requests cannot be signed");
        let date = DateTimePrinter::new().timestamp_to_rfc9110_string(&Timestamp::now());
        let date = date.map_err(|_| wrong())?;
        let date = HeaderValue::from_str(&date).map_err(|_| wrong())?;
        headers.insert(HeaderName::from_static("x-ms-date"), date);
        let text = string_to_sign(&self.account, uri, &headers);
        let signature = BASE64_STANDARD.encode(hmac::sign(key, text.as_bytes()));
        let value = format!("SharedKey {}:{signature}", self.account);
        let mut value = HeaderValue::from_str(&value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
        Ok(headers)
    }
}

/// Returns the string-to-sign of a GET request, from which the signature is computed.
fn string_to_sign(account: &str, uri: &Uri, headers: &HeaderMap) -> String {
    const STANDARD: [HeaderName; 11] = [
        header::CONTENT_ENCODING,
        header::CONTENT_LANGUAGE,
        header::CONTENT_LENGTH,
        HeaderName::from_static("content-md5"),
        header::CONTENT_TYPE,
        header::DATE,
        header::IF_MODIFIED_SINCE,
        header::IF_MATCH,
        header::IF_NONE_MATCH,
        header::IF_UNMODIFIED_SINCE,
        header::RANGE,
    ];
    let value = |name: &HeaderName| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().trim()
    };
    let mut text = "GET\n".to_owned();
    for name in STANDARD {
        text += value(&name);
        text.push('\n');
    }
    let mut own: Vec<_> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-ms-"))
        .collect();
    own.sort_by_key(|name| name.as_str());
    for name in own {
        text += &format!("{name}:{}\n", value(name));
    }
    text += &format!("/{account}{}", uri.path());
    let query = uri.query().unwrap_or_default();
    let mut parameters: Vec<_> = query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_ascii_lowercase(), percent_decode(value)))
        .collect();
    parameters.sort();
    for (name, value) in parameters {
        text += &format!("\n{name}:{}", String::from_utf8_lossy(&value));
    }
    text
}

fn parse_key(text: &str) -> Option<hmac::Key> {
    let bytes = BASE64_STANDARD.decode(text.trim()).ok()?;
    (!bytes.is_empty()).then(|| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

/// Removes the leading `?` that Azure's portal adds to a shared access signature.
fn strip_question_mark(signature: &str) -> &str {
    let signature = signature.trim();
    signature.strip_prefix('?').unwrap_or(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected text is the example of "Authorize with Shared Key" for the metadata of a
    /// container.
    #[test]
    fn the_string_to_sign_matches_the_reference() {
        let uri = "https://myaccount.blob.core.windows.net/mycontainer\
                   ?restype=container&timeout=20&comp=metadata";
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-ms-version", "2015-02-21"),
            ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
            ("user-agent", "h5fs"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let text = string_to_sign("myaccount", &uri.parse().unwrap(), &headers);
        let wanted = "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
                      x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\n\
                      restype:container\ntimeout:20";
        assert_eq!(text, wanted);
        headers.insert(header::RANGE, HeaderValue::from_static("bytes=0-9"));
        let text = string_to_sign("a", &"http://h/a/c/b%20c?x=%2F".parse().unwrap(), &headers);
        assert!(text.contains("\n\nbytes=0-9\nx-ms-date"), "{text}");
        assert!(text.ends_with("/a/a/c/b%20c\nx:/"), "{text}");
    }

    #[test]
    fn a_connection_string_is_of_one_account() {
        let parsed = |text: &str| AzureAccount::parse(text, "acct");
        let account = parsed(
            "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=c2VjcmV0;\
             BlobEndpoint=http://127.0.0.1:10000/acct;EndpointSuffix=core.windows.net",
        );
        let account = account.unwrap_or_else(|reason| panic!("{reason}"));
        assert!(account.key.is_some() && account.signature.is_none());
        let endpoint = account.endpoint.map(|url| url.to_string());
        assert_eq!(endpoint.as_deref(), Some("http://127.0.0.1:10000/acct"));
        let signed = parsed("SharedAccessSignature=?sv=1&sig=a%3D");
        let signed = signed.unwrap_or_else(|reason| panic!("{reason}"));
        assert_eq!(signed.signature.as_deref(), Some("sv=1&sig=a%3D"));
        for wrong in [
            "",
            "sesame",
            "AccountName=other;AccountKey=c2VjcmV0",
            "AccountName=acct;AccountKey=sesame!",
            "AccountKey=",
            "BlobEndpoint=ftp://sesame",
            "BlobEndpoint=https://joe:sesame@h/",
        ] {
            let reason = parsed(wrong).err().unwrap_or_else(|| panic!("{wrong}"));
            assert!(!reason.contains("sesame"), "{reason}");
        }
    }

    #[test]
    fn signing_without_credentials_fails() {
        let uri = "https://acct.blob.core.windows.net/c/a".parse().unwrap();
        let refused = AzureAccount::default()
            .signer("acct")
            .sign(&uri, HeaderMap::new());
        assert!(refused.is_err_and(|trouble| trouble.failure == FailureKind::Denied));
        let account = AzureAccount {
            signature: Some("sig=x".to_owned()),
            ..AzureAccount::default()
        };
        let headers = account.signer("acct").sign(&uri, HeaderMap::new());
        assert!(headers.is_ok_and(|headers| headers.is_empty()));
    }
}
