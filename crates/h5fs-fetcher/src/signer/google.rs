//! Access tokens of Google Cloud: application-default credentials.
//!
//! | credentials | source |
//! |---|---|
//! | the file of a service account, or of a user that `gcloud` has logged in | `credentials=FILE`, `GOOGLE_APPLICATION_CREDENTIALS`, `~/.config/gcloud/application_default_credentials.json` |
//! | credentials of the machine | its metadata service, which `GCE_METADATA_HOST` may name |
//!
//! A service account signs a request for a token (RFC 7523). A user has a refresh token (RFC 6749,
//! section 6). A token is reused until shortly before it expires.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::location::percent::{UNRESERVED, percent_encode};
use h5fs_reader::source::remote::message::FailureKind;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, header};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};

use crate::client::HttpClient;
use crate::fetch_error::{FetchError, RetryAction};
use crate::hosts;
use crate::limits;
use crate::settings::RemoteSettings;
use crate::signer::files::{CredentialFiles, no_credentials_message};
use crate::signer::profile;

/// The OAuth scope of requested tokens: reading the storage.
const SCOPE: &str = "https://www.googleapis.com/auth/devstorage.read_only";

/// Address of the metadata service on a machine in Google Cloud.
const METADATA_ADDRESS: &str = "169.254.169.254";

/// Time before its expiry at which a token is replaced.
const EXPIRY_MARGIN: Duration = Duration::from_secs(60);

/// The origin of access tokens.
enum TokenOrigin {
    /// A service account: its name and its private key.
    Account(String, Box<RsaKeyPair>),
    /// A user: the body of the request for an access token.
    User(String),
    /// The machine's metadata service.
    Machine,
}

/// The access tokens of one mount.
pub(crate) struct AccessTokens {
    client: Arc<HttpClient>,
    files: CredentialFiles,
    /// Path of the credentials file, if there is one.
    file: Option<PathBuf>,
    found: GoogleCredentials,
    cached_token: Mutex<Option<Token>>,
    /// Whether any token has been received. Until then, an unreachable metadata service means that
    /// the machine is not in Google Cloud.
    has_received_token: AtomicBool,
}

/// The credentials that a file contains, or those of the machine.
struct GoogleCredentials {
    origin: TokenOrigin,
    /// The server that issues tokens.
    server: Uri,
    /// The value of the header with the project that is billed for requests.
    project: Option<HeaderValue>,
}

struct Token {
    header: HeaderValue,
    until: Instant,
}

/// Returns the path of the credentials file that the options or the environment name. Otherwise
/// returns the usual path, if a file exists there.
pub(crate) fn credentials_file(settings: &RemoteSettings) -> Option<PathBuf> {
    if let Some(file) = &settings.credentials {
        return Some(profile::expand_home(file.clone()));
    }
    const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
    const USUAL: &str = ".config/gcloud/application_default_credentials.json";
    if std::env::var_os(VARIABLE).is_some_and(|path| !path.is_empty()) {
        return profile::file_from_variable(VARIABLE, USUAL);
    }
    let of_tools = std::env::var_os("CLOUDSDK_CONFIG").filter(|path| !path.is_empty());
    let usual = match of_tools {
        Some(directory) => Path::new(&directory).join("application_default_credentials.json"),
        None => std::env::home_dir()?.join(USUAL),
    };
    usual.is_file().then_some(usual)
}

impl AccessTokens {
    /// Reads the credentials in `file`. Without a file, uses the credentials of the machine.
    ///
    /// # Errors
    /// `Usage` if the file cannot be read or contains no supported credentials.
    pub(crate) fn new(
        client: Arc<HttpClient>,
        files: CredentialFiles,
        file: Option<PathBuf>,
    ) -> Result<Self> {
        let found = match &file {
            Some(file) => GoogleCredentials::from_file(&files, file)?,
            None => GoogleCredentials::from_machine()?,
        };
        Ok(AccessTokens {
            client,
            files,
            file,
            found,
            cached_token: Mutex::default(),
            has_received_token: AtomicBool::new(false),
        })
    }

