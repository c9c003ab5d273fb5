// SPDX-License-Identifier: Apache-2.0
//! The Hourglass agent: executes a plan on a Linux kernel and writes records.
//!
//! `hourglass-agent PLAN RECORDS`. As the first process of a machine it also has that process's duties (`init`).
//! Otherwise it is an ordinary command that leaves nothing behind. It runs in the same way on a kernel in virtual time
//! and on a real machine. In virtual time, code takes no time and the clock jumps when all threads sleep. So the agent
//! never polls or spins, except for a decision of the engine. It avoids system calls, page faults and processes, which
//! are expensive in the guest.
//!
//! `hourglass-agent --serve NODE` runs this machine's part of a test; a coordinator controls it over standard input and
//! output (`serve`).
//! `hourglass-agent PLAN RECORDS NAME` gives the program NAME the machine's second console as its terminal.
//!
//! `hourglass-agent --check-plan PLAN` parses the plan and prints the result. With `-` it reads names of plans from
//! standard input, one per line, and prints a line for each.
//!
//! `hourglass-agent --self-check` is a program of a node that tests its host (`self_check`).
//!
//! A run has these parts:
//!
//! * `plan` is parsed, and `netns` makes the nodes.
//! * `setup` runs the `steps` (`tool`, `icmp`, `daemon`; `route_steps` executes simple steps of `ip` and `tc` itself).
//! * `facts` describes the machine.
//! * `test_loop` follows the event queue (`events`). `changes` executes the plan's events, and `decision` gets the steps
//!   that the engine chooses.
//! * `flow`, `ping`, `datagram`, `fetch` and `transaction` make traffic (trait `Streams`).
//! * `diag`, `device` and `radio` sample. All write `records`, whose schemas are in `tables`.
//! * `container` isolates programs; its first process (`container_init`) starts them. `apps` orders their starts, reads
//!   their output and stops them; `app` is one program, and `account` reads its counters.
//! * `namespaces` detects the network namespaces that programs make.
//! * `guard` undoes changes to a machine that outlives the run, with `device_snapshot` and `device_rows` for its devices.
//! * On a kernel with the probe, `probe` reads it, `probe_records` parses records into the structures of `abi`, and
//!   `probe_rows` and `capture` write them.
//! * `report` writes the console protocol.

#[rustfmt::skip]
mod abi;
mod account;
mod app;
mod app_output;
#[rustfmt::skip]
mod app_parts;
mod app_plan;
mod apps;
mod capture;
#[rustfmt::skip]
mod cause;
mod changes;
mod clock;
mod collect;
mod column;
mod container;
mod container_channel;
mod container_init;
mod container_user;
mod counters;
mod daemon;
mod datagram;
mod decision;
mod device;
mod device_rows;
mod device_snapshot;
mod diag;
mod error_text;
mod ethtool;
mod events;
mod facts;
mod fetch;
mod flow;
mod guard;
mod icmp;
mod init;
mod jitter;
mod layout;
mod mailbox;
mod namespaces;
mod netlink;
mod netns;
mod node_cpu;
mod ping;
mod plan;
#[rustfmt::skip]
mod plan_parts;
mod plan_values;
mod probe_records;
mod probe_rows;
mod qdisc_options;
mod qdisc_stat;
mod radio;
mod records;
mod report;
mod route_steps;
mod self_check;
mod serve;
mod setup;
#[rustfmt::skip]
mod step_parts;
mod steps;
mod streams;
mod sys;
mod tcp_row;
#[cfg(test)]
mod test_plans;
mod tool_process;
#[rustfmt::skip]
mod tables;
mod probe;
mod test_loop;
mod tool;
mod transaction;

use std::ffi::OsString;
use std::path::Path;
use std::{env, fs, io, panic, process};

use cause::Cause;
use report::{Failure, Result};

/// The bytes of memory that a set-up needs.
const SETUP_BYTES: usize = 3 << 20;

fn main() {
    sys::keep_freed_memory();
    sys::grow_heap(SETUP_BYTES);
    sys::raise_file_limit();
    panic::set_hook(Box::new(|panic| leave(&Err(Failure::bug(panic)))));
    leave(&run());
}

fn run() -> Result<i64> {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [check, plan] if check == "--check-plan" && plan == "-" => check_plans(),
        [check, plan] if check == "--check-plan" => check_plan(Path::new(plan)),
        [check] if check == "--self-check" => self_check(),
        [check] if check == "--self-check-child" => process::exit(0),
        [serve, node] if serve == "--serve" => serve::serve(&node.to_string_lossy()),
        [plan, records] => execute(Path::new(plan), Path::new(records), None),
        [plan, records, name] => execute(Path::new(plan), Path::new(records), name.to_str()),
        _ => Err(Cause::AgentUsage {}.into()),
    }
}

/// Prints the parsed plan. No event follows.
fn check_plan(path: &Path) -> Result<i64> {
    println!("{}", plan_as_json(path)?);
    process::exit(0)
}

fn check_plans() -> Result<i64> {
    for name in io::stdin().lines() {
        match plan_as_json(Path::new(&name.map_err(|error| Failure::system("plans", error))?)) {
            Ok(plan) => println!("{plan}"),
            Err(failure) => report::refused(&failure),
        }
    }
    process::exit(0)
}

fn plan_as_json(path: &Path) -> Result<String> {
    serde_json::to_string(&read_plan(path)?).map_err(|error| Failure::data("plan", error))
}

/// Prints what does not work. No event follows.
fn self_check() -> ! {
    let problem = self_check::run();
    if let Some(text) = problem {
        println!("{text}");
    }
    process::exit(i32::from(problem.is_some()))
}

fn read_plan(path: &Path) -> Result<plan::Plan> {
    let text = fs::read(path).map_err(|error| Failure::system(path.display(), error))?;
    plan::Plan::parse(&text)
}

/// Executes a plan; returns the test time at which the test ended.
fn execute(plan: &Path, path: &Path, terminal: Option<&str>) -> Result<i64> {
    let is_init = init::is_init();
    if is_init {
        init::start()?;
        init::load_objects()?;
    }
    let plan = read_plan(plan)?;
    if is_init {
        init::allow_threads(plan.streams.len())?;
    }
    let records = records::Records::create(path)?;
    let captures =
        capture::Captures::create(&plan.captures, &plan.radios, path.parent().unwrap_or(Path::new("")))?;
    if !is_init {
        init::isolate()?; // after the files are open, since this may hide them
    }
    let nodes = netns::Nodes::make(&plan.nodes)?;
    let needs_guard = plan.setup.iter().any(|step| step.work.needs_guard());
    let guard = needs_guard.then(|| guard::Guard::start(&nodes)).transpose()?;
    let daemons = setup::run(&plan.setup, &nodes, guard)?;
    let containers = container::make(&plan, &nodes)?; // copies of this process, while it has one thread
    let facts = facts::Facts::gather(&plan, &nodes)?;
    let out = path.parent().unwrap_or(Path::new(""));
    let prepared = test_loop::Prepared { nodes: &nodes, daemons, containers, out, terminal };
    let end_ns = test_loop::TestLoop::prepare(&plan, prepared, &facts, records, captures, None)?.run()?;
    guard.map_or(Ok(()), guard::Guard::finish)?;
    Ok(end_ns)
}

/// Ends the process, after success, failure and panic alike.
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
