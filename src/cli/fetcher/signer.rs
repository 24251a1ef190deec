//! Credentials of stores, and what they add to requests.
//!
//! | file | credentials |
//! |---|---|
//! | `amazon`, `profile` | those of the AWS tools, and signatures of S3's protocol |
//! | `google` | application-default credentials, and tokens |
//! | `azure` | shared keys, and shared access signatures |

mod amazon;
pub(super) mod azure;
mod google;
pub(super) mod profile;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use reqsign_core::{FileRead, HttpSend};

use crate::cli::fetcher::client::Client;
use crate::cli::fetcher::trouble::Trouble;
use crate::cli::mount::opener;
use crate::cli::options::RemoteSettings;
use crate::error::{Error, Result};
use crate::limits;
use crate::source::local::file::Opener;
use crate::source::location::Scheme;

/// What signs the requests to a store.
pub(super) enum Signer {
    Amazon(amazon::Signer),
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
        Ok(Signer::Amazon(signer))
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
            return Ok(Signer::Amazon(signer));
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

/// Says that there are no credentials, and what may help.
fn no_credentials(reason: &str) -> String {
    format!("no credentials are found that are valid ({reason})")
}

/// The files of credentials. Those that are named are opened by processes that open nothing else,
/// outside of this one's cage.
#[derive(Clone, Default)]
pub(super) struct Files(Arc<[(PathBuf, Opener)]>);

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}

impl Files {
    /// The files that are `named`, as the user `reader` opens them.
    ///
    /// # Errors
    /// `Io` with the system's error.
    pub(super) fn named(named: Vec<PathBuf>, reader: u32) -> Result<Self> {
        let opened = named.into_iter().map(|path| {
            let opener = opener::start(&std::path::absolute(&path)?, reader)?;
            Ok((path, opener))
        });
        let all = opened.collect::<io::Result<_>>();
        let failed = |error| Error::io(&error, "starting the process that opens credentials");
        all.map(Files).map_err(failed)
    }

    /// Opens a file of credentials.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        match self.0.iter().find(|(named, _)| named == path) {
            Some((_, open)) => open(),
            None => File::open(path),
        }
    }
}

impl FileRead for Files {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let read = self.open(Path::new(path)).and_then(profile::bounded);
        let failed = |_| reqsign_core::Error::config_invalid("a file of credentials");
        read.map(String::into_bytes).map_err(failed)
    }
}

/// The services that give credentials out.
struct Services(Arc<Client>);

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Services")
    }
}

impl HttpSend for Services {
    async fn http_send(&self, request: Request<Bytes>) -> reqsign_core::Result<Response<Bytes>> {
        let failed = |_| reqsign_core::Error::unexpected("a service of credentials");
        let request = request.map(|body| body.to_vec());
        let mut answer = self.0.send(request, false, self.0.step).map_err(failed)?;
        let body = answer.text(limits::AWS_FILE, self.0.step).map_err(failed)?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}
