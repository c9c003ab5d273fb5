// SPDX-License-Identifier: Apache-2.0
//! The set-up: executes the steps of the plan in their order, and assigns each failure to its step. Then, when test
//! time 0 is known, it writes the files that need it.
//!
//! Neighbouring steps of one tool and node share a process, unless none is needed (`route_steps`). The line number of a
//! failure identifies the step.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{send, MsgFlags};

use crate::apps::Handle;
use crate::cause::Cause;
use crate::clock::{self, Epoch};
use crate::daemon::Daemons;
use crate::guard::Guard;
use crate::mailbox::Mailbox;
use crate::netns::Nodes;
use crate::report::{Failure, Result};
use crate::steps::{Step, Work};
use crate::{icmp, route_steps, tool};

/// The time that a `reach` step waits for a reply before it retries.
const REACH_INTERVAL: i64 = 50_000_000;
/// The time that an `iw` step waits before it retries.
const IW_INTERVAL: i64 = 100_000_000;
/// The identifier of the set-up's echoes. Those of pings count from 0.
const REACH_ID: u16 = u16::MAX;

/// Executes the set-up. Returns the started daemons, which end when the value is dropped.
pub fn run(steps: &[Step], nodes: &Nodes, guard: Option<&Guard>) -> Result<Daemons> {
    let daemons = Daemons::default();
    for group in steps.chunk_by(|step, next| step.work.needs_guard() == next.work.needs_guard()) {
        match guard {
            Some(guard) if group[0].work.needs_guard() => {
                group.iter().try_for_each(|step| register(step, nodes, guard))?;
            }
            _ => drop(carry_out(group, nodes, &daemons, None)?),
        }
    }
    Ok(daemons)
}

fn register(step: &Step, nodes: &Nodes, guard: &Guard) -> Result<()> {
    match &step.work {
        Work::Take { real, device } => {
            let node = step.node().expect("Plan::check knows its node");
            let result = guard.take(nodes, real, node, device);
            result.map_err(|failure| step.blame(real.clone(), failure))
        }
        Work::Keep { devices, files, created } => {
            let blame =
                |name: &str, done: Result<()>| done.map_err(|failure| step.blame(name.to_owned(), failure));
            nodes.enter(step.node())?;
            devices.iter().try_for_each(|name| blame(name, guard.device(step.node(), name)))?;
            files.iter().try_for_each(|path| blame(path, guard.file(nodes, step.node(), path)))?;
            created.iter().try_for_each(|name| blame(name, guard.created(step.node(), name)))
        }
        _ => Ok(()),
    }
}

