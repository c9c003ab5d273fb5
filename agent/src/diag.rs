// SPDX-License-Identifier: Apache-2.0
//! The state of TCP sockets, from the kernel's own tables (`sock_diag`, `inet_diag.h`).
//!
//! All sockets of a node are asked for by their addresses in one message, and the answers, one each, are fetched
//! together: two system calls per node and sample. (A dump would walk the whole hash table of established sockets and
//! take one call more.)

use std::io::{Error, Result};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};

use nix::sys::socket::{AddressFamily, SockProtocol};

use crate::column::Cell;
use crate::flow::Endpoint;
use crate::mailbox::Mailbox;
use crate::netlink::{self, u16_at, u32_at, Attributes, Messages};
use crate::tcp_info;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_VEGASINFO: u16 = 3;
const INET_DIAG_SKMEMINFO: u16 = 7;
const INET_DIAG_DCTCPINFO: u16 = 9;
const INET_DIAG_BBRINFO: u16 = 16;
/// Asking for Vegas' details asks for those of any congestion control.
const EXTENSIONS: [u16; 3] = [INET_DIAG_INFO, INET_DIAG_VEGASINFO, INET_DIAG_SKMEMINFO];
const ESTABLISHED: u8 = 1;
/// `sizeof(struct inet_diag_msg)`.
const MESSAGE: usize = 72;

/// Questions per message: what their answers take is well within a socket's default buffer.
const BATCH: usize = 64;
const ANSWER: usize = 1024;

/// The questions of one node.
pub struct Diag {
    fd: OwnedFd,
    mailbox: Mailbox,
    question: Vec<u8>,
}

impl Diag {
    /// In the namespace of the calling thread.
    pub fn open() -> Result<Self> {
        let fd = netlink::open(SockProtocol::NetlinkSockDiag)?;
        Ok(Self { fd, mailbox: Mailbox::new(BATCH, ANSWER), question: Vec::new() })
    }

    /// Hands the state of each endpoint that is established to `each`, in their order.
    pub fn ask(&mut self, endpoints: &[Endpoint], mut each: impl FnMut(&Endpoint, &Answer)) -> Result<()> {
        for endpoints in endpoints.chunks(BATCH) {
            self.question.clear();
            for (endpoint, sequence) in endpoints.iter().zip(0..) {
                let body = question(endpoint.local, endpoint.remote);
                netlink::request(&mut self.question, SOCK_DIAG_BY_FAMILY, 0, sequence, &body);
            }
            netlink::send_all(self.fd.as_fd(), &self.question)?;
            let mut answers = 0;
            while answers < endpoints.len() {
                self.mailbox.fetch(self.fd.as_fd())?;
                let before = answers;
                for message in self.mailbox.messages().flat_map(|(datagram, _)| Messages(datagram)) {
                    answers += 1;
                    let endpoint = usize::try_from(message.sequence).ok().and_then(|at| endpoints.get(at));
                    let answer = (message.kind == SOCK_DIAG_BY_FAMILY).then(|| Answer::parse(message.body));
                    if let (Some(endpoint), Some(Some(answer))) = (endpoint, answer) {
                        each(endpoint, &answer);
                    }
                }
                if answers == before {
                    return Err(Error::other("the kernel did not answer all questions"));
                }
            }
        }
        Ok(())
    }
}

/// `struct inet_diag_req_v2`, asking for one socket.
fn question(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
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

/// The state of one socket.
#[derive(Default)]
pub struct Answer<'a> {
    info: &'a [u8],
    memory: &'a [u8],
    bbr: &'a [u8],
    vegas: &'a [u8],
    dctcp: &'a [u8],
}

impl<'a> Answer<'a> {
    /// None if the socket is not established, as when its listener answers in its place.
    fn parse(body: &'a [u8]) -> Option<Self> {
        if *body.get(1)? != ESTABLISHED {
            return None;
        }
        let mut answer = Self::default();
        for (kind, content) in Attributes::after(body, MESSAGE) {
            match kind {
                INET_DIAG_INFO => answer.info = content,
                INET_DIAG_SKMEMINFO => answer.memory = content,
                INET_DIAG_BBRINFO => answer.bbr = content,
                INET_DIAG_VEGASINFO => answer.vegas = content,
                INET_DIAG_DCTCPINFO => answer.dctcp = content,
                _ => {}
            }
        }
        Some(answer)
    }

