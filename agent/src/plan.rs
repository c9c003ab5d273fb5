// SPDX-License-Identifier: Apache-2.0
//! The plan: this end of the contract whose other end is the Python package's `plan/model.py`.
//!
//! Unknown keys are refused: a plan that says something the agent would ignore is a plan that is not executed.
//! Times are ns of test time.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;

use serde::Deserialize;
use serde_json::Value;

use crate::report::{Failure, Result};

const VERSION: u32 = 1;

/// A `udp` probe carries its sequence number and the time of its arrival at the server.
pub const UDP_PAYLOAD_MIN: usize = 16;
/// A datagram carries its number.
const DATAGRAM_PAYLOAD_MIN: usize = 4;
/// A request carries the size of its answer.
const REQUEST_MIN: usize = 8;
/// The largest payload of an IPv4 packet with an eight-byte ICMP or UDP header.
const PAYLOAD_MAX: usize = 65_507;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    version: u32,
    pub seed: u64,
    pub end_ns: i64,
    pub nodes: Vec<String>,
    pub setup: Vec<Step>,
    pub flows: Vec<Flow>,
    pub probes: Vec<Probe>,
    pub sampling: Sampling,
    pub captures: Vec<Capture>,
    #[serde(default)]
    pub radios: Vec<Radio>,
    #[serde(default)]
    pub datagrams: Vec<Datagram>,
    #[serde(default)]
    pub fetches: Vec<Fetch>,
}

/// A radio of the driver: its name there, the device it is in a node, and its address.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Radio {
    pub phy: String,
    pub node: String,
    pub device: String,
    pub address: String,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Step {
    /// The namespace it runs in; none is the first namespace.
    pub node: Option<String>,
    /// The scenario key to blame; handed back untouched.
    #[serde(default)]
    pub origin: Value,
    #[serde(flatten)]
    pub work: Work,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
pub enum Work {
    Ip {
        lines: Vec<String>,
    },
    Tc {
        lines: Vec<String>,
    },
    Write {
        path: String,
        value: String,
    },
    Ethtool {
        args: Vec<String>,
    },
    Reach {
        address: IpAddr,
        timeout_ns: i64,
    },
    Iw {
        args: Vec<String>,
        /// It is called again until it prints this.
        says: Option<String>,
        timeout_ns: i64,
    },
    Daemon(Daemon),
    /// At the end of the set-up, test time 0 (`CLOCK_MONOTONIC`, ns) is written to the file.
    Epoch {
        path: String,
    },
}

/// A program that stays until the end; it gets `config` as a file and has to say `ready` in time.
#[derive(Debug, Clone, Deserialize)]
pub struct Daemon {
    pub tool: String,
    pub config: String,
    pub ready: String,
    pub timeout_ns: i64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub id: u16,
    pub name: String,
    pub client: String,
    pub server: String,
    /// Which of the two sends.
    pub sender: String,
    pub address: IpAddr,
    pub port: u16,
    pub cc: String,
    pub dscp: u8,
    pub start_ns: i64,
    pub stop_ns: i64,
    #[serde(default)]
    pub backend: Backend,
}

/// Who takes a flow's data: a thread of the agent that reads it, or the kernel by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    #[default]
    Socket,
    Load,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProbeKind {
    Icmp,
    Udp,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    pub id: u16,
    pub name: String,
    pub kind: ProbeKind,
    pub client: String,
    pub server: String,
    pub address: IpAddr,
    pub port: u16,
    pub dscp: u8,
    pub payload_bytes: usize,
    pub start_ns: i64,
    pub stop_ns: i64,
    pub interval_ns: i64,
    pub jitter_ns: i64,
}

/// One-way packets from client to server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datagram {
    /// Of one space with the probes' ids.
    pub id: u16,
    pub name: String,
    pub client: String,
    pub server: String,
    pub address: IpAddr,
    pub port: u16,
    pub dscp: u8,
    pub payload_bytes: usize,
    pub start_ns: i64,
    pub stop_ns: i64,
    pub interval_ns: i64,
}

