// SPDX-License-Identifier: Apache-2.0
//! Netlink framing: messages and attributes, and dumps.
//!
//! A message is `struct nlmsghdr` (length, type, flags, sequence, port), a family's header and attributes, all aligned
//! to four bytes, all in the byte order of the machine.

use std::cell::RefCell;
use std::io::{Error, Result};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{send, socket, AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType};

use crate::sys;

pub const HEADER: usize = 16;
/// `sizeof` of `struct ifinfomsg` and of `struct tcmsg`.
pub const IFINFOMSG: usize = 16;
pub const TCMSG: usize = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
pub const NLM_F_DUMP: u16 = 0x300;
/// Flags for making an object: fail if it exists, replace it, or make it only if it is missing.
pub const CREATE: u16 = 0x400;
pub const REPLACE: u16 = 0x100;
pub const EXCL: u16 = 0x200;

/// Large enough for the kernel's largest dump message, and for the kernel to choose that size.
const BUFFER: usize = 256 << 10;

pub struct Message<'a> {
    pub kind: u16,
    pub sequence: u32,
    pub body: &'a [u8],
}

/// Iterates over the messages of a datagram; stops at a truncated message.
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::try_from(u32_at(self.0, 0)?).ok()?;
        let message = Message {
            kind: u16_at(self.0, 4)?,
            sequence: u32_at(self.0, 8)?,
            body: self.0.get(HEADER..length)?,
        };
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    }
}

/// Iterates over the attributes after a family's header: type and content.
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Attributes<'a> {
    pub fn after(body: &'a [u8], header: usize) -> Self {
        Self(body.get(header..).unwrap_or_default())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        const FLAGS: u16 = 0xc000; // nested, network byte order
        let length = usize::from(u16_at(self.0, 0)?);
        let item = (u16_at(self.0, 2)? & !FLAGS, self.0.get(4..length)?);
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(item)
    }
}

/// Returns the content of the first attribute of a kind, after a family's header.
pub fn content_of(body: &[u8], header: usize, kind: u16) -> Option<&[u8]> {
    Attributes::after(body, header).find(|(candidate, _)| *candidate == kind).map(|(_, content)| content)
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes)
}

