//! Decides to which hosts a redirect may lead, and which hosts may receive secrets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use http::Uri;

/// The addresses to which a connection may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressPolicy {
    /// All addresses. This applies to hosts that the user named.
    Anywhere,
    /// Public and private addresses, but no link-local addresses and no metadata services.
    PublicOrPrivate,
    /// Public addresses only. Metadata services are not public.
    Public,
}

impl AddressPolicy {
    /// Returns the addresses to which redirects from the server at `uri` may lead. A server in a
    /// private network may redirect into that network. A public server may not.
    pub(super) fn for_server(uri: &Uri) -> Self {
        if is_this_machine(uri) {
            return AddressPolicy::PublicOrPrivate;
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let mut addresses = (host, port(uri)).to_socket_addrs().into_iter().flatten();
        if addresses.any(|address| is_private(address.ip())) {
            AddressPolicy::PublicOrPrivate
        } else {
            AddressPolicy::Public
        }
    }

    /// Returns whether a host may be contacted through a proxy, which resolves its address.
    pub(super) fn allows_name(self, host: &str) -> bool {
        let is_refused = || is_metadata_name(host) || is_odd_address(host);
        match self {
            AddressPolicy::Anywhere => true,
            AddressPolicy::PublicOrPrivate => !is_refused(),
            AddressPolicy::Public => !is_refused() && !is_private_name(host),
        }
    }

    pub(super) fn allows_address(self, address: IpAddr) -> bool {
        match self {
            AddressPolicy::Anywhere => true,
            AddressPolicy::PublicOrPrivate => !is_link_local_or_metadata(address),
            AddressPolicy::Public => !is_link_local_or_metadata(address) && !is_private(address),
        }
    }
}

/// Returns the port of a URI, or the default port of its scheme.
pub(super) fn port(uri: &Uri) -> u16 {
    let of_scheme = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    uri.port_u16().unwrap_or(of_scheme)
}

/// Returns whether two URIs have the same scheme, host and port.
pub(super) fn has_same_origin(a: &Uri, b: &Uri) -> bool {
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    a.scheme() == b.scheme() && host(a) == host(b) && port(a) == port(b)
}

/// Parses the host of a URI as an IP address. Returns `None` if the host is a name.
fn literal_address(uri: &Uri) -> Option<IpAddr> {
    let host = uri.host().unwrap_or_default();
    host.trim_matches(['[', ']']).parse().ok()
}

/// Returns whether a URI is on this machine, so that its traffic does not cross a network.
pub(super) fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    is_localhost(host)
        || literal_address(uri).is_some_and(|address| address.to_canonical().is_loopback())
}

/// Returns whether secrets may be sent to a URI: over TLS, or to this machine.
pub(super) fn may_receive_secrets(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https") || is_this_machine(uri)
}

/// Returns whether the host of a URI is the IP address of a metadata service. Any link-local or
/// unspecified address counts as one.
pub(super) fn is_metadata_service(uri: &Uri) -> bool {
    literal_address(uri).is_some_and(is_link_local_or_metadata)
}

/// Returns whether a credentials service at this URI may be asked for credentials. It must use TLS,
/// or be on this machine, or have the address or name of a metadata service.
pub(super) fn may_give_credentials(uri: &Uri) -> bool {
    let is_named = is_metadata_name(uri.host().unwrap_or_default());
    may_receive_secrets(uri) || is_metadata_service(uri) || is_named
}

/// Returns whether a proxy would resolve the host of a URI to another machine than this process
/// does.
pub(super) fn is_proxy_exempt(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    is_this_machine(uri) || is_metadata_service(uri) || is_metadata_name(host)
}

/// Host names of the metadata services of clouds.
const METADATA_HOSTS: [&str; 10] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.oraclecloud.com",
    "metadata.packet.net",
    "metadata.tencentyun.com",
    "rancher-metadata",
];

/// Top-level labels that no public server has. Standards reserve them (RFC 2606, 6761, 6762, 8375,
/// 9476), ICANN reserves them for private networks, or private networks are known to use them.
const PRIVATE_TOP_LABELS: [&str; 22] = [
    "alt",
    "arpa",
    "cluster",
    "consul",
    "corp",
    "docker",
    "domain",
    "example",
    "home",
    "host",
    "internal",
    "intra",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "svc",
    "test",
];

/// Returns a host name in lower case and without dots at its end.
fn normalize_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn is_metadata_name(host: &str) -> bool {
    METADATA_HOSTS.contains(&normalize_host(host).as_str())
}

/// Returns whether a name is `localhost` or below it. Such names are not resolved by name servers;
/// RFC 6761, section 6.3.
pub(super) fn is_localhost(host: &str) -> bool {
    let host = normalize_host(host);
    host == "localhost" || host.ends_with(".localhost")
}

