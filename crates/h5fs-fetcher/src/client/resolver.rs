//! Resolves host names, and caches their addresses for a minute.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use h5fs_reader::memory::lock::lock;
use http::Uri;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::hosts::{self, AddressPolicy};
use crate::limits;

/// A resolver that returns only permitted addresses.
#[derive(Debug)]
pub(super) struct PermittedResolver {
    inner: DefaultResolver,
    reach: AddressPolicy,
    /// Host names of the proxies. All their addresses are permitted, because the user named the
    /// proxies.
    proxies: Vec<String>,
    known: Mutex<HashMap<(String, u16), ResolvedAddresses>>,
}

#[derive(Debug)]
struct ResolvedAddresses {
    addresses: Vec<SocketAddr>,
    until: Instant,
}

impl PermittedResolver {
    pub(super) fn new(reach: AddressPolicy, proxies: Vec<String>) -> Self {
        PermittedResolver {
            inner: DefaultResolver::default(),
            reach,
            proxies,
            known: Mutex::default(),
        }
    }

    fn look_up(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<Vec<SocketAddr>, ureq::Error> {
        const FRESH: Duration = Duration::from_secs(60);
        let key = (uri.host().unwrap_or_default().to_owned(), hosts::port(uri));
        if hosts::is_localhost(&key.0) {
            let addresses: [IpAddr; 2] = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(addresses.map(|address| (address, key.1).into()).to_vec());
        }
        let now = Instant::now();
        let old = lock(&self.known)
            .get(&key)
            .map(|known| (known.addresses.clone(), known.until));
        if let Some((addresses, until)) = &old
            && *until > now
        {
            return Ok(addresses.clone());
        }
        // The resolver may fail because the sandbox hides a replaced configuration file.
        let addresses = match (self.inner.resolve(uri, config, timeout), old) {
            (Ok(found), _) => found.to_vec(),
            (Err(error), Some((addresses, _))) => {
                log::warn!("{}: {error}; the last known addresses are used", key.0);
                addresses
            }
            (Err(error), None) => return Err(error),
        };
        let mut known = lock(&self.known);
        // Servers can name any number of hosts, so the number of entries is bounded.
        if known.len() >= limits::HOSTS {
            known.clear();
        }
        let until = now + FRESH;
        let addresses_known = addresses.clone();
        known.insert(
            key,
            ResolvedAddresses {
                addresses: addresses_known,
                until,
            },
        );
        Ok(addresses)
    }
}

impl Resolver for PermittedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut allowed = self.empty();
        let found = self.look_up(uri, config, timeout)?;
        let is_proxy = self
            .proxies
            .iter()
            .any(|host| Some(host.as_str()) == uri.host());
        let may_be_had =
            |address: &&SocketAddr| is_proxy || self.reach.allows_address(address.ip());
        for address in found.iter().filter(may_be_had).take(16) {
            allowed.push(*address);
        }
        if allowed.is_empty() {
            Err(ureq::Error::Io(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "a server redirected to an address that is not allowed",
            )))
        } else {
            Ok(allowed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If a host is not found, the resolver returns its last known addresses: after the resolver's
    /// file was replaced, the sandbox hides the new file.
    #[test]
    fn an_unresolvable_host_keeps_its_last_addresses() {
        let names = PermittedResolver::new(AddressPolicy::Anywhere, Vec::new());
        let address = SocketAddr::from(([192, 0, 2, 1], 80));
        let known = ResolvedAddresses {
            addresses: vec![address],
            until: Instant::now(),
        };
        lock(&names.known).insert(("gone.invalid".to_owned(), 80), known);
        let config = Config::default();
        let timeout = || NextTimeout {
            after: Duration::from_secs(5).into(),
            reason: ureq::Timeout::Resolve,
            ..NextTimeout::default()
        };
        let look_up = |host: &str| {
            let uri = format!("http://{host}/").parse().unwrap();
            names.look_up(&uri, &config, timeout()).ok()
        };
        assert_eq!(look_up("gone.invalid"), Some(vec![address]));
        let own = ["127.0.0.1:80", "[::1]:80"].map(|text| text.parse().unwrap());
        assert_eq!(look_up("run.LOCALHOST"), Some(own.to_vec()));
        assert_eq!(look_up("never.invalid"), None);
    }
}
