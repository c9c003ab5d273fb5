// SPDX-License-Identifier: Apache-2.0
//! Datagrams: one-way streams of UDP packets, alone or in bursts, like those of a flood, a telephone or a camera. The
//! event queue has their times.
//!
//! Receivers do not answer. Until `collect`, the server's socket stores arriving packets with the kernel's time of
//! arrival. `collect` reads only the first bytes of each packet, which hold its number. If the sender's socket has no
//! room, the packet is refused instead of delayed: neither a voice source nor a flood waits.

use std::collections::BTreeMap;
use std::io::Result as IoResult;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    bind, connect, send, setsockopt, socket, sockopt, MsgFlags, SockFlag, SockType, SockaddrStorage,
};

use crate::abi;
use crate::clock::{self, Epoch};
use crate::column::Cell;
use crate::mailbox::{Arrival, Mailbox};
use crate::netns::{family, set_class, set_receive_buffer, Nodes};
use crate::plan::{self, Base, Plan};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::streams::Streams;
use crate::sys;
use crate::tables::Table;

/// The limit of packets that wait for a `collect`, in bytes of the kernel's accounting.
const WAITING_BYTES: usize = 16 << 20;
/// A full packet counts 2,304 bytes there: packets sent between two collects.
const COLLECT_EVERY: u32 = 1024;

/// The number of a packet is at its beginning.
const NUMBER_BYTES: usize = 4;
const BATCH: usize = 256;

/// Replaces the unknown sending time of a packet from another machine that has not arrived.
const NEVER: i64 = i64::MIN;

/// Times of one packet, `CLOCK_REALTIME`.
struct Packet {
    sent: i64,
    arrived: Option<i64>,
    refused: bool,
    /// The ECN field of the IP header at its arrival.
    ecn: u8,
}

struct Stream {
    name: String,
    ends: Ends,
    content: Vec<u8>,
    /// The packets by number.
    packets: Vec<Packet>,
}

/// The ends on this machine. If another machine has the other end, both machines write rows. The receiver writes the
/// time of arrival also as the time of sending.
enum Ends {
    Both { sender: OwnedFd, receiver: OwnedFd },
    Sender(OwnedFd),
    Receiver { receiver: OwnedFd, limit: usize },
}

pub struct Datagrams {
    /// The streams by id.
    streams: BTreeMap<u16, Stream>,
    mailbox: Mailbox,
}

impl Datagrams {
    /// Opens the sockets of both ends of all streams. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes) -> Result<Self> {
        let mut streams = BTreeMap::new();
        for (base, plan) in plan.datagrams() {
            let blame = |error: std::io::Error| Failure::system(format!("datagrams {}", base.name), error);
            let open = |node, open: fn(&Base, &plan::Datagrams) -> IoResult<OwnedFd>| -> Result<_> {
                nodes.enter_if_local(node)?.then(|| open(base, plan)).transpose().map_err(blame)
            };
            let ends = match (open(&base.client, open_sender)?, open(&base.server, open_receiver)?) {
                (Some(sender), Some(receiver)) => Ends::Both { sender, receiver },
                (Some(sender), None) => Ends::Sender(sender),
                (None, Some(receiver)) => Ends::Receiver { receiver, limit: packets(plan) },
                (None, None) => continue,
            };
            let content = vec![0; plan.payload_bytes];
            let name = base.name.clone();
            streams.insert(base.id, Stream { name, ends, content, packets: Vec::new() });
        }
        Ok(Self { streams, mailbox: Mailbox::new(BATCH, NUMBER_BYTES) })
    }
}

