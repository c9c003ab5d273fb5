// SPDX-License-Identifier: Apache-2.0
//! The test itself: one thread executes all timed actions, in the order of the event queue.
//!
//! A sample is labelled with the instant at which it is due.

use std::path::Path;

use crate::apps::Apps;
use crate::capture::Captures;
use crate::changes::Changes;
use crate::clock::Epoch;
use crate::container::Container;
use crate::counters::Counters;
use crate::daemon::Daemons;
use crate::datagram::Datagrams;
use crate::decision::Decisions;
use crate::device::Devices;
use crate::diag::Diag;
use crate::events::{Action, Events};
use crate::facts::Facts;
use crate::fetch::Fetches;
use crate::flow::Flows;
use crate::namespaces::Namespaces;
use crate::netns::Nodes;
use crate::node_cpu::NodeCpu;
use crate::ping::Pings;
use crate::plan::Plan;
use crate::probe::{self, ProbeReader};
use crate::radio::Radios;
use crate::records::{Records, Shared};
use crate::report::{self, Failure, Result, Sender};
use crate::steps::{Step, Work};
use crate::streams::{Endpoint, Streams};
use crate::tcp_row::Socket;
use crate::transaction::Transactions;
use crate::{setup, sys};

/// The result of the set-up, and the folder for the run's files.
pub struct Prepared<'a> {
    pub nodes: &'a Nodes,
    pub daemons: Daemons,
    pub containers: Vec<Container>,
    pub out: &'a Path,
    /// The program that has the machine's second console.
    pub terminal: Option<&'a str>,
}

pub struct TestLoop<'a> {
    nodes: &'a Nodes,
    epoch: Epoch,
    /// The streams of every kind.
    streams: Vec<Box<dyn Streams>>,
    events: Events,
    probe_reader: Option<ProbeReader>,
    /// The readers of sockets, for the nodes with flows; empty if the kernel samples sockets itself and the engine
    /// chooses no steps.
    sockets: Vec<(String, Diag)>,
    devices: Vec<Devices>,
    cpus: Vec<NodeCpu>,
    /// The time of the latest sample of devices.
    sampled_ns: i64,
    namespaces: Namespaces,
    radios: Radios,
    daemons: Daemons,
    changes: Changes,
    decisions: Option<Decisions>,
    apps: Option<Apps>,
    records: Shared,
}

impl<'a> TestLoop<'a> {
    /// Opens everything that the test needs. The calling thread ends in the first namespace. `start`: the test's start,
    /// if the coordinator decides it.
    pub fn prepare(
        plan: &Plan,
        site: Prepared<'a>,
        facts: &Facts,
        mut records: Records,
        captures: Captures,
        start: Option<Epoch>,
    ) -> Result<Self> {
        let Prepared { nodes, daemons, containers, out, terminal } = site;
        let probe = probe::open(plan)?;
        let samples_tcp = probe.is_none();
        facts.write(&mut records)?;
        let records = Shared::new(records);
        let epoch = start.unwrap_or_else(Epoch::next);
        setup::announce(epoch, &plan.setup, nodes)?;
        let streams: Vec<Box<dyn Streams>> = vec![
            Box::new(Pings::prepare(plan, nodes)?),
            Box::new(Flows::prepare(plan, nodes, epoch)?),
            Box::new(Datagrams::prepare(plan, nodes)?),
            Box::new(Fetches::prepare(plan, nodes, epoch)?),
            Box::new(Transactions::prepare(plan, nodes, epoch)?),
        ];
        let (mut sockets, mut devices, mut cpus) = (Vec::new(), Vec::new(), Vec::new());
        for name in nodes.names() {
            nodes.enter(Some(name))?;
            let node_devices = Devices::open(name).and_then(Devices::with_baseline);
            devices.push(node_devices.map_err(|error| Failure::system("route netlink", error))?);
            cpus.extend(NodeCpu::open(name)?);
            if (samples_tcp || plan.has_decisions())
                && plan.flows().any(|(base, _)| base.client == name || base.server == name)
            {
                let diag = Diag::open().map_err(|error| Failure::system("sock_diag", error))?;
                sockets.push((name.to_owned(), diag));
            }
        }
        let namespaces = Namespaces::new(&plan.nodes, &containers, probe.is_some());
        let start = |probe| {
            ProbeReader::start(probe, plan, nodes, epoch, captures, namespaces.clone(), records.clone())
        };
        let probe_reader = probe.map(start).transpose()?;
        nodes.enter(None)?;
        let radios = Radios::open(&plan.radios)?;
        let events = Events::new(plan, samples_tcp);
        let apps = Apps::start(plan, containers, epoch, records.clone(), namespaces.clone(), out, terminal)?;
        let changes =
            Changes::prepare(&plan.events, nodes, &daemons, apps.as_ref().map(Apps::handle), epoch)?;
        let decisions = plan.has_decisions().then(|| Decisions::open(out)).transpose()?;
        Ok(Self {
            nodes,
            epoch,
            streams,
            events,
            probe_reader,
            sockets,
            devices,
            cpus,
            sampled_ns: -1,
            namespaces,
            radios,
            daemons,
            changes,
            decisions,
            apps,
            records,
        })
    }

