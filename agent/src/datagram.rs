// SPDX-License-Identifier: Apache-2.0
//! Datagrams: one-way streams of UDP packets, singly or in bursts, as a flood, a telephone or a camera sends them. When,
//! the event queue knows.
//!
//! Nobody answers. The server's socket keeps what arrives with the kernel's time of arrival until `collect`, of each
//! packet as much as tells its number. A packet that the sender's own socket has no room for is not waited with, it is
//! refused: a source of voice does not wait, and a flood that waited would not be one.

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
use crate::netns::{family, set_class, set_room, Nodes};
use crate::plan::{self, Base, Plan};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::streams::Streams;
use crate::sys;
use crate::tables::Table;

/// What may wait for a `collect`, in bytes of the kernel's accounting.
const WAITING_BYTES: usize = 16 << 20;
/// A full packet counts 2,304 bytes there: packets sent between two collects.
const COLLECT_EVERY: u32 = 1024;

/// The number of a packet stands at its start.
const NUMBER: usize = 4;
const TOGETHER: usize = 256;

/// In place of the time at which a packet was sent that has not arrived from another machine.
const NEVER: i64 = i64::MIN;

/// Times of one packet, `CLOCK_REALTIME`.
struct Packet {
    sent: i64,
    arrived: Option<i64>,
    refused: bool,
    /// Of the IP header with which it arrived.
    ecn: u8,
}

struct Stream {
    name: String,
    ends: Ends,
    content: Vec<u8>,
    /// By number.
    packets: Vec<Packet>,
}

/// Which ends are here. What one machine sends and another receives both write down, the receiver as sent when it arrived.
enum Ends {
    Both { sender: OwnedFd, receiver: OwnedFd },
    Sender(OwnedFd),
    Receiver { receiver: OwnedFd, most: usize },
}

pub struct Datagrams {
    /// By id.
    streams: BTreeMap<u16, Stream>,
    mailbox: Mailbox,
}

impl Datagrams {
    /// Sockets of both ends of all streams. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes) -> Result<Self> {
        let mut streams = BTreeMap::new();
        for (base, plan) in plan.datagrams() {
            let blame = |error: std::io::Error| Failure::system(format!("datagrams {}", base.name), error);
            let open = |node, open: fn(&Base, &plan::Datagrams) -> IoResult<OwnedFd>| -> Result<_> {
                nodes.enter_if_here(node)?.then(|| open(base, plan)).transpose().map_err(blame)
            };
            let ends = match (open(&base.client, open_sender)?, open(&base.server, open_receiver)?) {
                (Some(sender), Some(receiver)) => Ends::Both { sender, receiver },
                (Some(sender), None) => Ends::Sender(sender),
                (None, Some(receiver)) => Ends::Receiver { receiver, most: packets(plan) },
                (None, None) => continue,
            };
            let content = vec![0; plan.payload_bytes];
            let name = base.name.clone();
            streams.insert(base.id, Stream { name, ends, content, packets: Vec::new() });
        }
        Ok(Self { streams, mailbox: Mailbox::new(TOGETHER, NUMBER) })
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
        self.content[..NUMBER].copy_from_slice(&seq.to_be_bytes());
        let sent = clock::realtime();
        // Any other error is about an earlier packet, or loses this one, which is a result.
        let result = send(sender.as_raw_fd(), &self.content, MsgFlags::MSG_DONTWAIT);
        self.packets.push(Packet { sent, arrived: None, refused: result == Err(Errno::EAGAIN), ecn: 0 });
    }

    fn collect(&mut self, mailbox: &mut Mailbox) -> Result<()> {
        let (receiver, most) = match &self.ends {
            Ends::Both { receiver, .. } => (receiver, None),
            Ends::Receiver { receiver, most } => (receiver, Some(*most)),
            Ends::Sender(_) => return Ok(()),
        };
        loop {
            let more = mailbox
                .fetch(receiver.as_fd())
                .map_err(|error| Failure::system(format!("datagrams {}", self.name), error))?;
            for (start, arrival) in mailbox.messages() {
                let number = start.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
                let place = number.and_then(|number| usize::try_from(number).ok());
                if let (Some(place), Some(most), Arrival { time: Some(time), ecn }) = (place, most, &arrival)
                {
                    take(&mut self.packets, place, most, *time, *ecn);
                    continue;
                }
                let packet = place.and_then(|place| self.packets.get_mut(place));
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

/// What arrived from another machine counts as sent then; a second copy, or what the plan does not send, is passed over.
fn take(packets: &mut Vec<Packet>, place: usize, most: usize, arrival: i64, ecn: u8) {
    if place >= most {
        return;
    }
    while packets.len() <= place {
        packets.push(Packet { sent: NEVER, arrived: None, refused: false, ecn: 0 });
    }
    if packets[place].sent == NEVER {
        packets[place] = Packet { sent: arrival, arrived: Some(arrival), refused: false, ecn };
    }
}

/// How many packets a stream sends.
fn packets(plan: &plan::Datagrams) -> usize {
    let instants = plan.phases.iter().map(|one| (one.stop_ns - one.start_ns - 1) / one.interval_ns + 1);
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
    set_room(&fd, WAITING_BYTES)?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(base.address, base.port)))?;
    Ok(fd)
}

fn open_sender(base: &Base, plan: &plan::Datagrams) -> IoResult<OwnedFd> {
    let fd = open(base)?;
    set_class(fd.as_fd(), base.address, base.dscp, plan.ecn)?;
    connect(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(base.address, base.port)))?;
    Ok(fd)
}
