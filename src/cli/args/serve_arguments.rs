//! The arguments of `h5fs serve`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use h5fs_reader::error;
use h5fs_reader::source::location::Location;

use crate::cli::listen::{self, ListenAddress};
use crate::cli::options::{self, OptionWords, ServeFlags, Settings};
use crate::cli::text::printable::printable_bytes;
use crate::cli::text::schemes;
use crate::limits;

#[derive(Debug, Args)]
pub(in crate::cli) struct ServeArguments {
    #[command(flatten)]
    pub(in crate::cli) own: ServerArguments,

    /// Options of a mount, separated by commas
    #[arg(short = 'o', value_name = "OPTIONS", value_parser = options::parse_words)]
    pub(in crate::cli) words: Vec<OptionWords>,

    #[command(flatten)]
    pub(in crate::cli) flags: ServeFlags,
}

/// The arguments that only `h5fs serve` has.
#[derive(Debug, Args)]
pub(in crate::cli) struct ServerArguments {
    /// HDF5 or ASDF files, directories of such files, or one URL
    #[arg(
        value_name = "SOURCE",
        required = true,
        value_parser = OsStringValueParser::new().try_map(schemes::parse_location)
    )]
    sources: Vec<Location>,

    /// Where to listen: ADDRESS:PORT (port 0: any free port), or unix:PATH
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0",
        value_parser = OsStringValueParser::new().try_map(listen::parse_listen_address)
    )]
    listen: ListenAddress,

    /// Another name of this machine that URLs may contain, for example if a proxy forwards the
    /// requests
    #[arg(long, value_name = "NAME", value_parser = parse_host)]
    allow_host: Vec<String>,

    /// An origin whose scripts may read the served files: https://viewer.example
    #[arg(long, value_name = "ORIGIN", value_parser = parse_origin)]
    allow_origin: Vec<String>,

    /// Require no token; only with unix:PATH, because only this user can connect to it
    #[arg(long)]
    no_token: bool,
}

/// What `h5fs serve` serves: the sources, the address, and the access rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct ServeCommand {
    pub(in crate::cli) sources: Vec<Location>,
    pub(in crate::cli) listen: ListenAddress,
    pub(in crate::cli) hosts: Vec<String>,
    pub(in crate::cli) origins: Vec<String>,
    pub(in crate::cli) no_token: bool,
    pub(in crate::cli) settings: Settings,
}

impl ServeCommand {
    /// Combines the arguments and checks them.
    ///
    /// # Errors
    /// Returns one line of text if the arguments contradict each other.
    pub(in crate::cli) fn from_arguments(
        own: ServerArguments,
        settings: Settings,
    ) -> Result<Self, String> {
        let serve = ServeCommand {
            sources: own.sources,
            listen: own.listen,
            hosts: own.allow_host,
            origins: own.allow_origin,
            no_token: own.no_token,
            settings,
        };
        serve.check_consistent()?;
        Ok(serve)
    }

    /// Returns the arguments for serving a single source to a browser on another machine.
    ///
    /// # Errors
    /// `Usage` for options that apply only to a mount.
    pub(in crate::cli) fn for_source(source: Location, settings: Settings) -> error::Result<Self> {
        let serve = ServeCommand {
            sources: vec![source],
            listen: ListenAddress::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            no_token: false,
            settings,
        };
        serve.check_consistent().map_err(error::Error::Usage)?;
        Ok(serve)
    }

