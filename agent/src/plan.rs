// SPDX-License-Identifier: Apache-2.0
//! The plan: this end of the contract whose other end is `src/hourglass/contract/plan.py`, where its parts are described.
//!
//! Nothing has a default, and what is not declared is refused: a plan that says something the agent would ignore is a
//! plan that is not executed. (`tests/contract/test_plan.py` holds the two ends to each other.)

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::app_plan::{self, App, Room, Root};
use crate::plan_values::{
    address, count, dscp, file_name, interface, ns, pace, payload, positive, positives, present, present_ns,
    size, split, version,
};
use crate::report::{Failure, Result};
use crate::steps::{Act, Step, Work};

const UDP_PING_PAYLOAD_MIN: usize = 16;
const DATAGRAM_PAYLOAD_MIN: usize = 4;
const REQUEST_MIN: usize = 8;
const STREAMS_MAX: usize = 16384;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    #[serde(deserialize_with = "version")]
    version: u32,
    pub seed: u64,
    #[serde(deserialize_with = "ns")]
    pub end_ns: i64,
    pub nodes: Vec<String>,
    pub setup: Vec<Step>,
    pub streams: Vec<Stream>,
    pub paths: Vec<Path>,
    pub sampling: Sampling,
    pub captures: Vec<Capture>,
    pub radios: Vec<Radio>,
    pub events: Vec<Event>,
    pub roots: Vec<Root>,
    pub rooms: Vec<Room>,
    pub apps: Vec<App>,
    /// Whether the test ends with the programs that it waits for.
    pub apps_end: bool,
}

/// What is done during the test, and when.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    #[serde(deserialize_with = "ns")]
    pub at_ns: i64,
    pub node: String,
    pub name: String,
    pub steps: Vec<Step>,
}

/// Traffic that is measured.
#[derive(Debug, Clone, Serialize)]
pub struct Stream {
    #[serde(flatten)]
    pub base: Base,
    #[serde(flatten)]
    pub traffic: Traffic,
}

/// What every stream has.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Base {
    pub id: u16,
    pub name: String,
    pub client: String,
    pub server: String,
    #[serde(deserialize_with = "address")]
    pub address: IpAddr,
    pub port: u16,
    #[serde(deserialize_with = "dscp")]
    pub dscp: u8,
    #[serde(deserialize_with = "ns")]
    pub start_ns: i64,
    #[serde(deserialize_with = "ns")]
    pub stop_ns: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Traffic {
    Flow(Flow),
    Ping(Ping),
    Datagrams(Datagrams),
    Fetches(Fetches),
    Transactions(Transactions),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    pub sender: String,
    pub cc: String,
    #[serde(deserialize_with = "pace")]
    pub pace_bps: Option<u64>,
    #[serde(deserialize_with = "present")]
    pub writes: Option<Writes>,
    pub backend: Backend,
}

/// What an application writes, each interval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writes {
    #[serde(deserialize_with = "positive")]
    pub rate_bps: i64,
    #[serde(deserialize_with = "positive")]
    pub interval_ns: i64,
}

impl Writes {
    /// The bytes of the first so many writes together.
    pub fn bytes(self, count: u64) -> u64 {
        let [rate, interval] =
            [self.rate_bps, self.interval_ns].map(|value| u128::from(value.unsigned_abs()));
        let bits = (rate * interval).saturating_mul(count.into());
        u64::try_from(bits / (8 * 1_000_000_000)).unwrap_or(u64::MAX)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    Socket,
    Load,
}

/// What a sender writes into the ECN field, by its number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ecn {
    NotEct = 0,
    Ect1 = 1,
    Ect0 = 2,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    pub protocol: Protocol,
    pub ecn: Ecn,
    #[serde(deserialize_with = "payload")]
    pub payload_bytes: usize,
    #[serde(deserialize_with = "positive")]
    pub interval_ns: i64,
    #[serde(deserialize_with = "ns")]
    pub jitter_ns: i64,
    pub jitter_seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Icmp,
    Udp,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Datagrams {
    pub ecn: Ecn,
    #[serde(deserialize_with = "payload")]
    pub payload_bytes: usize,
    #[serde(deserialize_with = "count")]
    pub burst: u32,
    pub phases: Vec<Phase>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_field_names, reason = "the unit of each, as in the plan")]
