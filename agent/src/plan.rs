// SPDX-License-Identifier: Apache-2.0
//! The plan. Its parts are generated from `src/hourglass/contract/plan/`, which describes them.
//!
//! Nothing has a default, and undeclared keys are refused: the agent does not execute a plan with a part that it would
//! ignore. (`tests/contract/test_plan.py` compares the two ends.) The relations between parts, such as the names of
//! nodes, are checked where a plan is made (`src/hourglass/contract/plan/rules.py`), and assumed here.

pub use crate::plan_parts::*;
use crate::report::{Failure, Result};
use crate::steps::{Act, Step, Work};

impl Writes {
    /// Returns the bytes of the first `count` writes together.
    pub fn bytes(self, count: u64) -> u64 {
        let [rate, interval] =
            [self.rate_bps, self.interval_ns].map(|value| u128::from(value.unsigned_abs()));
        let bits = (rate * interval).saturating_mul(count.into());
        u64::try_from(bits / (8 * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}

impl Plan {
    pub fn parse(text: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(text).map_err(Failure::plan)?;
        plan.check().map_err(Failure::plan)?;
        Ok(plan)
    }

    /// Returns how many events restart a program.
    pub fn event_restarts(&self, id: u16) -> usize {
        let steps = self.events.iter().flat_map(|event| &event.steps);
        steps.filter(|step| matches!(step.work, Work::App { app, act: Act::Restart } if app == id)).count()
    }

    /// Returns the streams of a kind, each with its common properties.
    pub fn flows(&self) -> impl Iterator<Item = (&Base, &Flow)> {
        self.streams.iter().filter_map(|stream| match &stream.traffic {
            Traffic::Flow(flow) => Some((&stream.base, flow)),
            _ => None,
        })
    }

    pub fn pings(&self) -> impl Iterator<Item = (&Base, &Ping)> {
        self.streams.iter().filter_map(|stream| match &stream.traffic {
            Traffic::Ping(ping) => Some((&stream.base, ping)),
            _ => None,
        })
    }

    pub fn datagrams(&self) -> impl Iterator<Item = (&Base, &Datagrams)> {
        self.streams.iter().filter_map(|stream| match &stream.traffic {
            Traffic::Datagrams(datagrams) => Some((&stream.base, datagrams)),
            _ => None,
        })
    }

    pub fn fetches(&self) -> impl Iterator<Item = (&Base, &Fetches)> {
        self.streams.iter().filter_map(|stream| match &stream.traffic {
            Traffic::Fetches(fetches) => Some((&stream.base, fetches)),
            _ => None,
        })
    }

    pub fn transactions(&self) -> impl Iterator<Item = (&Base, &Transactions)> {
        self.streams.iter().filter_map(|stream| match &stream.traffic {
            Traffic::Transactions(transactions) => Some((&stream.base, transactions)),
            _ => None,
        })
    }

    /// Returns whether the engine chooses steps during the test.
    pub fn has_decisions(&self) -> bool {
        self.steps().any(|step| matches!(step.work, Work::Decision { .. }))
    }

    /// Returns whether the plan needs the kernel's probe.
    pub fn wants_probe(&self) -> bool {
        self.sampling.tcp_ns > 0 || self.sampling.packets > 0 || !self.captures.is_empty()
    }

    /// Checks that each step has a node if it needs one, and is where it may be.
    fn check(&self) -> std::result::Result<(), String> {
        for Event { name, steps, .. } in &self.events {
            if steps.is_empty() {
                return Err(format!("event {name}: no steps"));
            }
            if let Some(step) = steps.iter().find(|step| !step.work.fits_event()) {
                return Err(format!("event {name}: a step {} belongs to the set-up", step.name()));
            }
        }
        if let Some(step) = self.setup.iter().find(|step| step.work.needs_event()) {
            return Err(format!("a step {} belongs to an event", step.name()));
        }
        match self.steps().find(|step| step.context.node.is_none() && step.work.needs_node()) {
            Some(step) => Err(format!("a step {} without a node", step.name())),
            None => Ok(()),
        }
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.setup.iter().chain(self.events.iter().flat_map(|event| &event.steps))
    }
}

impl Flow {
    /// Returns whether the data goes to the server of this flow.
    pub fn is_upload(&self, base: &Base) -> bool {
        self.sender == base.client
    }
}

#[cfg(test)]
mod tests {
    use super::Writes;

    #[test]
    fn writes_add_up_to_the_rate_in_integer_bytes() {
        let writes = Writes { rate_bps: 1_000_000, interval_ns: 16_666_667 };
        let sizes: Vec<u64> = (0..60).map(|count| writes.bytes(count + 1) - writes.bytes(count)).collect();
        assert_eq!(sizes[..3], [2083, 2083, 2084]);
        assert_eq!(sizes.iter().sum::<u64>(), 125_000);
        assert_eq!(Writes { rate_bps: i64::MAX, interval_ns: i64::MAX }.bytes(u64::MAX), u64::MAX);
    }
}
