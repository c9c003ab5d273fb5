// SPDX-License-Identifier: Apache-2.0
//! The `ip` and `tc` lines that plans write of themselves, carried out by route netlink, without the tools: to start one
//! is the dearest part of a set-up. Lines with other words are the tools', and so are those that the kernel refuses,
//! since they say why. What is sent is what the tools send.

use std::collections::HashMap;
use std::net::IpAddr;

use libc::{
    IFA_ADDRESS, IFA_LOCAL, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU, RTA_DST,
    RTA_GATEWAY, RTA_PRIORITY, RTM_NEWADDR, RTM_NEWLINK, RTM_NEWQDISC, RTM_NEWROUTE, RTN_UNICAST,
    RTPROT_BOOT, RT_TABLE_MAIN, TCA_KIND, TCA_OPTIONS,
};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockProtocol;

use crate::netlink::{self, push, Socket, CREATE, EXCL, REPLACE};

const IFF_UP: u32 = 1;
const IFA_F_NODAD: u8 = 2;
const TC_H_ROOT: u32 = u32::MAX;
/// How many orders are sent with one call, at most.
const TOGETHER: usize = 256;

/// Qdiscs of which a line without options is known, and whether the tool sends options nevertheless: none.
const QDISCS: [(&str, bool); 8] = [
    ("cake", true),
    ("codel", true),
    ("fq", true),
    ("fq_codel", true),
    ("fq_pie", true),
    ("pfifo", false),
    ("pfifo_fast", false),
    ("sfq", false),
];

/// A line whose words are known.
#[derive(Debug, PartialEq, Eq)]
enum Order<'a> {
    /// A device is made, of a kind, or set.
    Link {
        name: &'a str,
        kind: Option<&'a str>,
        mac: Option<[u8; 6]>,
        mtu: Option<u32>,
        up: Option<bool>,
    },
    Address {
        flags: u16,
        address: IpAddr,
        length: u8,
        device: &'a str,
        no_dad: bool,
    },
    Route {
        flags: u16,
        subnet: IpAddr,
        length: u8,
        via: IpAddr,
        metric: Option<u32>,
    },
    Qdisc {
        device: &'a str,
        parent: u32,
        handle: u32,
        kind: &'a str,
        options: bool,
    },
}

/// Carries out lines of a tool in the thread's namespace, as far as the first that is not known or is refused; gives
/// how many.
pub fn carry_out<'a>(tool: &str, lines: impl Iterator<Item = &'a str>) -> usize {
    let orders: Vec<Order> = lines.map_while(|line| Order::of(tool, line)).collect();
    if orders.is_empty() {
        return 0;
    }
    let Ok(socket) = Socket::open(SockProtocol::NetlinkRoute) else { return 0 };
    let mut errand = Errand { socket, waiting: Vec::new(), done: 0, indices: HashMap::new() };
    let _ = orders.iter().try_for_each(|order| errand.add(order)).and_then(|()| errand.send());
    errand.done
}

/// Orders are sent together, as many as do not need the number of a device that others make.
struct Errand<'a> {
    socket: Socket,
    waiting: Vec<netlink::Change>,
    done: usize,
    indices: HashMap<&'a str, u32>,
}

/// The kernel has refused something.
struct Refused;

impl<'a> Errand<'a> {
    fn add(&mut self, order: &Order<'a>) -> Result<(), Refused> {
        let index = match order.device() {
            Some(name) => self.index(name)?,
            None => 0,
        };
        self.waiting.push(order.message(index));
        if self.waiting.len() == TOGETHER {
            self.send()?;
        }
        Ok(())
    }

    fn index(&mut self, name: &'a str) -> Result<u32, Refused> {
        if let Some(index) = self.indices.get(name) {
            return Ok(*index);
        }
        self.send()?;
        let index = if_nametoindex(name).map_err(|_| Refused)?;
        self.indices.insert(name, index);
        Ok(index)
    }

    fn send(&mut self) -> Result<(), Refused> {
        let orders = std::mem::take(&mut self.waiting);
        if orders.is_empty() {
            return Ok(());
        }
        let sent = self.socket.change_all(&orders);
        self.done += sent.as_ref().err().map_or(orders.len(), |(place, _)| *place);
        sent.map_err(|_| Refused)
    }
}

