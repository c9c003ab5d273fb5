// SPDX-License-Identifier: Apache-2.0
//! One machine of several: the agent as somebody else conducts it, over standard input and output, which is what ssh gives.
//!
//! The node is the machine itself. Nothing stays of the agent: its file is deleted when it runs, its records have no name,
//! and what it changes the `guard` gives back, whether it is told to end, the connection breaks or it is killed.
//!
//! | from the conductor | answer |
//! |---|---|
//! | `plan BYTES`, and the plan | `set` when the set-up is done but for its `reach` steps |
//! | `reach` | `reached` when they are done, too |
//! | `start NS`: test time 0, by this machine's monotonic clock | `ready`, `time` …, `measured` |
//! | `records` | `records`, and the bytes |
//! | `end` | everything given back, `done` |
//! | `clock NUMBER`, at any time from `set` on | `clock`: when the question came, and when the answer left |
//!
//! An input that ends, or says nothing for `SILENCE`, is a connection that is gone: the agent ends.

use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::{env, fs, thread};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use crate::capture::Captures;
use crate::clock::{self, Epoch};
use crate::facts::Facts;
use crate::guard::Guard;
use crate::netns::Nodes;
use crate::plan::Plan;
use crate::records::Records;
use crate::report::{self, Failure, Result};
use crate::steps::{Step, Work};
use crate::test_loop::{Site, TestLoop};
use crate::{setup, sys};

/// The conductor speaks once a second.
const SILENCE_MS: u16 = 30_000;
const STACK: usize = 128 << 10;

/// This machine's part of the test: gives the test time at which it ended.
pub fn serve(node: &str) -> Result<i64> {
    let own = env::current_exe().map_err(|error| Failure::system("the agent's own file", error))?;
    let _ = fs::remove_file(&own); // who copied it may have no right to see it go
    let mut input = Input::default();
    let plan = read_plan(&mut input)?;
    let nodes = Nodes::of_this_machine(node)?;
    let guard = Guard::start(&nodes)?;
    let reaches = |step: &Step| matches!(step.work, Work::Reach { .. });
    let (last, first): (Vec<Step>, Vec<Step>) = plan.setup.iter().cloned().partition(reaches);
    let daemons = setup::run(&first, &nodes, Some(guard))?;
    report::set();
    let orders = listen(input)?;
    told(&orders, "reach")?;
    drop(setup::run(&last, &nodes, None)?);
    let records = unnamed_records(&own)?;
    let file = records.file()?;
    report::reached();
    let start = told(&orders, "start")?;
    let start = start.parse().map_err(|error| Failure::of("start", error))?;
    let epoch = Epoch::at(start);
    let facts = Facts::gather(&plan, &nodes)?;
    let site = Site { nodes: &nodes, daemons, rooms: Vec::new(), out: Path::new(""), terminal: None };
    let captures = Captures::create(&[], &[], Path::new(""))?;
    let test = TestLoop::prepare(&plan, site, &facts, records, captures, Some(epoch))?;
    if epoch.now() >= 0 {
        let late = clock::seconds(epoch.now());
        return Err(Failure::new(format!("{node} was ready {late} s after the test was to begin")));
    }
    let end_ns = test.run()?;
    report::measured(end_ns);
    told(&orders, "records")?;
    send(file)?;
    told(&orders, "end")?;
    guard.finish()?;
    Ok(end_ns)
}

fn read_plan(input: &mut Input) -> Result<Plan> {
    let gone = || Failure::new("the connection ended before the plan was there");
    let line = input.line().ok_or_else(gone)?;
    let bytes = line.strip_prefix("plan ").and_then(|count| count.parse().ok());
    let bytes = bytes.ok_or_else(|| Failure::new("the plan has to come first"))?;
    Plan::parse(&input.exactly(bytes).ok_or_else(gone)?)
}

/// Beside the agent's file, as it was: where the conductor found room.
fn unnamed_records(own: &Path) -> Result<Records> {
    let path = own.with_extension("records");
    let records = Records::create(&path)?;
    fs::remove_file(&path).map_err(|error| Failure::system(path.display(), error))?;
    Ok(records)
}

fn send(mut records: fs::File) -> Result<()> {
    let of = |error: io::Error| Failure::system("sending the records", error);
    records.rewind().map_err(of)?; // whoever wrote them shares the place
    report::records(records.metadata().map_err(of)?.len());
    let mut output = io::stdout().lock();
    io::copy(&mut records, &mut output).map_err(of)?;
    output.flush().map_err(of)
}

/// Waits for an order; gives what follows its name.
fn told(orders: &Receiver<String>, name: &str) -> Result<String> {
    let order = orders.recv().map_err(|_| Failure::new("the conductor is gone"))?;
    match order.split_once(' ').unwrap_or((&order, "")) {
        (first, rest) if first == name => Ok(rest.to_owned()),
        _ => Err(Failure::new(format!("the conductor said {order:?} where {name} was to come"))),
    }
}

/// A thread that answers questions about the clock at once and hands on everything else.
fn listen(mut input: Input) -> Result<Receiver<String>> {
    let (orders, receiver) = channel();
    let work = move || {
        sys::become_exact();
        attend(&mut input, &orders);
        sys::leave(1); // the guard hears that, and gives the machine back
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work);
    thread.map_err(|error| Failure::system("starting a thread", error))?;
    Ok(receiver)
}

/// Until the input ends.
fn attend(input: &mut Input, orders: &Sender<String>) {
    while let Some(line) = input.line() {
        let received_ns = clock::monotonic();
        match line.strip_prefix("clock ").and_then(|number| number.parse().ok()) {
            Some(number) => report::clock(number, received_ns),
            None => drop(orders.send(line)),
        }
    }
}

/// Standard input, read as it comes.
#[derive(Default)]
struct Input {
    rest: Vec<u8>,
}

impl Input {
    /// None: there will be no more.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return String::from_utf8(line).ok().map(|line| line.trim_end().to_owned());
            }
            self.more()?;
        }
    }

    fn exactly(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.rest.len() < bytes {
            self.more()?;
        }
        Some(self.rest.drain(..bytes).collect())
    }

    fn more(&mut self) -> Option<()> {
        let (stdin, mut piece) = (io::stdin(), [0; 1 << 13]);
        loop {
            let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::from(SILENCE_MS)).and_then(|ready| match ready {
                0 => Ok(0),
                _ => nix::unistd::read(stdin.as_fd(), &mut piece),
            }) {
                Err(Errno::EINTR) => {}
                Err(_) | Ok(0) => return None,
                Ok(count) => {
                    self.rest.extend_from_slice(&piece[..count]);
                    return Some(());
                }
            }
        }
    }
}