    /// Returns the port of the server that issues tokens.
    pub(crate) fn token_server_port(&self) -> u16 {
        hosts::port(&self.found.server)
    }

    /// Adds an access token to the headers of a request.
    ///
    /// # Errors
    /// `Denied` if no token is issued.
    pub(crate) fn sign(
        &self,
        mut headers: HeaderMap,
    ) -> std::result::Result<HeaderMap, FetchError> {
        headers.insert(header::AUTHORIZATION, self.token()?);
        // This header of S3 is translated to Google's header for the billed project.
        let payer = headers.remove("x-amz-request-payer");
        if let (Some(_), Some(project)) = (payer, &self.found.project) {
            headers.insert(
                HeaderName::from_static("x-goog-user-project"),
                project.clone(),
            );
        }
        Ok(headers)
    }

    /// Discards the current access token, because the server has refused it.
    pub(crate) fn renew(&self) {
        *lock(&self.cached_token) = None;
    }

    fn token(&self) -> std::result::Result<HeaderValue, FetchError> {
        // Other threads wait for the thread that requests a new token.
        let mut kept = lock(&self.cached_token);
        if let Some(token) = kept.as_ref().filter(|token| Instant::now() < token.until) {
            return Ok(token.header.clone());
        }
        let token = self.request_token()?;
        let header = token.header.clone();
        *kept = Some(token);
        Ok(header)
    }

    fn request_token(&self) -> std::result::Result<Token, FetchError> {
        let found = match &self.file {
            // The user may have renewed the key in its file.
            Some(file) => GoogleCredentials::from_file(&self.files, file).ok(),
            None => None,
        };
        let found = found.as_ref().unwrap_or(&self.found);
        let request = found
            .token_request()
            .ok_or_else(|| self.no_credentials(RetryAction::None))?;
        let answer = self.client.send(request, false, self.client.step_timeout);
        let is_vain = matches!(found.origin, TokenOrigin::Machine)
            && !self.has_received_token.load(Ordering::Relaxed);
        let mut answer = answer.map_err(|trouble| {
            self.no_credentials(if is_vain {
                RetryAction::None
            } else {
                trouble.retry_action
            })
        })?;
        let body = answer.read_body_within(limits::AWS_FILE, self.client.step_timeout)?;
        let retry_action = match answer.status.as_u16() {
            200 => {
                self.has_received_token.store(true, Ordering::Relaxed);
                return token(&body).ok_or_else(|| self.no_credentials(RetryAction::None));
            }
            429 | 500..=599 => RetryAction::Retry(None),
            _ => RetryAction::None,
        };
        Err(self.no_credentials(retry_action))
    }

    fn no_credentials(&self, retry_action: RetryAction) -> FetchError {
        let reason = match &self.file {
            Some(file) => format!("{}: no token was issued", file.display()),
            None => "for a public bucket, use `anonymous`".to_owned(),
        };
        FetchError {
            failure: FailureKind::Denied,
            text: no_credentials_message(&reason),
            retry_action,
        }
    }
}

impl GoogleCredentials {
    fn from_machine() -> Result<Self> {
        let host = std::env::var("GCE_METADATA_HOST").ok();
        let host = host.filter(|host| !host.is_empty());
        let host = host.unwrap_or_else(|| METADATA_ADDRESS.to_owned());
        let path = "computeMetadata/v1/instance/service-accounts/default/token";
        let server = format!("http://{host}/{path}").parse().ok();
        // The response contains a secret.
        let server = server.filter(hosts::may_give_credentials).ok_or_else(|| {
            let text = "GCE_METADATA_HOST names neither this machine nor its metadata service";
            Error::Usage(text.to_owned())
        })?;
        Ok(GoogleCredentials {
            origin: TokenOrigin::Machine,
            server,
            project: None,
        })
    }

