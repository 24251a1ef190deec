//! Credentials files and credentials services, for all signers.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use h5fs_reader::error::{Error, Result};
use h5fs_reader::source::local::file::SourceOpener;
use http::{Request, Response};
use reqsign_core::{FileRead, HttpSend};

use crate::client::HttpClient;
use crate::hosts;
use crate::limits;
use crate::signer::profile;

/// Returns the message that no valid credentials are found. `reason` is a reason or a hint.
pub(super) fn no_credentials_message(reason: &str) -> String {
    format!("no valid credentials are found ({reason})")
}

/// A function that starts a process outside the sandbox. The process opens one file, at the path
/// that is the argument. The function returns another function, which requests the open file from
/// the process.
pub type StartOpener<'a> = dyn Fn(&Path) -> io::Result<SourceOpener> + 'a;

/// The credentials files. An opener process outside the sandbox opens each file that the options or
/// the environment name.
#[derive(Clone, Default)]
pub(crate) struct CredentialFiles(Arc<[(PathBuf, SourceOpener)]>);

impl std::fmt::Debug for CredentialFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Files")
    }
}

impl CredentialFiles {
    /// Starts an opener process for each of the files `named`.
    ///
    /// # Errors
    /// `Io` with the system's error.
    pub(crate) fn start_openers(named: Vec<PathBuf>, start: &StartOpener<'_>) -> Result<Self> {
        let opened = named.into_iter().map(|path| {
            let opener = start(&std::path::absolute(&path)?)?;
            Ok((path, opener))
        });
        let all = opened.collect::<io::Result<_>>();
        let failed = |error| Error::from_io(&error, "starting the process that opens credentials");
        all.map(CredentialFiles).map_err(failed)
    }

    /// Opens a credentials file.
    ///
    /// # Errors
    /// Fails with the system's error.
    pub(crate) fn open(&self, path: &Path) -> io::Result<File> {
        match self.0.iter().find(|(named, _)| named == path) {
            Some((_, open)) => open(),
            None => File::open(path),
        }
    }
}

impl FileRead for CredentialFiles {
    async fn file_read(&self, path: &str) -> reqsign_core::Result<Vec<u8>> {
        let read = self
            .open(Path::new(path))
            .and_then(profile::read_small_file);
        let failed = |_| reqsign_core::Error::config_invalid("a file of credentials");
        read.map(String::into_bytes).map_err(failed)
    }
}

/// An HTTP client through which the signers' libraries request credentials from the services that
/// issue them.
pub(super) struct CredentialServiceClient(pub(super) Arc<HttpClient>);

impl std::fmt::Debug for CredentialServiceClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Services")
    }
}

impl HttpSend for CredentialServiceClient {
    async fn http_send(&self, request: Request<Bytes>) -> reqsign_core::Result<Response<Bytes>> {
        let failed = |_| reqsign_core::Error::unexpected("a service of credentials");
        if !hosts::may_give_credentials(request.uri()) {
            let host = request.uri().host().unwrap_or_default();
            log::warn!("{host}: credentials are not requested over http");
            return Err(reqsign_core::Error::config_invalid(
                "a service of credentials over http",
            ));
        }
        let request = request.map(|body| body.to_vec());
        let mut answer = self
            .0
            .send(request, false, self.0.step_timeout)
            .map_err(failed)?;
        let body = answer
            .read_body_within(limits::AWS_FILE, self.0.step_timeout)
            .map_err(failed)?;
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = answer.status;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}