impl<'a> Order<'a> {
    fn of(tool: &str, line: &'a str) -> Option<Self> {
        let words: Vec<&str> = line.split(' ').collect();
        match (tool, words.as_slice()) {
            ("tc", ["qdisc", "add", "dev", device, place @ .., "handle", handle, kind]) => {
                let parent = match place {
                    ["root"] => TC_H_ROOT,
                    ["parent", class] => number(class)?,
                    _ => return None,
                };
                let (kind, options) = QDISCS.into_iter().find(|(known, _)| known == kind)?;
                Some(Self::Qdisc { device, parent, handle: number(handle)?, kind, options })
            }
            ("ip", ["link", "add", "dev", name, settings @ .., "type", kind]) => {
                Self::link(name, Some(kind), settings)
            }
            ("ip", ["link", "set", "dev", name, settings @ ..]) => Self::link(name, None, settings),
            ("ip", ["addr", act, address, "dev", device, rest @ ..]) => {
                let (address, length) = prefix(address)?;
                let no_dad = match rest {
                    [] => false,
                    ["nodad"] => true,
                    _ => return None,
                };
                Some(Self::Address { flags: flags(act)?, address, length, device, no_dad })
            }
            ("ip", ["route", act, subnet, "via", via, rest @ ..]) => {
                let ((subnet, length), via) = (prefix(subnet)?, via.parse().ok()?);
                let metric = match rest {
                    [] => None,
                    ["metric", metric] => Some(metric.parse().ok()?),
                    _ => return None,
                };
                Some(Self::Route { flags: flags(act)?, subnet, length, via, metric })
            }
            _ => None,
        }
    }

    fn link(name: &'a str, kind: Option<&'a str>, settings: &[&str]) -> Option<Self> {
        let (mut mac, mut mtu, mut up) = (None, None, None);
        let mut rest = settings;
        while !rest.is_empty() {
            rest = match rest {
                ["address", address, rest @ ..] => {
                    mac = Some(hardware(address)?);
                    rest
                }
                ["mtu", bytes, rest @ ..] => {
                    mtu = Some(bytes.parse().ok()?);
                    rest
                }
                [state @ ("up" | "down"), rest @ ..] if kind.is_none() => {
                    up = Some(*state == "up");
                    rest
                }
                _ => return None,
            };
        }
        Some(Self::Link { name, kind, mac, mtu, up })
    }

    /// The device whose number the message needs.
    fn device(&self) -> Option<&'a str> {
        match self {
            Self::Link { kind: Some(_), .. } | Self::Route { .. } => None,
            Self::Link { name: device, .. } | Self::Address { device, .. } | Self::Qdisc { device, .. } => {
                Some(device)
            }
        }
    }

    fn message(&self, index: u32) -> netlink::Change {
        match self {
            Self::Link { name, kind, mac, mtu, up } => {
                let wanted = u32::from(*up == Some(true)) * IFF_UP;
                let meant = u32::from(up.is_some()) * IFF_UP;
                let mut body = netlink::link(index, wanted, meant).to_vec();
                if let Some(mac) = mac {
                    push(&mut body, IFLA_ADDRESS, mac);
                }
                if let Some(mtu) = mtu {
                    push(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
                }
                if let Some(kind) = kind {
                    push(&mut body, IFLA_IFNAME, &[name.as_bytes(), &[0]].concat());
                    let mut about = Vec::new();
                    push(&mut about, IFLA_INFO_KIND, kind.as_bytes());
                    push(&mut body, IFLA_LINKINFO, &about);
                }
                (RTM_NEWLINK, if kind.is_some() { CREATE | EXCL } else { 0 }, body)
            }
            Self::Address { flags, address, length, no_dad, .. } => {
                let mut body = vec![family(*address), *length, u8::from(*no_dad) * IFA_F_NODAD, 0];
                body.extend(index.to_ne_bytes());
                let bytes = bytes(*address);
                push(&mut body, IFA_LOCAL, &bytes);
                push(&mut body, IFA_ADDRESS, &bytes);
                (RTM_NEWADDR, *flags, body)
            }
            Self::Route { flags, subnet, length, via, metric } => {
                // family, lengths, TOS, table, protocol, scope (the universe), type, flags
                let mut body =
                    vec![family(*subnet), *length, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, 0, RTN_UNICAST];
                body.extend([0; 4]);
                push(&mut body, RTA_DST, &bytes(*subnet));
                push(&mut body, RTA_GATEWAY, &bytes(*via));
                if let Some(metric) = metric {
                    push(&mut body, RTA_PRIORITY, &metric.to_ne_bytes());
                }
                (RTM_NEWROUTE, *flags, body)
            }
            Self::Qdisc { parent, handle, kind, options, .. } => {
                let mut body = netlink::traffic(index, *handle, *parent).to_vec();
                push(&mut body, TCA_KIND, &[kind.as_bytes(), &[0]].concat());
                if *options {
                    push(&mut body, TCA_OPTIONS, &[]);
                }
                (RTM_NEWQDISC, CREATE | EXCL, body)
            }
        }
    }
}