impl Streams for Datagrams {
    fn send(&mut self, id: u16, seq: u32) -> Result<()> {
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        stream.send(seq);
        if (seq + 1) % COLLECT_EVERY == 0 {
            stream.collect(&mut self.mailbox)?;
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        self.streams.values_mut().try_for_each(|stream| stream.collect(&mut self.mailbox))
    }

    fn write(&self, epoch: Epoch, records: &mut Records) -> Result<()> {
        for (id, stream) in &self.streams {
            for (packet, seq) in stream.packets.iter().zip(0u64..) {
                if packet.sent == NEVER {
                    continue;
                }
                let ecn = u16::from(packet.ecn);
                let row = [
                    Cell::I64(epoch.of_realtime(packet.sent)),
                    Cell::U64((*id).into()),
                    Cell::U64(seq),
                    Cell::from(packet.arrived.map(|arrived| arrived - packet.sent)),
                    Cell::Bool(packet.refused),
                    if ecn == abi::ECN_NOT_ECT { Cell::Null } else { Cell::Text(abi::ECN[usize::from(ecn)]) },
                ];
                records.push(Table::Datagram, row)?;
            }
        }
        Ok(())
    }
}

impl Stream {
    fn send(&mut self, seq: u32) {
        let (Ends::Both { sender, .. } | Ends::Sender(sender)) = &self.ends else { return };
        self.content[..NUMBER_BYTES].copy_from_slice(&seq.to_be_bytes());
        let sent = clock::realtime();
        // Any other error is about an earlier packet, or loses this one, which is a result.
        let result = send(sender.as_raw_fd(), &self.content, MsgFlags::MSG_DONTWAIT);
        self.packets.push(Packet { sent, arrived: None, refused: result == Err(Errno::EAGAIN), ecn: 0 });
    }

    fn collect(&mut self, mailbox: &mut Mailbox) -> Result<()> {
        let (receiver, limit) = match &self.ends {
            Ends::Both { receiver, .. } => (receiver, None),
            Ends::Receiver { receiver, limit } => (receiver, Some(*limit)),
            Ends::Sender(_) => return Ok(()),
        };
        loop {
            let more = mailbox
                .fetch(receiver.as_fd())
                .map_err(|error| Failure::system(format!("datagrams {}", self.name), error))?;
            for (start, arrival) in mailbox.messages() {
                let number = start.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
                let index = number.and_then(|number| usize::try_from(number).ok());
                if let (Some(index), Some(limit), Arrival { time: Some(time), ecn }) =
                    (index, limit, &arrival)
                {
                    note_arrival(&mut self.packets, index, limit, *time, *ecn);
                    continue;
                }
                let packet = index.and_then(|index| self.packets.get_mut(index));
                if let Some(packet) = packet.filter(|packet| packet.arrived.is_none()) {
                    packet.arrived = arrival.time;
                    packet.ecn = arrival.ecn;
                }
            }
            if !more {
                return Ok(());
            }
        }
    }
}

/// Adds a packet that arrived from another machine, with its arrival as the time of sending. Ignores copies and packets
/// that are not in the plan.
fn note_arrival(packets: &mut Vec<Packet>, index: usize, limit: usize, arrival: i64, ecn: u8) {
    if index >= limit {
        return;
    }
    while packets.len() <= index {
        packets.push(Packet { sent: NEVER, arrived: None, refused: false, ecn: 0 });
    }
    if packets[index].sent == NEVER {
        packets[index] = Packet { sent: arrival, arrived: Some(arrival), refused: false, ecn };
    }
}

/// Returns the number of packets that a stream sends.
fn packets(plan: &plan::Datagrams) -> usize {
    let instants =
        plan.phases.iter().map(|phase| (phase.stop_ns - phase.start_ns - 1) / phase.interval_ns + 1);
    usize::try_from(instants.sum::<i64>().saturating_mul(plan.burst.into())).unwrap_or(usize::MAX)
}

fn open(base: &Base) -> IoResult<OwnedFd> {
    Ok(socket(family(base.address), SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?)
}

fn open_receiver(base: &Base, _: &plan::Datagrams) -> IoResult<OwnedFd> {
    let fd = open(base)?;
    setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
    let (level, class) = match base.address {
        IpAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_RECVTOS),
        IpAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS),
    };
    sys::set_option(fd.as_fd(), level, class, libc::c_int::from(true))?;
    set_receive_buffer(&fd, WAITING_BYTES)?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(base.address, base.port)))?;
    Ok(fd)
}

fn open_sender(base: &Base, plan: &plan::Datagrams) -> IoResult<OwnedFd> {
    let fd = open(base)?;
    set_class(fd.as_fd(), base.address, base.dscp, plan.ecn)?;
    connect(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(base.address, base.port)))?;
    Ok(fd)
}
