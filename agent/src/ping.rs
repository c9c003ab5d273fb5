// SPDX-License-Identifier: Apache-2.0
//! Pings: round trips of single packets, and for UDP the delay in each direction.
//!
//! A packet's time of sending is the clock just before the call, and its times of arrival are the kernel's receive
//! timestamps. All are of `CLOCK_REALTIME`. If code takes no time, this is exact. On a real machine it adds the few
//! microseconds from the call to the device. A timestamp of the transmission would cost another system call per packet.
//! It would also exclude the packet's wait for a neighbour's address. The delay down counts from the arrival at the
//! server, so both delays add up to the round trip.
//!
//! The agent does not wait for replies. They stay in the socket until `collect`, which fetches many at a time.

use std::collections::BTreeMap;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;

use nix::cmsg_space;
use nix::sys::socket::{
    bind, connect, recvmsg, send, sendmsg, setsockopt, socket, sockopt, ControlMessageOwned, MsgFlags,
    SockFlag, SockType, SockaddrStorage,
};
use nix::sys::time::TimeSpec;

use crate::cause::Cause;
use crate::clock::{self, Epoch};
use crate::column::Cell;
use crate::icmp;
use crate::mailbox::Mailbox;
use crate::netns::{family, set_class, set_receive_buffer, Nodes};
use crate::plan::{self, Base, Plan, Protocol};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::streams::Streams;
use crate::tables::Table;

/// The position of the arrival at the server in the payload of a UDP ping. The sequence number is at 0.
const ARRIVAL_FIELD: std::ops::Range<usize> = 8..16;

/// The limit of replies that wait for a `collect`, in bytes of the kernel's accounting.
const REPLIES_BYTES: usize = 16 << 20;

/// The bytes that identify a reply: an IPv4 header with options, and our header.
const REPLY: usize = 128;
const REPLIES: usize = 64;

const STACK: usize = 64 << 10;

/// Times of one packet, `CLOCK_REALTIME`.
struct Packet {
    sent: i64,
    /// Arrivals at the server (if its reply has the time) and back at the client.
    arrivals: Option<(Option<i64>, i64)>,
}

struct Ping {
    base: Base,
    protocol: Protocol,
    socket: OwnedFd,
    /// The packet, including headers that the agent writes.
    content: Vec<u8>,
    /// The packets by sequence number.
    packets: Vec<Packet>,
}

pub struct Pings {
    /// The pings by id.
    pings: BTreeMap<u16, Ping>,
    mailbox: Mailbox,
}

impl Pings {
    /// Opens the sockets of all pings and starts the responders. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes) -> Result<Self> {
        let mut pings = BTreeMap::new();
        for (base, plan) in plan.pings() {
            let blame = |error: std::io::Error| Failure::system(format!("ping {}", base.name), error);
            if plan.protocol == Protocol::Udp && nodes.enter_if_local(&base.server)? {
                start_responder(base, plan).map_err(blame)?;
            }
            if nodes.enter_if_local(&base.client)? {
                pings.insert(base.id, Ping::open(base, plan).map_err(blame)?);
            }
        }
        Ok(Self { pings, mailbox: Mailbox::new(REPLIES, REPLY) })
    }
}

impl Streams for Pings {
    fn send(&mut self, id: u16, seq: u32) -> Result<()> {
        if let Some(ping) = self.pings.get_mut(&id) {
            ping.send(seq);
        }
        Ok(())
    }

    fn collect(&mut self) -> Result<()> {
        self.pings.values_mut().try_for_each(|ping| ping.collect(&mut self.mailbox))
    }

    fn write(&self, epoch: Epoch, records: &mut Records) -> Result<()> {
        for (id, ping) in &self.pings {
            for (packet, seq) in ping.packets.iter().zip(0u64..) {
                let rtt = packet.arrivals.map(|(_, at_client)| at_client - packet.sent);
                let arrivals = packet
                    .arrivals
                    .and_then(|(at_server, at_client)| at_server.map(|at_server| (at_server, at_client)));
                let row = [
                    Cell::I64(epoch.of_realtime(packet.sent)),
                    Cell::U64((*id).into()),
                    Cell::U64(seq),
                    Cell::from(rtt),
                    Cell::from(arrivals.map(|(at_server, _)| at_server - packet.sent)),
                    Cell::from(arrivals.map(|(at_server, at_client)| at_client - at_server)),
                ];
                records.push(Table::Ping, row)?;
            }
        }
        Ok(())
    }
}