/// Requests of the client's, answered by so many bytes of the server's, in turn.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetch {
    pub id: u16,
    pub name: String,
    pub client: String,
    pub server: String,
    pub address: IpAddr,
    pub port: u16,
    pub cc: String,
    pub dscp: u8,
    pub request_bytes: usize,
    pub sizes: Vec<u64>,
    pub start_ns: i64,
    pub stop_ns: i64,
    pub interval_ns: i64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// 0 = never.
    pub tcp_ns: i64,
    /// 0 = at test time 0 and at the end only.
    pub device_ns: i64,
    /// Of the sums over each flow's packets; 0 = at the end only.
    pub totals_ns: i64,
    /// Layer times of one packet in so many become rows; 0 = of none.
    pub packets: u32,
}

/// Frames of one device, into a file beside the records.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    pub node: String,
    pub device: String,
    pub file: String,
    /// Bytes of a frame that are kept; 0 = all.
    pub snaplen: u32,
}

impl Plan {
    pub fn parse(text: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(text).map_err(|error| Failure::of("plan", error))?;
        plan.check().map_err(|message| Failure::of("plan", message))?;
        Ok(plan)
    }

    fn check(&self) -> std::result::Result<(), String> {
        require(self.version == VERSION, || {
            format!("version {} (this agent knows {VERSION})", self.version)
        })?;
        let sampling = self.sampling;
        let times = [self.end_ns, sampling.tcp_ns, sampling.device_ns, sampling.totals_ns];
        require(times.iter().all(|ns| *ns >= 0), || "a time below 0".into())?;
        let nodes: BTreeSet<&str> = self.nodes.iter().map(String::as_str).collect();
        require(nodes.len() == self.nodes.len(), || "two nodes of one name".into())?;
        let known = |what: &str, node: &str| {
            require(nodes.contains(node), || format!("{what} names the node {node}, which is not in nodes"))
        };
        for node in self.setup.iter().filter_map(|step| step.node.as_deref()) {
            known("a step", node)?;
        }
        for radio in &self.radios {
            known(&format!("radio {}", radio.phy), &radio.node)?;
        }
        for flow in &self.flows {
            let what = format!("flow {}", flow.name);
            known(&what, &flow.client)?;
            known(&what, &flow.server)?;
            flow.check(self.end_ns).map_err(|message| format!("{what}: {message}"))?;
        }
        for probe in &self.probes {
            let what = format!("probe {}", probe.name);
            known(&what, &probe.client)?;
            known(&what, &probe.server)?;
            probe.check().map_err(|message| format!("{what}: {message}"))?;
        }
        for datagram in &self.datagrams {
            let what = format!("datagrams {}", datagram.name);
            known(&what, &datagram.client)?;
            known(&what, &datagram.server)?;
            datagram.check(self.end_ns).map_err(|message| format!("{what}: {message}"))?;
        }
        for fetch in &self.fetches {
            let what = format!("fetches {}", fetch.name);
            known(&what, &fetch.client)?;
            known(&what, &fetch.server)?;
            fetch.check(self.end_ns).map_err(|message| format!("{what}: {message}"))?;
        }
        unique("flows", self.flows.iter().map(|flow| flow.id))?;
        let datagrams = self.datagrams.iter().map(|datagram| datagram.id);
        unique("probes", self.probes.iter().map(|probe| probe.id).chain(datagrams))?;
        unique("fetches", self.fetches.iter().map(|fetch| fetch.id))?;
        for capture in &self.captures {
            known("a capture", &capture.node)?;
            require(!capture.file.is_empty() && !capture.file.contains('/'), || {
                format!("a capture's file {:?} is not a plain name", capture.file)
            })?;
        }
        unique("captures", self.captures.iter().map(|capture| &capture.file))?;
        unique("captures", self.captures.iter().map(|capture| (&capture.node, &capture.device)))
    }

    /// Whether anything is asked for that the kernel's probe gives.
    pub fn wants_probe(&self) -> bool {
        self.sampling.tcp_ns > 0 || self.sampling.packets > 0 || !self.captures.is_empty()
    }
}

/// What records and files are told apart by.
fn unique<T: Ord + Debug>(what: &str, keys: impl Iterator<Item = T>) -> std::result::Result<(), String> {
    let mut seen = BTreeSet::new();
    for key in keys {
        require(!seen.contains(&key), || format!("two {what} are both {key:?}"))?;
        seen.insert(key);
    }
    Ok(())
}