/// Returns whether a resolver may read a host as an address although it does not parse as one.
/// Examples are `127.1`, `2852039166`, `0xa9fea9fe`, an address with a trailing dot, or an IPv6
/// address with a zone. No public name has a last label that starts with a digit.
fn is_odd_address(host: &str) -> bool {
    if host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok() {
        return false;
    }
    let host = normalize_host(host);
    let last = host.rsplit('.').next().unwrap_or_default();
    host.starts_with('[') || last.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns whether a host name cannot be public: it lacks a dot, or its last label is private.
fn is_private_name(host: &str) -> bool {
    let host = normalize_host(host);
    if host.starts_with('[') || host.parse::<Ipv4Addr>().is_ok() {
        // Addresses are checked by other rules.
        return false;
    }
    let Some((_, last)) = host.rsplit_once('.') else {
        return true;
    };
    PRIVATE_TOP_LABELS.contains(&last)
}

/// Returns whether an address is link-local or unspecified (`0.0.0.0`, `::`), or belongs to a
/// metadata service.
pub(super) fn is_link_local_or_metadata(address: IpAddr) -> bool {
    /// The metadata services of Alibaba Cloud and Amazon.
    const SERVICES: [IpAddr; 2] = [
        IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
        IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    ];
    let address = address.to_canonical();
    let is_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_unspecified(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_unspecified(),
    };
    is_local || SERVICES.contains(&address)
}

/// Returns whether an address belongs to this machine or a private network.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let is_shared = address.octets()[0] == 100 && address.octets()[1] & 0xc0 == 64;
            address.is_loopback() || address.is_private() || is_shared
        }
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn no_server_leads_to_a_metadata_service() {
        for service in [
            "169.254.169.254",
            "169.254.170.2",
            "::ffff:169.254.169.254",
            "fe80::1",
            "fd00:ec2::254",
            "100.100.100.200",
            "0.0.0.0",
        ] {
            assert!(
                !AddressPolicy::PublicOrPrivate.allows_address(address(service)),
                "{service}"
            );
            assert!(
                !AddressPolicy::Public.allows_address(address(service)),
                "{service}"
            );
            assert!(
                AddressPolicy::Anywhere.allows_address(address(service)),
                "{service}"
            );
        }
    }

    #[test]
    fn the_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| has_same_origin(&a.parse().unwrap(), &b.parse().unwrap());
        assert!(same("https://Host/a", "https://host:443/b"));
        assert!(!same("https://host/a", "http://host/a"));
        assert!(!same("http://host/a", "http://host:81/a"));
        assert!(!same("http://host/a", "http://host.org/a"));
    }

    #[test]
    fn a_name_that_a_proxy_looks_up_is_public() {
        for private in [
            "localhost",
            "Localhost.",
            "run.localhost",
            "intranet",
            "nas.local",
            "vault.internal",
            "db.corp",
            "api.default.svc",
            "router.home.arpa",
            "a..",
            "nas.local..",
        ] {
            assert!(!AddressPolicy::Public.allows_name(private), "{private}");
            assert!(
                AddressPolicy::PublicOrPrivate.allows_name(private),
                "{private}"
            );
        }
        for service in METADATA_HOSTS
            .into_iter()
            .chain(["METADATA.google.internal.", "metadata.."])
        {
            assert!(!AddressPolicy::Public.allows_name(service), "{service}");
            assert!(
                !AddressPolicy::PublicOrPrivate.allows_name(service),
                "{service}"
            );
            assert!(AddressPolicy::Anywhere.allows_name(service), "{service}");
        }
        for public in ["example.org", "s3.eu-west-1.amazonaws.com.", "a1.b2.c3"] {
            assert!(AddressPolicy::Public.allows_name(public), "{public}");
        }
    }

    #[test]
    fn a_host_that_only_a_resolver_takes_for_an_address_is_refused() {
        for odd in [
            "127.1",
            "2130706433",
            "2852039166",
            "0x7f000001",
            "0XA9FEA9FE",
            "0x7f.1",
            "169.254.169.254.",
            "169.254.169.254..",
            "[::ffff:169.254.169.254%251]",
            "[fe80::1%25eth0]",
            "[::1].",
        ] {
            assert!(!AddressPolicy::Public.allows_name(odd), "{odd}");
            assert!(!AddressPolicy::PublicOrPrivate.allows_name(odd), "{odd}");
            assert!(AddressPolicy::Anywhere.allows_name(odd), "{odd}");
        }
        // Addresses are checked by other rules.
        for address in ["52.218.0.1", "[2600:1fa0::1]"] {
            assert!(AddressPolicy::Public.allows_name(address), "{address}");
        }
    }

    #[test]
    fn credentials_services_must_be_local_or_use_tls() {
        for (uri, may_give) in [
            ("http://127.0.0.1/a", true),
            ("http://localhost:1/a", true),
            ("http://169.254.170.2/a", true),
            ("http://[fd00:ec2::254]/a", true),
            ("http://metadata.google.internal/a", true),
            ("https://example.org/a", true),
            ("http://example.org/a", false),
            ("http://10.0.0.1/a", false),
            ("http://127.0.0.1.example.org/a", false),
        ] {
            assert_eq!(
                may_give_credentials(&uri.parse().unwrap()),
                may_give,
                "{uri}"
            );
        }
    }

    #[test]
    fn a_public_server_leads_into_no_private_network() {
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "100.64.0.1",
            "::1",
            "fd12::1",
        ] {
            assert!(
                !AddressPolicy::Public.allows_address(address(private)),
                "{private}"
            );
            assert!(
                AddressPolicy::PublicOrPrivate.allows_address(address(private)),
                "{private}"
            );
        }
        for public in ["52.218.0.1", "2600:1fa0::1"] {
            assert!(
                AddressPolicy::Public.allows_address(address(public)),
                "{public}"
            );
        }
        let local = "http://127.0.0.1:9000/".parse().unwrap();
        assert_eq!(
            AddressPolicy::for_server(&local),
            AddressPolicy::PublicOrPrivate
        );
    }
}
