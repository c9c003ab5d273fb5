// SPDX-License-Identifier: Apache-2.0
//! ICMP and ICMPv6 echo (RFC 792, RFC 4443): packets, and the socket that sends them.
//!
//! The socket is raw, connected to the peer and filtered to echo replies. A "ping socket" would need another value of a
//! sysctl in the node under test.

use std::io::Result;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{connect, socket, SockFlag, SockProtocol, SockType, SockaddrStorage};

use crate::netns::family;
use crate::sys;

const REPLY_V4: u8 = 0;
const REQUEST_V4: u8 = 8;
const REQUEST_V6: u8 = 128;
const REPLY_V6: u8 = 129;

/// The length of the header.
pub const HEADER: usize = 8;

/// Opens a socket in the namespace of the calling thread, for echoes with `address`.
pub fn open(address: IpAddr) -> Result<OwnedFd> {
    let protocol = match address {
        IpAddr::V4(_) => SockProtocol::Icmp,
        IpAddr::V6(_) => SockProtocol::IcmpV6,
    };
    let fd = socket(family(address), SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    match address {
        // A set bit blocks its type: linux/icmp.h, RFC 3542 section 3.2.
        IpAddr::V4(_) => sys::set_option(fd.as_fd(), libc::SOL_RAW, 1, !(1u32 << REPLY_V4))?,
        IpAddr::V6(_) => {
            let mut blocked = [u32::MAX; 8];
            blocked[usize::from(REPLY_V6 / 32)] &= !(1 << (REPLY_V6 % 32));
            sys::set_option(fd.as_fd(), libc::IPPROTO_ICMPV6, 1, blocked)?;
        }
    }
    connect(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(address, 0)))?;
    Ok(fd)
}

/// Writes the header of an echo request to `packet`, whose payload may be anything.
pub fn fill_request(packet: &mut [u8], address: IpAddr, id: u16, seq: u16) {
    packet[0] = if address.is_ipv4() { REQUEST_V4 } else { REQUEST_V6 };
    packet[1..4].fill(0);
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[6..8].copy_from_slice(&seq.to_be_bytes());
    if address.is_ipv4() {
        let sum = checksum(packet); // the kernel computes that of ICMPv6
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Returns identifier and sequence number of an echo reply from a raw socket: ICMP with its IP header, ICMPv6 without.
pub fn parse_reply(packet: &[u8], address: IpAddr) -> Option<(u16, u16)> {
    let (message, reply) = match address {
        IpAddr::V4(_) => (packet.get(usize::from(packet.first()? & 0x0f) * 4..)?, REPLY_V4),
        IpAddr::V6(_) => (packet, REPLY_V6),
    };
    let header: &[u8; HEADER] = message.first_chunk()?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    (header[0] == reply).then(|| (word(4), word(6)))
}

/// Returns the Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u64 = 0;
    for pair in bytes.chunks(2) {
        sum += u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).expect("was folded")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn a_request_sums_to_zero() {
        let mut packet = [0xab; 61];
        fill_request(&mut packet, Ipv4Addr::LOCALHOST.into(), 0x1234, 7);
        assert_eq!(checksum(&packet), 0);
        assert_eq!(packet[..2], [8, 0]);
    }

    #[test]
    fn replies_are_distinguished_from_other_packets() {
        let four = IpAddr::from(Ipv4Addr::LOCALHOST);
        let six = IpAddr::from(Ipv6Addr::LOCALHOST);
        let mut packet = [0u8; 84];
        packet[0] = 0x45;
        packet[24..28].copy_from_slice(&[0x12, 0x34, 0, 9]);
        assert_eq!(parse_reply(&packet, four), Some((0x1234, 9)));
        packet[20] = REQUEST_V4;
        assert_eq!(parse_reply(&packet, four), None);
        assert_eq!(parse_reply(&packet[..22], four), None);
        assert_eq!(parse_reply(&[129, 0, 0, 0, 0, 5, 1, 0], six), Some((5, 256)));
        assert_eq!(parse_reply(&[], four), None);
    }
}
