// SPDX-License-Identifier: Apache-2.0
//! The Hourglass agent: executes a plan on a Linux kernel and writes what it saw.
//!
//! `hourglass-agent PLAN RECORDS`. As the first process of a machine it does that process's duties too (`init`); else
//! it is an ordinary command that leaves nothing behind. It runs on a kernel in virtual time, where code takes no time
//! and the clock jumps when all threads sleep, and on a real machine, and does not know which. So it never polls and
//! never spins, and it is sparing with system calls, page faults and processes, which are dear where it runs most.
//!
//! The way of a run: `plan` is read, `netns` makes the nodes, `setup` runs the steps (`tool`, `icmp`, `daemon`), `facts`
//! looks round, `clockwork` follows the `agenda`: `flow`, `probe`, `datagram` and `fetch` make traffic, `diag`, `device`
//! and `radio` sample, all into `records`. On a kernel that has it, `watch` reads what the kernel's own probe saw: `abi`
//! takes it apart, `rows` and `capture` write it. `report` is what the outside sees.

mod abi;
mod agenda;
mod capture;
mod clock;
mod clockwork;
mod column;
mod daemon;
mod datagram;
mod device;
mod diag;
mod ethtool;
mod facts;
mod fetch;
mod flow;
mod icmp;
mod init;
mod jitter;
mod mailbox;
mod netlink;
mod netns;
mod plan;
mod probe;
mod program;
mod qdisc_stat;
mod radio;
mod records;
mod report;
mod rows;
mod setup;
mod socket;
mod sys;
mod tables;
mod tcp_info;
mod tool;
mod watch;

use std::ffi::OsString;
use std::path::Path;
use std::{env, fs, panic, process};

use report::{Failure, Result};

fn main() {
    sys::keep_freed_memory();
    sys::raise_file_limit();
    panic::set_hook(Box::new(|panic| leave(&Err(Failure::new(format!("a bug in the agent: {panic}"))))));
    leave(&run());
}

fn run() -> Result<()> {
    let first = init::is_init();
    if first {
        init::start()?;
    }
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let [plan, records] = arguments.as_slice() else {
        return Err(Failure::new("usage: hourglass-agent PLAN RECORDS"));
    };
    let plan = Path::new(plan);
    let text = fs::read(plan).map_err(|error| Failure::system(plan.display(), error))?;
    let plan = plan::Plan::parse(&text)?;
    let path = Path::new(records);
    let records = records::Records::create(path)?;
    let captures =
        capture::Captures::create(&plan.captures, &plan.radios, path.parent().unwrap_or(Path::new("")))?;
    if !first {
        init::isolate()?; // only now: the files may lie in what it hides
    }
    let nodes = netns::Nodes::make(&plan.nodes)?;
    let daemons = setup::run(&plan.setup, &nodes)?;
    let facts = facts::Facts::gather(&plan, &nodes)?;
    clockwork::Clockwork::prepare(&plan, &nodes, daemons, &facts, records, captures)?.run()
}

/// The one way out, for success, failure and panic alike.
fn leave(result: &Result<()>) -> ! {
    match result {
        Ok(()) => report::done(),
        Err(failure) => report::error(failure),
    }
    if init::is_init() {
        init::power_off();
    }
    process::exit(i32::from(result.is_err()));
}
