// SPDX-License-Identifier: Apache-2.0
//! One machine of several: a coordinator controls the agent over standard input and output, which ssh connects.
//!
//! The node is the machine itself. The agent leaves nothing behind: its file is deleted while it runs, its records have
//! no name, and the `guard` restores its changes, whether the agent ends on order, loses its connection or is killed.
//!
//! | from the coordinator | answer |
//! |---|---|
//! | `plan BYTES`, and the plan | `set` after all steps of the set-up except `reach` |
//! | `reach` | `reached` after the `reach` steps |
//! | `start NS`: test time 0 on this machine's monotonic clock | `ready`, `time` …, `measured` |
//! | `records` | `records`, and the bytes |
//! | `end` | everything restored, `done` |
//! | `clock NUMBER`, at any time from `set` on | `clock`: when the question arrived, and when the answer left |
//!
//! If the input ends, or is silent for `SILENCE_MS`, the connection is lost and the agent ends.

use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::{env, fs, thread};

use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use crate::capture::Captures;
use crate::cause::Cause;
use crate::clock::{self, Epoch};
use crate::facts::Facts;
use crate::guard::Guard;
use crate::netns::Nodes;
use crate::plan::Plan;
use crate::records::Records;
use crate::report::{self, Failure, Result};
use crate::steps::{Step, Work};
use crate::test_loop::{Prepared, TestLoop};
use crate::{setup, sys};

/// The coordinator sends a line once a second.
const SILENCE_MS: u16 = 30_000;
const STACK: usize = 128 << 10;

/// Runs this machine's part of the test; returns the test time at which it ended.
pub fn serve(node: &str) -> Result<i64> {
    let executable = env::current_exe().map_err(|error| Failure::system("the agent's executable", error))?;
    let _ = fs::remove_file(&executable); // the user who copied it may lack the right to delete it
    let mut input = Input::default();
    let plan = read_plan(&mut input)?;
    let nodes = Nodes::of_this_machine(node)?;
    let guard = Guard::start(&nodes)?;
    let reaches = |step: &Step| matches!(step.work, Work::Reach { .. });
    let (reach_steps, setup_steps): (Vec<Step>, Vec<Step>) = plan.setup.iter().cloned().partition(reaches);
    let daemons = setup::run(&setup_steps, &nodes, Some(guard))?;
    report::set();
    let orders = listen(input)?;
    await_order(&orders, "reach")?;
    drop(setup::run(&reach_steps, &nodes, None)?);
    let records = unnamed_records(&executable)?;
    let file = records.file()?;
    report::reached();
    let start = await_order(&orders, "start")?;
    let start = start.parse().map_err(|error| Failure::data("start", error))?;
    let epoch = Epoch::at(start);
    let facts = Facts::gather(&plan, &nodes)?;
    let prepared =
        Prepared { nodes: &nodes, daemons, containers: Vec::new(), out: Path::new(""), terminal: None };
    let captures = Captures::create(&[], &[], Path::new(""))?;
    let test = TestLoop::prepare(&plan, prepared, &facts, records, captures, Some(epoch))?;
    if epoch.now() >= 0 {
        return Err(Cause::HostLate { host: node.to_owned(), late_ns: epoch.now() }.into());
    }
    let end_ns = test.run()?;
    report::measured(end_ns);
    await_order(&orders, "records")?;
    send(file)?;
    await_order(&orders, "end")?;
    guard.finish()?;
    Ok(end_ns)
}

fn read_plan(input: &mut Input) -> Result<Plan> {
    let closed = || coordinator("the connection ended before the plan arrived");
    let line = input.line().ok_or_else(closed)?;
    let bytes = line.strip_prefix("plan ").and_then(|count| count.parse().ok());
    let bytes = bytes.ok_or_else(|| coordinator("the plan must come first"))?;
    Plan::parse(&input.exactly(bytes).ok_or_else(closed)?)
}

fn coordinator(text: impl Into<String>) -> Failure {
    Cause::Coordinator { text: text.into() }.into()
}

/// Creates the records in the folder of the agent's deleted file, which the coordinator chose.
fn unnamed_records(executable: &Path) -> Result<Records> {
    let path = executable.with_extension("records");
    let records = Records::create(&path)?;
    fs::remove_file(&path).map_err(|error| Failure::system(path.display(), error))?;
    Ok(records)
}

fn send(mut records: fs::File) -> Result<()> {
    let failure = |error: io::Error| Failure::system("sending the records", error);
    records.rewind().map_err(failure)?; // the writer uses the same position
    report::records(records.metadata().map_err(failure)?.len());
    let mut output = io::stdout().lock();
    io::copy(&mut records, &mut output).map_err(failure)?;
    output.flush().map_err(failure)
}

/// Waits for an order; returns its arguments.
fn await_order(orders: &Receiver<String>, name: &str) -> Result<String> {
    let order = orders.recv().map_err(|_| coordinator("the coordinator has ended"))?;
    match order.split_once(' ').unwrap_or((&order, "")) {
        (verb, arguments) if verb == name => Ok(arguments.to_owned()),
        _ => Err(coordinator(format!("the coordinator sent {order:?} instead of {name}"))),
    }
}

/// Starts a thread that answers questions about the clock at once and passes on everything else.
fn listen(mut input: Input) -> Result<Receiver<String>> {
    let (orders, receiver) = channel();
    let work = move || {
        sys::set_realtime_priority();
        dispatch(&mut input, &orders);
        sys::exit(1); // the guard detects this and restores the machine
    };
    let thread = thread::Builder::new().stack_size(STACK).spawn(work);
    thread.map_err(|error| Failure::system("starting a thread", error))?;
    Ok(receiver)
}

/// Handles lines until the input ends.
fn dispatch(input: &mut Input, orders: &Sender<String>) {
    while let Some(line) = input.line() {
        let received_ns = clock::monotonic();
        match line.strip_prefix("clock ").and_then(|number| number.parse().ok()) {
            Some(number) => report::clock(number, received_ns),
            None => drop(orders.send(line)),
        }
    }
}

/// Standard input, read without waiting for whole buffers.
#[derive(Default)]
struct Input {
    buffer: Vec<u8>,
}

impl Input {
    /// Returns the next line; None at the end of the input.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return String::from_utf8(line).ok().map(|line| line.trim_end().to_owned());
            }
            self.read_more()?;
        }
    }

    fn exactly(&mut self, bytes: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < bytes {
            self.read_more()?;
        }
        Some(self.buffer.drain(..bytes).collect())
    }

    fn read_more(&mut self) -> Option<()> {
        let (stdin, mut chunk) = (io::stdin(), [0; 1 << 13]);
        loop {
            let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, PollTimeout::from(SILENCE_MS)).and_then(|ready| match ready {
                0 => Ok(0),
                _ => nix::unistd::read(stdin.as_fd(), &mut chunk),
            }) {
                Err(Errno::EINTR) => {}
                Err(_) | Ok(0) => return None,
                Ok(count) => {
                    self.buffer.extend_from_slice(&chunk[..count]);
                    return Some(());
                }
            }
        }
    }
}
