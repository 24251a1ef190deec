//! The options of a source by URL.
//!
//! None of these options contains a secret: a key or a token comes from the environment or from a
//! file.

use std::time::Duration;

use h5fs_fetcher::NetrcChoice;
use h5fs_reader::source::location::{Location, Url};
use h5fs_reader::wire::to_u64;

use crate::cli::options::option::{MountOption, OptionValue};
use crate::cli::options::values::{parse_count, parse_size};
use crate::limits;

/// Maximum number of ports in the option that permits redirects to more ports.
const MAX_REDIRECT_PORTS: usize = 64;

pub(super) const OPTIONS: &[MountOption] = &[
    MountOption {
        flag: "endpoint",
        word: "endpoint",
        help: "The URL of a store's server (s3://, gs://, az://)",
        default: Some("AWS_ENDPOINT_URL, the profile's, or the region's"),
        value: OptionValue::Text("URL", |to, text| {
            parse_endpoint(text).map(|url| to.remote.endpoint = Some(url))
        }),
    },
    MountOption {
        flag: "region",
        word: "region",
        help: "The region of the bucket",
        default: Some("AWS_REGION, the profile's, or us-east-1"),
        value: OptionValue::Text("NAME", |to, text| {
            to.remote.region = Some(text.to_owned());
            Ok(())
        }),
    },
    MountOption {
        flag: "profile",
        word: "profile",
        help: "The profile in ~/.aws",
        default: Some("AWS_PROFILE, or default"),
        value: OptionValue::Text("NAME", |to, text| {
            to.remote.profile = Some(text.to_owned());
            Ok(())
        }),
    },
    MountOption {
        flag: "anonymous",
        word: "anonymous",
        help: "Do not sign requests: the bucket or the container is public",
        default: None,
        value: OptionValue::Nothing(|to| to.remote.anonymous = true),
    },
    MountOption {
        flag: "credentials",
        word: "credentials",
        help: "Read the credentials from this file: for s3:// like ~/.aws/credentials, for gs:// \
               its JSON, for az:// a connection string",
        default: None,
        value: OptionValue::Path("FILE", |to, path| {
            to.remote.credentials = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "requester-pays",
        word: "requester_pays",
        help: "Pay for the requests, if the bucket requires that",
        default: None,
        value: OptionValue::Nothing(|to| to.remote.requester_pays = true),
    },
    MountOption {
        flag: "bearer-token-file",
        word: "bearer_token_file",
        help: "Send the token in this file to the server of an https:// URL",
        default: Some("H5FS_BEARER_TOKEN, or EARTHDATA_TOKEN for hosts of NASA"),
        value: OptionValue::Path("FILE", |to, path| {
            to.remote.bearer_token_file = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "header-file",
        word: "header_file",
        help: "Send the lines `Name: value` of this file to the server of an https:// URL",
        default: None,
        value: OptionValue::Path("FILE", |to, path| {
            to.remote.header_file = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "netrc",
        word: "netrc",
        help: "Log in to each host with its name and password in this file",
        default: Some("NETRC, or ~/.netrc"),
        value: OptionValue::MaybePath("FILE", |to, path| {
            let file = path.map(|path| NetrcChoice::File(path.to_owned()));
            to.remote.netrc = Some(file.unwrap_or(NetrcChoice::DefaultFile));
        }),
    },
    MountOption {
        flag: "cookies",
        word: "cookies",
        help: "Send the cookies in this file, in the format of curl and browsers (Netscape)",
        default: None,
        value: OptionValue::Path("FILE", |to, path| {
            to.remote.cookies = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "redirect-ports",
        word: "redirect_ports",
        help: "Further ports that redirects may lead to; separate them with `:` in -o",
        default: None,
        value: OptionValue::Text("PORT[,PORT...]", |to, text| {
            parse_ports(text).map(|ports| to.remote.redirect_ports = ports)
        }),
    },
    MountOption {
        flag: "ca-file",
        word: "ca_file",
        help: "Trust only the certificates in this file; a server's own certificate may be one",
        default: Some("AWS_CA_BUNDLE, or the system's"),
        value: OptionValue::Path("FILE", |to, path| {
            to.remote.ca_file = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "etag",
        word: "etag",
        help: "How entity tags are compared: strong, weak (ignored if the server sends a date)",
        default: Some("strong"),
        value: OptionValue::Choice("KIND", &["strong", "weak"], |to, text| {
            parse_tag_comparison(text).map(|is_weak| to.remote.has_weak_tags = is_weak)
        }),
    },
    MountOption {
        flag: "connections",
        word: "connections",
        help: "Concurrent HTTP connections",
        default: Some("64"),
        value: OptionValue::Text("N", |to, text| {
            parse_count(text, limits::MOST_CONNECTIONS)
                .map(|most| to.remote.connections = Some(most))
        }),
    },
    MountOption {
        flag: "max-requests",
        word: "max_requests",
        help: "Requests per second to one server; fewer after the server refuses some",
        default: Some("as many as the server accepts"),
        value: OptionValue::Text("N", |to, text| {
            parse_count(text, limits::MOST_REQUESTS).map(|most| to.remote.max_requests = Some(most))
        }),
    },
    MountOption {
        flag: "timeout",
        word: "timeout",
        help: "Seconds for a request and its retries, after which it is an I/O error",
        default: Some("60"),
        value: OptionValue::Text("SECONDS", |to, text| {
            parse_seconds(text).map(|time| to.remote.timeout = Some(time))
        }),
    },
    MountOption {
        flag: "disk-cache",
        word: "disk_cache",
        help: "Cache the fetched bytes in this directory",
        default: None,
        value: OptionValue::Path("DIRECTORY", |to, path| {
            to.remote.disk_cache = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "disk-cache-size",
        word: "disk_cache_size",
        help: "Largest size of that directory: bytes, or a number and K, M, G",
        default: Some("10G"),
        value: OptionValue::Text("SIZE", |to, text| {
            parse_size(text).map(|bytes| to.remote.disk_cache_size = Some(bytes))
        }),
    },
];

/// Parses the URL of a server. Rejects a URL that contains a secret.
fn parse_endpoint(text: &str) -> Result<Url, String> {
    // The error must not repeat the text, because it may contain a password.
    let no_server =
        || "not an http:// or https:// URL of a server, without a user and a query".to_owned();
    match Location::parse(text.into()) {
        Ok(Location::Url(url)) if url.is_server() => Ok(url),
        _ => Err(no_server()),
    }
}

/// Parses ports separated by `,` or `:`. A colon is needed in `-o`, whose words contain no comma.
fn parse_ports(text: &str) -> Result<Vec<u16>, String> {
    let port = |text: &str| text.trim().parse().ok().filter(|&port| port > 0);
    let all: Option<Vec<u16>> = text.split([',', ':']).map(port).collect();
    let is_bounded = |ports: &Vec<u16>| ports.len() <= MAX_REDIRECT_PORTS;
    all.filter(is_bounded).ok_or_else(|| {
        format!("`{text}` is not a list of at most {MAX_REDIRECT_PORTS} ports from 1 to 65535")
    })
}

/// Parses the value of the option `etag`. Returns whether entity tags are not compared if the
/// object has a modification date.
fn parse_tag_comparison(text: &str) -> Result<bool, String> {
    match text {
        "strong" => Ok(false),
        "weak" => Ok(true),
        _ => Err(format!("`{text}` is neither `strong` nor `weak`")),
    }
}

/// Parses a number of whole seconds, up to an hour.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    const HOUR: usize = 3600;
    let seconds = parse_count(text, HOUR)?;
    Ok(Duration::from_secs(to_u64(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_fetcher::RemoteSettings;

    use crate::cli::options::settings::Settings;

    /// Returns the settings that these words of `-o` result in.
    fn settings(words: &str) -> RemoteSettings {
        let mut settings = Settings::default();
        for word in words.split(',').filter(|word| *word != "_netdev") {
            let (name, value) = word
                .split_once('=')
                .map_or((word, None), |(n, v)| (n, Some(v)));
            let option = OPTIONS.iter().find(|option| option.word == name).unwrap();
            option.apply(&mut settings, value).unwrap();
        }
        settings.remote
    }

    #[test]
    fn a_line_of_fstab() {
        let line = "endpoint=http://127.0.0.1:9000,region=eu-west-1,profile=lab,\
                    anonymous,credentials=/etc/h5fs/key,requester_pays,connections=8,timeout=5,\
                    disk_cache=/var/cache/h5fs,disk_cache_size=1G,redirect_ports=8443:8444,\
                    ca_file=/etc/ca.pem,cookies=/etc/jar,bearer_token_file=/etc/token,\
                    header_file=/etc/headers,netrc,etag=weak,max_requests=64";
        let remote = settings(line);
        let endpoint = remote.endpoint.as_ref().map(ToString::to_string);
        assert_eq!(endpoint.as_deref(), Some("http://127.0.0.1:9000/"));
        assert_eq!(remote.region.as_deref(), Some("eu-west-1"));
        assert_eq!(remote.profile.as_deref(), Some("lab"));
        assert!(remote.anonymous && remote.requester_pays);
        assert!(remote.has_weak_tags && !settings("etag=strong").has_weak_tags);
        assert!(parse_tag_comparison("Weak").is_err() && parse_tag_comparison("").is_err());
        assert_eq!(remote.credentials, Some("/etc/h5fs/key".into()));
        assert_eq!(remote.connections(), 8);
        assert_eq!(remote.max_requests, Some(64));
        // The timeout is 5 seconds, and 128 requests at 64 a second take 2 seconds more.
        assert_eq!(remote.deadline(), Duration::from_secs(5 + 2));
        assert_eq!(remote.disk_cache, Some("/var/cache/h5fs".into()));
        assert_eq!(remote.disk_cache_size(), 1 << 30);
        assert_eq!(remote.redirect_ports, [8443, 8444]);
        assert_eq!(remote.ca_file, Some("/etc/ca.pem".into()));
        assert_eq!(remote.cookies, Some("/etc/jar".into()));
        assert_eq!(remote.bearer_token_file, Some("/etc/token".into()));
        assert_eq!(remote.header_file, Some("/etc/headers".into()));
        assert_eq!(remote.netrc, Some(NetrcChoice::DefaultFile));
        let named = settings("netrc=/etc/netrc").netrc;
        assert_eq!(named, Some(NetrcChoice::File("/etc/netrc".into())));
    }

    #[test]
    fn ports_are_numbers_between_commas_or_colons() {
        assert_eq!(parse_ports("8443, 8444").as_deref(), Ok(&[8443, 8444][..]));
        let many = vec!["1"; MAX_REDIRECT_PORTS + 1].join(",");
        for wrong in ["", "0", "65536", "a", "1,", "1-2", &many] {
            assert!(parse_ports(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_documented_defaults_equal_the_settings() {
        let none = RemoteSettings::default();
        let told = |word: &str, value: String| {
            let option = OPTIONS.iter().find(|option| option.word == word);
            assert_eq!(option.and_then(|option| option.default), Some(&value[..]));
        };
        told("connections", none.connections().to_string());
        told("timeout", none.deadline().as_secs().to_string());
        told(
            "disk_cache_size",
            format!("{}G", none.disk_cache_size() >> 30),
        );
    }

    #[test]
    fn an_endpoint_is_a_server() {
        for wrong in [
            "",
            "host",
            "s3://bucket",
            "http://",
            "http://a:b@host",
            "http://host/?q",
        ] {
            assert!(parse_endpoint(wrong).is_err(), "{wrong}");
        }
        assert!(
            parse_endpoint("https://host:9000").is_ok()
                && parse_endpoint("https://host/minio/").is_ok()
        );
    }
}
