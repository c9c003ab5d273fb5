// SPDX-License-Identifier: Apache-2.0
//! The state of TCP sockets, from the kernel's tables (`sock_diag`, `inet_diag.h`).
//!
//! One message requests all sockets of a node by their addresses, and the answers are received together. This takes two
//! system calls per node and sample. (A dump would walk the whole hash table of established sockets and take another
//! call.)

use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockProtocol};

use crate::mailbox::Mailbox;
use crate::netlink::{self, Attributes, Messages};
use crate::streams::Endpoint;
use crate::tcp_row::{Socket, ESTABLISHED, INET_DIAG_VEGASINFO};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// A request for Vegas' details returns those of any congestion control.
const EXTENSIONS: [u16; 3] = [INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_SKMEMINFO];
/// `sizeof(struct inet_diag_msg)`.
const MESSAGE: usize = 72;

/// Requests per message: the answers fit well within a socket's default buffer.
const BATCH: usize = 64;
const ANSWER: usize = 1024;

/// The requests of one node.
pub struct Diag {
    fd: OwnedFd,
    mailbox: Mailbox,
    requests: Vec<u8>,
}

impl Diag {
    /// Opens a socket in the namespace of the calling thread.
    pub fn open() -> Result<Self> {
        let fd = netlink::open(SockProtocol::NetlinkSockDiag)?;
        Ok(Self { fd, mailbox: Mailbox::new(BATCH, ANSWER), requests: Vec::new() })
    }

    /// Passes the state of each established endpoint to `each`, in their order.
    pub fn query(
        &mut self,
        endpoints: &[&Endpoint],
        mut on_state: impl FnMut(&Endpoint, &Socket),
    ) -> Result<()> {
        for endpoints in endpoints.chunks(BATCH) {
            self.requests.clear();
            for (endpoint, sequence) in endpoints.iter().zip(0..) {
                let body = request_body(endpoint.local, endpoint.remote);
                netlink::request(&mut self.requests, SOCK_DIAG_BY_FAMILY, 0, sequence, &body);
            }
            netlink::send_all(self.fd.as_fd(), &self.requests)?;
            let mut answers = 0;
            while answers < endpoints.len() {
                self.mailbox.fetch(self.fd.as_fd())?;
                let before = answers;
                for message in self.mailbox.messages().flat_map(|(datagram, _)| Messages(datagram)) {
                    answers += 1;
                    let endpoint = usize::try_from(message.sequence).ok().and_then(|at| endpoints.get(at));
                    let answer = (message.kind == SOCK_DIAG_BY_FAMILY).then(|| parse(message.body));
                    if let (Some(endpoint), Some(Some(answer))) = (endpoint, answer) {
                        on_state(endpoint, &answer);
                    }
                }
                if answers == before {
                    return Err(Error::other("the kernel did not answer all requests"));
                }
            }
        }
        Ok(())
    }
}

/// Returns `struct inet_diag_req_v2`, a request for one socket.
fn request_body(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = match local {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let family = u8::try_from(family as libc::c_int).expect("is 2 or 10");
    let tcp = u8::try_from(libc::IPPROTO_TCP).expect("is 6");
    let extensions = EXTENSIONS.iter().fold(0u8, |bits, extension| bits | 1 << (extension - 1));
    let mut body = vec![family, tcp, extensions, 0];
    body.extend(u32::MAX.to_ne_bytes()); // any state
    body.extend(local.port().to_be_bytes());
    body.extend(remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        match address {
            IpAddr::V4(address) => body.extend(address.octets().into_iter().chain([0; 12])),
            IpAddr::V6(address) => body.extend(address.octets()),
        }
    }
    body.extend([0; 4]); // any interface
    body.extend([0xff; 8]); // any cookie
    body
}

/// Parses an answer; None if the socket is not established, for example if its listener answers instead.
fn parse(body: &[u8]) -> Option<Socket<'_>> {
    if *body.get(1)? != ESTABLISHED {
        return None;
    }
    let mut socket = Socket::default();
    for (kind, content) in Attributes::after(body, MESSAGE) {
        match kind {
            INET_DIAG_INFO => socket.info = content,
            INET_DIAG_SKMEMINFO => socket.memory = content,
            _ => socket.set_congestion(kind, content),
        }
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute;

    fn body(state: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE];
        bytes[1] = state;
        bytes.extend(attributes.concat());
        bytes
    }

    #[test]
    fn a_request_is_the_kernels_structure() {
        let local = "10.0.0.1:40000".parse().expect("an address");
        let remote = "10.0.1.2:5000".parse().expect("an address");
        let body = request_body(local, remote);
        assert_eq!(body.len(), 56, "sizeof(struct inet_diag_req_v2)");
        assert_eq!(body[..4], [2, 6, 0b0100_0110, 0]);
        assert_eq!(body[8..12], [0x9c, 0x40, 0x13, 0x88]);
        assert_eq!(body[12..16], [10, 0, 0, 1]);
        assert_eq!(body[28..32], [10, 0, 1, 2]);
    }

    #[test]
    fn an_answers_attributes_are_the_sockets_structures() {
        let body = body(
            ESTABLISHED,
            &[attribute(INET_DIAG_INFO, &[7; 232]), attribute(INET_DIAG_SKMEMINFO, &[9; 36])],
        );
        let socket = parse(&body).expect("established");
        assert_eq!((socket.info, socket.memory), (&[7; 232][..], &[9; 36][..]));
        assert!(socket.sending.is_none(), "only the probe knows");
    }

    #[test]
    fn a_listener_that_answers_is_no_connection() {
        assert!(parse(&body(10, &[])).is_none());
        assert!(parse(&[]).is_none());
    }
}
