// SPDX-License-Identifier: Apache-2.0
//! What has to be done when: all timed actions of a run in one queue.
//!
//! Equal times have a fixed order, the order of `Action`'s variants: what a sample sees at an instant is the state
//! before anything starts, stops or is sent at it. So the first sample of a flow's window is the last one without it,
//! and the sample at its stop is whole. Of one kind, the lower number comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::SECOND;
use crate::jitter::jitter;
use crate::plan::{Datagram, Plan, Probe};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    SampleTcp,
    SampleDevices,
    /// The number of the flow in the plan.
    Stop(usize),
    StopFetch(usize),
    Start(usize),
    StartFetch(usize),
    /// The number of the probe in the plan, and of its packet.
    Probe(usize, u32),
    /// The same of datagrams.
    Datagram(usize, u32),
    Heartbeat,
    End,
}

pub struct Agenda {
    queue: BinaryHeap<Reverse<(i64, Action)>>,
    probes: Vec<Probe>,
    datagrams: Vec<Datagram>,
    seed: u64,
    end_ns: i64,
    tcp_ns: i64,
    device_ns: i64,
}

impl Agenda {
    /// `tcp`: whether samples of sockets are to be taken here; if not, the kernel takes them itself.
    pub fn new(plan: &Plan, tcp: bool) -> Self {
        let mut agenda = Self {
            queue: BinaryHeap::new(),
            probes: plan.probes.clone(),
            datagrams: plan.datagrams.clone(),
            seed: plan.seed,
            end_ns: plan.end_ns,
            tcp_ns: plan.sampling.tcp_ns,
            device_ns: plan.sampling.device_ns,
        };
        if tcp && agenda.tcp_ns > 0 {
            agenda.add(0, Action::SampleTcp);
        }
        agenda.add(0, Action::SampleDevices);
        if agenda.device_ns == 0 || plan.end_ns % agenda.device_ns != 0 {
            agenda.add(plan.end_ns, Action::SampleDevices);
        }
        for (number, flow) in plan.flows.iter().enumerate() {
            agenda.add(flow.start_ns, Action::Start(number));
            agenda.add(flow.stop_ns, Action::Stop(number));
        }
        for (number, fetch) in plan.fetches.iter().enumerate() {
            agenda.add(fetch.start_ns, Action::StartFetch(number));
            agenda.add(fetch.stop_ns, Action::StopFetch(number));
        }
        for number in 0..agenda.probes.len() {
            agenda.add_probe(number, 0);
        }
        for number in 0..agenda.datagrams.len() {
            agenda.add_datagram(number, 0);
        }
        agenda.add(SECOND, Action::Heartbeat);
        agenda.add(plan.end_ns, Action::End);
        agenda
    }

    /// What comes next, until the end of the test.
    pub fn pop(&mut self) -> Option<(i64, Action)> {
        let Reverse((time, action)) = self.queue.pop()?;
        match action {
            Action::SampleTcp => self.add(time + self.tcp_ns, action),
            Action::SampleDevices if self.device_ns > 0 => self.add(time + self.device_ns, action),
            Action::Probe(number, seq) => self.add_probe(number, seq + 1),
            Action::Datagram(number, seq) => self.add_datagram(number, seq + 1),
            Action::Heartbeat => self.add(time + SECOND, action),
            Action::End => self.queue.clear(),
            Action::SampleDevices
            | Action::Stop(_)
            | Action::StopFetch(_)
            | Action::Start(_)
            | Action::StartFetch(_) => {}
        }
        Some((time, action))
    }

    fn add(&mut self, time: i64, action: Action) {
        if time <= self.end_ns {
            self.queue.push(Reverse((time, action)));
        }
    }

    fn add_probe(&mut self, number: usize, seq: u32) {
        let probe = &self.probes[number];
        let on_the_grid = probe.start_ns + i64::from(seq) * probe.interval_ns;
        let time = on_the_grid + jitter(self.seed, probe.id, seq, probe.jitter_ns);
        if time < probe.stop_ns {
            self.add(time, Action::Probe(number, seq));
        }
    }

    fn add_datagram(&mut self, number: usize, seq: u32) {
        let datagram = &self.datagrams[number];
        let time = datagram.start_ns + i64::from(seq) * datagram.interval_ns;
        if time < datagram.stop_ns {
            self.add(time, Action::Datagram(number, seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agenda(sampling: &str, flows: &str, probes: &str) -> Vec<(i64, Action)> {
        let plan = format!(
            r#"{{"version": 1, "seed": 1, "end_ns": 2000000000, "nodes": ["c", "s"], "setup": [],
                "flows": [{flows}], "probes": [{probes}], "sampling": {sampling}, "captures": []}}"#
        );
        let mut agenda = Agenda::new(&Plan::parse(plan.as_bytes()).expect("a plan"), true);
        std::iter::from_fn(|| agenda.pop()).collect()
    }

    const FLOW: &str = r#"{"id": 0, "name": "f", "client": "c", "server": "s", "sender": "c", "address": "10.0.0.1",
        "port": 1, "cc": "reno", "dscp": 0, "start_ns": 0, "stop_ns": 2000000000}"#;
    const PROBE: &str = r#"{"id": 0, "name": "p", "kind": "icmp", "client": "c", "server": "s", "address": "10.0.0.1",
        "port": 0, "dscp": 0, "payload_bytes": 56, "start_ns": 0, "stop_ns": 2000000000, "interval_ns": 500000000,
        "jitter_ns": 0}"#;

    #[test]
    fn at_one_instant_samples_come_before_stops_and_the_end_is_last() {
        let all = agenda(
            r#"{"tcp_ns": 1000000000, "device_ns": 2000000000, "totals_ns": 2000000000, "packets": 0}"#,
            FLOW,
            "",
        );
        let expected = [
            (0, Action::SampleTcp),
            (0, Action::SampleDevices),
            (0, Action::Start(0)),
            (SECOND, Action::SampleTcp),
            (SECOND, Action::Heartbeat),
            (2 * SECOND, Action::SampleTcp),
            (2 * SECOND, Action::SampleDevices),
            (2 * SECOND, Action::Stop(0)),
            (2 * SECOND, Action::Heartbeat),
            (2 * SECOND, Action::End),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn sampling_switched_off_leaves_the_devices_start_and_end() {
        let all = agenda(r#"{"tcp_ns": 0, "device_ns": 0, "totals_ns": 0, "packets": 0}"#, "", "");
        let samples: Vec<i64> =
            all.iter().filter(|(_, a)| *a == Action::SampleDevices).map(|(t, _)| *t).collect();
        assert_eq!(samples, [0, 2 * SECOND]);
        assert!(!all.iter().any(|(_, action)| *action == Action::SampleTcp));
    }

    #[test]
    fn a_probe_sends_on_its_grid_and_not_at_its_stop() {
        let all = agenda(r#"{"tcp_ns": 0, "device_ns": 0, "totals_ns": 0, "packets": 0}"#, "", PROBE);
        let sent: Vec<_> = all.iter().filter(|(_, action)| matches!(action, Action::Probe(..))).collect();
        let half = SECOND / 2;
        let expected = [0, 1, 2, 3].map(|seq| (i64::from(seq) * half, Action::Probe(0, seq)));
        assert_eq!(sent, expected.iter().collect::<Vec<_>>());
    }
}
