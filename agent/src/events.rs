// SPDX-License-Identifier: Apache-2.0
//! The event queue: all timed actions of a run.
//!
//! Equal times have a fixed order, the order of `Action`'s variants: what a sample sees at an instant is the state
//! before anything starts, stops or is sent at it. So the first sample of a flow's window is the last one without it,
//! and the sample at its stop is whole. Of one kind, the lower id comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::SECOND;
use crate::jitter::jitter;
use crate::plan::{Plan, Stream, Traffic};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    SampleTcp,
    SampleDevices,
    /// A stream, by its id.
    Stop(u16),
    Start(u16),
    /// A stream, and the number of its packet.
    Send(u16, u32),
    Heartbeat,
    End,
}

/// When the packets of a stream are sent.
struct Schedule {
    start_ns: i64,
    stop_ns: i64,
    interval_ns: i64,
    jitter_ns: i64,
    jitter_seed: u64,
}

impl Schedule {
    /// None: a stream that is started and stopped.
    fn of(stream: &Stream) -> Option<Self> {
        let (interval_ns, jitter_ns, jitter_seed) = match &stream.traffic {
            Traffic::Flow(_) | Traffic::Fetches(_) | Traffic::Transactions(_) => return None,
            Traffic::Ping(ping) => (ping.interval_ns, ping.jitter_ns, ping.jitter_seed),
            Traffic::Datagrams(datagrams) => (datagrams.interval_ns, 0, 0),
        };
        let (start_ns, stop_ns) = (stream.base.start_ns, stream.base.stop_ns);
        Some(Self { start_ns, stop_ns, interval_ns, jitter_ns, jitter_seed })
    }

    /// None: it would be at the stop or later.
    fn time(&self, seq: u32) -> Option<i64> {
        let on_the_grid = i64::from(seq).checked_mul(self.interval_ns)?.checked_add(self.start_ns)?;
        let time = on_the_grid.checked_add(jitter(self.jitter_seed, seq, self.jitter_ns))?;
        (time < self.stop_ns).then_some(time)
    }
}

pub struct Events {
    queue: BinaryHeap<Reverse<(i64, Action)>>,
    /// By id.
    schedules: Vec<Option<Schedule>>,
    end_ns: i64,
    tcp_ns: i64,
    device_ns: i64,
}

impl Events {
    /// `tcp`: whether samples of sockets are to be taken here; if not, the kernel takes them itself.
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
        if events.device_ns == 0 || plan.end_ns % events.device_ns != 0 {
            events.add(plan.end_ns, Action::SampleDevices);
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

    /// What comes next, until the end of the test.
    pub fn pop(&mut self) -> Option<(i64, Action)> {
        let Reverse((time, action)) = self.queue.pop()?;
        match action {
            Action::SampleTcp => self.add(time + self.tcp_ns, action),
            Action::SampleDevices if self.device_ns > 0 => self.add(time + self.device_ns, action),
            Action::Send(id, seq) => self.add_packet(id, seq + 1),
            Action::Heartbeat => self.add(time + SECOND, action),
            Action::End => self.queue.clear(),
            Action::SampleDevices | Action::Stop(_) | Action::Start(_) => {}
        }
        Some((time, action))
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
    use crate::small::{changed, fetches, flow, icmp};
    use serde_json::{json, Value};

    fn events(tcp_ns: i64, device_ns: i64, streams: &[Value]) -> Vec<(i64, Action)> {
        let sampling = json!({"tcp_ns": tcp_ns, "device_ns": device_ns, "totals_ns": 0, "packets": 0});
        let mut events = Events::new(&changed(streams, &json!({"sampling": sampling})), true);
        std::iter::from_fn(|| events.pop()).collect()
    }

    #[test]
    fn at_one_instant_samples_come_before_stops_and_the_end_is_last() {
        let all = events(SECOND, 2 * SECOND, &[flow(0, "c"), fetches(1)]);
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
        assert_eq!(all, expected);
    }

    #[test]
    fn sampling_switched_off_leaves_the_devices_start_and_end() {
        let all = events(0, 0, &[]);
        let samples: Vec<i64> =
            all.iter().filter(|(_, a)| *a == Action::SampleDevices).map(|(t, _)| *t).collect();
        assert_eq!(samples, [0, 2 * SECOND]);
        assert!(!all.iter().any(|(_, action)| *action == Action::SampleTcp));
    }

    #[test]
    fn a_ping_is_sent_on_its_grid_and_not_at_its_stop() {
        let all = events(0, 0, &[icmp(0)]);
        let sent: Vec<_> = all.iter().filter(|(_, action)| matches!(action, Action::Send(..))).collect();
        let half = SECOND / 2;
        let expected = [0, 1, 2, 3].map(|seq| (i64::from(seq) * half, Action::Send(0, seq)));
        assert_eq!(sent, expected.iter().collect::<Vec<_>>());
    }
}