fn flags(act: &str) -> Option<u16> {
    match act {
        "add" => Some(CREATE | EXCL),
        "replace" => Some(CREATE | REPLACE),
        _ => None,
    }
}

/// An address and the length of its prefix. Of IPv4's loopback network the tool knows more: it is none here.
fn prefix(words: &str) -> Option<(IpAddr, u8)> {
    let (address, length) = words.split_once('/')?;
    let (address, length): (IpAddr, u8) = (address.parse().ok()?, length.parse().ok()?);
    let known = match address {
        IpAddr::V4(address) => !address.is_loopback() && length <= 32,
        IpAddr::V6(_) => length <= 128,
    };
    known.then_some((address, length))
}

fn hardware(words: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> =
        words.split(':').map(|two| u8::from_str_radix(two, 16).ok()).collect::<Option<_>>()?;
    bytes.try_into().ok()
}

/// A handle or a class: two hexadecimal numbers, of which the second may be left out.
fn number(words: &str) -> Option<u32> {
    let (major, minor) = words.split_once(':')?;
    let of = |words: &str| u16::from_str_radix(words, 16).ok().map(u32::from);
    Some(of(major)? << 16 | if minor.is_empty() { 0 } else { of(minor)? })
}

fn family(address: IpAddr) -> u8 {
    u8::try_from(if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }).expect("is small")
}

fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_plans_are_known() {
        let mac = Some([2, 0, 0, 0, 0x1f, 1]);
        let made = Order::Link { name: "eth0", kind: Some("wire"), mac, mtu: Some(9000), up: None };
        assert_eq!(
            Order::of("ip", "link add dev eth0 address 02:00:00:00:1f:01 mtu 9000 type wire"),
            Some(made)
        );
        let up = Order::Link { name: "eth0", kind: None, mac: None, mtu: None, up: Some(true) };
        assert_eq!(Order::of("ip", "link set dev eth0 up"), Some(up));
        let address = "fd00::1".parse().expect("an address");
        let (flags, length, device) = (CREATE | REPLACE, 64, "eth0");
        let six = Order::Address { flags, address, length, device, no_dad: true };
        assert_eq!(Order::of("ip", "addr replace fd00::1/64 dev eth0 nodad"), Some(six));
        let (subnet, via) = ("10.0.2.0".parse().expect("one"), "10.0.1.1".parse().expect("one"));
        let route = Order::Route { flags: CREATE | EXCL, subnet, length: 24, via, metric: Some(7) };
        assert_eq!(Order::of("ip", "route add 10.0.2.0/24 via 10.0.1.1 metric 7"), Some(route));
    }

    #[test]
    fn qdiscs_without_options_are_known() {
        let (device, options) = ("eth0", true);
        let root = Order::Qdisc { device, parent: TC_H_ROOT, handle: 0x10_0000, kind: "fq_codel", options };
        assert_eq!(Order::of("tc", "qdisc add dev eth0 root handle 10: fq_codel"), Some(root));
        let child =
            Order::Qdisc { device, parent: 0x1_000a, handle: 0x10_0000, kind: "pfifo", options: false };
        assert_eq!(Order::of("tc", "qdisc add dev eth0 parent 1:a handle 10: pfifo"), Some(child));
        for line in [
            "qdisc add dev eth0 root handle 10: pfifo limit 100",
            "qdisc add dev eth0 root handle 10: prio",
            "qdisc add dev eth0 handle ffff: ingress",
            "qdisc add dev eth0 root fq",
            "qdisc replace dev eth0 root handle 10: fq",
            "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
        ] {
            assert_eq!(Order::of("tc", line), None, "{line}");
        }
    }

    #[test]
    fn others_are_the_tools() {
        for line in [
            "link add dev eth0 type veth peer name eth1 netns router",
            "link add dev br0 type bridge stp_state 0",
            "link add dev eth0 up type wire",
            "link set dev eth0 name eth1",
            "link set eth0 up",
            "link set dev ifb0 addrgenmode none",
            "link set dev eth0 mtu many",
            "link set dev eth0 address 02:00:00:00:00",
            "addr add 10.0.0.1 dev eth0",
            "addr add 127.0.0.2/8 dev lo",
            "addr add 10.0.0.1/33 dev eth0",
            "addr del 10.0.0.1/24 dev eth0",
            "addr add 10.0.0.1/24 dev eth0 brd +",
            "route add default via 10.0.0.1",
            "route add 10.0.0.0/24 dev eth0",
            "route add 10.0.0.0/24 via 10.0.1.1 proto static",
            "neigh add 10.0.0.1 dev eth0",
            "",
        ] {
            assert_eq!(Order::of("ip", line), None, "{line}");
        }
    }
}
