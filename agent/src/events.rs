// SPDX-License-Identifier: Apache-2.0
//! The event queue: all timed actions of a run.
//!
//! Equal times have a fixed order, the order of `Action`'s variants: a sample at an instant sees the state before any
//! start, stop, change or packet of that instant. So the first sample of a flow's window is the last one without it,
//! and the sample at its stop is complete. Within one kind, the lower id comes first.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use crate::clock::SECOND;
use crate::jitter::jitter;
use crate::plan::{Phase, Plan, Stream, Traffic};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    SampleTcp,
    SampleDevices,
    /// Stops a stream, by its id.
    Stop(u16),
    /// Executes an event of the plan, by its index. At its instant streams stop before it and start after it.
    Change(usize),
    Start(u16),
    /// Sends a packet of a stream, by the stream's id and the packet's number.
    Send(u16, u32),
    Heartbeat,
    End,
}

/// The times at which a stream sends packets.
struct Schedule {
    phases: Vec<Span>,
    /// The number of packets at one instant.
    burst: u32,
    jitter_ns: i64,
    jitter_seed: u64,
}

/// A part of a schedule, with the number of its first instant.
struct Span {
    first_instant: i64,
    start_ns: i64,
    stop_ns: i64,
    interval_ns: i64,
}

impl Schedule {
    /// Returns the schedule of a stream; None if the stream is only started and stopped.
    fn of(stream: &Stream) -> Option<Self> {
        match &stream.traffic {
            Traffic::Flow(_) | Traffic::Fetches(_) | Traffic::Transactions(_) => None,
            Traffic::Ping(ping) => {
                let (start_ns, stop_ns) = (stream.base.start_ns, stream.base.stop_ns);
                let phase = Phase { start_ns, stop_ns, interval_ns: ping.interval_ns };
                let phases = spans(&[phase]);
                Some(Self { phases, burst: 1, jitter_ns: ping.jitter_ns, jitter_seed: ping.jitter_seed })
            }
            Traffic::Datagrams(plan) => {
                let phases = spans(&plan.phases);
                Some(Self { phases, burst: plan.burst, jitter_ns: 0, jitter_seed: 0 })
            }
        }
    }

    /// Returns the time of a packet; None if this is at the stop or later.
    fn time(&self, seq: u32) -> Option<i64> {
        let instant = i64::from(seq / self.burst);
        let after = self.phases.partition_point(|span| span.first_instant <= instant);
        let span = &self.phases[after.checked_sub(1)?];
        let grid_time =
            (instant - span.first_instant).checked_mul(span.interval_ns)?.checked_add(span.start_ns)?;
        let time = grid_time.checked_add(jitter(self.jitter_seed, seq, self.jitter_ns))?;
        (time < span.stop_ns).then_some(time)
    }
}

fn spans(phases: &[Phase]) -> Vec<Span> {
    let mut first_instant = 0;
    let span = |phase: &Phase| {
        let Phase { start_ns, stop_ns, interval_ns } = *phase;
        let span = Span { first_instant, start_ns, stop_ns, interval_ns };
        first_instant += (stop_ns - start_ns - 1) / interval_ns + 1;
        span
    };
    phases.iter().map(span).collect()
}

pub struct Events {
    queue: BinaryHeap<Reverse<(i64, Action)>>,
    /// The schedules by id.
    schedules: Vec<Option<Schedule>>,
    end_ns: i64,
    tcp_ns: i64,
    device_ns: i64,
}

impl Events {
    /// Creates the queue. `tcp`: the agent samples sockets, because the kernel does not.
    pub fn new(plan: &Plan, tcp: bool) -> Self {
        let mut events = Self {
            queue: BinaryHeap::new(),
            schedules: plan.streams.iter().map(Schedule::of).collect(),
            end_ns: plan.end_ns,
            tcp_ns: plan.sampling.tcp_ns,
            device_ns: plan.sampling.device_ns,
        };
        if tcp && events.tcp_ns > 0 {
            events.add(0, Action::SampleTcp);
        }
        events.add(0, Action::SampleDevices);
        // a qdisc's counters end with it, so they are read before each change
        let changes: BTreeSet<i64> = plan.events.iter().map(|event| event.at_ns).collect();
        for at_ns in changes.into_iter().chain([plan.end_ns]) {
            if !events.is_device_sample_time(at_ns) {
                events.add(at_ns, Action::SampleDevices);
            }
        }
        for (index, event) in plan.events.iter().enumerate() {
            events.add(event.at_ns, Action::Change(index));
        }
        for base in plan.streams.iter().map(|stream| &stream.base) {
            if events.schedules[usize::from(base.id)].is_some() {
                events.add_packet(base.id, 0);
            } else {
                events.add(base.start_ns, Action::Start(base.id));
                events.add(base.stop_ns, Action::Stop(base.id));
            }
        }
        events.add(SECOND, Action::Heartbeat);
        events.add(plan.end_ns, Action::End);
        events
    }

    /// Returns the next action, until the end of the test.
    pub fn pop(&mut self) -> Option<(i64, Action)> {
        let Reverse((time, action)) = self.queue.pop()?;
        match action {
            Action::SampleTcp => self.add(time + self.tcp_ns, action),
            Action::SampleDevices if self.device_ns > 0 && self.is_device_sample_time(time) => {
                self.add(time + self.device_ns, action);
            }
            Action::Send(id, seq) => self.add_packet(id, seq + 1),
            Action::Heartbeat => self.add(time + SECOND, action),
            Action::End => self.queue.clear(),
            Action::SampleDevices | Action::Stop(_) | Action::Change(_) | Action::Start(_) => {}
        }
        Some((time, action))
    }