    /// The cells of the table `tcp` from `state` on.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'static>> + '_ {
        let bandwidth = u32_at(self.bbr, 0).zip(u32_at(self.bbr, 4));
        let bandwidth = bandwidth.map(|(low, high)| u64::from(high) << 32 | u64::from(low));
        let dctcp_flags = [0, 2].map(|at| Cell::from(u16_at(self.dctcp, at).map(u64::from)));
        tcp_info::cells(self.info)
            .chain(words(self.memory, 0, 9))
            .chain([Cell::from(bandwidth)])
            .chain(words(self.bbr, 8, 3))
            .chain(words(self.vegas, 0, 4))
            .chain(dctcp_flags)
            .chain(words(self.dctcp, 4, 3))
    }
}

fn words(bytes: &[u8], from: usize, count: usize) -> impl Iterator<Item = Cell<'static>> + '_ {
    (0..count).map(move |index| Cell::from(u32_at(bytes, from + 4 * index).map(u64::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend(u16::try_from(4 + content.len()).expect("small").to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn body(state: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = vec![0; MESSAGE];
        bytes[1] = state;
        bytes.extend(attributes.concat());
        bytes
    }

    #[test]
    fn a_question_is_the_kernels_structure() {
        let local = "10.0.0.1:40000".parse().expect("an address");
        let remote = "10.0.1.2:5000".parse().expect("an address");
        let body = question(local, remote);
        assert_eq!(body.len(), 56, "sizeof(struct inet_diag_req_v2)");
        assert_eq!(body[..4], [2, 6, 0b0100_0110, 0]);
        assert_eq!(body[8..12], [0x9c, 0x40, 0x13, 0x88]);
        assert_eq!(body[12..16], [10, 0, 0, 1]);
        assert_eq!(body[28..32], [10, 0, 1, 2]);
    }

    #[test]
    fn an_answer_fills_the_columns_of_its_congestion_control_and_no_others() {
        let mut info = [0; 232];
        info[80..84].copy_from_slice(&77u32.to_ne_bytes());
        let bbr: Vec<u8> = [5u32, 1, 20_000, 739, 512].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let body = body(ESTABLISHED, &[attribute(INET_DIAG_INFO, &info), attribute(INET_DIAG_BBRINFO, &bbr)]);
        let cells: Vec<Cell> = Answer::parse(&body).expect("established").cells().collect();
        let fields = tcp_info::COLUMNS.len();
        let cwnd = tcp_info::COLUMNS.iter().position(|column| column.name == "snd_cwnd").expect("a column");
        assert_eq!(cells.len(), fields + 9 + 4 + 4 + 5);
        assert_eq!(cells[cwnd], Cell::U64(77));
        assert_eq!(cells[fields - 1], Cell::Null, "total_rto_time is not in 232 bytes");
        assert_eq!(cells[fields], Cell::Null, "no memory was told");
        assert_eq!(cells[fields + 9..fields + 13], [1 << 32 | 5, 20_000, 739, 512].map(Cell::U64));
        assert!(cells[fields + 13..].iter().all(|cell| *cell == Cell::Null));
    }

    #[test]
    fn dctcp_begins_with_two_short_words() {
        let dctcp = [1u8, 0, 1, 0, 9, 0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0];
        let body = body(ESTABLISHED, &[attribute(INET_DIAG_DCTCPINFO, &dctcp)]);
        let cells: Vec<Cell> = Answer::parse(&body).expect("established").cells().collect();
        assert_eq!(cells[cells.len() - 5..], [1, 1, 9, 8, 7].map(Cell::U64));
    }

    #[test]
    fn a_listener_that_answers_is_no_connection() {
        assert!(Answer::parse(&body(10, &[])).is_none());
        assert!(Answer::parse(&[]).is_none());
    }
}
