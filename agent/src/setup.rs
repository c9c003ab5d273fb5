// SPDX-License-Identifier: Apache-2.0
//! The set-up: the steps of the plan, in their order, each failure put on the step that caused it; then, when test time
//! 0 is known, the files that want to know it.
//!
//! Neighbouring `ip` (or `tc`) steps of one node share a process, unless none is needed (`lines`); the line number of a
//! failure leads back to the step.

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use nix::sys::socket::{send, MsgFlags};

use crate::apps::Handle;
use crate::clock::{self, Epoch};
use crate::daemon::Daemons;
use crate::guard::Guard;
use crate::mailbox::Mailbox;
use crate::netns::Nodes;
use crate::report::{Failure, Result};
use crate::steps::{Step, Work};
use crate::{icmp, lines, tool};

/// How long a `reach` step waits for a reply before it asks again.
const REACH_INTERVAL: i64 = 50_000_000;
/// How long an `iw` step waits before it asks again.
const IW_INTERVAL: i64 = 100_000_000;
/// Distinguishes its echoes from those of pings, whose identifiers count from 0.
const REACH_ID: u16 = u16::MAX;

/// Gives back the daemons that were started; they live as long as it does.
pub fn run(steps: &[Step], nodes: &Nodes, guard: Option<&Guard>) -> Result<Daemons> {
    let daemons = Daemons::default();
    for steps in steps.chunk_by(|one, next| one.work.needs_guard() == next.work.needs_guard()) {
        match guard {
            Some(guard) if steps[0].work.needs_guard() => {
                steps.iter().try_for_each(|step| entrust(step, nodes, guard))?;
            }
            _ => drop(carry_out(steps, nodes, &daemons, None)?),
        }
    }
    Ok(daemons)
}

fn entrust(step: &Step, nodes: &Nodes, guard: &Guard) -> Result<()> {
    match &step.work {
        Work::Take { real, device } => {
            let node = step.node().expect("Plan::check knows its node");
            let taken = guard.take(nodes, real, node, device);
            taken.map_err(|failure| step.blame(real.clone(), failure))
        }
        Work::Keep { devices, files, made } => {
            let blamed =
                |name: &str, done: Result<()>| done.map_err(|failure| step.blame(name.to_owned(), failure));
            nodes.enter(step.node())?;
            devices.iter().try_for_each(|name| blamed(name, guard.device(step.node(), name)))?;
            files.iter().try_for_each(|path| blamed(path, guard.file(nodes, step.node(), path)))?;
            made.iter().try_for_each(|name| blamed(name, guard.made(step.node(), name)))
        }
        _ => Ok(()),
    }
}

/// Steps, one after the other; gives what the tools warned of, on one line. Leaves the thread in the first namespace.
pub fn carry_out(steps: &[Step], nodes: &Nodes, daemons: &Daemons, apps: Option<&Handle>) -> Result<String> {
    let mut warnings = String::new();
    for steps in steps.chunk_by(share_a_process) {
        let step = &steps[0];
        nodes.enter(step.node())?;
        match &step.work {
            Work::Ip { .. } | Work::Tc { .. } => warnings += &run_batch(steps)?,
            Work::Write { path, value } => write(nodes, step, path, value)?,
            Work::Epoch { .. } | Work::Take { .. } | Work::Keep { .. } | Work::Host { .. } => {} // at their own time
            Work::App { app, act } => {
                apps.expect("an app that is acted on is in the plan").act(*app, *act);
            }
            Work::Ethtool { args } => {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                warnings += &tool::run("ethtool", &args, "")
                    .map_err(|complaint| step.blame(args.join(" "), Failure::new(complaint.words)))?;
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
                daemons.tell(tell, step).map_err(|failure| step.blame(tell.line.clone(), failure))?;
            }
            Work::Reach { address, timeout_ns } => {
                reach(*address, *timeout_ns).map_err(|failure| step.blame(address.to_string(), failure))?;
            }
        }
    }
    nodes.enter(None)?;
    Ok(warnings.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Tells the files of the `epoch` steps when test time 0 is.
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
        // a trace has many lines; its first says which it is
        let shown = value.lines().next().unwrap_or_default();
        step.blame(format!("{path} = {shown}"), Failure::system(path, error))
    })
}