/// Carries out steps in order; returns the tools' warnings, on one line. Leaves the thread in the first namespace.
pub fn carry_out(steps: &[Step], nodes: &Nodes, daemons: &Daemons, apps: Option<&Handle>) -> Result<String> {
    let mut warnings = String::new();
    for steps in steps.chunk_by(share_a_process) {
        let step = &steps[0];
        nodes.enter(step.node())?;
        if let Some(tool) = step.tool() {
            warnings += &run_batch(tool, steps)?;
            continue;
        }
        match &step.work {
            Work::Write { path, value } => write(nodes, step, path, value)?,
            Work::Epoch { .. } | Work::Take { .. } | Work::Keep { .. } | Work::Host { .. } => {} // executed elsewhere
            Work::App { app, act } => {
                apps.expect("an app that is acted on is in the plan").act(*app, *act);
            }
            Work::Ethtool { args } => {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                warnings += &tool::run("ethtool", &args, "")
                    .map_err(|error| step.blame(args.join(" "), error.cause.into()))?;
            }
            Work::Iw { args, says, timeout_ns } => {
                iw(args, says.as_deref(), *timeout_ns)
                    .map_err(|failure| step.blame(args.join(" "), failure))?;
            }
            Work::Daemon(plan) => {
                daemons
                    .start(plan, step)
                    .map_err(|failure| step.blame(plan.tool.name().to_owned(), failure))?;
            }
            Work::Tell(tell) => {
                daemons.send_command(tell, step).map_err(|failure| step.blame(tell.line.clone(), failure))?;
            }
            Work::Reach { address, timeout_ns } => {
                reach(*address, *timeout_ns).map_err(|failure| step.blame(address.to_string(), failure))?;
            }
            _ => unreachable!("other steps have a tool"),
        }
    }
    nodes.enter(None)?;
    Ok(warnings.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Writes test time 0 into the files of the `epoch` steps.
pub fn announce(epoch: Epoch, steps: &[Step], nodes: &Nodes) -> Result<()> {
    for step in steps {
        if let Work::Epoch { path } = &step.work {
            nodes.enter(step.node())?;
            write(nodes, step, path, &epoch.monotonic_ns.to_string())?;
        }
    }
    nodes.enter(None)
}

fn write(nodes: &Nodes, step: &Step, path: &str, value: &str) -> Result<()> {
    nodes.write(path, value).map_err(|error| {
        // a trace has many lines; the first line identifies it
        let first_line = value.lines().next().unwrap_or_default();
        step.blame(format!("{path} = {first_line}"), Failure::system(path, error))
    })
}

fn share_a_process(step: &Step, next: &Step) -> bool {
    step.tool().is_some() && step.tool() == next.tool() && step.node() == next.node()
}

fn run_batch(tool: &str, steps: &[Step]) -> Result<String> {
    let remaining = &steps[route_steps::carry_out(steps)..];
    let lines: Vec<(&Step, String)> =
        remaining.iter().flat_map(|step| step.lines().into_iter().map(move |line| (step, line))).collect();
    if lines.is_empty() {
        return Ok(String::new());
    }
    let input: String = lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
    tool::run(tool, &["-batch", "-"], &input).map_err(|error| {
        // tc does not report which line is incomplete; the user's lines come last
        let failing = error.line.and_then(|line| lines.get(line)).or(lines.last());
        let (step, line) = failing.map_or((&steps[0], String::new()), |(step, line)| (*step, line.clone()));
        step.blame(line, error.cause.into())
    })
}

/// Runs `iw` once. If it must print a pattern, repeats it until the timeout: a station may miss a beacon.
fn iw(args: &[String], says: Option<&str>, timeout_ns: i64) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let deadline = clock::monotonic() + timeout_ns;
    loop {
        let output = tool::run_within("iw", &args, timeout_ns).map_err(|error| Failure::from(error.cause))?;
        if says.is_none_or(|says| output.contains(says)) {
            return Ok(());
        }
        if clock::monotonic() + IW_INTERVAL >= deadline {
            let text = output.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(Cause::OutputLate { timeout_ns, text }.into());
        }
        clock::sleep(IW_INTERVAL);
    }
}

/// Pings until the address answers. A missing route or neighbour is a reason to ping again.
///
/// The first ping is sent at a whole multiple of the interval: the kernel remembers the jiffy at which it last numbered
/// a packet, and draws the next number accordingly. Otherwise the test would depend on the duration of the set-up.
fn reach(address: IpAddr, timeout_ns: i64) -> Result<()> {
    let socket = icmp::open(address).map_err(|error| Failure::system("ping", error))?;
    let mut mailbox = Mailbox::new(8, 128);
    let mut packet = [0; icmp::HEADER + 8];
    clock::sleep_until_multiple(REACH_INTERVAL);
    let deadline = clock::monotonic() + timeout_ns;
    for seq in 0.. {
        icmp::fill_request(&mut packet, address, REACH_ID, seq);
        let _ = send(socket.as_raw_fd(), &packet, MsgFlags::empty());
        let remaining = deadline - clock::monotonic();
        clock::sleep(REACH_INTERVAL.min(remaining.max(0)));
        if has_reply(&socket, &mut mailbox, address) {
            return Ok(());
        }
        if remaining <= REACH_INTERVAL {
            break;
        }
    }
    Err(Cause::Unreachable { timeout_ns }.into())
}

fn has_reply(socket: &OwnedFd, mailbox: &mut Mailbox, address: IpAddr) -> bool {
    // An error means that an earlier request got an ICMP error: no answer.
    let _ = mailbox.fetch(socket.as_fd());
    let mut messages = mailbox.messages();
    messages.any(|(packet, _)| matches!(icmp::parse_reply(packet, address), Some((REACH_ID, _))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(json: &str) -> Step {
        serde_json::from_str(json).expect("a step")
    }

    #[test]
    fn only_neighbours_of_one_tool_and_node_share_a_process() {
        let ip = step(r#"{"do": "ip", "node": "a", "lines": [], "origin": null}"#);
        let tc = step(r#"{"do": "tc", "node": "a", "lines": [], "origin": null}"#);
        let other = step(r#"{"do": "ip", "node": "b", "lines": [], "origin": null}"#);
        let route = step(
            r#"{"do": "route", "node": "a", "act": "add", "subnet": "10.0.0.0/24", "via": "10.0.1.1", "metric": null, "origin": null}"#,
        );
        assert!(share_a_process(&ip, &ip));
        assert!(share_a_process(&ip, &route));
        assert!(!share_a_process(&ip, &tc));
        assert!(!share_a_process(&ip, &other));
    }
}
