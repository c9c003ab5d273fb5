// SPDX-License-Identifier: Apache-2.0
//! Steps that are executed by route netlink without the tools, since starting a tool is the most expensive part of a
//! set-up. Steps that the kernel refuses go to the tools, which report the reason. The messages are those of the tools.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::{
    IFA_ADDRESS, IFA_LOCAL, IFLA_ADDRESS, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINKINFO, IFLA_MTU,
    IFLA_NUM_RX_QUEUES, IFLA_NUM_TX_QUEUES, RTA_DST, RTA_GATEWAY, RTA_PRIORITY, RTM_NEWADDR, RTM_NEWLINK,
    RTM_NEWQDISC, RTM_NEWROUTE, RTN_UNICAST, RTPROT_BOOT, RT_TABLE_MAIN, TCA_KIND, TCA_OPTIONS,
};
use nix::net::if_::if_nametoindex;
use nix::sys::socket::SockProtocol;

use crate::netlink::{self, push, Socket, CREATE, EXCL, REPLACE};
use crate::plan_values::{handle_number, hardware, prefix};
use crate::steps::{self, LinkState, Step, Work};

const IFF_UP: u32 = 1;
const IFA_F_NODAD: u8 = 2;
const TC_H_ROOT: u32 = u32::MAX;
/// The position of the device's number in `struct ifinfomsg`, `ifaddrmsg` and `tcmsg`.
const INDEX: usize = 4;
/// The maximum number of messages in one system call.
const BATCH: usize = 256;

/// Qdiscs whose message without options is known, and whether the tool then sends an empty list of options.
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

/// Executes steps in the thread's namespace, up to the first that needs a tool or is refused; returns their number.
pub fn carry_out(steps: &[Step]) -> usize {
    let messages: Vec<Message> = steps.iter().map_while(|step| message(&step.work)).collect();
    if messages.is_empty() {
        return 0;
    }
    let Ok(socket) = Socket::open(SockProtocol::NetlinkRoute) else { return 0 };
    let mut batch = Batch { socket, pending: Vec::new(), done_count: 0, indices: HashMap::new() };
    let _ = messages.into_iter().try_for_each(|message| batch.add(message)).and_then(|()| batch.send());
    batch.done_count
}

/// A message, and the name of the device whose number it needs.
type Message<'a> = (Option<&'a str>, netlink::Change);

/// Messages that are sent together: none needs the number of a device that an earlier one creates.
struct Batch<'a> {
    socket: Socket,
    pending: Vec<netlink::Change>,
    done_count: usize,
    indices: HashMap<&'a str, u32>,
}

/// An error: the kernel has refused a message.
struct Refused;

impl<'a> Batch<'a> {
    fn add(&mut self, (device, mut change): Message<'a>) -> Result<(), Refused> {
        if let Some(name) = device {
            let index = self.index(name)?;
            change.2[INDEX..INDEX + 4].copy_from_slice(&index.to_ne_bytes());
        }
        self.pending.push(change);
        if self.pending.len() == BATCH {
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
        let changes = std::mem::take(&mut self.pending);
        if changes.is_empty() {
            return Ok(());
        }
        let sent = self.socket.change_all(&changes);
        self.done_count += sent.as_ref().err().map_or(changes.len(), |(index, _)| *index);
        sent.map_err(|_| Refused)
    }
}

/// Returns the message of a step; None if the step needs its tool.
fn message(work: &Work) -> Option<Message<'_>> {
    match work {
        Work::Device { device, kind, mac, mtu, queues } => {
            let mut body = link_body(None, mac.as_deref(), *mtu)?;
            push(&mut body, IFLA_IFNAME, &[device.as_bytes(), &[0]].concat());
            if let Some(queues) = queues {
                push(&mut body, IFLA_NUM_TX_QUEUES, &queues.to_ne_bytes());
                push(&mut body, IFLA_NUM_RX_QUEUES, &queues.to_ne_bytes());
            }
            let mut info = Vec::new();
            push(&mut info, IFLA_INFO_KIND, kind.name().as_bytes());
            push(&mut body, IFLA_LINKINFO, &info);
            Some((None, (RTM_NEWLINK, CREATE | EXCL, body)))
        }
        Work::Link { device, mac, mtu, addrgenmode: None, name: None, state } => {
            Some((Some(device), (RTM_NEWLINK, 0, link_body(*state, mac.as_deref(), *mtu)?)))
        }
        Work::Address { device, act, address, nodad } => {
            let (address, length) = prefix(address)?;
            if matches!(address, IpAddr::V4(address) if address.is_loopback()) {
                return None; // the tool has special rules for this network
            }
            let mut body = vec![family(address), length, u8::from(*nodad) * IFA_F_NODAD, 0, 0, 0, 0, 0];
            push(&mut body, IFA_LOCAL, &bytes(address));
            push(&mut body, IFA_ADDRESS, &bytes(address));
            Some((Some(device), (RTM_NEWADDR, flags(*act), body)))
        }
        Work::Route { act, subnet, via, metric } => {
            let unspecified: IpAddr =
                if via.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            let (subnet, length) = subnet.as_deref().map_or(Some((unspecified, 0)), prefix)?;
            // family, lengths, TOS, table, protocol, scope (the universe), type, flags
            let mut body = vec![family(subnet), length, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, 0, RTN_UNICAST];
            body.extend([0; 4]);
            push(&mut body, RTA_DST, &bytes(subnet));
            push(&mut body, RTA_GATEWAY, &bytes(*via));
            if let Some(metric) = metric {
                push(&mut body, RTA_PRIORITY, &metric.to_ne_bytes());
            }
            Some((None, (RTM_NEWROUTE, flags(*act), body)))
        }
        Work::Qdisc { device, act: steps::Change::Add, parent, handle, kind, options }
            if options.is_empty() =>
        {
            let (kind, has_options) = QDISCS.into_iter().find(|(name, _)| name == kind)?;
            let parent = parent.as_deref().map_or(Some(TC_H_ROOT), handle_number)?;
            let mut body = netlink::traffic(0, handle_number(handle.as_deref()?)?, parent).to_vec();
            push(&mut body, TCA_KIND, &[kind.as_bytes(), &[0]].concat());
            if has_options {
                push(&mut body, TCA_OPTIONS, &[]);
            }
            Some((Some(device), (RTM_NEWQDISC, CREATE | EXCL, body)))
        }
        _ => None,
    }
}

