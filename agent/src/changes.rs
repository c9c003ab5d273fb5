// SPDX-License-Identifier: Apache-2.0
//! The plan's events: a separate thread executes their steps during the test.
//!
//! The test loop gives the order and waits for the thread, so that later actions of that instant see the change. In
//! virtual time a tool takes no time. If the kernel makes a tool wait (a NIC that comes to rest, a station that scans),
//! or processes take time on a real machine, the loop waits at most until its next action is due. It waits at least
//! 1 ns, the shortest time after which all work of that instant is complete.

use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::apps::Handle;
use crate::clock::Epoch;
use crate::column::Cell;
use crate::daemon::Daemons;
use crate::netns::Nodes;
use crate::plan::Event;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::setup;
use crate::steps::Step;
use crate::tables::Table;

/// The stack of the thread, which starts tools and reads their output.
const STACK: usize = 512 << 10;

/// A completed event: its time of completion, and the output of the tools.
struct Completion {
    done_ns: i64,
    output: Result<String>,
}

pub struct Changes {
    events: Vec<Event>,
    epoch: Epoch,
    /// The channels to the thread and back; None without events.
    thread: Option<(Sender<Vec<Step>>, Receiver<Completion>)>,
    /// The number of ordered events.
    order_count: usize,
    completed: Vec<(i64, String)>,
}

impl Changes {
    /// Starts the thread. The calling thread must be in the first namespace.
    pub fn prepare(
        events: &[Event],
        nodes: &Nodes,
        daemons: &Daemons,
        apps: Option<Handle>,
        epoch: Epoch,
    ) -> Result<Self> {
        let mut changes =
            Self { events: events.to_vec(), epoch, thread: None, order_count: 0, completed: Vec::new() };
        if events.is_empty() {
            return Ok(changes);
        }
        let (order, orders) = channel::<Vec<Step>>();
        let (report, reports) = channel();
        let (nodes, daemons) = (nodes.for_new_thread(), daemons.clone());
        let work = move || {
            for steps in &orders {
                let output = setup::carry_out(&steps, &nodes, &daemons, apps.as_ref());
                let failed = output.is_err();
                if report.send(Completion { done_ns: epoch.now(), output }).is_err() || failed {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(work);
        thread.map_err(|error| Failure::system("starting a thread", error))?;
        changes.thread = Some((order, reports));
        Ok(changes)
    }

    /// Returns the steps of an event.
    pub fn steps(&self, index: usize) -> &[Step] {
        &self.events[index].steps
    }

    /// Orders the steps of the next event. Waits until they are complete, or until `next_ns`, when another action is
    /// due.
    pub fn carry_out(&mut self, steps: Vec<Step>, next_ns: i64) -> Result<()> {
        if let Some((order, _)) = &self.thread {
            // if the thread has ended, `wait` gets the reason
            let _ = order.send(steps);
            self.order_count += 1;
        }
        self.wait(next_ns)
    }

    /// Fails if an event has failed in the meantime.
    pub fn check(&mut self) -> Result<()> {
        self.wait(0)
    }

    fn wait(&mut self, until_ns: i64) -> Result<()> {
        while self.completed.len() < self.order_count {
            let Some((_, reports)) = &self.thread else { break };
            let remaining = u64::try_from(until_ns - self.epoch.now()).unwrap_or_default();
            match reports.recv_timeout(Duration::from_nanos(remaining)) {
                Ok(completion) => self.completed.push((completion.done_ns, completion.output?)),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::bug("the thread of the events ended"));
                }
            }
        }
        Ok(())
    }

    /// Writes a row for each ordered event. The end is empty if the event was not complete before the test's end.
    pub fn write(&self, records: &mut Records) -> Result<()> {
        for (index, event) in self.events.iter().enumerate().take(self.order_count) {
            let (done_ns, output) = match self.completed.get(index) {
                Some((done_ns, output)) => (Cell::I64(*done_ns), Cell::Text(output)),
                None => (Cell::Null, Cell::Text("")),
            };
            let head = [Cell::I64(event.at_ns), Cell::Text(&event.node), Cell::Text(&event.name)];
            records.push(Table::Event, head.into_iter().chain([done_ns, output]))?;
        }
        Ok(())
    }
}