fn share_a_process(one: &Step, next: &Step) -> bool {
    let same_tool = matches!(
        (&one.work, &next.work),
        (Work::Ip { .. }, Work::Ip { .. }) | (Work::Tc { .. }, Work::Tc { .. })
    );
    same_tool && one.node() == next.node()
}

fn batch_lines(step: &Step) -> &[String] {
    match &step.work {
        Work::Ip { lines } | Work::Tc { lines } => lines,
        _ => &[],
    }
}

fn run_batch(steps: &[Step]) -> Result<String> {
    let lines: Vec<(&Step, &String)> =
        steps.iter().flat_map(|step| batch_lines(step).iter().map(move |line| (step, line))).collect();
    let done = lines::carry_out(steps[0].name(), lines.iter().map(|(_, line)| line.as_str()));
    let lines = &lines[done..];
    if lines.is_empty() {
        return Ok(String::new());
    }
    let input: String = lines.iter().flat_map(|(_, line)| [line.as_str(), "\n"]).collect();
    tool::run(steps[0].name(), &["-batch", "-"], &input).map_err(|complaint| {
        // tc does not say which line is incomplete; what a user wrote comes last
        let guilty = complaint.line.and_then(|line| lines.get(line)).or(lines.last());
        let (step, line) = guilty.map_or((&steps[0], String::new()), |(step, line)| (*step, (*line).clone()));
        step.blame(line, Failure::new(complaint.words))
    })
}

/// One call; or, if it has to say something, as many as the time allows: a station may miss a beacon.
fn iw(args: &[String], says: Option<&str>, timeout_ns: i64) -> Result<()> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let deadline = clock::monotonic() + timeout_ns;
    loop {
        let words =
            tool::run_within("iw", &args, timeout_ns).map_err(|complaint| Failure::new(complaint.words))?;
        if says.is_none_or(|says| words.contains(says)) {
            return Ok(());
        }
        if clock::monotonic() + IW_INTERVAL >= deadline {
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            return Err(Failure::of(format!("not within {} s", clock::seconds(timeout_ns)), words));
        }
        clock::sleep(IW_INTERVAL);
    }
}

/// Asks until the address answers. A route or a neighbour that is not there yet is a reason to ask again.
///
/// The first question is asked at a whole multiple of the interval: the kernel remembers the jiffy at which it last
/// numbered a packet, and draws the next number accordingly, so that the test would show how long the set-up took.
fn reach(address: IpAddr, timeout_ns: i64) -> Result<()> {
    let socket = icmp::open(address).map_err(|error| Failure::system("ping", error))?;
    let mut mailbox = Mailbox::new(8, 128);
    let mut packet = [0; icmp::HEADER + 8];
    clock::sleep_until_whole(REACH_INTERVAL);
    let deadline = clock::monotonic() + timeout_ns;
    for seq in 0.. {
        icmp::fill_request(&mut packet, address, REACH_ID, seq);
        let _ = send(socket.as_raw_fd(), &packet, MsgFlags::empty());
        let left = deadline - clock::monotonic();
        clock::sleep(REACH_INTERVAL.min(left.max(0)));
        if answered(&socket, &mut mailbox, address) {
            return Ok(());
        }
        if left <= REACH_INTERVAL {
            break;
        }
    }
    Err(Failure::new(format!("unreachable: no reply to ping within {} s", clock::seconds(timeout_ns))))
}

fn answered(socket: &OwnedFd, mailbox: &mut Mailbox, address: IpAddr) -> bool {
    // A failed fetch is the ICMP error of an earlier request: no answer.
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
        assert!(share_a_process(&ip, &ip));
        assert!(!share_a_process(&ip, &tc));
        assert!(!share_a_process(&ip, &other));
    }
}
