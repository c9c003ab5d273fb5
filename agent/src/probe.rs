// SPDX-License-Identifier: Apache-2.0
//! The kernel's probe: this file sends its commands, and a separate thread reads its records during the test.
//!
//! A read waits in the kernel until much data is available, so all the kernel's data (packets, samples of sockets and
//! queues, frames) cost a few system calls a second. `probe_abi.h` defines both directions, and `probe_rows` makes rows
//! of the data. A kernel without Hourglass's drivers has no probe.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use zerocopy::IntoBytes;

use crate::capture::Captures;
use crate::clock::Epoch;
use crate::namespaces::Namespaces;
use crate::netns::Nodes;
use crate::plan::{Plan, Protocol, Traffic};
use crate::probe_rows::Rows;
use crate::records::Shared;
use crate::report::{Failure, Result};
use crate::sys;

const PATH: &str = "/proc/hourglass/probe";

/// The bytes of a read, which returns when half of them are full.
const BUFFER: usize = 1 << 20;

/// The memory that the tables need until they are full for the first time.
const TABLES_BYTES: usize = 6 << 20;

pub struct ProbeReader {
    probe: Arc<File>,
    reader: JoinHandle<Result<()>>,
}

/// Opens the probe, if the plan needs it and this kernel has it.
pub fn open(plan: &Plan) -> Result<Option<File>> {
    open_at(PATH, plan)
}

fn open_at(path: &str, plan: &Plan) -> Result<Option<File>> {
    if !plan.wants_probe() {
        return Ok(None);
    }
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound && plan.captures.is_empty() => Ok(None),
        Err(error) => Err(Failure::system(path, error)),
    }
}

impl ProbeReader {
    /// Sends the probe its commands for test time 0 and starts to read.
    pub fn start(
        probe: File,
        plan: &Plan,
        nodes: &Nodes,
        epoch: Epoch,
        captures: Captures,
        namespaces: Namespaces,
        records: Shared,
    ) -> Result<Self> {
        for (node, line) in commands(plan, epoch.monotonic_ns) {
            nodes.enter(node)?;
            write_command(&probe, &line)?;
        }
        let probe = Arc::new(probe);
        let rows = Rows::new(plan, epoch.monotonic_ns, captures, namespaces);
        let reader = {
            let probe = Arc::clone(&probe);
            thread::Builder::new().spawn(move || read(&*probe, rows, &records))
        };
        let reader = reader.map_err(|error| Failure::system("starting a thread", error))?;
        Ok(Self { probe, reader })
    }

    /// Ends the test: reads all remaining records.
    pub fn finish(self) -> Result<()> {
        write_command(&self.probe, "stop")?;
        self.reader.join().unwrap_or_else(|_| Err(Failure::bug("the reader of the kernel's probe died")))
    }
}

fn write_command(mut probe: &File, line: &str) -> Result<()> {
    let result = probe.write_all(format!("{line}\n").as_bytes());
    result.map_err(|error| Failure::system(format!("{PATH}: {line}"), error))
}

/// Returns the commands, each with the node in which it must be written.
fn commands(plan: &Plan, zero_ns: i64) -> Vec<(Option<&str>, String)> {
    let mut lines = Vec::new();
    for (node, index) in plan.nodes.iter().zip(0..) {
        lines.push((Some(node.as_str()), format!("node {index}")));
    }
    for stream in &plan.streams {
        let protocol = match &stream.traffic {
            Traffic::Flow(_) | Traffic::Transactions(_) => "tcp",
            Traffic::Ping(ping) if ping.protocol == Protocol::Icmp => "icmp",
            Traffic::Ping(_) | Traffic::Datagrams(_) => "udp",
            Traffic::Fetches(_) => continue,
        };
        lines.push((None, format!("watch {} {protocol} {}", stream.base.id, stream.base.port)));
    }
    if !plan.apps.is_empty() {
        lines.push((None, format!("programs {} {}", plan.streams.len(), plan.nodes.len())));
    }
    for capture in &plan.captures {
        lines.push((Some(&capture.node), format!("capture {} {}", capture.device, capture.snaplen)));
    }
    let sampling = &plan.sampling;
    lines.push((None, format!("packets {}", sampling.packets)));
    lines.push((None, format!("totals {}", sampling.totals_ns)));
    lines.push((None, format!("sample {}", sampling.tcp_ns)));
    lines.push((None, format!("start {zero_ns}")));
    lines
}