    fn from_file(files: &CredentialFiles, path: &Path) -> Result<Self> {
        let failed = |reason: &str| Error::Usage(format!("{}: {reason}", path.display()));
        let text = files.open(path).and_then(profile::read_small_file);
        let text = text.map_err(|error| failed(&io_error_message(&error)))?;
        let parsed: Value = serde_json::from_str(&text).map_err(|_| failed("not JSON"))?;
        Self::parse(&parsed).ok_or_else(|| {
            failed(
                "neither a service account's key nor a user's credentials from `gcloud auth \
                 application-default`",
            )
        })
    }

    fn parse(file: &Value) -> Option<Self> {
        let text = |name: &str| file.get(name).and_then(Value::as_str);
        let origin = match text("type")? {
            "service_account" => {
                let key = RsaKeyPair::from_pkcs8(&decode_pem_key(text("private_key")?)?).ok()?;
                TokenOrigin::Account(text("client_email")?.to_owned(), Box::new(key))
            }
            "authorized_user" => TokenOrigin::User(encode_form(&[
                ("grant_type", "refresh_token"),
                ("client_id", text("client_id")?),
                ("client_secret", text("client_secret")?),
                ("refresh_token", text("refresh_token")?),
            ])),
            _ => return None,
        };
        let server = text("token_uri").unwrap_or("https://oauth2.googleapis.com/token");
        let server: Uri = server.parse().ok()?;
        // A secret is sent only over https, or to this machine.
        let is_http = matches!(server.scheme_str(), Some("http" | "https"));
        let may_see = is_http && hosts::may_receive_secrets(&server);
        let project = text("quota_project_id").or_else(|| text("project_id"));
        may_see.then_some(GoogleCredentials {
            origin,
            server,
            project: project.and_then(|project| project.parse().ok()),
        })
    }

    /// Returns the HTTP request for a new access token, or `None` if the request cannot be built or
    /// signed.
    fn token_request(&self) -> Option<Request<Vec<u8>>> {
        let form = match &self.origin {
            TokenOrigin::Machine => {
                let request = Request::get(self.server.clone());
                return request
                    .header("metadata-flavor", "Google")
                    .body(Vec::new())
                    .ok();
            }
            TokenOrigin::User(form) => form.clone(),
            TokenOrigin::Account(name, key) => {
                let now = SystemTime::UNIX_EPOCH.elapsed().ok()?.as_secs();
                encode_form(&[
                    ("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
                    (
                        "assertion",
                        &signed_assertion(name, key, &self.server.to_string(), now)?,
                    ),
                ])
            }
        };
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.server.clone());
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.body(form.into_bytes()).ok()
    }
}

