//! The region and the server in the configuration files of the AWS tools.
//!
//! `~/.aws/config` is an INI file with the sections `[default]` and `[profile NAME]`, which contain
//! lines such as `region = …` and `endpoint_url = …`. This module does not read credentials.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use h5fs_reader::error::io_error_message;

use crate::limits;
use crate::settings::RemoteSettings;

/// The S3 settings that a profile of the AWS tools contains.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct S3Profile {
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    /// Whether requests use dual-stack servers, which also have IPv6 addresses.
    pub(crate) is_dual_stack: bool,
}

/// Returns the region and the server for S3. Options take precedence over the environment, and the
/// environment over the profile.
pub(crate) fn find_profile(settings: &RemoteSettings) -> S3Profile {
    let profile = read_profile(settings);
    let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let region = ["AWS_REGION", "AWS_DEFAULT_REGION"]
        .iter()
        .find_map(variable);
    let server = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]
        .iter()
        .find_map(variable);
    S3Profile {
        region: settings.region.clone().or(region).or(profile.region),
        endpoint: server.or(profile.endpoint),
        is_dual_stack: variable(&"AWS_USE_DUALSTACK_ENDPOINT")
            .map_or(profile.is_dual_stack, |text| is_true(&text)),
    }
}

/// Returns the name of the profile that the options or the environment name.
pub(crate) fn profile_name(settings: &RemoteSettings) -> String {
    let variable = || {
        std::env::var("AWS_PROFILE")
            .ok()
            .filter(|name| !name.is_empty())
    };
    let name = settings.profile.clone().or_else(variable);
    name.unwrap_or_else(|| "default".to_owned())
}

/// Returns the reason why no credentials can be found: a file or profile that the options or the
/// environment name is missing. Returns `None` if none of them is missing. `open` opens a file.
pub(crate) fn missing_credentials_reason(
    settings: &RemoteSettings,
    open: impl Fn(&Path) -> io::Result<File>,
) -> Option<String> {
    let is_named = settings.profile.is_some()
        || std::env::var_os("AWS_PROFILE").is_some_and(|name| !name.is_empty());
    if let Some(file) = &settings.credentials {
        return missing_profile_reason(&[expand_home(file.clone())], &profile_name(settings), open);
    }
    let files = [
        ("AWS_CONFIG_FILE", ".aws/config"),
        ("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"),
    ];
    let files: Vec<_> = files
        .into_iter()
        .filter_map(|(variable, usual)| file_from_variable(variable, usual))
        .collect();
    is_named
        .then(|| missing_profile_reason(&files, &profile_name(settings), open))
        .flatten()
}

/// Returns why none of the files contains the profile `name`, or `None` if one of them contains it.
fn missing_profile_reason(
    files: &[PathBuf],
    name: &str,
    open: impl Fn(&Path) -> io::Result<File>,
) -> Option<String> {
    let mut looked_in = Vec::new();
    for file in files {
        match open(file).and_then(read_small_file) {
            Ok(text) if has_section(&text, name) => return None,
            Ok(_) => looked_in.push(file.display().to_string()),
            Err(error) => {
                let reason = io_error_message(&error);
                if let [only] = files {
                    return Some(format!("{}: {reason}", only.display()));
                }
                looked_in.push(format!("{} ({reason})", file.display()));
            }
        }
    }
    Some(format!("no profile `{name}` in {}", looked_in.join(", ")))
}

/// Returns whether a file contains the section of a profile.
fn has_section(text: &str, wanted: &str) -> bool {
    text.lines()
        .filter_map(profile_of_section)
        .any(|name| name == wanted)
}

/// Returns the name of the profile whose section starts with this line.
fn profile_of_section(line: &str) -> Option<&str> {
    let section = line.trim().strip_prefix('[')?.strip_suffix(']')?.trim();
    Some(section.strip_prefix("profile").unwrap_or(section).trim())
}

/// Returns the path of the file that the environment variable `variable` names. Otherwise returns
/// the path `usual` in the user's home directory.
pub(crate) fn file_from_variable(variable: &str, usual: &str) -> Option<PathBuf> {
    match std::env::var_os(variable) {
        Some(path) => Some(expand_home(path.into())),
        None => std::env::home_dir().map(|home| home.join(usual)),
    }
}

fn read_profile(settings: &RemoteSettings) -> S3Profile {
    let path = file_from_variable("AWS_CONFIG_FILE", ".aws/config");
    let text = path
        .and_then(|path| read_small_file(File::open(path).ok()?).ok())
        .unwrap_or_default();
    parse_profile(&text, &profile_name(settings))
}

/// Returns the credentials files that the options or the environment name. Each file is opened
/// again for every use, because the user may have replaced it.
pub(crate) fn credentials_files(settings: &RemoteSettings) -> Vec<PathBuf> {
    const VARIABLES: &[&str] = &[
        "AWS_CONFIG_FILE",
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    ];
    match &settings.credentials {
        Some(file) => vec![expand_home(file.clone())],
        None => paths_from_variables(VARIABLES).map(expand_home).collect(),
    }
}

/// Expands `~/` at the start of a path to the user's home directory, as the AWS tools do.
pub(crate) fn expand_home(path: PathBuf) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) if !rest.as_os_str().is_empty() => home.join(rest),
        _ => path,
    }
}

