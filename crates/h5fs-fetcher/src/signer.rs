//! Credentials of object stores, and the headers that they add to requests.
//!
//! | file | credentials |
//! |---|---|
//! | `amazon`, `profile` | those of the AWS tools, and signatures of S3's protocol |
//! | `google` | application-default credentials, and tokens |
//! | `azure` | shared keys, and shared access signatures |
//! | `files` | files and services that credentials come from |

mod amazon;
pub(super) mod azure;
pub(super) mod files;
mod google;
pub(super) mod profile;

use std::path::PathBuf;
use std::sync::Arc;

use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::location::Scheme;
use http::{HeaderMap, Uri};

use crate::client::HttpClient;
use crate::fetch_error::FetchError;
use crate::settings::RemoteSettings;
use crate::signer::files::CredentialFiles;

/// The credentials of an object store, which sign its requests.
pub(super) enum Signer {
    Amazon(Box<amazon::AmazonSigner>),
    Google(google::AccessTokens),
    Azure(azure::AccountKey),
}

impl Signer {
    /// Creates the signer for stores with the S3 protocol.
    ///
    /// # Errors
    /// `Usage` if a named file or profile does not exist.
    pub(super) fn amazon(
        settings: &RemoteSettings,
        client: Arc<HttpClient>,
        region: &str,
        files: CredentialFiles,
    ) -> Result<Self> {
        let is_named = settings.credentials.is_some() || settings.profile.is_some();
        if is_named
            && let Some(reason) =
                profile::missing_credentials_reason(settings, |path| files.open(path))
        {
            return Err(Error::Usage(reason));
        }
        let signer = amazon::AmazonSigner::new(settings, client, region, (files, None));
        Ok(Signer::Amazon(Box::new(signer)))
    }

    /// Creates the signer for Google Cloud Storage. Access keys in the environment sign requests as
    /// Amazon's keys do.
    ///
    /// # Errors
    /// `Usage` if a file contains no credentials.
    pub(super) fn google(
        settings: &RemoteSettings,
        client: Arc<HttpClient>,
        files: CredentialFiles,
    ) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let keys = variable("GS_ACCESS_KEY_ID").zip(variable("GS_SECRET_ACCESS_KEY"));
        if keys.is_some() && settings.credentials.is_none() {
            let signer = amazon::AmazonSigner::new(settings, client, "auto", (files, keys));
            return Ok(Signer::Amazon(Box::new(signer)));
        }
        let file = google::credentials_file(settings);
        google::AccessTokens::new(client, files, file).map(Signer::Google)
    }

    /// Signs a GET request for `uri`. Returns all headers of the request. `region` applies only to
    /// the S3 protocol.
    ///
    /// # Errors
    /// `Denied` if no credentials are found.
    pub(super) fn sign(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        region: &str,
    ) -> std::result::Result<HeaderMap, FetchError> {
        match self {
            Signer::Amazon(signer) => signer.sign(uri, headers, region),
            Signer::Google(tokens) => tokens.sign(headers),
            Signer::Azure(key) => key.sign(uri, headers),
        }
    }

    /// Discards the current credentials, because the server has refused them. The next request
    /// looks for credentials again.
    pub(super) fn renew(&self) {
        match self {
            Signer::Amazon(signer) => signer.renew(),
            Signer::Google(tokens) => tokens.renew(),
            Signer::Azure(_) => {}
        }
    }

    /// Returns the port of the server that issues tokens, if it may differ from 80 and 443.
    pub(super) fn token_server_port(&self) -> Option<u16> {
        match self {
            Signer::Google(tokens) => Some(tokens.token_server_port()),
            Signer::Amazon(_) | Signer::Azure(_) => None,
        }
    }
}

/// Returns the paths of the credentials files for this kind of store that the options or the
/// environment name.
pub(super) fn credentials_files(scheme: Scheme, settings: &RemoteSettings) -> Vec<PathBuf> {
    match scheme {
        Scheme::Google => google::credentials_file(settings).into_iter().collect(),
        Scheme::Azure => {
            let named = settings.credentials.clone().into_iter();
            named.map(profile::expand_home).collect()
        }
        _ => profile::credentials_files(settings),
    }
}