    fn check_consistent(&self) -> Result<(), String> {
        if self.no_token && matches!(self.listen, ListenAddress::Network(_)) {
            return Err(
                "serve: --no-token is only for unix:PATH, because every user of this machine, and \
                 every page in a browser on it, can connect to a port"
                    .to_owned(),
            );
        }
        let settings = &self.settings;
        let is_of_mount = settings.allow_other
            || settings.uid.is_some()
            || settings.gid.is_some()
            || settings.umask.is_some()
            || settings.direct_io
            || settings.no_forget
            || settings.log_file.is_some();
        if is_of_mount {
            return Err(
                "serve: allow_other, uid, gid, umask, direct_io, noforget and log_file are \
                        options of a mount"
                    .to_owned(),
            );
        }
        let is_url = |source: &Location| source.url().is_some();
        if self.sources.len() > 1 && self.sources.iter().any(is_url) {
            return Err("serve: a source by URL must be the only source".to_owned());
        }
        if self.sources.len() > limits::HTTP_SOURCES {
            let most = limits::HTTP_SOURCES;
            return Err(format!(
                "serve: at most {most} sources; a directory of files counts as one"
            ));
        }
        let mut names = BTreeSet::new();
        for source in &self.sources {
            let name = source_name(source);
            if self.sources.len() > 1 && !names.insert(name.clone()) {
                let name = printable_bytes(&name);
                return Err(format!("serve: two sources are named {name}"));
            }
        }
        Ok(())
    }
}

/// Returns the directory name of a source that is served with other sources.
pub(in crate::cli) fn source_name(source: &Location) -> Vec<u8> {
    let path = source.path().map_or_else(PathBuf::new, Path::to_path_buf);
    // `.` and `..` are resolved to the name of the directory.
    let path = match path.file_name() {
        Some(_) => path,
        None => path.canonicalize().unwrap_or(path),
    };
    let name = path.file_name().map(OsString::from).unwrap_or_default();
    name.as_bytes().to_vec()
}

/// Parses a host name without a port.
fn parse_host(text: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_part) {
        return Err("a host name without a port is required".to_owned());
    }
    Ok(text.trim_end_matches('.').to_owned())
}

/// Parses an origin (RFC 6454).
fn parse_origin(text: &str) -> Result<String, String> {
    let authority = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let is_part = |byte: u8| byte.is_ascii_graphic() && !b"/?#@*,".contains(&byte);
    match authority {
        Some(authority) if !authority.is_empty() && authority.bytes().all(is_part) => {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err(
            "an origin is a scheme, a host and an optional port: https://viewer.example".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serve(sources: &[&str], listen: ListenAddress, no_token: bool) -> Result<(), String> {
        let sources = sources
            .iter()
            .map(|text| Location::parse(text.into()).unwrap());
        ServeCommand {
            sources: sources.collect(),
            listen,
            hosts: Vec::new(),
            origins: Vec::new(),
            no_token,
            settings: Settings::default(),
        }
        .check_consistent()
    }

    #[test]
    fn contradictory_arguments_are_rejected() {
        let usual = ListenAddress::default;
        assert_eq!(serve(&["a.h5"], usual(), false), Ok(()));
        assert_eq!(serve(&["x/a.h5", "x/b.h5"], usual(), false), Ok(()));
        let twice = serve(&["x/a.h5", "y/a.h5"], usual(), false).unwrap_err();
        assert!(twice.contains("two sources are named a.h5"), "{twice}");
        let far = serve(&["a.h5", "https://host/b.h5"], usual(), false).unwrap_err();
        assert!(far.contains("the only source"), "{far}");
        assert!(
            serve(&["a.h5"], usual(), true)
                .unwrap_err()
                .contains("unix:PATH")
        );
        assert_eq!(
            serve(&["a.h5"], ListenAddress::Unix("s".into()), true),
            Ok(())
        );
        let names: Vec<_> = (0..=limits::HTTP_SOURCES)
            .map(|n| format!("{n}.h5"))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(serve(&names, usual(), false).is_err());
        assert_eq!(serve(&names[1..], usual(), false), Ok(()));
    }

    #[test]
    fn hosts_and_origins_are_checked() {
        assert_eq!(parse_host("node7.example.").as_deref(), Ok("node7.example"));
        assert!(
            parse_host("node7:80").is_err()
                && parse_host("").is_err()
                && parse_host("a/b").is_err()
        );
        assert_eq!(
            parse_origin("https://A.example:8443").as_deref(),
            Ok("https://a.example:8443")
        );
        for wrong in [
            "*",
            "null",
            "viewer.example",
            "https://",
            "https://a/",
            "https://u@a",
        ] {
            assert!(parse_origin(wrong).is_err(), "{wrong}");
        }
    }
}
