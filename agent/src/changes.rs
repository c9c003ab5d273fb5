// SPDX-License-Identifier: Apache-2.0
//! What changes during the test: the plan's events, carried out as the set-up's steps are, by a thread of their own.
//!
//! The test's loop gives the order and waits for the thread, so that what else is due at that instant finds the change
//! made. In virtual time a tool takes none. A kernel that lets a tool wait (a NIC that has to come to rest, a station that
//! scans), or a machine on which processes take time, keeps the loop no longer than until its next action is due, and
//! at least 1 ns: the shortest time after which nothing of that instant is left to run.

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
use crate::tables::Table;

/// Of the thread, which starts tools and reads what they say.
const STACK: usize = 512 << 10;

/// An event that was carried out: its place in the plan, when it was done, and what the tools said.
struct Done {
    place: usize,
    at_ns: i64,
    words: Result<String>,
}

pub struct Changes {
    events: Vec<Event>,
    epoch: Epoch,
    /// To the thread, and back; none without events.
    thread: Option<(Sender<usize>, Receiver<Done>)>,
    /// How many were ordered.
    ordered: usize,
    done: Vec<(i64, String)>,
}

impl Changes {
    /// The calling thread is in the first namespace.
    pub fn prepare(
        events: &[Event],
        nodes: &Nodes,
        daemons: &Daemons,
        apps: Option<Handle>,
        epoch: Epoch,
    ) -> Result<Self> {
        let mut changes = Self { events: events.to_vec(), epoch, thread: None, ordered: 0, done: Vec::new() };
        if events.is_empty() {
            return Ok(changes);
        }
        let (order, orders) = channel::<usize>();
        let (report, reports) = channel();
        let (events, nodes, daemons) = (events.to_vec(), nodes.of_another_thread(), daemons.clone());
        let work = move || {
            for place in &orders {
                let words = setup::carry_out(&events[place].steps, &nodes, &daemons, apps.as_ref());
                let failed = words.is_err();
                if report.send(Done { place, at_ns: epoch.now(), words }).is_err() || failed {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().stack_size(STACK).spawn(work);
        thread.map_err(|error| Failure::system("starting a thread", error))?;
        changes.thread = Some((order, reports));
        Ok(changes)
    }

    /// Has an event carried out; waits until it is done, or it is `next_ns`, when something else is due.
    pub fn carry_out(&mut self, place: usize, next_ns: i64) -> Result<()> {
        if let Some((order, _)) = &self.thread {
            // a thread that is gone has said why: `wait` hears it
            let _ = order.send(place);
            self.ordered += 1;
        }
        self.wait(next_ns)
    }

    /// Fails if an event has failed in the meantime.
    pub fn check(&mut self) -> Result<()> {
        self.wait(0)
    }

    fn wait(&mut self, until_ns: i64) -> Result<()> {
        while self.done.len() < self.ordered {
            let Some((_, reports)) = &self.thread else { break };
            let left = u64::try_from(until_ns - self.epoch.now()).unwrap_or_default();
            match reports.recv_timeout(Duration::from_nanos(left)) {
                Ok(done) => {
                    debug_assert_eq!(done.place, self.done.len());
                    self.done.push((done.at_ns, done.words?));
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new("a bug in the agent: the thread of the events is gone"));
                }
            }
        }
        Ok(())
    }

    /// A row for each event that was ordered; one that was not done in the test has no end.
    pub fn write(&self, records: &mut Records) -> Result<()> {
        for (place, event) in self.events.iter().enumerate().take(self.ordered) {
            let (done_ns, words) = match self.done.get(place) {
                Some((done_ns, words)) => (Cell::I64(*done_ns), Cell::Text(words)),
                None => (Cell::Null, Cell::Text("")),
            };
            let head = [Cell::I64(event.at_ns), Cell::Text(&event.node), Cell::Text(&event.name)];
            records.push(Table::Event, head.into_iter().chain([done_ns, words]))?;
        }
        Ok(())
    }
}