/// Appends an attribute.
pub fn push(to: &mut Vec<u8>, kind: u16, content: &[u8]) {
    let length = u16::try_from(4 + content.len()).expect("an attribute is small");
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(content);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Returns a single attribute.
#[cfg(test)]
pub fn attribute(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    push(&mut bytes, kind, content);
    bytes
}

/// Returns `struct ifinfomsg`, with the flags' values and the mask of those that change.
pub fn link(index: u32, flags: u32, mask: u32) -> [u8; IFINFOMSG] {
    let mut body = [0; IFINFOMSG];
    fill(&mut body, &[0, index, flags, mask]);
    body
}

/// Returns `struct tcmsg`.
pub fn traffic(index: u32, handle: u32, parent: u32) -> [u8; TCMSG] {
    let mut body = [0; TCMSG];
    fill(&mut body, &[0, index, handle, parent, 0]);
    body
}

fn fill(body: &mut [u8], values: &[u32]) {
    for (chunk, word) in body.chunks_exact_mut(4).zip(values) {
        chunk.copy_from_slice(&word.to_ne_bytes());
    }
}

/// Appends a request to `to`. `body` is the family's header and attributes, aligned.
pub fn request(to: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, body: &[u8]) {
    let length = u32::try_from(HEADER + body.len()).expect("a request is small");
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend((NLM_F_REQUEST | flags).to_ne_bytes());
    to.extend(sequence.to_ne_bytes());
    to.extend([0; 4]);
    to.extend(body);
}

/// A netlink socket of the namespace in which it was opened.
pub struct Socket {
    fd: OwnedFd,
    sequence: u32,
}

/// Two buffers, since the message that ends a dump comes separately.
type Buffers = [&'static mut [u8]; 2];

thread_local! {
    /// The buffers of all sockets of a thread, which use them in turn.
    static BUFFERS: RefCell<Option<Buffers>> = const { RefCell::new(None) };
}

/// Calls `each` with the messages that `fd` receives until it has a result.
fn receive<T>(fd: BorrowedFd, mut handle: impl FnMut(Message) -> Option<T>) -> Result<T> {
    BUFFERS.with_borrow_mut(|buffers| {
        let buffers = match buffers {
            Some(buffers) => buffers,
            None => buffers.insert([sys::pages(BUFFER)?, sys::pages(BUFFER)?]),
        };
        loop {
            let lengths = sys::receive_two(fd, buffers)?;
            for (buffer, length) in buffers.iter().zip(lengths) {
                if let Some(result) = Messages(&buffer[..length]).find_map(&mut handle) {
                    return Ok(result);
                }
            }
        }
    })
}

pub fn open(protocol: SockProtocol) -> Result<OwnedFd> {
    Ok(socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?)
}

pub fn send_all(fd: BorrowedFd, requests: &[u8]) -> Result<()> {
    send(fd.as_raw_fd(), requests, MsgFlags::empty())?;
    Ok(())
}

impl Socket {
    pub fn open(protocol: SockProtocol) -> Result<Self> {
        Ok(Self { fd: open(protocol)?, sequence: 0 })
    }

    /// Requests all objects of a kind and passes each message's body to `each`.
    pub fn dump(&mut self, kind: u16, body: &[u8], mut handle: impl FnMut(&[u8])) -> Result<()> {
        self.sequence += 1;
        let mut dump_request = Vec::new();
        request(&mut dump_request, kind, NLM_F_DUMP, self.sequence, body);
        send_all(self.fd.as_fd(), &dump_request)?;
        receive(self.fd.as_fd(), |message| match message.kind {
            NLMSG_DONE => Some(Ok(())),
            NLMSG_ERROR => Some(Err(error_of(message.body))),
            _ => {
                handle(message.body);
                None
            }
        })?
    }
}

/// A requested change: the message's type and flags, and its body.
pub type Change = (u16, u16, Vec<u8>);

impl Socket {
    /// Requests a change; returns when the kernel has executed it.
    pub fn change(&mut self, kind: u16, flags: u16, body: &[u8]) -> Result<()> {
        self.change_all(&[(kind, flags, body.to_vec())]).map_err(|(_, error)| error)
    }

    /// Requests several changes in their order; returns when the kernel has executed them. An error has the index of
    /// the first refused change. The kernel executes the later changes nevertheless.
    pub fn change_all(&mut self, changes: &[Change]) -> std::result::Result<(), (usize, Error)> {
        let mut message = Vec::new();
        let first = self.sequence + 1;
        for (index, (kind, flags, body)) in changes.iter().enumerate() {
            self.sequence += 1;
            let last = index + 1 == changes.len();
            request(&mut message, *kind, flags | if last { NLM_F_ACK } else { 0 }, self.sequence, body);
        }
        let refused = |sequence: u32, error| (usize::try_from(sequence - first).expect("is small"), error);
        send_all(self.fd.as_fd(), &message).map_err(|error| (0, error))?;
        let (mut first_error, last) = (None, self.sequence);
        let received = receive(self.fd.as_fd(), |message| {
            if message.kind != NLMSG_ERROR || message.sequence < first {
                return None;
            }
            let error = error_of(message.body);
            if error.raw_os_error() != Some(0) {
                first_error.get_or_insert(refused(message.sequence, error));
            }
            (message.sequence == last).then_some(())
        });
        received.map_err(|error| (0, error))?;
        first_error.map_or(Ok(()), Err)
    }
}

fn error_of(body: &[u8]) -> Error {
    let negative = body.first_chunk().copied().map_or(0, i32::from_ne_bytes);
    Error::from_raw_os_error(-negative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_back_as_a_message() {
        let mut bytes = Vec::new();
        request(&mut bytes, 18, NLM_F_DUMP, 7, &[1, 2, 3, 4]);
        request(&mut bytes, 38, 0, 8, &[]);
        let read: Vec<_> = Messages(&bytes).map(|m| (m.kind, m.sequence, m.body.len())).collect();
        assert_eq!(read, [(18, 7, 4), (38, 8, 0)]);
    }

    #[test]
    fn attributes_are_aligned_and_lose_their_flags() {
        let body = [9, 9, 9, 9, 5, 0, 1, 0x80, b'x', 0, 0, 0, 8, 0, 2, 0, 1, 0, 0, 0];
        let read: Vec<_> = Attributes::after(&body, 4).collect();
        assert_eq!(read, [(1, &b"x"[..]), (2, &[1, 0, 0, 0][..])]);
    }

    #[test]
    fn a_truncated_message_ends_the_iteration() {
        assert_eq!(Messages(&[40, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]).count(), 0);
        assert_eq!(Attributes::after(&[1, 0, 0, 0], 0).count(), 0);
        assert_eq!(Attributes::after(&[], 8).count(), 0);
    }
}
