//! Addresses that nobody outside may have requests sent to.
//!
//! Whoever may choose a webhook's URL could otherwise have it point into the network that the relay stands in. A name is looked at when it is connected to, and
//! the addresses that were looked at are the ones that are used: a name that changes its addresses in between gains nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// An address that is not public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Private {
    address: IpAddr,
}

impl fmt::Display for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "it is at {}, which is no public address; set `allow_private` if it is meant to be there",
            self.address
        )
    }
}

impl std::error::Error for Private {}

/// A URL that has an address for a host is not looked up, and so is looked at here.
pub(super) fn check_literal(url: &Url) -> Result<(), Private> {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.parse().map_or(Ok(()), check)
}

fn check(address: IpAddr) -> Result<(), Private> {
    let is_public = match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    };
    if is_public { Ok(()) } else { Err(Private { address }) }
}

/// What the IANA has given to no special purpose.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = match (first, second, third) {
        // This network, loopback, multicast, reserved and broadcast.
        (0 | 127 | 224.., _, _) => true,
        // Carriers' own.
        (100, 64..=127, _) => true,
        // Protocols' own, and relays between IPv4 and IPv6.
        (192, 0, 0) | (192, 88, 99) => true,
        // Measurements.
        (198, 18..=19, _) => true,
        _ => address.is_private() || address.is_link_local() || address.is_documentation(),
    };
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // IPv4 behind a translator: what counts is where it comes out.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Protocols' own, which has tunnels in it, and documentation.
        [0x2001, ..0x200, ..] | [0x2001, 0xdb8, ..] | [0x3fff, ..0x1000, ..] => false,
        // Nothing else is handed out: this leaves out loopback, IPv4 as IPv6, local and multicast.
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

fn v4(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))
}

/// Looks names up as the system does, and refuses those that lead to an address that is not public.
#[derive(Debug)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let look_up = move || (name.as_str(), 0).to_socket_addrs();
            let found: Vec<SocketAddr> = tokio::task::spawn_blocking(look_up).await??.collect();
            for address in &found {
                check(address.ip())?;
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_let_through() {
        for (address, is_public) in [
            ("127.0.0.1", false),
            ("127.8.8.8", false),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("100.128.0.1", true),
            ("192.0.0.8", false),
            ("192.0.2.1", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("198.18.0.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("8.8.8.8", true),
            ("1.1.1.1", true),
            ("::", false),
            ("::1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:8.8.8.8", false),
            ("::127.0.0.1", false),
            ("fe80::1", false),
            ("fec0::1", false),
            ("fc00::1", false),
            ("fd12:3456::1", false),
            ("ff02::1", false),
            ("2001:db8::1", false),
            ("3fff::1", false),
            ("2001::1", false),
            ("100::1", false),
            ("64:ff9b::10.0.0.1", false),
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b:1::8.8.8.8", false),
            ("2002:7f00:1::", false),
            ("2606:4700:4700::1111", true),
            ("2a00:1450:4001::1", true),
        ] {
            assert_eq!(check(address.parse().unwrap()).is_ok(), is_public, "{address}");
        }
    }

    #[test]
    fn an_address_in_a_url_is_seen_however_it_is_written() {
        for (url, is_refused) in [
            ("http://127.0.0.1/", true),
            ("http://2130706433/", true),
            ("http://0x7f.1/", true),
            ("http://0177.0.0.1/", true),
            ("http://[::1]:8080/", true),
            ("http://[::ffff:10.0.0.1]/", true),
            ("http://user:pass@192.168.0.1/", true),
            ("https://8.8.8.8/", false),
            ("https://hooks.example/", false),
        ] {
            assert_eq!(check_literal(&Url::parse(url).unwrap()).is_err(), is_refused, "{url}");
        }
    }

    #[tokio::test]
    async fn a_name_is_refused_by_what_it_leads_to() {
        let error = PublicOnly.resolve("localhost".parse().unwrap()).await.err().unwrap();
        assert!(error.is::<Private>(), "{error}");
        assert!(error.to_string().contains("`allow_private`"), "{error}");
    }
}