fn link_body(state: Option<LinkState>, mac: Option<&str>, mtu: Option<u32>) -> Option<Vec<u8>> {
    let flags = u32::from(state == Some(LinkState::Up)) * IFF_UP;
    let mut body = netlink::link(0, flags, u32::from(state.is_some()) * IFF_UP).to_vec();
    if let Some(mac) = mac {
        push(&mut body, IFLA_ADDRESS, &hardware(mac)?);
    }
    if let Some(mtu) = mtu {
        push(&mut body, IFLA_MTU, &mtu.to_ne_bytes());
    }
    Some(body)
}

fn flags(act: steps::Change) -> u16 {
    match act {
        steps::Change::Add => CREATE | EXCL,
        steps::Change::Replace => CREATE | REPLACE,
    }
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

    fn message_of(json: &str) -> Option<(Option<String>, u16, u16, usize)> {
        let step: Step =
            serde_json::from_str(&format!(r#"{{{json}, "node": "a", "origin": null}}"#)).expect("a step");
        let (device, (kind, flags, body)) = message(&step.work)?;
        Some((device.map(str::to_owned), kind, flags, body.len()))
    }

    fn qdisc(settings: &str) -> Option<(Option<String>, u16, u16, usize)> {
        message_of(&format!(r#""do": "qdisc", "device": "eth0", "parent": null, {settings}"#))
    }

    #[test]
    fn the_steps_of_plans_need_no_tool() {
        let eth0 = Some("eth0".to_owned());
        let device = r#""do": "device", "device": "eth0", "kind": "wire", "mac": "02:00:00:00:1f:01", "mtu": 9000, "queues": 4"#;
        let length = netlink::IFINFOMSG + 12 + 8 + 12 + 8 + 8 + 12;
        assert_eq!(message_of(device), Some((None, RTM_NEWLINK, CREATE | EXCL, length)));
        let up = r#""do": "link", "device": "eth0", "mac": null, "mtu": null, "addrgenmode": null, "name": null, "state": "up""#;
        assert_eq!(message_of(up), Some((eth0.clone(), RTM_NEWLINK, 0, netlink::IFINFOMSG)));
        let address =
            r#""do": "address", "device": "eth0", "act": "replace", "address": "fd00::1/64", "nodad": true"#;
        assert_eq!(message_of(address), Some((eth0.clone(), RTM_NEWADDR, CREATE | REPLACE, 8 + 20 + 20)));
        let route = r#""do": "route", "act": "add", "subnet": "10.0.2.0/24", "via": "10.0.1.1", "metric": 7"#;
        assert_eq!(message_of(route), Some((None, RTM_NEWROUTE, CREATE | EXCL, 12 + 8 + 8 + 8)));
        let root = qdisc(r#""act": "add", "handle": "10:", "kind": "pfifo", "options": """#);
        assert_eq!(root, Some((eth0, RTM_NEWQDISC, CREATE | EXCL, netlink::TCMSG + 12)));
    }

    #[test]
    fn other_steps_need_their_tools() {
        for settings in [
            r#""act": "add", "handle": "10:", "kind": "pfifo", "options": "limit 100""#,
            r#""act": "add", "handle": "10:", "kind": "prio", "options": """#,
            r#""act": "add", "handle": null, "kind": "fq", "options": """#,
            r#""act": "replace", "handle": "10:", "kind": "fq", "options": """#,
        ] {
            assert_eq!(qdisc(settings), None, "{settings}");
        }
        for json in [
            r#""do": "ip", "lines": ["link set dev eth0 up"]"#,
            r#""do": "veth", "device": "eth0", "peer": "eth1", "peer_node": "router""#,
            r#""do": "link", "device": "eth0", "mac": null, "mtu": null, "addrgenmode": null, "name": "eth1", "state": null"#,
            r#""do": "link", "device": "eth0", "mac": null, "mtu": null, "addrgenmode": "none", "name": null, "state": null"#,
            r#""do": "address", "device": "lo", "act": "add", "address": "127.0.0.2/8", "nodad": false"#,
            r#""do": "shaper", "device": "eth0", "act": "add", "rate": "1mbit", "burst": 1, "quantum": 1514"#,
            r#""do": "ingress", "device": "eth0", "ifb": "ifb4eth0""#,
        ] {
            assert_eq!(message_of(json), None, "{json}");
        }
    }
}
