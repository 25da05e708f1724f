//! A range of IP addresses, as `10.0.0.0/8` or a single address.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A range of IP addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    /// Leading bits that an address shares with the range.
    prefix_bits: u8,
}

impl Network {
    /// Whether an address lies in the range. An IPv4 address written as IPv6 is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |width: u32| width - u32::from(self.prefix_bits);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differs = ours.to_bits() ^ theirs.to_bits();
                differs.checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differs = ours.to_bits() ^ theirs.to_bits();
                differs.checked_shr(shift(128)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither an address nor address/bits");
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = bits.map_or(Ok(width), |bits| bits.parse().map_err(|_| wrong()))?;
        if prefix_bits > width {
            return Err(wrong());
        }
        Ok(Self { address, prefix_bits })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix_bits)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_shares_its_leading_bits() {
        let holds = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(holds("10.0.0.0/8", "10.255.1.2") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.1.2.3", "10.1.2.3") && !holds("10.1.2.3", "10.1.2.4"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.2.3"), "IPv4 by way of IPv6");
        assert!(holds("0.0.0.0/0", "203.0.113.9") && !holds("0.0.0.0/0", "2001:db8::1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1") && !holds("::/0", "10.0.0.1"));
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["10.0.0.0/33", "::/129", "10.0.0/8", "proxy.example", "10.0.0.0/", "/8"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
