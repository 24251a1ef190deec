//! Amazon's credentials and signatures. Only this file uses the crate reqsign_aws_v4.
//!
//! Credentials are found in the same places as by the AWS tools: the environment, the files of the
//! profile, single sign-on, a web identity, a process, the service of a container, and the service
//! of the machine. Credentials are renewed before they expire. Keys for Google Cloud Storage sign
//! requests in the same way.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::remote::message::FailureKind;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use reqsign_aws_v4::{
    Credential, DefaultCredentialProvider, EMPTY_STRING_SHA256, ProfileCredentialProvider,
    RequestSigner, StaticCredentialProvider,
};
use reqsign_core::OsEnv;

use crate::client::HttpClient;
use crate::fetch_error::{FetchError, RetryAction};
use crate::hosts;
use crate::settings::RemoteSettings;
use crate::signer::files::{CredentialFiles, CredentialServiceClient, no_credentials_message};
use crate::signer::profile;

/// Hint that is added to the error if no credentials are found.
const PUBLIC_BUCKET_HINT: &str = "for a public bucket, use `anonymous`";

/// An access key and its secret.
pub(super) type AccessKeyPair = (String, String);

/// The credentials that sign the requests of one mount.
pub(crate) struct AmazonSigner {
    settings: RemoteSettings,
    client: Arc<HttpClient>,
    files: CredentialFiles,
    keys: Option<AccessKeyPair>,
    inner: Mutex<RegionalSigner>,
}

struct RegionalSigner {
    region: String,
    signer: reqsign_core::Signer<Credential>,
}

impl AmazonSigner {
    /// Creates a signer that uses `keys`. Without keys, the signer looks for credentials where the
    /// AWS tools do. Named files are opened through `files`.
    pub(super) fn new(
        settings: &RemoteSettings,
        client: Arc<HttpClient>,
        region: &str,
        (files, keys): (CredentialFiles, Option<AccessKeyPair>),
    ) -> Self {
        let signer = create_signer(settings, &client, (&files, keys.as_ref()), region);
        AmazonSigner {
            settings: settings.clone(),
            client,
            files,
            keys,
            inner: Mutex::new(RegionalSigner {
                region: region.to_owned(),
                signer,
            }),
        }
    }

    /// Signs a GET request for `uri` in `region`. Returns all headers of the request.
    ///
    /// # Errors
    /// `Denied` if no credentials are found.
    pub(super) fn sign(
        &self,
        uri: &Uri,
        headers: HeaderMap,
        region: &str,
    ) -> Result<HeaderMap, FetchError> {
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
        let signed = block_on(signer.sign(&mut head, None));
        signed.map_err(|error| {
            // The error text of reqsign may quote the content of a file.
            log::debug!("no credentials: {}", error.kind());
            let reason =
                profile::missing_credentials_reason(&self.settings, |path| self.files.open(path));
            let reason = reason.or_else(refused_service_reason);
            let reason = reason.unwrap_or_else(|| PUBLIC_BUCKET_HINT.to_owned());
            FetchError {
                failure: FailureKind::Denied,
                text: no_credentials_message(&reason),
                retry_action: if error.is_retryable() {
                    RetryAction::Retry(None)
                } else {
                    RetryAction::None
                },
            }
        })?;
        Ok(head.headers)
    }

    /// Discards the current credentials, because the server has refused them. The next request
    /// looks for credentials again.
    pub(super) fn renew(&self) {
        let mut inner = lock(&self.inner);
        let from = (&self.files, self.keys.as_ref());
        inner.signer = create_signer(&self.settings, &self.client, from, &inner.region);
    }
}

fn create_signer(
    settings: &RemoteSettings,
    client: &Arc<HttpClient>,
    (files, keys): (&CredentialFiles, Option<&AccessKeyPair>),
    region: &str,
) -> reqsign_core::Signer<Credential> {
    let context = reqsign_core::Context::new()
        .with_file_read(files.clone())
        .with_http_send(CredentialServiceClient(Arc::clone(client)))
        .with_env(OsEnv);
    let request_signer = RequestSigner::new("s3", region);
    if let Some((key, secret)) = keys {
        let keys = StaticCredentialProvider::new(key, secret);
        return reqsign_core::Signer::new(context, keys, request_signer);
    }
    let mut providers = DefaultCredentialProvider::builder();
    if let Some(file) = &settings.credentials {
        let file = file.to_string_lossy();
        let provider = ProfileCredentialProvider::new()
            .with_profile(profile::profile_name(settings))
            .with_config_file(file.clone())
            .with_credentials_file(file);
        providers = providers.no_env().no_sso().no_web_identity().no_process();
        providers = providers.no_ecs().no_imds().profile(provider);
    } else if let Some(name) = &settings.profile {
        providers = providers.no_env().with_profile(name);
    }
    reqsign_core::Signer::new(context, providers.build(), request_signer)
}

/// Returns the reason why the credentials service that the environment names is not used. Returns
/// `None` if the service may be used, or if the environment names none.
fn refused_service_reason() -> Option<String> {
    const NAMES: [&str; 2] = [
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_EC2_METADATA_SERVICE_ENDPOINT",
    ];
    let is_refused = |name: &&str| {
        let uri = std::env::var(name).ok().and_then(|text| text.parse().ok());
        uri.is_some_and(|uri| !hosts::may_give_credentials(&uri))
    };
    let name = NAMES.into_iter().find(is_refused)?;
    Some(format!(
        "{name}: credentials are accepted only over https, from this machine or from its host"
    ))
}

/// Runs a future of the signer to its end. The signer itself only makes blocking calls.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct UnparkWaker(Thread);

    impl Wake for UnparkWaker {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }

    let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}