impl Ping {
    fn open(base: &Base, plan: &plan::Ping) -> std::io::Result<Self> {
        let (socket, headers) = match plan.protocol {
            Protocol::Icmp => (icmp::open(base.address)?, icmp::HEADER),
            Protocol::Udp => {
                let fd = udp_socket(base)?;
                connect(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(base.address, base.port)))?;
                (fd, 0)
            }
        };
        set_class(socket.as_fd(), base.address, base.dscp, plan.ecn)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        set_receive_buffer(&socket, REPLIES_BYTES)?;
        let content = vec![0; headers + plan.payload_bytes];
        Ok(Self { base: base.clone(), protocol: plan.protocol, socket, content, packets: Vec::new() })
    }

    fn send(&mut self, seq: u32) {
        match self.protocol {
            Protocol::Icmp => {
                let low = (seq & 0xffff).try_into().expect("was masked");
                icmp::fill_request(&mut self.content, self.base.address, self.base.port, low);
            }
            Protocol::Udp => self.content[..4].copy_from_slice(&seq.to_be_bytes()),
        }
        self.packets.push(Packet { sent: clock::realtime(), arrivals: None });
        // An error (no route, a full queue, an ICMP error of an earlier packet) loses the packet, which is a result.
        let _ = send(self.socket.as_raw_fd(), &self.content, MsgFlags::empty());
    }

    fn collect(&mut self, mailbox: &mut Mailbox) -> Result<()> {
        loop {
            // As in `send`, an error may belong to a lost packet. The kernel reports it once.
            let more = mailbox
                .fetch(self.socket.as_fd())
                .or_else(|_| mailbox.fetch(self.socket.as_fd()))
                .map_err(|error| Failure::system(format!("ping {}", self.base.name), error))?;
            for (reply, arrival) in mailbox.messages() {
                let Some((seq, there)) = self.parse(reply) else { continue };
                let Some(back) = arrival.time else {
                    return Err(Cause::TimestampMissing { what: format!("ping {}", self.base.name) }.into());
                };
                if let Some(packet) = self.packets.get_mut(seq).filter(|packet| packet.arrivals.is_none()) {
                    packet.arrivals = Some((there, back));
                }
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Returns the sequence number of a reply to this ping, and its arrival at the server.
    fn parse(&self, reply: &[u8]) -> Option<(usize, Option<i64>)> {
        match self.protocol {
            Protocol::Icmp => {
                let (id, low) = icmp::parse_reply(reply, self.base.address)?;
                let seq = unwrap_sequence(low, self.packets.len().checked_sub(1)?)?;
                (id == self.base.port).then_some((seq, None))
            }
            Protocol::Udp => {
                let seq = u32::from_be_bytes(*reply.first_chunk()?);
                let at_server = i64::from_be_bytes(*reply.get(ARRIVAL_FIELD)?.first_chunk()?);
                Some((seq.try_into().ok()?, Some(at_server)))
            }
        }
    }
}

/// Returns the largest number up to `last` whose low 16 bits are `low`.
fn unwrap_sequence(low: u16, last: usize) -> Option<usize> {
    let distance = (last & 0xffff) as u64;
    let distance = distance.wrapping_sub(u64::from(low)) & 0xffff;
    last.checked_sub(usize::try_from(distance).ok()?)
}

fn udp_socket(base: &Base) -> nix::Result<OwnedFd> {
    socket(family(base.address), SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
}

/// Starts a thread that returns each packet with the time of its arrival in it. Its socket is in the calling thread's
/// namespace, bound to the address that the client uses, so that replies come from this address.
fn start_responder(base: &Base, plan: &plan::Ping) -> std::io::Result<()> {
    let fd = udp_socket(base)?;
    bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(base.address, base.port)))?;
    set_class(fd.as_fd(), base.address, base.dscp, plan.ecn)?;
    setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
    let mut buffer = vec![0; plan.payload_bytes];
    thread::Builder::new().stack_size(STACK).spawn(move || loop {
        // An error belongs to a packet that did not reach the client. The next packet may.
        let _ = respond(&fd, &mut buffer);
    })?;
    Ok(())
}

fn respond(fd: &OwnedFd, buffer: &mut [u8]) -> nix::Result<()> {
    let mut control = cmsg_space!(TimeSpec);
    let (length, client, arrival) = {
        let mut parts = [IoSliceMut::new(buffer)];
        let message =
            recvmsg::<SockaddrStorage>(fd.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
        let arrival = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(clock::to_ns(time)),
            _ => None,
        });
        (message.bytes, message.address, arrival)
    };
    if let (Some(arrival), Some(field)) = (arrival, buffer[..length].get_mut(ARRIVAL_FIELD)) {
        field.copy_from_slice(&arrival.to_be_bytes());
        let parts = [IoSlice::new(&buffer[..length])];
        sendmsg(fd.as_raw_fd(), &parts, &[], MsgFlags::empty(), client.as_ref())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_numbers_unwrap_to_the_newest_that_was_sent() {
        assert_eq!(unwrap_sequence(5, 5), Some(5));
        assert_eq!(unwrap_sequence(3, 5), Some(3));
        assert_eq!(unwrap_sequence(65_535, 65_537), Some(65_535));
        assert_eq!(unwrap_sequence(1, 65_537), Some(65_537));
        assert_eq!(unwrap_sequence(9, 5), None, "was never sent");
    }
}