pub struct Phase {
    #[serde(deserialize_with = "ns")]
    pub start_ns: i64,
    #[serde(deserialize_with = "ns")]
    pub stop_ns: i64,
    #[serde(deserialize_with = "positive")]
    pub interval_ns: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fetches {
    pub cc: String,
    #[serde(deserialize_with = "payload")]
    pub request_bytes: usize,
    #[serde(deserialize_with = "positives")]
    pub sizes: Vec<u64>,
    #[serde(deserialize_with = "positive")]
    pub interval_ns: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transactions {
    pub cc: String,
    #[serde(deserialize_with = "size")]
    pub request_bytes: u64,
    #[serde(deserialize_with = "size")]
    pub response_bytes: u64,
}

/// For those who read the plan beside the records: nothing here is executed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Path {
    client: String,
    server: String,
    there: Vec<Hop>,
    back: Vec<Hop>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hop {
    node: String,
    device: String,
    #[serde(deserialize_with = "interface")]
    address: String,
    to_node: String,
    to_device: String,
    #[serde(deserialize_with = "interface")]
    to_address: String,
    medium: Medium,
    #[serde(deserialize_with = "ns")]
    line_bps: i64,
    #[serde(deserialize_with = "present_ns")]
    shaper_bps: Option<i64>,
    #[serde(deserialize_with = "ns")]
    rate_bps: i64,
    #[serde(deserialize_with = "ns")]
    delay_ns: i64,
    qdisc: String,
    #[serde(deserialize_with = "present")]
    ingress: Option<String>,
    impairments: Vec<String>,
    origin: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Medium {
    Cable,
    Air,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    #[serde(deserialize_with = "ns")]
    pub tcp_ns: i64,
    #[serde(deserialize_with = "ns")]
    pub device_ns: i64,
    #[serde(deserialize_with = "ns")]
    pub totals_ns: i64,
    pub packets: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capture {
    pub node: String,
    pub device: String,
    #[serde(deserialize_with = "file_name")]
    pub file: String,
    pub snaplen: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Radio {
    pub phy: String,
    pub node: String,
    pub device: String,
    pub address: String,
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        split(deserializer).map(|(base, traffic)| Self { base, traffic })
    }
}

impl Plan {
    pub fn parse(text: &[u8]) -> Result<Self> {
        let plan: Self = serde_json::from_slice(text).map_err(|error| Failure::of("plan", error))?;
        plan.check().map_err(|message| Failure::of("plan", message))?;
        Ok(plan)
    }

    /// How many events start a program again.
    pub fn revivals(&self, id: u16) -> usize {
        let steps = self.events.iter().flat_map(|event| &event.steps);
        steps.filter(|step| matches!(step.work, Work::App { app, act: Act::Restart } if app == id)).count()
    }

    /// The streams of a kind, each with what every stream has.
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

    /// Whether anything is asked for that the kernel's probe gives.
    pub fn wants_probe(&self) -> bool {
        self.sampling.tcp_ns > 0 || self.sampling.packets > 0 || !self.captures.is_empty()
    }

    /// What no single part shows.
    fn check(&self) -> std::result::Result<(), String> {
        unique("nodes", self.nodes.iter())?;
        unique("streams", self.streams.iter().map(|stream| &stream.base.name))?;
        unique("paths", self.paths.iter().map(|path| (&path.client, &path.server)))?;
        unique("captures", self.captures.iter().map(|capture| &capture.file))?;
        unique("captures", self.captures.iter().map(|capture| (&capture.node, &capture.device)))?;
        self.check_nodes()?;
        self.check_events()?;
        app_plan::check(&self.nodes, &self.roots, &self.rooms, &self.apps, self.end_ns)?;
        self.check_app_steps()?;
        require(self.streams.len() <= STREAMS_MAX, || format!("more than {STREAMS_MAX} streams"))?;
        for (place, stream) in self.streams.iter().enumerate() {
            let base = &stream.base;
            stream.check(place, self.end_ns).map_err(|message| format!("stream {}: {message}", base.name))?;
            let mut pairs = self.paths.iter().map(|path| (&path.client, &path.server));
            let has_path = pairs.any(|pair| pair == (&base.client, &base.server));
            require(has_path, || format!("stream {} has no path", base.name))?;
        }
        Ok(())
    }

    fn check_events(&self) -> std::result::Result<(), String> {
        let mut last_ns = 0;
        for Event { at_ns, name, steps, .. } in &self.events {
            require(last_ns <= *at_ns && *at_ns < self.end_ns, || {
                "events are not in the order of their times, or not before end_ns".into()
            })?;
            require(!steps.is_empty(), || format!("event {name}: no steps"))?;
            let alien = steps.iter().find(|step| !step.work.is_of_an_event());
            require(alien.is_none(), || {
                format!("event {name}: a step {} belongs to the set-up", alien.map_or("", Step::name))
            })?;
            last_ns = *at_ns;
        }
        Ok(())
    }

    fn check_app_steps(&self) -> std::result::Result<(), String> {
        let node_of = |id: u16| {
            let app = self.apps.get(usize::from(id))?;
            Some(self.rooms.get(app.room as usize)?.node.as_str())
        };
        for step in self.steps() {
            if let Work::App { app, .. } = step.work {
                let known = node_of(app).is_some_and(|node| step.node() == Some(node));
                require(known, || format!("an event names app {app}, which is not there"))?;
            }
        }
        let lost = self.setup.iter().find(|step| matches!(step.work, Work::App { .. }));
        require(lost.is_none(), || "a step app is of an event".into())
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.setup.iter().chain(self.events.iter().flat_map(|event| &event.steps))
    }

    fn check_nodes(&self) -> std::result::Result<(), String> {
        let nodes: BTreeSet<&String> = self.nodes.iter().collect();
        let steps = self.steps().filter_map(|step| Some(("a step".to_owned(), step.place.node.as_ref()?)));
        let events = self.events.iter().map(|event| ("an event".to_owned(), &event.node));
        let radios = self.radios.iter().map(|radio| (format!("radio {}", radio.phy), &radio.node));
        let captures = self.captures.iter().map(|capture| ("a capture".to_owned(), &capture.node));
        let streams = self.streams.iter().map(|stream| &stream.base);
        let streams = streams.flat_map(|base| {
            [&base.client, &base.server].map(|node| (format!("stream {}", base.name), node))
        });
        for (what, node) in steps.chain(events).chain(radios).chain(captures).chain(streams) {
            require(nodes.contains(node), || format!("{what} names the node {node}, which is not in nodes"))?;
        }
        let lost = self.steps().find(|step| step.place.node.is_none() && step.work.is_of_a_node());
        require(lost.is_none(), || format!("a step {} without a node", lost.map_or("", Step::name)))
    }
}

impl Stream {
    fn check(&self, place: usize, end_ns: i64) -> std::result::Result<(), String> {
        let base = &self.base;
        require(usize::from(base.id) == place, || format!("its id {} is not its place {place}", base.id))?;
        require(base.start_ns < base.stop_ns && base.stop_ns <= end_ns, || {
            "start_ns < stop_ns <= end_ns does not hold".into()
        })?;
        let least = |name: &str, bytes: usize, least: usize| {
            require(bytes >= least, || format!("{name} {bytes} is below {least}"))
        };
        match &self.traffic {
            Traffic::Flow(flow) => require([&base.client, &base.server].contains(&&flow.sender), || {
                format!("its sender {} is neither its client nor its server", flow.sender)
            }),
            Traffic::Ping(ping) => {
                require(ping.jitter_ns <= ping.interval_ns, || "jitter_ns is above interval_ns".into())?;
                let udp = ping.protocol == Protocol::Udp;
                least("payload_bytes", ping.payload_bytes, if udp { UDP_PING_PAYLOAD_MIN } else { 0 })
            }
            Traffic::Datagrams(plan) => {
                least("payload_bytes", plan.payload_bytes, DATAGRAM_PAYLOAD_MIN)?;
                require(!plan.phases.is_empty(), || "no phases".into())?;
                let follow = plan.phases.iter().try_fold(base.start_ns, |from, phase| {
                    (from <= phase.start_ns && phase.start_ns < phase.stop_ns).then_some(phase.stop_ns)
                });
                require(follow.is_some_and(|end| end <= base.stop_ns), || {
                    "its phases do not follow one another from start_ns to stop_ns".into()
                })
            }
            Traffic::Fetches(plan) => {
                require(!plan.sizes.is_empty(), || "no sizes".into())?;
                least("request_bytes", plan.request_bytes, REQUEST_MIN)
            }
            Traffic::Transactions(_) => Ok(()),
        }
    }
}

impl Flow {
    /// Whether the data go to the server of this flow.
    pub fn upload(&self, base: &Base) -> bool {
        self.sender == base.client
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

fn require(holds: bool, message: impl FnOnce() -> String) -> std::result::Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(message())
    }
}

#[cfg(test)]
mod tests {
    use super::Writes;

    #[test]
    fn what_is_written_adds_up_to_the_rate_in_whole_bytes() {
        let writes = Writes { rate_bps: 1_000_000, interval_ns: 16_666_667 };
        let sizes: Vec<u64> = (0..60).map(|count| writes.bytes(count + 1) - writes.bytes(count)).collect();
        assert_eq!(sizes[..3], [2083, 2083, 2084]);
        assert_eq!(sizes.iter().sum::<u64>(), 125_000);
        assert_eq!(Writes { rate_bps: i64::MAX, interval_ns: i64::MAX }.bytes(u64::MAX), u64::MAX);
    }
}
