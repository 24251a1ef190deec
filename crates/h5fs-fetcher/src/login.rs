//! The logins that requests to HTTP servers contain: tokens, headers, names and passwords, and
//! cookies.
//!
//! | login | servers that receive it |
//! |---|---|
//! | the token of `bearer_token_file` or `H5FS_BEARER_TOKEN`, the lines of `header_file` | the URL's scheme, host and port |
//! | the token of `EARTHDATA_TOKEN` | the same, where the host is NASA's |
//! | the token of `HF_TOKEN` | the same, where the host is Hugging Face's |
//! | a name and a password of netrc | the host of the entry; for the entry `default`, the URL's own host |
//! | a cookie | the hosts that its line names, or the hosts that the server which set it names |
//!
//! Logins are sent only over https or to this machine. The logins are read before this process
//! enters its sandbox. If a server refuses a login, the logins are read again, because the user may
//! have written a new token to its file.

mod cookies;
mod netrc;

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use h5fs_reader::error::{Error, Result, io_error_message};
use h5fs_reader::memory::lock::lock;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};

use crate::client::RequestHeader;
use crate::hosts::may_receive_secrets;
use crate::settings::{NetrcChoice, RemoteSettings};
use crate::signer::files::CredentialFiles;
use crate::signer::profile;
use cookies::Cookies;
use netrc::Netrc;

/// Environment variables that contain tokens: a general token, and tokens of NASA's Earthdata and
/// of Hugging Face.
const TOKEN_VARIABLES: [&str; 3] = ["H5FS_BEARER_TOKEN", "EARTHDATA_TOKEN", "HF_TOKEN"];

/// Headers that the user cannot set, because this program sets them.
const RESERVED_HEADERS: [HeaderName; 10] = [
    header::HOST,
    header::RANGE,
    header::IF_MATCH,
    header::IF_RANGE,
    header::IF_NONE_MATCH,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::ACCEPT_ENCODING,
    header::EXPECT,
];

/// The logins of one mount.
pub(super) struct Login {
    settings: RemoteSettings,
    files: CredentialFiles,
    /// The scheme, host and port of the source's URL.
    origin: Uri,
    shown: Mutex<RequestLogins>,
}

/// The logins that are currently added to requests.
#[derive(Default)]
struct RequestLogins {
    headers: Vec<RequestHeader>,
    netrc: Netrc,
    cookies: Cookies,
}

impl Login {
    /// Reads the logins that the options and the environment name for the source at `origin`.
    ///
    /// # Errors
    /// `Usage` if a file cannot be read or is empty, or if a token or headers would be sent over
    /// http.
    pub(super) fn new(
        settings: &RemoteSettings,
        origin: &Uri,
        files: CredentialFiles,
    ) -> Result<Self> {
        let login = Login {
            settings: settings.clone(),
            files,
            origin: origin.clone(),
            shown: Mutex::default(),
        };
        *lock(&login.shown) = login.read()?;
        Ok(login)
    }

    /// Returns an empty login, for object stores, which use signatures instead.
    ///
    /// # Errors
    /// `Usage` if an option names a login.
    pub(super) fn empty(settings: &RemoteSettings) -> Result<Self> {
        if Self::login_files(settings).is_empty() && settings.netrc.is_none() {
            return Ok(Login {
                settings: settings.clone(),
                files: CredentialFiles::default(),
                origin: Uri::default(),
                shown: Mutex::default(),
            });
        }
        Err(Error::Usage(
            "tokens, headers, netrc and cookies are only for http:// and https:// URLs".to_owned(),
        ))
    }

    /// Returns the paths of the login files that the options name: the token file, the header file,
    /// the cookie file and the netrc file.
    pub(super) fn login_files(settings: &RemoteSettings) -> Vec<PathBuf> {
        let netrc = settings.netrc.as_ref().and_then(netrc_file);
        [
            settings.bearer_token_file.clone(),
            settings.header_file.clone(),
            settings.cookies.clone(),
            netrc,
        ]
        .into_iter()
        .flatten()
        .map(profile::expand_home)
        .collect()
    }