/// Reads until the probe has no more data. Time passes between reads; all rows of a read are written at one instant.
fn read(mut probe: impl Read, mut rows: Rows, records: &Shared) -> Result<()> {
    sys::set_idle_priority();
    sys::grow_heap(TABLES_BYTES);
    let mut buffer = vec![0u64; BUFFER / size_of::<u64>()];
    loop {
        match probe.read(buffer.as_mut_bytes()) {
            Ok(0) => return rows.finish(),
            Ok(length) if length % size_of::<u64>() != 0 => {
                return Err(Failure::probe("part of a word"));
            }
            Ok(length) => rows.take(&buffer[..length / size_of::<u64>()], &mut records.lock())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::system(PATH, error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi;
    use crate::probe_records::fixtures::record;
    use crate::records::Records;
    use crate::test_plans::{datagrams, fetches, flow, icmp, plan_with, transactions, udp};
    use serde_json::{json, Value};

    fn plan(sampling: &Value, captures: &Value) -> Plan {
        plan_with(
            &[flow(0, "s"), icmp(1), udp(2), datagrams(3), fetches(4), transactions(5)],
            &json!({"sampling": sampling, "captures": captures}),
        )
    }

    fn sampling() -> Value {
        json!({"tcp_ns": 10, "device_ns": 200, "totals_ns": 200, "packets": 9})
    }

    fn nothing() -> Value {
        json!({"tcp_ns": 0, "device_ns": 200, "totals_ns": 200, "packets": 0})
    }

    fn capture() -> Value {
        json!([{"node": "s", "device": "eth0", "file": "s.pcapng", "snaplen": 64}])
    }

    #[test]
    fn the_probe_gets_commands_for_the_plan_and_then_the_start() {
        let plan = plan(&sampling(), &capture());
        let lines: Vec<String> = commands(&plan, 77)
            .iter()
            .map(|(node, line)| format!("{} {line}", node.unwrap_or("-")))
            .collect();
        let expected = [
            "c node 0",
            "s node 1",
            "- watch 0 tcp 5000",
            "- watch 1 icmp 0",
            "- watch 2 udp 2112",
            "- watch 3 udp 9",
            "- watch 5 tcp 12865",
            "s capture eth0 64",
            "- packets 9",
            "- totals 200",
            "- sample 10",
            "- start 77",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn streams_of_programs_are_numbered_after_those_of_the_plan() {
        let mut plan = plan(&sampling(), &json!([]));
        let app = json!({"id": 0, "name": "a", "room": 0, "command": ["a"], "env": {}, "folder": "/", "user": "0",
            "stdin": "", "start_ns": 0, "after": [], "stop_ns": null, "stop_signal": 15, "grace_ns": 0,
            "ready": {"when": "start"}, "ready_ns": 0, "restarts": 0, "restart_ns": 0, "background": false,
            "output_bytes": 0, "collect": [], "origin": null});
        plan.apps = vec![serde_json::from_value(app).expect("an app")];
        assert!(commands(&plan, 77).contains(&(None, "programs 6 2".to_owned())));
    }

    #[test]
    fn only_captures_need_a_kernel_with_the_probe() {
        let nowhere = "/nonexistent/probe";
        assert!(open_at(nowhere, &plan(&sampling(), &json!([]))).expect("falls back").is_none());
        let failure = open_at(nowhere, &plan(&sampling(), &capture())).expect_err("captures need the probe");
        assert_eq!(failure.to_string(), "/nonexistent/probe: No such file or directory");
    }

    #[test]
    fn the_probe_is_opened_only_if_the_plan_needs_it() {
        let unreadable = "/proc/self/mem/probe"; // an error other than a missing file
        assert!(open_at(unreadable, &plan(&nothing(), &json!([]))).expect("no attempt").is_none());
        assert!(open_at(unreadable, &plan(&sampling(), &json!([]))).is_err());
        assert!(open_at(unreadable, &plan(&nothing(), &capture())).is_err());
    }

    #[test]
    fn reading_ends_at_the_end_or_at_an_error() {
        let path = std::env::temp_dir().join(format!("hourglass-watch-{}", std::process::id()));
        let records = Shared::new(Records::create(&path).expect("a file"));
        let read_all = |bytes: &[u8]| {
            let captures = Captures::create(&[], &[], &std::env::temp_dir()).expect("none");
            let plan = plan(&sampling(), &json!([]));
            let namespaces = Namespaces::new(&plan.nodes, &[], true);
            read(bytes, Rows::new(&plan, 0, captures, namespaces), &records)
        };
        assert!(read_all(&[]).is_ok());
        assert!(read_all(record(abi::QUEUE, &[0; 64]).as_bytes()).is_ok());
        assert!(read_all(&[9; 8]).is_err());
        assert!(read_all(&[9; 9]).is_err());
        std::fs::remove_file(&path).expect("removed");
    }
}
