// SPDX-License-Identifier: Apache-2.0
//! The Hourglass agent: executes a plan on a Linux kernel and writes what it saw.
//!
//! `hourglass-agent PLAN RECORDS`. As the first process of a machine it does that process's duties too (`init`); else
//! it is an ordinary command that leaves nothing behind. It runs on a kernel in virtual time, where code takes no time
//! and the clock jumps when all threads sleep, and on a real machine, and does not know which. So it never polls and
//! never spins, and it is sparing with system calls, page faults and processes, which are dear where it runs most.
//!
//! `hourglass-agent --serve NODE` is this machine's part of a test that somebody else conducts over its standard input and
//! output (`serve`).
//! `hourglass-agent PLAN RECORDS NAME` gives the program NAME the machine's second console as its terminal.
//!
//! `hourglass-agent --check-plan PLAN` reads the plan and prints it as it was understood; `-` stands for the plans whose
//! names are the lines of its standard input, with a line about each.
//!
//! The way of a run: `plan` is read, `netns` makes the nodes, `setup` runs the `steps` (`tool`, `icmp`, `daemon`), `facts`
//! looks round, `test_loop` follows the event queue (`events`): `changes` carries out the plan's events, `flow`, `ping`, `datagram`, `fetch` and `transaction` make
//! traffic (`streams` is what they have in common), `diag`, `device` and `radio` sample, all into `records`, whose schemas are
//! `tables`. `room` makes worlds for programs, whose first processes (`room_init`) start them; `apps` has them started,
//! listened to and stopped, each an `app`, whose time `account` tells. What a run changes of a machine that outlives it the `guard` undoes, who has a device
//! as it was in `keep` (`keep_net` speaks to the kernel). On a kernel that has it, `watch` reads what the kernel's probe saw: `reader` takes it apart into the
//! structures of `abi`, `rows` and `capture` write it. `report` is what the outside sees.

#[rustfmt::skip]
mod abi;
mod account;
mod app;
mod app_output;
mod app_plan;
mod apps;
mod capture;
mod changes;
mod clock;
mod collect;
mod column;
mod counters;
mod daemon;
mod datagram;
mod device;
mod diag;
mod ethtool;
mod events;
mod facts;
mod fetch;
mod flow;
mod guard;
mod icmp;
mod init;
mod jitter;
mod keep;
mod keep_net;
mod layout;
mod lines;
mod mailbox;
mod netlink;
mod netns;
mod ping;
mod plan;
mod plan_values;
mod program;
mod qdisc_stat;
mod radio;
mod reader;
mod records;
mod report;
mod room;
mod room_init;
mod room_post;
mod room_user;
mod rows;
mod serve;
mod setup;
#[cfg(test)]
mod small;
mod socket;
mod steps;
mod streams;
mod sys;
#[rustfmt::skip]
mod tables;
mod test_loop;
mod tool;
mod transaction;
mod watch;

use std::ffi::OsString;
use std::path::Path;
use std::{env, fs, io, panic, process};

use report::{Failure, Result};

/// What a set-up takes.
const ROOM: usize = 3 << 20;

fn main() {
    sys::keep_freed_memory();
    sys::grow_heap(ROOM);
    sys::raise_file_limit();
    panic::set_hook(Box::new(|panic| leave(&Err(Failure::new(format!("a bug in the agent: {panic}"))))));
    leave(&run());
}

fn run() -> Result<i64> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [check, plan] if check == "--check-plan" && plan == "-" => check_plans(),
        [check, plan] if check == "--check-plan" => check_plan(Path::new(plan)),
        [serve, node] if serve == "--serve" => serve::serve(&node.to_string_lossy()),
        [plan, records] => execute(Path::new(plan), Path::new(records), None),
        [plan, records, name] => execute(Path::new(plan), Path::new(records), name.to_str()),
        _ => {
            Err(Failure::new("usage: hourglass-agent PLAN RECORDS [NAME] | --serve NODE | --check-plan PLAN"))
        }
    }
}

/// Prints the plan as it was understood, and no event behind it.
fn check_plan(path: &Path) -> Result<i64> {
    println!("{}", understood(path)?);
    process::exit(0)
}

fn check_plans() -> Result<i64> {
    for name in io::stdin().lines() {
        match understood(Path::new(&name.map_err(|error| Failure::system("plans", error))?)) {
            Ok(plan) => println!("{plan}"),
            Err(failure) => report::refused(&failure),
        }
    }
    process::exit(0)
}

fn understood(path: &Path) -> Result<String> {
    serde_json::to_string(&read_plan(path)?).map_err(|error| Failure::of("plan", error))
}

fn read_plan(path: &Path) -> Result<plan::Plan> {
    let text = fs::read(path).map_err(|error| Failure::system(path.display(), error))?;
    plan::Plan::parse(&text)
}

/// Gives the test time at which the test ended.
fn execute(plan: &Path, path: &Path, terminal: Option<&str>) -> Result<i64> {
    let first = init::is_init();
    if first {
        init::start()?;
    }
    let plan = read_plan(plan)?;
    if first {
        init::allow_threads(plan.streams.len())?;
    }
    let records = records::Records::create(path)?;
    let captures =
        capture::Captures::create(&plan.captures, &plan.radios, path.parent().unwrap_or(Path::new("")))?;
    if !first {
        init::isolate()?; // only now: the files may lie in what it hides
    }
    let nodes = netns::Nodes::make(&plan.nodes)?;
    let entrusts = plan.setup.iter().any(|step| step.work.needs_guard());
    let guard = entrusts.then(|| guard::Guard::start(&nodes)).transpose()?;
    let daemons = setup::run(&plan.setup, &nodes, guard)?;
    let rooms = room::make(&plan, &nodes)?; // copies of this process, which has one thread yet
    let facts = facts::Facts::gather(&plan, &nodes)?;
    let out = path.parent().unwrap_or(Path::new(""));
    let site = test_loop::Site { nodes: &nodes, daemons, rooms, out, terminal };
    let end_ns = test_loop::TestLoop::prepare(&plan, site, &facts, records, captures, None)?.run()?;
    guard.map_or(Ok(()), guard::Guard::finish)?;
    Ok(end_ns)
}

/// The one way out, for success, failure and panic alike.
fn leave(result: &Result<i64>) -> ! {
    match result {
        Ok(end_ns) => report::done(*end_ns),
        Err(failure) => report::error(failure),
    }
    if init::is_init() {
        init::power_off();
    }
    process::exit(i32::from(result.is_err()));
}
