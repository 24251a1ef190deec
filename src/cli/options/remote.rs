//! The options of a source by URL.
//!
//! None of them is a secret: a key or a token comes from the environment or from a file.

use std::time::Duration;

use crate::cli::options::option::{MountOption, Takes};
use crate::cli::options::values::{count, size};
use crate::limits;
use crate::source::location::{Location, Url};
use crate::wire::to_u64;

pub(super) const OPTIONS: &[MountOption] = &[
    MountOption {
        flag: "endpoint",
        word: "endpoint",
        help: "The server for s3://: its URL",
        default: Some("AWS_ENDPOINT_URL, the profile's, or that of the region"),
        takes: Takes::Text("URL", |to, text| {
            endpoint(text).map(|url| to.remote.endpoint = Some(url))
        }),
    },
    MountOption {
        flag: "region",
        word: "region",
        help: "The region of the bucket",
        default: Some("AWS_REGION, the profile's, or us-east-1"),
        takes: Takes::Text("NAME", |to, text| {
            to.remote.region = Some(text.to_owned());
            Ok(())
        }),
    },
    MountOption {
        flag: "profile",
        word: "profile",
        help: "The profile in ~/.aws",
        default: Some("AWS_PROFILE, or default"),
        takes: Takes::Text("NAME", |to, text| {
            to.remote.profile = Some(text.to_owned());
            Ok(())
        }),
    },
    MountOption {
        flag: "anonymous",
        word: "anonymous",
        help: "Sign no request: the bucket is public",
        default: None,
        takes: Takes::Nothing(|to| to.remote.anonymous = true),
    },
    MountOption {
        flag: "credentials",
        word: "credentials",
        help: "Take the credentials from this file, in the form of ~/.aws/credentials",
        default: None,
        takes: Takes::Path("FILE", |to, path| {
            to.remote.credentials = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "requester-pays",
        word: "requester_pays",
        help: "Pay for the requests to a bucket that asks for it",
        default: None,
        takes: Takes::Nothing(|to| to.remote.requester_pays = true),
    },
    MountOption {
        flag: "connections",
        word: "connections",
        help: "HTTP connections at a time",
        default: Some("64"),
        takes: Takes::Text("N", |to, text| {
            count(text, limits::MOST_CONNECTIONS).map(|most| to.remote.connections = Some(most))
        }),
    },
    MountOption {
        flag: "timeout",
        word: "timeout",
        help: "Seconds for which a request is tried before it is an I/O error",
        default: Some("60"),
        takes: Takes::Text("SECONDS", |to, text| {
            seconds(text).map(|time| to.remote.timeout = Some(time))
        }),
    },
    MountOption {
        flag: "disk-cache",
        word: "disk_cache",
        help: "Keep what came over the network in this directory",
        default: None,
        takes: Takes::Path("DIRECTORY", |to, path| {
            to.remote.disk_cache = Some(path.to_owned());
        }),
    },
    MountOption {
        flag: "disk-cache-size",
        word: "disk_cache_size",
        help: "Bytes of that directory, or a number and K, M, G",
        default: Some("10G"),
        takes: Takes::Text("SIZE", |to, text| {
            size(text).map(|bytes| to.remote.disk_cache_size = Some(bytes))
        }),
    },
];

/// The URL of a server, without a secret in it.
fn endpoint(text: &str) -> Result<Url, String> {
    // What it is instead may hold a password.
    let no_server =
        || "no http:// or https:// URL of a server without a user and a query".to_owned();
    match Location::parse(text.into()) {
        Ok(Location::Url(url)) if url.is_server() => Ok(url),
        _ => Err(no_server()),
    }
}

/// A time in whole seconds, up to an hour.
fn seconds(text: &str) -> Result<Duration, String> {
    const HOUR: usize = 3600;
    let seconds = count(text, HOUR)?;
    Ok(Duration::from_secs(to_u64(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::options::settings::{RemoteSettings, Settings};

    /// The settings that words of `-o` make.
    fn settings(words: &str) -> RemoteSettings {
        let mut settings = Settings::default();
        for word in words.split(',').filter(|word| *word != "_netdev") {
            let (name, value) = word
                .split_once('=')
                .map_or((word, None), |(n, v)| (n, Some(v)));
            let option = OPTIONS.iter().find(|option| option.word == name).unwrap();
            option.set(&mut settings, value).unwrap();
        }
        settings.remote
    }

    #[test]
    fn a_line_of_fstab() {
        let line = "endpoint=http://127.0.0.1:9000,region=eu-west-1,profile=lab,\
                    anonymous,credentials=/etc/h5fs/key,requester_pays,connections=8,timeout=5,\
                    disk_cache=/var/cache/h5fs,disk_cache_size=1G";
        let remote = settings(line);
        let endpoint = remote.endpoint.as_ref().map(ToString::to_string);
        assert_eq!(endpoint.as_deref(), Some("http://127.0.0.1:9000/"));
        assert_eq!(remote.region.as_deref(), Some("eu-west-1"));
        assert_eq!(remote.profile.as_deref(), Some("lab"));
        assert!(remote.anonymous && remote.requester_pays);
        assert_eq!(remote.credentials, Some("/etc/h5fs/key".into()));
        assert_eq!(remote.connections(), 8);
        assert_eq!(remote.deadline(), Duration::from_secs(5));
        assert_eq!(remote.disk_cache, Some("/var/cache/h5fs".into()));
        assert_eq!(remote.disk_cache_size(), 1 << 30);
    }

    #[test]
    fn the_defaults_of_the_help_are_those_of_the_settings() {
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
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
        assert!(endpoint("https://host:9000").is_ok() && endpoint("https://host/minio/").is_ok());
    }
}