impl Flow {
    fn check(&self, end_ns: i64) -> std::result::Result<(), String> {
        require(self.sender == self.client || self.sender == self.server, || {
            format!("its sender {} is neither its client nor its server", self.sender)
        })?;
        check_span(self.start_ns, self.stop_ns, end_ns)?;
        check_dscp(self.dscp)
    }

    pub fn client_sends(&self) -> bool {
        self.sender == self.client
    }
}

impl Probe {
    fn check(&self) -> std::result::Result<(), String> {
        let least = if self.kind == ProbeKind::Udp { UDP_PAYLOAD_MIN } else { 0 };
        require((least..=PAYLOAD_MAX).contains(&self.payload_bytes), || {
            format!("payload_bytes {} is not in {least}..={PAYLOAD_MAX}", self.payload_bytes)
        })?;
        require(self.interval_ns > 0, || "interval_ns is not above 0".into())?;
        require((0..=self.interval_ns).contains(&self.jitter_ns), || {
            "jitter_ns is not in 0..=interval_ns".into()
        })?;
        require(self.start_ns >= 0, || "start_ns is below 0".into())?;
        check_dscp(self.dscp)
    }
}

impl Datagram {
    fn check(&self, end_ns: i64) -> std::result::Result<(), String> {
        require((DATAGRAM_PAYLOAD_MIN..=PAYLOAD_MAX).contains(&self.payload_bytes), || {
            format!("payload_bytes {} is not in {DATAGRAM_PAYLOAD_MIN}..={PAYLOAD_MAX}", self.payload_bytes)
        })?;
        require(self.interval_ns > 0, || "interval_ns is not above 0".into())?;
        check_span(self.start_ns, self.stop_ns, end_ns)?;
        check_dscp(self.dscp)
    }
}

impl Fetch {
    fn check(&self, end_ns: i64) -> std::result::Result<(), String> {
        require((REQUEST_MIN..=PAYLOAD_MAX).contains(&self.request_bytes), || {
            format!("request_bytes {} is not in {REQUEST_MIN}..={PAYLOAD_MAX}", self.request_bytes)
        })?;
        require(!self.sizes.is_empty() && self.sizes.iter().all(|size| *size > 0), || {
            "sizes are not at least one size, each above 0".into()
        })?;
        require(self.interval_ns > 0, || "interval_ns is not above 0".into())?;
        check_span(self.start_ns, self.stop_ns, end_ns)?;
        check_dscp(self.dscp)
    }
}

fn check_span(start_ns: i64, stop_ns: i64, end_ns: i64) -> std::result::Result<(), String> {
    require(0 <= start_ns && start_ns < stop_ns && stop_ns <= end_ns, || {
        "0 ≤ start_ns < stop_ns ≤ end_ns does not hold".into()
    })
}

fn check_dscp(dscp: u8) -> std::result::Result<(), String> {
    require(dscp < 64, || format!("dscp {dscp} is not in 0..=63"))
}

