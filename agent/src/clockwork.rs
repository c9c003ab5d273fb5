// SPDX-License-Identifier: Apache-2.0
//! The test itself: one thread that does everything timed, in the order of the agenda.
//!
//! A sample is labelled with the instant at which it is due.

use crate::agenda::{Action, Agenda};
use crate::clock::Epoch;
use crate::column::Cell;
use crate::daemon::Daemons;
use crate::device::Devices;
use crate::diag::Diag;
use crate::ethtool;
use crate::flow::{Endpoint, Flows};
use crate::netns::Nodes;
use crate::plan::Plan;
use crate::probe::Probes;
use crate::radio::Radios;
use crate::records::{Records, Table};
use crate::report::{self, Failure, Result};
use crate::{setup, sys};

pub struct Clockwork<'a> {
    nodes: &'a Nodes,
    epoch: Epoch,
    flows: Flows,
    probes: Probes,
    /// Of the nodes that have flows.
    sockets: Vec<(String, Diag)>,
    devices: Vec<Devices>,
    radios: Radios,
    daemons: Daemons,
    records: Records,
}

impl<'a> Clockwork<'a> {
    /// Opens everything the test needs. The calling thread ends in the first namespace.
    pub fn prepare(plan: &Plan, nodes: &'a Nodes, daemons: Daemons, records: Records) -> Result<Self> {
        let epoch = Epoch::next();
        setup::announce(epoch, &plan.setup, nodes)?;
        let probes = Probes::prepare(&plan.probes, nodes)?;
        let flows = Flows::prepare(&plan.flows, nodes, epoch)?;
        let (mut sockets, mut devices) = (Vec::new(), Vec::new());
        for name in nodes.names() {
            nodes.enter(Some(name))?;
            devices.push(Devices::open(name).map_err(|error| Failure::system("route netlink", error))?);
            if plan.flows.iter().any(|flow| flow.client == name || flow.server == name) {
                let diag = Diag::open().map_err(|error| Failure::system("sock_diag", error))?;
                sockets.push((name.to_owned(), diag));
            }
        }
        nodes.enter(None)?;
        let radios = Radios::open(&plan.radios)?;
        Ok(Self { nodes, epoch, flows, probes, sockets, devices, radios, daemons, records })
    }

    pub fn run(mut self, mut agenda: Agenda) -> Result<()> {
        report::ready(self.epoch.monotonic_ns);
        sys::become_exact();
        self.write_facts()?;
        let mut now = -1;
        while let Some((t_ns, action)) = agenda.pop() {
            if t_ns > now {
                self.epoch.sleep_until(t_ns);
                now = t_ns;
            }
            match action {
                Action::SampleTcp => self.sample_tcp(t_ns)?,
                Action::SampleDevices => self.sample_devices(t_ns)?,
                Action::Stop(number) => self.flows.stop(number),
                Action::Start(number) => self.flows.start(number),
                Action::Probe(number, seq) => self.probes.send(number, seq),
                Action::Heartbeat => {
                    self.probes.collect()?;
                    self.daemons.check()?;
                    report::time(t_ns);
                }
                Action::End => self.write_counters(t_ns)?,
            }
        }
        self.probes.collect()?;
        self.probes.write(self.epoch, &mut self.records)?;
        self.flows.write(&mut self.records)?;
        self.records.finish()
    }

    fn sample_tcp(&mut self, t_ns: i64) -> Result<()> {
        let records = &mut self.records;
        let mut row = Vec::new();
        for (node, diag) in &mut self.sockets {
            let endpoints: Vec<Endpoint> =
                self.flows.endpoints().filter(|endpoint| endpoint.node == node).collect();
            let mut result = Ok(());
            let asked = diag.ask(&endpoints, |endpoint, answer| {
                row.clear();
                row.extend([Cell::I64(t_ns), Cell::U64(endpoint.flow.into()), Cell::Bool(endpoint.sender)]);
                row.extend(answer.cells());
                if result.is_ok() {
                    result = records.push(Table::Tcp, &row);
                }
            });
            asked.map_err(|error| Failure::system(format!("sock_diag in {node}"), error))?;
            result?;
        }
        Ok(())
    }

    fn sample_devices(&mut self, t_ns: i64) -> Result<()> {
        self.devices.iter_mut().try_for_each(|devices| devices.sample(t_ns, &mut self.records))?;
        self.radios.sample(t_ns, &mut self.records)
    }

    fn write_facts(&mut self) -> Result<()> {
        let name = nix::sys::utsname::uname().map_err(|error| Failure::system("uname", error))?;
        let release = name.release().to_string_lossy();
        for (key, value) in [("kernel.release", &*release), ("agent.version", env!("CARGO_PKG_VERSION"))] {
            self.records
                .push(Table::Fact, &[Cell::I64(0), Cell::Null, Cell::Text(key), Cell::Text(value)])?;
        }
        Ok(())
    }

    /// The drivers' own counters of every device.
    fn write_counters(&mut self, t_ns: i64) -> Result<()> {
        for (node, devices) in self.nodes.names().zip(&mut self.devices) {
            for device in devices.names()? {
                let counters = ethtool::counters(self.nodes.control(node), &device).map_err(|error| {
                    Failure::system(format!("ethtool counters of {device} in {node}"), error)
                })?;
                for (name, value) in counters {
                    let texts = [node, &device, &name].map(Cell::Text);
                    let row = [&[Cell::I64(t_ns)], &texts[..], &[Cell::U64(value)]].concat();
                    self.records.push(Table::Ethtool, &row)?;
                }
            }
        }
        Ok(())
    }
}
