// SPDX-License-Identifier: Apache-2.0
//! Many datagrams in one system call, each with the kernel's time of its arrival and its ECN field.
//!
//! The kernel records the arrival time of messages, so no thread has to wait for them. Replies and netlink answers stay
//! in the socket's queue and are fetched together.

use std::io::{Error, ErrorKind, Result};
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// Room for the control messages with the time of arrival and the traffic class.
const CONTROL: usize = 64;
/// The ECN field of a traffic class.
const ECN_MASK: u8 = 3;

pub struct Mailbox {
    slot: usize,
    count: usize,
    data: Vec<u8>,
    /// Control messages, as u64 for the alignment of `struct cmsghdr`.
    control: Vec<u64>,
    headers: Vec<libc::mmsghdr>,
}

impl Mailbox {
    /// Allocates `count` messages of up to `slot` bytes. Longer messages are truncated.
    pub fn new(count: usize, slot: usize) -> Self {
        let control = vec![0; count * CONTROL / size_of::<u64>()];
        Self { slot, count, data: vec![0; count * slot], control, headers: Vec::new() }
    }

    /// Fetches all available messages without waiting; returns false when there are no more.
    pub fn fetch(&mut self, fd: BorrowedFd) -> Result<bool> {
        let control = self.control.chunks_exact_mut(CONTROL / size_of::<u64>());
        let mut slots: Vec<libc::iovec> = self
            .data
            .chunks_exact_mut(self.slot)
            .map(|slot| libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() })
            .collect();
        self.headers.clear();
        self.headers.extend(slots.iter_mut().zip(control).map(|(slot, control)| {
            // SAFETY: all zeros is a valid mmsghdr: no name, no data, no control.
            let mut header: libc::mmsghdr = unsafe { zeroed() };
            header.msg_hdr.msg_iov = ptr::from_mut(slot);
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_control = control.as_mut_ptr().cast();
            header.msg_hdr.msg_controllen = CONTROL as _; // its type differs between C libraries
            header
        }));
        let (headers, count) =
            (self.headers.as_mut_ptr(), libc::c_uint::try_from(self.count).expect("is small"));
        // SAFETY: `count` headers, each pointing at a separate slot of `data` and `control`, all alive here.
        let received = unsafe {
            libc::recvmmsg(fd.as_raw_fd(), headers, count, libc::MSG_DONTWAIT as _, ptr::null_mut())
        };
        let received = usize::try_from(received).or_else(|_| {
            let error = Error::last_os_error();
            if error.kind() == ErrorKind::WouldBlock {
                Ok(0)
            } else {
                Err(error)
            }
        });
        self.headers.truncate(*received.as_ref().unwrap_or(&0));
        Ok(received? == self.count)
    }

    /// Returns the fetched messages: content and, if the socket requests it, their arrival.
    pub fn messages(&self) -> impl Iterator<Item = (&[u8], Arrival)> {
        self.headers.iter().zip(self.data.chunks_exact(self.slot)).map(|(header, slot)| {
            let length = usize::try_from(header.msg_len).map_or(slot.len(), |length| length.min(slot.len()));
            (&slot[..length], parse_arrival(&header.msg_hdr))
        })
    }
}

/// Metadata of a message from the kernel: the time (`CLOCK_REALTIME`, ns), and the ECN field of its IP header.
#[derive(Default)]
pub struct Arrival {
    pub time: Option<i64>,
    pub ecn: u8,
}

fn parse_arrival(header: &libc::msghdr) -> Arrival {
    let mut arrival = Arrival::default();
    // SAFETY: the kernel filled `header`, whose control buffer belongs to the mailbox that is borrowed meanwhile.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() };
    while let Some(control) = next {
        // SAFETY: the type in the head decides the content after it: a timespec, a byte, a word.
        unsafe {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    arrival.time = Some(crate::clock::to_ns(time.into()));
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => arrival.ecn = data.read() & ECN_MASK,
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    arrival.ecn = data.cast::<libc::c_int>().read_unaligned().to_ne_bytes()[0] & ECN_MASK;
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, control).as_ref();
        }
    }
    arrival
}