/// Encodes names and values as the body of an HTML form.
fn encode_form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs
        .iter()
        .map(|(name, value)| format!("{name}={}", percent_encode(value, UNRESERVED)));
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the signed JSON Web Token with which a service account requests an access token; RFC
/// 7519.
fn signed_assertion(name: &str, key: &RsaKeyPair, server: &str, now: u64) -> Option<String> {
    let claims = json!({
        "iss": name,
        "scope": SCOPE,
        "aud": server,
        "iat": now,
        "exp": now.checked_add(3600)?,
    });
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({"alg": "RS256", "typ": "JWT"});
    let signed = format!("{}.{}", part(&header), part(&claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        signed.as_bytes(),
        &mut signature,
    )
    .ok()?;
    Some(format!(
        "{signed}.{}",
        BASE64_URL_SAFE_NO_PAD.encode(signature)
    ))
}

/// Decodes the private key between the lines `BEGIN` and `END` of a PEM text; RFC 7468.
fn decode_pem_key(text: &str) -> Option<Vec<u8>> {
    let (_, behind) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (inner, _) = behind.split_once("-----END PRIVATE KEY-----")?;
    let inner: String = inner.split_whitespace().collect();
    BASE64_STANDARD.decode(inner).ok()
}

/// Parses the access token in a response: `{"access_token": "…", "expires_in": 3599, …}`.
fn token(body: &[u8]) -> Option<Token> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    let text = answer.get("access_token")?.as_str()?;
    let mut header = HeaderValue::from_str(&format!("Bearer {text}")).ok()?;
    header.set_sensitive(true);
    let life = answer
        .get("expires_in")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let life = Duration::from_secs(life.min(24 * 3600)).saturating_sub(EXPIRY_MARGIN);
    Some(Token {
        header,
        until: Instant::now() + life,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = include_str!("../../../../tests/fixtures/account.pem");

    fn account() -> Value {
        json!({
            "type": "service_account",
            "private_key": KEY,
            "client_email": "a@b.iam.gserviceaccount.com",
            "project_id": "lab",
        })
    }

    fn user() -> Value {
        json!({
            "type": "authorized_user",
            "client_id": "id",
            "client_secret": "a+b",
            "refresh_token": "1//x",
        })
    }

    fn body(found: &GoogleCredentials) -> String {
        let request = found.token_request().unwrap();
        assert_eq!(request.uri(), "https://oauth2.googleapis.com/token");
        String::from_utf8(request.into_body()).unwrap()
    }

    /// Does not check the signature. An integration test compares it with the result of a Python
    /// library.
    #[test]
    fn a_service_account_signs_its_token_request() {
        let found = GoogleCredentials::parse(&account()).unwrap();
        assert_eq!(found.project.as_ref().unwrap(), "lab");
        let body = body(&found);
        let (start, assertion) = body.split_once("&assertion=").unwrap();
        let kind = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer";
        assert_eq!(start, kind);
        let parts: Vec<_> = assertion.split('.').collect();
        let claims = BASE64_URL_SAFE_NO_PAD.decode(parts[1]).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["iss"], "a@b.iam.gserviceaccount.com");
        assert_eq!(claims["scope"], SCOPE);
        assert_eq!(claims["aud"], "https://oauth2.googleapis.com/token");
        assert_eq!(parts.len(), 3);
    }

    #[test]
    fn a_user_sends_a_form() {
        let wanted = "grant_type=refresh_token&client_id=id&client_secret=a%2Bb\
                      &refresh_token=1%2F%2Fx";
        assert_eq!(body(&GoogleCredentials::parse(&user()).unwrap()), wanted);
    }

    #[test]
    fn invalid_credentials_are_rejected() {
        let changed = |mut file: Value, name: &str, value: Value| {
            file[name] = value;
            GoogleCredentials::parse(&file).is_none()
        };
        assert!(changed(account(), "private_key", json!("no key")));
        assert!(changed(account(), "private_key", json!(1)));
        assert!(changed(account(), "client_email", Value::Null));
        assert!(changed(user(), "refresh_token", Value::Null));
        for kind in ["external_account", "impersonated_service_account", ""] {
            assert!(changed(account(), "type", json!(kind)), "{kind}");
        }
        for server in [
            "http://oauth2.googleapis.com/token",
            "ftp://127.0.0.1/",
            "x y",
        ] {
            assert!(changed(user(), "token_uri", json!(server)), "{server}");
        }
        assert!(!changed(
            user(),
            "token_uri",
            json!("http://127.0.0.1:9/token")
        ));
        assert!(GoogleCredentials::parse(&json!([])).is_none());
    }

    #[test]
    fn a_token_expires_as_stated() {
        let life = |text: &str| {
            let token = token(text.as_bytes())?;
            Some(
                token
                    .until
                    .saturating_duration_since(Instant::now())
                    .as_secs(),
            )
        };
        let lives = life(r#"{"access_token": "x", "expires_in": 3600}"#).unwrap();
        assert!((3500..=3540).contains(&lives), "{lives}");
        assert_eq!(life(r#"{"access_token": "x", "expires_in": 10}"#), Some(0));
        assert_eq!(life(r#"{"access_token": "x"}"#), Some(0));
        let long = life(r#"{"access_token": "x", "expires_in": 99999999999}"#).unwrap();
        assert!(long <= 24 * 3600, "{long}");
        for wrong in [
            "",
            "{}",
            r#"{"access_token": "a\nb"}"#,
            r#"{"access_token": 1}"#,
        ] {
            assert!(life(wrong).is_none(), "{wrong}");
        }
    }
}