    fn read(&self) -> Result<RequestLogins> {
        let settings = &self.settings;
        let mut shown = RequestLogins::default();
        if let Some(path) = &settings.header_file {
            shown.headers = self.parse_login_file("header_file", path, parse_header_lines)?;
        }
        if let Some(path) = &settings.bearer_token_file {
            let token = self.parse_login_file("bearer_token_file", path, bearer_header)?;
            shown.headers.push((header::AUTHORIZATION, token));
        } else if let Some(token) = self.environment_token()? {
            shown.headers.push((header::AUTHORIZATION, token));
        }
        let is_named = settings.header_file.is_some() || settings.bearer_token_file.is_some();
        if is_named && !may_receive_secrets(&self.origin) {
            return Err(Error::Usage(
                "a token and headers are sent only over https".to_owned(),
            ));
        }
        if let Some(path) = settings.netrc.as_ref().and_then(netrc_file) {
            shown.netrc = self.parse_login_file("netrc", &path, Netrc::parse)?;
        }
        if let Some(path) = &settings.cookies {
            shown.cookies = self.parse_login_file("cookies", path, Cookies::parse)?;
        }
        Ok(shown)
    }

    fn parse_login_file<T>(
        &self,
        option: &str,
        path: &Path,
        parse: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let path = profile::expand_home(path.to_owned());
        let read = self.files.open(&path).and_then(profile::read_small_file);
        let parsed = read
            .map_err(|error| io_error_message(&error))
            .and_then(|text| parse(&text));
        parsed.map_err(|reason| Error::Usage(format!("{option}: {}: {reason}", path.display())))
    }

    /// Returns the `Authorization` header with the token that an environment variable contains for
    /// the host of the source's URL. Returns `None` if no variable is set, or if the token would be
    /// sent over http.
    fn environment_token(&self) -> Result<Option<HeaderValue>> {
        let host = self.origin.host().unwrap_or_default();
        let may_see_token = |name: &str| may_send_token(name, host);
        let given = TOKEN_VARIABLES.iter().find_map(|name| {
            let token = std::env::var(name).ok()?;
            let is_shown = !token.trim().is_empty()
                && may_see_token(name)
                && may_receive_secrets(&self.origin);
            is_shown.then_some((name, token))
        });
        let parsed = given.map(|(name, token)| {
            bearer_header(&token).map_err(|reason| Error::Usage(format!("{name}: {reason}")))
        });
        parsed.transpose()
    }

    /// Adds the logins for the server at `uri` to the headers of a request. `is_own` is set for the
    /// server of the source's URL.
    pub(super) fn add(&self, uri: &Uri, is_own: bool, to: &mut HeaderMap) {
        if !may_receive_secrets(uri) {
            return;
        }
        let shown = lock(&self.shown);
        if is_own {
            for (name, value) in &shown.headers {
                to.entry(name).or_insert_with(|| value.clone());
            }
        }
        let host = uri.host().unwrap_or_default();
        if !to.contains_key(header::AUTHORIZATION)
            && let Some(authorization) = shown.netrc.authorization(host, is_own)
        {
            to.insert(header::AUTHORIZATION, authorization);
        }
        if let Some(cookies) = shown.cookies.cookie_header(uri) {
            to.insert(header::COOKIE, cookies);
        }
    }

    /// Stores the cookies that the server at `uri` sets. The cookies are only in memory. Does
    /// nothing if no login is configured.
    pub(super) fn store_cookies(&self, uri: &Uri, answer: &HeaderMap) {
        if self.is_configured() && may_receive_secrets(uri) {
            let mut shown = lock(&self.shown);
            for cookie in answer.get_all(header::SET_COOKIE) {
                shown.cookies.store(uri, cookie);
            }
        }
    }

    /// Reads the login files again, and discards the cookies that servers have set. If a file
    /// cannot be read, the previous logins stay in use. Returns whether any login is configured.
    pub(super) fn renew(&self) -> bool {
        if let Ok(shown) = self.read() {
            *lock(&self.shown) = shown;
        }
        self.is_configured()
    }

    /// Returns whether a login is configured for any server.
    pub(super) fn is_configured(&self) -> bool {
        let shown = lock(&self.shown);
        let settings = &self.settings;
        !shown.headers.is_empty() || settings.netrc.is_some() || settings.cookies.is_some()
    }
}

/// Returns the path of the netrc file: the path in `choice`. For the default file, returns the path
/// in the environment variable `NETRC`, or `~/.netrc`.
fn netrc_file(choice: &NetrcChoice) -> Option<PathBuf> {
    match choice {
        NetrcChoice::File(path) => Some(path.clone()),
        NetrcChoice::DefaultFile => profile::file_from_variable("NETRC", ".netrc"),
    }
}

/// Returns whether the token in the environment variable `name` may be sent to a host.
fn may_send_token(name: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match name {
        "EARTHDATA_TOKEN" => host == "nasa.gov" || host.ends_with(".nasa.gov"),
        "HF_TOKEN" => host == "huggingface.co",
        _ => true,
    }
}