fn require(holds: bool, message: impl FnOnce() -> String) -> std::result::Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of ARCHITECTURE.md.
    const EXAMPLE: &str = r#"{"version": 1, "seed": 1, "end_ns": 40000000000,
     "nodes": ["client", "router", "server"],
     "setup": [
       {"do": "ip",     "node": "client", "lines": ["link add eth0 type wire"], "origin": null},
       {"do": "tc",     "node": "client", "lines": ["qdisc add dev eth0 root handle 1: htb default 1"], "origin": "stack.client.qdisc"},
       {"do": "write",  "node": "client", "path": "/proc/sys/net/ipv4/tcp_ecn", "value": "1", "origin": "stack.client.sysctl"},
       {"do": "ethtool","node": null, "args": ["-K", "eth0", "tso", "off"], "origin": "testbed.link.0"},
       {"do": "reach",  "node": "client", "address": "10.0.1.2", "timeout_ns": 1000000000, "origin": null}],
     "flows": [
       {"id": 0, "name": "upload::1", "client": "client", "server": "server", "sender": "client",
        "address": "10.0.1.2", "port": 5000, "cc": "cubic", "dscp": 0,
        "start_ns": 5000000000, "stop_ns": 35000000000}],
     "probes": [
       {"id": 0, "name": "icmp", "kind": "icmp", "client": "client", "server": "server", "address": "10.0.1.2", "port": 0,
        "dscp": 0, "payload_bytes": 56, "start_ns": 0, "stop_ns": 40000000000, "interval_ns": 200000000, "jitter_ns": 20000000}],
     "sampling": {"tcp_ns": 10000000, "device_ns": 200000000, "totals_ns": 200000000, "packets": 9},
     "captures": [{"node": "client", "device": "eth0", "file": "client-eth0.pcapng", "snaplen": 128}],
     "datagrams": [
       {"id": 1, "name": "voip", "client": "client", "server": "server", "address": "10.0.1.2", "port": 8999,
        "dscp": 46, "payload_bytes": 172, "start_ns": 0, "stop_ns": 40000000000, "interval_ns": 20000000}],
     "fetches": [
       {"id": 0, "name": "http", "client": "client", "server": "server", "address": "10.0.1.2", "port": 8080,
        "cc": "cubic", "dscp": 0, "request_bytes": 300, "sizes": [10000, 100000, 1000000],
        "start_ns": 5000000000, "stop_ns": 35000000000, "interval_ns": 200000000}]}"#;

    fn refusal(from: &str, to: &str) -> String {
        let changed = EXAMPLE.replacen(from, to, 1);
        assert_ne!(changed, EXAMPLE, "{from} is not in the example");
        Plan::parse(changed.as_bytes()).expect_err("refused").message
    }

    #[test]
    fn the_example_of_the_contract_is_read() {
        let plan = Plan::parse(EXAMPLE.as_bytes()).expect("parses");
        assert_eq!(plan.nodes, ["client", "router", "server"]);
        assert_eq!(plan.setup[1].origin, "stack.client.qdisc");
        assert_eq!(plan.setup[3].node, None);
        assert!(matches!(&plan.setup[2].work, Work::Write { value, .. } if value == "1"));
        assert!(plan.flows[0].client_sends());
        assert_eq!(plan.probes[0].kind, ProbeKind::Icmp);
    }

    #[test]
    fn what_cannot_be_executed_is_refused_and_named() {
        assert!(refusal(r#""version": 1"#, r#""version": 9"#).contains("version 9"));
        assert!(refusal(r#""sender": "client""#, r#""sender": "router""#).contains("sender router"));
        assert!(refusal(r#""server": "server""#, r#""server": "nobody""#).contains("node nobody"));
        assert!(refusal(r#""stop_ns": 35000000000"#, r#""stop_ns": 45000000000"#).contains("upload::1"));
        assert!(refusal(r#""interval_ns": 200000000"#, r#""interval_ns": 0"#).contains("interval_ns"));
        assert!(refusal(r#""kind": "icmp", "#, r#""kind": "udp", "mtu": 3, "#).contains("mtu"));
        assert!(refusal(r#""dscp": 0"#, r#""dscp": 64"#).contains("dscp 64"));
        assert!(refusal("client-eth0.pcapng", "../eth0").contains("plain name"));
        assert!(refusal(r#""payload_bytes": 172"#, r#""payload_bytes": 3"#).contains("payload_bytes 3"));
        assert!(refusal(r#"{"id": 1, "name": "voip""#, r#"{"id": 0, "name": "voip""#).contains("two probes"));
        assert!(refusal("[10000, 100000, 1000000]", "[]").contains("sizes"));
        assert!(refusal(r#""request_bytes": 300"#, r#""request_bytes": 7"#).contains("request_bytes 7"));
        assert!(refusal(r#"{"node": "client", "device""#, r#"{"node": "nobody", "device""#)
            .contains("node nobody"));
        let twice = r#"[{"node": "server", "device": "eth0", "file": "client-eth0.pcapng", "snaplen": 0}, "#;
        assert!(refusal(
            r#"[{"node": "client", "device": "eth0", "file""#,
            &format!("{twice}{}", r#"{"node": "client", "device": "eth0", "file""#)
        )
        .contains("client-eth0"));
    }
}