    /// Returns the time of the next action, or the end of the test without one.
    pub fn next_ns(&self) -> i64 {
        self.queue.peek().map_or(self.end_ns, |Reverse((time, _))| *time)
    }

    /// Returns whether devices are sampled at this time.
    fn is_device_sample_time(&self, time: i64) -> bool {
        time == 0 || (self.device_ns > 0 && time % self.device_ns == 0)
    }

    fn add(&mut self, time: i64, action: Action) {
        if time <= self.end_ns {
            self.queue.push(Reverse((time, action)));
        }
    }

    fn add_packet(&mut self, id: u16, seq: u32) {
        let schedule = self.schedules[usize::from(id)].as_ref();
        if let Some(time) = schedule.and_then(|schedule| schedule.time(seq)) {
            self.add(time, Action::Send(id, seq));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_plans::{datagrams_in, fetches, flow, icmp, plan_with};
    use serde_json::{json, Value};

    fn events(tcp_ns: i64, device_ns: i64, streams: &[Value]) -> Vec<(i64, Action)> {
        let sampling = json!({"tcp_ns": tcp_ns, "device_ns": device_ns, "totals_ns": 0, "packets": 0});
        let mut events = Events::new(&plan_with(streams, &json!({"sampling": sampling})), true);
        std::iter::from_fn(|| events.pop()).collect()
    }

    #[test]
    fn at_one_instant_samples_come_before_stops_and_the_end_is_last() {
        let actions = events(SECOND, 2 * SECOND, &[flow(0, "c"), fetches(1)]);
        let expected = [
            (0, Action::SampleTcp),
            (0, Action::SampleDevices),
            (0, Action::Start(0)),
            (0, Action::Start(1)),
            (SECOND, Action::SampleTcp),
            (SECOND, Action::Heartbeat),
            (2 * SECOND, Action::SampleTcp),
            (2 * SECOND, Action::SampleDevices),
            (2 * SECOND, Action::Stop(0)),
            (2 * SECOND, Action::Stop(1)),
            (2 * SECOND, Action::Heartbeat),
            (2 * SECOND, Action::End),
        ];
        assert_eq!(actions, expected);
    }

    #[test]
    fn a_change_follows_samples_and_stops_and_precedes_starts_and_packets() {
        let step = json!({"do": "tc", "node": "c", "lines": [], "origin": null});
        let event = |at_ns: i64| json!({"at_ns": at_ns, "node": "c", "name": "x", "steps": [step]});
        let sampling = json!({"tcp_ns": 0, "device_ns": SECOND, "totals_ns": 0, "packets": 0});
        let changes = [event(SECOND / 2), event(SECOND / 2), event(SECOND)];
        let mut late = flow(1, "c");
        late["start_ns"] = json!(SECOND / 2);
        let mut early = flow(0, "c");
        early["stop_ns"] = json!(SECOND / 2);
        let plan = plan_with(&[early, late, icmp(2)], &json!({"sampling": sampling, "events": changes}));
        let mut events = Events::new(&plan, true);
        let actions: Vec<_> = std::iter::from_fn(|| events.pop()).collect();
        let half: Vec<Action> = actions.iter().filter(|(t, _)| *t == SECOND / 2).map(|(_, a)| *a).collect();
        let expected = [
            Action::SampleDevices,
            Action::Stop(0),
            Action::Change(0),
            Action::Change(1),
            Action::Start(1),
            Action::Send(2, 1),
        ];
        assert_eq!(half, expected);
        let samples: Vec<i64> =
            actions.iter().filter(|(_, a)| *a == Action::SampleDevices).map(|(t, _)| *t).collect();
        assert_eq!(samples, [0, SECOND / 2, SECOND, 2 * SECOND]);
    }

    #[test]
    fn without_sampling_devices_are_sampled_at_start_and_end() {
        let actions = events(0, 0, &[]);
        let samples: Vec<i64> =
            actions.iter().filter(|(_, a)| *a == Action::SampleDevices).map(|(t, _)| *t).collect();
        assert_eq!(samples, [0, 2 * SECOND]);
        assert!(!actions.iter().any(|(_, action)| *action == Action::SampleTcp));
    }

    #[test]
    fn a_ping_is_sent_on_its_grid_and_not_at_its_stop() {
        let actions = events(0, 0, &[icmp(0)]);
        let sent: Vec<_> = actions.iter().filter(|(_, action)| matches!(action, Action::Send(..))).collect();
        let half = SECOND / 2;
        let expected = [0, 1, 2, 3].map(|seq| (i64::from(seq) * half, Action::Send(0, seq)));
        assert_eq!(sent, expected.iter().collect::<Vec<_>>());
    }

    #[test]
    fn datagrams_leave_in_bursts_on_the_grid_of_each_phase_with_consecutive_numbers() {
        let ms = 1_000_000;
        let phases = json!([
            {"start_ns": 0, "stop_ns": 250 * ms, "interval_ns": 100 * ms},
            {"start_ns": 250 * ms, "stop_ns": 251 * ms, "interval_ns": SECOND},
            {"start_ns": SECOND, "stop_ns": SECOND + 100 * ms, "interval_ns": 50 * ms},
        ]);
        let actions = events(0, 0, &[datagrams_in(0, 2, &phases)]);
        let sent = actions.iter().filter_map(|(time, action)| match action {
            Action::Send(_, seq) => Some((time / ms, *seq)),
            _ => None,
        });
        let instants = [0, 100, 200, 250, 1000, 1050];
        let expected = instants.iter().zip(0u32..).flat_map(|(ms, n)| [(*ms, 2 * n), (*ms, 2 * n + 1)]);
        assert_eq!(sent.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }
}