/// Returns the value of the `Authorization` header for a bearer token; RFC 6750, section 2.1.
fn bearer_header(text: &str) -> std::result::Result<HeaderValue, String> {
    let token = text.trim();
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    if token.is_empty() || !token.bytes().all(is_of_token) {
        return Err("it contains no bearer token".to_owned());
    }
    let value = HeaderValue::from_str(&format!("Bearer {token}"));
    let value = value.map_err(|_| "it contains no bearer token".to_owned())?;
    Ok(mark_sensitive(value))
}

/// Parses the lines of a header file, `Name: value`. Skips empty lines and lines that start with
/// `#`.
fn parse_header_lines(text: &str) -> std::result::Result<Vec<RequestHeader>, String> {
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let headers: Vec<_> = lines
        .map(|(number, line)| parse_header_line(line).ok_or_else(|| invalid_line_error(number)))
        .collect::<std::result::Result<_, _>>()?;
    if headers.is_empty() {
        return Err("the file contains no header".to_owned());
    }
    match headers
        .iter()
        .find(|(name, _)| RESERVED_HEADERS.contains(name))
    {
        Some((name, _)) => Err(format!("h5fs sends `{name}` itself")),
        None => Ok(headers),
    }
}

fn parse_header_line(line: &str) -> Option<RequestHeader> {
    let (name, value) = line.split_once(':')?;
    let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
    Some((
        name,
        mark_sensitive(HeaderValue::from_str(value.trim()).ok()?),
    ))
}

/// Returns the error for an invalid line of a header file. The error names only the line's number,
/// because the line may be a secret.
fn invalid_line_error(number: usize) -> String {
    format!(
        "line {}: not of the form `Name: value`",
        number.saturating_add(1)
    )
}

fn mark_sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn secrets_go_over_tls_or_stay_on_the_machine() {
        for (text, is_seen) in [
            ("https://example.org/a", true),
            ("http://127.0.0.1:8080/a", true),
            ("http://[::1]/a", true),
            ("http://localhost/a", true),
            ("http://run.localhost:8080/a", true),
            ("http://localhost.example.org/a", false),
            ("http://example.org/a", false),
            ("http://127.0.0.1.example.org/a", false),
            ("http://10.0.0.1/a", false),
        ] {
            assert_eq!(may_receive_secrets(&uri(text)), is_seen, "{text}");
        }
    }

    #[test]
    fn tokens_are_sent_only_to_their_issuers() {
        for (name, host, is_theirs) in [
            (
                "EARTHDATA_TOKEN",
                "data.nsidc.earthdatacloud.nasa.gov",
                true,
            ),
            ("EARTHDATA_TOKEN", "URS.earthdata.NASA.gov", true),
            ("EARTHDATA_TOKEN", "evilnasa.gov", false),
            ("EARTHDATA_TOKEN", "nasa.gov.example.org", false),
            ("EARTHDATA_TOKEN", "huggingface.co", false),
            ("HF_TOKEN", "huggingface.co", true),
            ("HF_TOKEN", "HuggingFace.co", true),
            ("HF_TOKEN", "cdn-lfs.huggingface.co", false),
            ("HF_TOKEN", "huggingface.co.example.org", false),
            ("H5FS_BEARER_TOKEN", "example.org", true),
        ] {
            assert_eq!(may_send_token(name, host), is_theirs, "{name} {host}");
        }
    }

    #[test]
    fn a_file_of_headers_has_a_name_and_a_value_in_each_line() {
        let parsed =
            parse_header_lines("# of the portal\nX-Api-Key: a: b\n\nAuthorization:Token c\n")
                .unwrap();
        let told: Vec<_> = parsed
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(told, [("x-api-key", "a: b"), ("authorization", "Token c")]);
        assert!(parsed.iter().all(|(_, value)| value.is_sensitive()));
        for (wrong, reason) in [
            ("", "the file contains no header"),
            ("a: b\nsesame", "line 2: not of the form `Name: value`"),
            ("a b: c", "line 1: not of the form `Name: value`"),
            ("Range: bytes=0-", "h5fs sends `range` itself"),
        ] {
            assert_eq!(parse_header_lines(wrong).unwrap_err(), reason);
        }
    }

    #[test]
    fn a_token_is_one_word() {
        assert_eq!(
            bearer_header(" eyJ0.a-b_c~d+/== \n").unwrap(),
            "Bearer eyJ0.a-b_c~d+/=="
        );
        for wrong in ["", "\n", "a b", "a\r\nHost: b", "ü"] {
            assert!(bearer_header(wrong).is_err(), "{wrong}");
        }
    }
}
