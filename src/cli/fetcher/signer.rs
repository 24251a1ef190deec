//! Credentials of stores, and what they add to requests.
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

use http::{HeaderMap, Uri};

use crate::cli::fetcher::client::Client;
use crate::cli::fetcher::signer::files::Files;
use crate::cli::fetcher::trouble::Trouble;
use crate::cli::options::RemoteSettings;
use crate::error::{Error, Result};
use crate::source::location::Scheme;

/// What signs the requests to a store.
pub(super) enum Signer {
    Amazon(Box<amazon::Signer>),
    Google(google::Tokens),
    Azure(azure::Key),
}

impl Signer {
    /// The signer for S3's protocol.
    ///
    /// # Errors
    /// `Usage` where a file or a profile is named that is not there.
    pub(super) fn amazon(
        settings: &RemoteSettings,
        client: Arc<Client>,
        region: &str,
        files: Files,
    ) -> Result<Self> {
        let is_named = settings.credentials.is_some() || settings.profile.is_some();
        if is_named && let Some(reason) = profile::missing(settings, |path| files.open(path)) {
            return Err(Error::Usage(reason));
        }
        let signer = amazon::Signer::new(settings, client, region, (files, None));
        Ok(Signer::Amazon(Box::new(signer)))
    }

    /// The signer for Google's cloud: the keys of the environment sign as Amazon's do.
    ///
    /// # Errors
    /// `Usage` for a file that holds no credentials.
    pub(super) fn google(
        settings: &RemoteSettings,
        client: Arc<Client>,
        files: Files,
    ) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
        let keys = variable("GS_ACCESS_KEY_ID").zip(variable("GS_SECRET_ACCESS_KEY"));
        if keys.is_some() && settings.credentials.is_none() {
            let signer = amazon::Signer::new(settings, client, "auto", (files, keys));
            return Ok(Signer::Amazon(Box::new(signer)));
        }
        let file = google::file(settings);
        google::Tokens::new(client, files, file).map(Signer::Google)
    }

    /// The headers of a GET of `uri`, signed; for S3 in `region`.
    ///
    /// # Errors
    /// `Denied` where no credentials are found.
    pub(super) fn sign(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        region: &str,
    ) -> std::result::Result<HeaderMap, Trouble> {
        match self {
            Signer::Amazon(signer) => signer.sign(uri, headers, region),
            Signer::Google(tokens) => tokens.sign(headers),
            Signer::Azure(key) => key.sign(uri, headers),
        }
    }

    /// Finds the credentials anew: the server did not take those that there are.
    pub(super) fn renew(&self) {
        match self {
            Signer::Amazon(signer) => signer.renew(),
            Signer::Google(tokens) => tokens.renew(),
            Signer::Azure(_) => {}
        }
    }

    /// The port of a server that gives credentials out, beside 80 and 443.
    pub(super) fn port(&self) -> Option<u16> {
        match self {
            Signer::Google(tokens) => Some(tokens.port()),
            Signer::Amazon(_) | Signer::Azure(_) => None,
        }
    }
}

/// The files of credentials for a store of this kind that the options or the environment name.
pub(super) fn named(scheme: Scheme, settings: &RemoteSettings) -> Vec<PathBuf> {
    match scheme {
        Scheme::Google => google::file(settings).into_iter().collect(),
        Scheme::Azure => {
            let named = settings.credentials.clone().into_iter();
            named.map(profile::expanded).collect()
        }
        _ => profile::named(settings),
    }
}