/// Returns the files that the sandboxed fetcher opens itself: the files of the resolver,
/// certificates, and possibly `~/.aws`. `~/.aws` is included if requests are signed and no other
/// file was named. The permission for a file does not extend to a later file with the same name.
pub(crate) fn readable_files(settings: &RemoteSettings, is_signed: bool) -> Vec<PathBuf> {
    const OF_THE_SYSTEM: &[&str] = &[
        RESOLVER_FILE,
        "/etc/hosts",
        "/etc/host.conf",
        "/etc/gai.conf",
        "/etc/nsswitch.conf",
        // Locations of certificates on several systems.
        "/etc/ssl/certs",
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/ssl/cert.pem",
        "/etc/ssl/ca-bundle.pem",
        "/etc/pki/tls/certs",
        "/etc/pki/tls/cacert.pem",
        "/etc/pki/ca-trust/extracted",
        "/etc/ca-certificates/extracted",
        "/usr/share/ca-certificates",
        "/usr/local/share/ca-certificates",
        "/var/lib/ca-certificates",
    ];
    let has_home = is_signed && settings.credentials.is_none();
    let home = std::env::home_dir().filter(|_| has_home);
    let directories = std::env::var_os("SSL_CERT_DIR").unwrap_or_default();
    let of_the_system = OF_THE_SYSTEM.iter().map(PathBuf::from);
    of_the_system
        .chain(resolver_directory())
        .chain(paths_from_variables(&["SSL_CERT_FILE"]))
        .chain(std::env::split_paths(&directories))
        .chain(home.map(|home| home.join(".aws")))
        .collect()
}

/// The resolver's list of name servers.
const RESOLVER_FILE: &str = "/etc/resolv.conf";

/// Directories that contain only lists of name servers. The programs that own them replace their
/// file whenever the network changes.
const RESOLVER_DIRECTORIES: &[&str] = &["/run/connman", "/run/resolvconf", "/run/systemd/resolve"];

/// Returns the directory of the program that writes the list of name servers, if `/etc/resolv.conf`
/// is a link into that directory.
fn resolver_directory() -> Option<PathBuf> {
    let real = Path::new(RESOLVER_FILE).canonicalize().ok()?;
    let directory = real.parent()?;
    is_of_resolver(directory).then(|| directory.to_owned())
}

fn is_of_resolver(directory: &Path) -> bool {
    let mut known = RESOLVER_DIRECTORIES.iter();
    known.any(|known| directory == Path::new(known))
}

fn paths_from_variables(names: &[&str]) -> impl Iterator<Item = PathBuf> {
    let values = names.iter().filter_map(std::env::var_os);
    values.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Reads a small text file.
pub(crate) fn read_small_file(file: File) -> io::Result<String> {
    let mut text = Vec::new();
    let most = h5fs_reader::wire::to_u64(limits::AWS_FILE);
    file.take(most).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn parse_profile(text: &str, wanted: &str) -> S3Profile {
    let mut profile = S3Profile::default();
    let mut is_wanted = false;
    for line in text.lines() {
        // An indented line belongs to the setting above it.
        let is_nested = line.starts_with([' ', '\t']);
        if let Some(name) = profile_of_section(line) {
            is_wanted = name == wanted;
        } else if let (true, false, Some((key, value))) =
            (is_wanted, is_nested, line.split_once('='))
        {
            let value = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match key.trim() {
                "region" => profile.region = value,
                "endpoint_url" => profile.endpoint = value,
                "use_dualstack_endpoint" => {
                    profile.is_dual_stack = value.is_some_and(|value| is_true(&value));
                }
                _ => {}
            }
        }
    }
    profile
}

fn is_true(text: &str) -> bool {
    text.trim().eq_ignore_ascii_case("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_holds_other_files_is_not_opened() {
        for (directory, is_opened) in [
            ("/run/systemd/resolve", true),
            ("/run/resolvconf", true),
            ("/run/connman", true),
            ("/etc", false),
            ("/run", false),
            ("/tmp", false),
            ("/run/NetworkManager", false),
            ("/run/systemd", false),
            ("/run/systemd/resolve/netif", false),
        ] {
            let found = is_of_resolver(Path::new(directory));
            assert_eq!(found, is_opened, "{directory}");
        }
    }

    #[test]
    fn a_named_file_may_be_in_the_home_directory() {
        let named_as = |text: &str| {
            credentials_files(&RemoteSettings {
                credentials: Some(text.into()),
                ..RemoteSettings::default()
            })
        };
        let home = std::env::home_dir().unwrap();
        assert_eq!(named_as("~/keys/aws"), [home.join("keys/aws")]);
        for text in ["/a/~/b", "~joe/aws", "keys/~/aws", "~"] {
            assert_eq!(named_as(text), [PathBuf::from(text)]);
        }
    }

    #[test]
    fn a_profile_names_its_region_and_server() {
        let text = "[default]\nregion = us-west-2\n\n# lab\n[profile lab]\nregion=eu-west-1\n\
                    s3 =\n  region = no\nendpoint_url = http://127.0.0.1:9000\n\
                    use_dualstack_endpoint = True\n[profile other]\n";
        let lab = S3Profile {
            region: Some("eu-west-1".to_owned()),
            endpoint: Some("http://127.0.0.1:9000".to_owned()),
            is_dual_stack: true,
        };
        assert_eq!(parse_profile(text, "lab"), lab);
        assert_eq!(
            parse_profile(text, "default").region.as_deref(),
            Some("us-west-2")
        );
        assert_eq!(parse_profile(text, "other"), S3Profile::default());
    }
}
