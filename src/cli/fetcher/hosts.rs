//! Which hosts a redirect may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs};

use http::Uri;

/// The addresses that may be spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// All of them: the user named the host.
    Anywhere,
    /// Those of the public network, and private ones.
    Private,
    /// Those of the public network.
    Public,
}

impl Reach {
    /// The addresses that redirects of the server at `uri` may lead to: a server of a private
    /// network may lead into it, a public one may not.
    pub(super) fn from(uri: &Uri) -> Self {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let mut addresses = (host, port(uri)).to_socket_addrs().into_iter().flatten();
        if addresses.any(|address| is_private(address.ip())) {
            Reach::Private
        } else {
            Reach::Public
        }
    }

    pub(super) fn allows(self, address: IpAddr) -> bool {
        match self {
            Reach::Anywhere => true,
            Reach::Private => !is_link_local(address),
            Reach::Public => !is_link_local(address) && !is_private(address),
        }
    }
}

/// The port of a URI, or that of its scheme.
pub(super) fn port(uri: &Uri) -> u16 {
    let of_scheme = match uri.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    uri.port_u16().unwrap_or(of_scheme)
}

/// Whether a URI is of this machine: what goes there is seen by no network.
pub(super) fn is_this_machine(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether a machine speaks to itself or its host by this address: the metadata services of clouds
/// are there.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    /// The metadata services of Alibaba's and Amazon's clouds.
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

/// Whether an address is of this machine or of a private network.
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
            assert!(!Reach::Private.allows(address(service)), "{service}");
            assert!(!Reach::Public.allows(address(service)), "{service}");
            assert!(Reach::Anywhere.allows(address(service)), "{service}");
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
            assert!(!Reach::Public.allows(address(private)), "{private}");
            assert!(Reach::Private.allows(address(private)), "{private}");
        }
        for public in ["52.218.0.1", "2600:1fa0::1"] {
            assert!(Reach::Public.allows(address(public)), "{public}");
        }
        let local = "http://127.0.0.1:9000/".parse().unwrap();
        assert_eq!(Reach::from(&local), Reach::Private);
    }
}
