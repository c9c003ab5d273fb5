// SPDX-License-Identifier: Apache-2.0
//! Facts about the measuring machine, read after the set-up. They are the kernel and, at the client of the first ping,
//! TCP's sysctls and each device's driver, offloads, BQL limits and qdiscs. The qdiscs are as `tc` prints them.
//!
//! If this kernel or device lacks a feature, its fact is missing. No error here ends a run.

use std::fs;

use crate::column::Cell;
use crate::device::Devices;
use crate::ethtool;
use crate::netns::Nodes;
use crate::plan::Plan;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::tables::Table;
use crate::tool;

/// The sysctls that Flent records (its `metadata.py`, version 2.3.0).
const SYSCTLS: [&str; 24] = [
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_fack",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_pacing_ca_ratio",
    "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
];

const TC_NS: i64 = 5_000_000_000;

pub struct Facts {
    list: Vec<(Option<String>, String, String)>,
}

impl Facts {
    /// Reads the facts. Leaves the calling thread in the first namespace.
    pub fn gather(plan: &Plan, nodes: &Nodes) -> Result<Self> {
        let mut facts = Self { list: Vec::new() };
        let name = nix::sys::utsname::uname().map_err(|error| Failure::system("uname", error))?;
        facts.add(None, "kernel.release", &name.release().to_string_lossy());
        facts.add(None, "agent.version", env!("CARGO_PKG_VERSION"));
        if let Some((ping, _)) = plan.pings().next() {
            if nodes.enter_if_local(&ping.client)? {
                facts.of_node(nodes, &ping.client);
            }
            nodes.enter(None)?;
        }
        Ok(facts)
    }

    fn add(&mut self, node: Option<&str>, key: &str, value: &str) {
        self.list.push((node.map(str::to_owned), key.to_owned(), value.trim().replace('\t', " ")));
    }

    /// Adds the facts of the calling thread's node.
    fn of_node(&mut self, nodes: &Nodes, node: &str) {
        for name in SYSCTLS {
            if let Ok(value) = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))) {
                self.add(Some(node), &format!("sysctl.{name}"), &value);
            }
        }
        let devices = Devices::open(node).map(|mut devices| devices.names().unwrap_or_default());
        for device in devices.unwrap_or_default() {
            self.of_device(nodes, node, &device);
        }
        if let Ok(output) = tool::run_within("tc", &["qdisc", "show"], TC_NS) {
            for line in output.lines() {
                self.add(Some(node), "tc", line);
            }
        }
    }

    fn of_device(&mut self, nodes: &Nodes, node: &str, device: &str) {
        let control = nodes.control(node);
        if let Ok(driver) = ethtool::driver(control, device) {
            self.add(Some(node), &format!("driver.{device}"), &driver);
        }
        for (name, on) in ethtool::offloads(control, device) {
            self.add(Some(node), &format!("offload.{device}.{name}"), if on { "on" } else { "off" });
        }
        for queue in 0.. {
            let path = format!("/sys/class/net/{device}/queues/tx-{queue}/byte_queue_limits/limit_max");
            let Ok(limit) = nodes.read(&path) else { break };
            self.add(Some(node), &format!("bql.{device}.tx-{queue}"), &limit);
        }
    }

    pub fn write(&self, records: &mut Records) -> Result<()> {
        for (node, key, value) in &self.list {
            let node = node.as_deref().map_or(Cell::Null, Cell::Text);
            records.push(Table::Fact, [Cell::I64(0), node, Cell::Text(key), Cell::Text(value)])?;
        }
        Ok(())
    }
}
