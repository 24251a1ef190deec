//! Credentials, and the signatures that they make; the only file that knows the signer.
//!
//! Credentials are found as the AWS tools find them: the environment, the profile's files, single
//! sign-on, a web identity, a process, a container's service, and the machine's. They are renewed
//! before they expire.

pub(super) mod profile;

use std::fs::File;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use reqsign_aws_v4::{
    Credential, DefaultCredentialProvider, EMPTY_STRING_SHA256, ProfileCredentialProvider,
    RequestSigner,
};
use reqsign_core::{FileRead, HttpSend, OsEnv};

use crate::cli::fetcher::client::Client;
use crate::cli::fetcher::trouble::{Remedy, Trouble};
use crate::cli::mount::opener;
use crate::cli::options::RemoteSettings;
use crate::error::{Error, Result};
use crate::limits;
use crate::memory::lock::lock;
use crate::source::local::file::Opener;
use crate::source::remote::message::Failure;

/// What may help where no credentials are found.
const PUBLIC: &str = "a public bucket is read with `anonymous`";

/// Signs the requests of one mount.
pub(super) struct Signer {
    settings: RemoteSettings,
    client: Arc<Client>,
    files: Files,
    inner: Mutex<Inner>,
}

struct Inner {
    region: String,
    signer: reqsign_core::Signer<Credential>,
}

impl Signer {
    /// A signer that reads the `files` which are named, and others itself.
    pub(super) fn new(
        settings: &RemoteSettings,
        client: Arc<Client>,
        region: &str,
        files: Files,
    ) -> Self {
        let signer = signer(settings, &client, &files, region);
        Signer {
            settings: settings.clone(),
            client,
            files,
            inner: Mutex::new(Inner {
                region: region.to_owned(),
                signer,
            }),
        }
    }

    /// The headers of a GET of `uri`, signed for `region`.
    ///
    /// # Errors
    /// `Denied` where no credentials are found.
    pub(super) fn sign(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        region: &str,
    ) -> std::result::Result<HeaderMap, Trouble> {
        let signer = {
            let mut inner = lock(&self.inner);
            if inner.region != region {
                region.clone_into(&mut inner.region);
                let of_region = RequestSigner::new("s3", region);
                inner.signer = inner.signer.clone().with_request_signer(of_region);
            }
            inner.signer.clone()
        };
        let mut request = Request::new(());
        *request.method_mut() = Method::GET;
        request.uri_mut().clone_from(uri);
        *request.headers_mut() = headers;
        let (mut head, ()) = request.into_parts();
        let empty = HeaderValue::from_static(EMPTY_STRING_SHA256);
        head.headers
            .insert(HeaderName::from_static("x-amz-content-sha256"), empty);
        let signed = wait(signer.sign(&mut head, None));
        signed.map_err(|error| {
            // The signer's own text may tell of what it found in a file.
            log::debug!("no credentials: {}", error.kind());
            let reason = profile::missing(&self.settings, |path| self.files.open(path));
            let reason = reason.unwrap_or_else(|| PUBLIC.to_owned());
            Trouble {
                failure: Failure::Denied,
                text: format!("no credentials are found that are valid ({reason})"),
                remedy: if error.is_retryable() {
                    Remedy::Again(None)
                } else {
                    Remedy::None
                },
            }
        })?;
        Ok(head.headers)
    }

    /// Finds the credentials anew: the server did not take those that there are.
    pub(super) fn renew(&self) {
        let mut inner = lock(&self.inner);
        inner.signer = signer(&self.settings, &self.client, &self.files, &inner.region);
    }
}

fn signer(
    settings: &RemoteSettings,
    client: &Arc<Client>,
    files: &Files,
    region: &str,
) -> reqsign_core::Signer<Credential> {
    let context = reqsign_core::Context::new()
        .with_file_read(files.clone())
        .with_http_send(Services(Arc::clone(client)))
        .with_env(OsEnv);
    let mut providers = DefaultCredentialProvider::builder();
    if let Some(file) = &settings.credentials {
        let file = file.to_string_lossy();
        let provider = ProfileCredentialProvider::new()
            .with_profile(profile::name(settings))
            .with_config_file(file.clone())
            .with_credentials_file(file);
        providers = providers.no_env().no_sso().no_web_identity().no_process();
        providers = providers.no_ecs().no_imds().profile(provider);
    } else if let Some(name) = &settings.profile {
        providers = providers.no_env().with_profile(name);
    }
    let request_signer = RequestSigner::new("s3", region);
    reqsign_core::Signer::new(context, providers.build(), request_signer)
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

/// Waits for what the signer promises: it asks for nothing that does not block by itself.
fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);

    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