    /// Runs the test; returns the test time at which it ended.
    pub fn run(mut self) -> Result<i64> {
        report::ready(self.epoch.monotonic_ns);
        sys::set_realtime_priority();
        self.epoch.sleep_until(0);
        let counters = Counters::baseline(self.nodes, &mut self.devices)?;
        self.radios.set_baseline()?;
        let mut now = -1;
        while let Some((t_ns, action)) = self.events.pop() {
            if t_ns > now {
                if self.sleep_until(t_ns)? {
                    now = self.epoch.now();
                    if self.sampled_ns < now && (self.namespaces.exist() || !self.cpus.is_empty()) {
                        self.sample_devices(now)?;
                    }
                    counters.write(now, self.nodes, &mut self.devices, &mut self.records.lock())?;
                    break;
                }
                now = t_ns;
            }
            match action {
                Action::SampleTcp => self.sample_tcp(t_ns)?,
                Action::SampleDevices => self.sample_devices(t_ns)?,
                Action::Stop(id) => self.streams.iter_mut().for_each(|streams| streams.stop(id)),
                Action::Change(index) => {
                    let steps = self.steps(index, t_ns)?;
                    self.changes.carry_out(steps, self.events.next_ns().max(t_ns + 1))?;
                }
                Action::Start(id) => self.streams.iter_mut().for_each(|streams| streams.start(id)),
                Action::Send(id, seq) => {
                    self.streams.iter_mut().try_for_each(|streams| streams.send(id, seq))?;
                }
                Action::Heartbeat => {
                    self.collect()?;
                    self.daemons.check()?;
                    self.changes.check()?;
                    report::time(t_ns);
                }
                Action::End => {
                    counters.write(t_ns, self.nodes, &mut self.devices, &mut self.records.lock())?;
                }
            }
        }
        self.changes.check()?;
        self.collect()?;
        if let Some(probe_reader) = self.probe_reader {
            probe_reader.finish()?;
        }
        if let Some(apps) = self.apps {
            apps.finish()?;
        }
        let mut records = self.records.lock();
        self.streams.iter().try_for_each(|streams| streams.write(self.epoch, &mut records))?;
        self.changes.write(&mut records)?;
        records.finish()?;
        Ok(now)
    }

    /// Sleeps until `t_ns`; returns whether the programs that the test waits for ended before.
    fn sleep_until(&self, t_ns: i64) -> Result<bool> {
        if let Some(apps) = &self.apps {
            return apps.sleep_until(self.epoch, t_ns);
        }
        self.epoch.sleep_until(t_ns);
        Ok(false)
    }

    fn collect(&mut self) -> Result<()> {
        self.streams.iter_mut().try_for_each(|streams| streams.collect())
    }

    /// Returns the steps of an event. Those of a decision come from the engine, which gets the state of the senders.
    fn steps(&mut self, index: usize, t_ns: i64) -> Result<Vec<Step>> {
        let (Some(decisions), [Step { work: Work::Decision { number }, .. }]) =
            (&mut self.decisions, self.changes.steps(index))
        else {
            return Ok(self.changes.steps(index).to_vec());
        };
        let mut senders = Vec::new();
        query(&mut self.sockets, &self.streams, |endpoint, socket| {
            if endpoint.sender {
                senders.push(Sender { stream: endpoint.stream, state: socket.state() });
            }
            Ok(())
        })?;
        report::decision(*number, t_ns, &senders);
        decisions.await_steps(*number)
    }

    fn sample_tcp(&mut self, t_ns: i64) -> Result<()> {
        let mut records = self.records.lock();
        query(&mut self.sockets, &self.streams, |endpoint, socket| {
            socket.write(t_ns, endpoint.stream, endpoint.sender, &mut records)
        })
    }

    fn sample_devices(&mut self, t_ns: i64) -> Result<()> {
        self.sampled_ns = t_ns;
        let mut records = self.records.lock();
        self.devices.iter_mut().try_for_each(|devices| devices.sample(t_ns, &mut records))?;
        self.cpus.iter().try_for_each(|cpu| cpu.sample(t_ns, &mut records))?;
        self.namespaces.sample(t_ns, &mut records)?;
        self.radios.sample(t_ns, &mut records)
    }
}

/// Passes the state of each end of a connection to `each`.
fn query(
    sockets: &mut [(String, Diag)],
    streams: &[Box<dyn Streams>],
    mut each: impl FnMut(&Endpoint, &Socket) -> Result<()>,
) -> Result<()> {
    let active: Vec<Endpoint> = streams.iter().flat_map(|streams| streams.endpoints()).collect();
    for (node, diag) in sockets {
        let endpoints: Vec<&Endpoint> = active.iter().filter(|endpoint| endpoint.node == node).collect();
        let mut result = Ok(());
        let query_result = diag.query(&endpoints, |endpoint, socket| {
            if result.is_ok() {
                result = each(endpoint, socket);
            }
        });
        query_result.map_err(|error| Failure::system(format!("sock_diag in {node}"), error))?;
        result?;
    }
    Ok(())
}
