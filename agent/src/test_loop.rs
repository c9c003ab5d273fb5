// SPDX-License-Identifier: Apache-2.0
//! The test itself: one thread that does everything timed, in the order of the event queue.
//!
//! A sample is labelled with the instant at which it is due.

use std::path::Path;

use crate::apps::Apps;
use crate::capture::Captures;
use crate::changes::Changes;
use crate::clock::Epoch;
use crate::counters::Counters;
use crate::daemon::Daemons;
use crate::datagram::Datagrams;
use crate::device::Devices;
use crate::diag::Diag;
use crate::events::{Action, Events};
use crate::facts::Facts;
use crate::fetch::Fetches;
use crate::flow::Flows;
use crate::netns::Nodes;
use crate::ping::Pings;
use crate::plan::Plan;
use crate::radio::Radios;
use crate::records::{Records, Shared};
use crate::report::{self, Failure, Result};
use crate::room::Room;
use crate::streams::{Endpoint, Streams};
use crate::transaction::Transactions;
use crate::watch::{self, Watch};
use crate::{setup, sys};

/// What the set-up made, and where the run's files go.
pub struct Site<'a> {
    pub nodes: &'a Nodes,
    pub daemons: Daemons,
    pub rooms: Vec<Room>,
    pub out: &'a Path,
    /// The program that has the machine's second console.
    pub terminal: Option<&'a str>,
}

pub struct TestLoop<'a> {
    nodes: &'a Nodes,
    epoch: Epoch,
    /// Of every kind.
    streams: Vec<Box<dyn Streams>>,
    events: Events,
    watch: Option<Watch>,
    /// Of the nodes that have flows; of none if the kernel samples them itself.
    sockets: Vec<(String, Diag)>,
    devices: Vec<Devices>,
    radios: Radios,
    daemons: Daemons,
    changes: Changes,
    apps: Option<Apps>,
    records: Shared,
}

impl<'a> TestLoop<'a> {
    /// Opens everything the test needs. The calling thread ends in the first namespace. `start`: when the test begins, if
    /// somebody else says so.
    pub fn prepare(
        plan: &Plan,
        site: Site<'a>,
        facts: &Facts,
        mut records: Records,
        captures: Captures,
        start: Option<Epoch>,
    ) -> Result<Self> {
        let Site { nodes, daemons, rooms, out, terminal } = site;
        let probe = watch::open(plan)?;
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
        let (mut sockets, mut devices) = (Vec::new(), Vec::new());
        for name in nodes.names() {
            nodes.enter(Some(name))?;
            devices.push(Devices::open(name).map_err(|error| Failure::system("route netlink", error))?);
            if samples_tcp && plan.flows().any(|(base, _)| base.client == name || base.server == name) {
                let diag = Diag::open().map_err(|error| Failure::system("sock_diag", error))?;
                sockets.push((name.to_owned(), diag));
            }
        }
        let start = |probe| Watch::start(probe, plan, nodes, epoch, captures, records.clone());
        let watch = probe.map(start).transpose()?;
        nodes.enter(None)?;
        let radios = Radios::open(&plan.radios)?;
        let events = Events::new(plan, samples_tcp);
        let apps = Apps::start(plan, rooms, epoch, records.clone(), out, terminal)?;
        let changes =
            Changes::prepare(&plan.events, nodes, &daemons, apps.as_ref().map(Apps::handle), epoch)?;
        Ok(Self {
            nodes,
            epoch,
            streams,
            events,
            watch,
            sockets,
            devices,
            radios,
            daemons,
            changes,
            apps,
            records,
        })
    }

    /// Gives the test time at which it ended.
    pub fn run(mut self) -> Result<i64> {
        report::ready(self.epoch.monotonic_ns);
        sys::become_exact();
        self.epoch.sleep_until(0);
        let counters = Counters::begin(self.nodes, &mut self.devices)?;
        self.radios.begin()?;
        let mut now = -1;
        while let Some((t_ns, action)) = self.events.pop() {
            if t_ns > now {
                if self.sleep_until(t_ns)? {
                    now = self.epoch.now();
                    counters.write(now, self.nodes, &mut self.devices, &mut self.records.lock())?;
                    break;
                }
                now = t_ns;
            }
            match action {
                Action::SampleTcp => self.sample_tcp(t_ns)?,
                Action::SampleDevices => self.sample_devices(t_ns)?,
                Action::Stop(id) => self.streams.iter_mut().for_each(|streams| streams.stop(id)),
                Action::Change(place) => {
                    self.changes.carry_out(place, self.events.next_ns().max(t_ns + 1))?;
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
        if let Some(watch) = self.watch {
            watch.finish()?;
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

    /// Whether the programs that the test waits for are over before that time.
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

    fn sample_tcp(&mut self, t_ns: i64) -> Result<()> {
        let mut records = self.records.lock();
        let live: Vec<Endpoint> = self.streams.iter().flat_map(|streams| streams.endpoints()).collect();
        for (node, diag) in &mut self.sockets {
            let endpoints: Vec<&Endpoint> = live.iter().filter(|endpoint| endpoint.node == node).collect();
            let mut result = Ok(());
            let asked = diag.ask(&endpoints, |endpoint, socket| {
                if result.is_ok() {
                    result = socket.write(t_ns, endpoint.stream, endpoint.sender, &mut records);
                }
            });
            asked.map_err(|error| Failure::system(format!("sock_diag in {node}"), error))?;
            result?;
        }
        Ok(())
    }

    fn sample_devices(&mut self, t_ns: i64) -> Result<()> {
        let mut records = self.records.lock();
        self.devices.iter_mut().try_for_each(|devices| devices.sample(t_ns, &mut records))?;
        self.radios.sample(t_ns, &mut records)
    }
}
