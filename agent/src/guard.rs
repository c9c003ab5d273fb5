// SPDX-License-Identifier: Apache-2.0
//! The guard: a process that restores a machine's state, however the agent ends.
//!
//! It is forked before the first change that would outlive the agent. It leads a separate session, and no signal that
//! can be ignored ends it. Before each change the agent writes into a pipe how to undo it; a written record survives
//! the agent. When the pipe closes, the guard ends the rest of the agent's process group, so that no tool continues,
//! and undoes the changes, the last one first. A clean end works the same: `finish` announces it and waits.
//!
//! The guard keeps the agent's namespaces alive, so that the kernel does not move or delete their devices first. It
//! also keeps the agent's standard output open, so a reader that reads to its end has waited for the guard.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::{getpgrp, getpid, pipe2, setpgid, setsid, ForkResult, Pid};
use serde::{Deserialize, Serialize};

use crate::cause::Cause;
use crate::device_rows::Net;
use crate::device_snapshot::{self, DeviceSnapshot};
use crate::error_text::error_text;
use crate::netns::Nodes;
use crate::report::{Failure, Result};
use crate::{clock, sys};

/// The maximum wait for the end of killed processes.
const GROUP_EXIT_NS: i64 = 5_000_000_000;
const POLL_INTERVAL_NS: i64 = 10_000_000;

/// The text of the last record.
const FINISHED: &[u8] = b"\"finished\"\n";

/// The undo of a change. `node`: the namespace of the change; None is the first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Undo {
    /// Restores a device of the namespace `home`. The device may be in `node` under the name `within`.
    Device { home: Option<String>, snapshot: Box<DeviceSnapshot>, node: Option<String>, within: String },
    /// Restores a file of /proc or /sys.
    File { node: Option<String>, path: String, value: String },
    /// Deletes a device that did not exist.
    Absent { node: Option<String>, device: String },
    /// The agent has finished its work.
    Finished,
}

/// The agent's connection to the guard. Threads may share it.
pub struct Guard {
    pipe: Mutex<File>,
    process: Pid,
}

impl Guard {
    /// Forks the guard of a process that has one thread and whose nodes exist. The guard lives until the process ends:
    /// the agent must report a failure before it counts as ended.
    pub fn start(nodes: &Nodes) -> Result<&'static Self> {
        let guard = Self::fork(nodes).map_err(|error| Failure::system("starting the guard", error))?;
        Ok(Box::leak(Box::new(guard)))
    }

    fn fork(nodes: &Nodes) -> io::Result<Self> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        if getpgrp() != getpid() {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?; // a separate group, so that only the agent's tools are ended
        }
        let agent = getpid();
        let pidfd = sys::process_file(agent)?;
        match sys::fork()? {
            ForkResult::Parent { child } => Ok(Self { pipe: Mutex::new(writer.into()), process: child }),
            ForkResult::Child => {
                drop(writer);
                sys::exit(i32::from(!watch(agent, &pidfd, reader.into(), &nodes.for_new_thread())))
            }
        }
    }

    /// Records a device of the first namespace and moves it to `node`, under the name `within`.
    pub fn take(&self, nodes: &Nodes, device: &str, node: &str, within: &str) -> Result<()> {
        nodes.enter(None)?;
        let snapshot = self.snapshot_device(None, device, Some(node), within)?;
        let moved = snapshot.move_to(nodes.namespace_fd(Some(node)), within);
        moved.map_err(|error| Failure::system(format!("moving {device} to the node"), error))
    }

    /// Records a device of a node before a change. The node is a namespace of the machine, and the calling thread is in
    /// it.
    pub fn device(&self, node: Option<&str>, device: &str) -> Result<()> {
        self.snapshot_device(node, device, node, device).map(drop)
    }

    fn snapshot_device(
        &self,
        home: Option<&str>,
        device: &str,
        node: Option<&str>,
        within: &str,
    ) -> Result<DeviceSnapshot> {
        let failure = |error: io::Error| Failure::system(device, error);
        let snapshot = DeviceSnapshot::read(device).map_err(failure)?;
        if let Some(obstacle) = snapshot.obstacle().map_err(failure)? {
            return Err(Cause::DeviceUnrestorable { device: device.to_owned(), text: obstacle }.into());
        }
        self.record(&Undo::Device {
            home: home.map(str::to_owned),
            snapshot: Box::new(snapshot.clone()),
            node: node.map(str::to_owned),
            within: within.to_owned(),
        })?;
        Ok(snapshot)
    }

    /// Records a file of /proc or /sys before a write, as seen from the thread's node.
    pub fn file(&self, nodes: &Nodes, node: Option<&str>, path: &str) -> Result<()> {
        let value = nodes.read(path).map_err(|error| Failure::system(path, error))?;
        self.record(&Undo::File { node: node.map(str::to_owned), path: path.to_owned(), value })
    }

    /// Records that a device will be created in a namespace that outlives the agent.
    pub fn created(&self, node: Option<&str>, device: &str) -> Result<()> {
        self.record(&Undo::Absent { node: node.map(str::to_owned), device: device.to_owned() })
    }

    /// Writes a record. When this returns, the record no longer depends on the agent.
    fn record(&self, undo: &Undo) -> Result<()> {
        let mut line = serde_json::to_vec(undo).expect("a record has only string keys");
        line.push(b'\n');
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        pipe.write_all(&line).map_err(|error| Failure::system("the guard has ended", error))
    }

    /// Lets the guard undo everything; fails if something is not restored.
    pub fn finish(&self) -> Result<()> {
        self.record(&Undo::Finished)?;
        let end = loop {
            match waitpid(self.process, None) {
                Err(Errno::EINTR) => {}
                end => break end,
            }
        };
        match end {
            Ok(WaitStatus::Exited(_, 0)) => Ok(()),
            _ => Err(Cause::StateNotRestored {}.into()),
        }
    }
}

/// Runs the guard. Returns whether the machine's state is restored.
fn watch(agent: Pid, pidfd: &OwnedFd, pipe: File, nodes: &Nodes) -> bool {
    let _ = setsid();
    sys::ignore_signals();
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    if let Ok(null) = File::open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&null);
    }
    let received = read_changes(pidfd, pipe);
    // an incomplete record belongs to a change that was not made
    let lines = received.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut problems = Vec::new();
    let mut changes: Vec<Undo> = Vec::new();
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(change) => changes.push(change),
            Err(error) => problems.push(format!("a bug: a record that cannot be read: {error}")),
        }
    }
    if !matches!(changes.last(), Some(Undo::Finished)) {
        end_group(agent);
    }
    for change in changes.iter().rev() {
        problems.extend(undo(change, nodes).unwrap_or_else(|failure| vec![failure.to_string()]));
    }
    for problem in &problems {
        print_problem(problem);
    }
    problems.is_empty()
}

/// Reads the agent's records until it closes the pipe or ends. Its end is watched too, since copies of the agent also
/// have the pipe.
fn read_changes(pidfd: &OwnedFd, mut pipe: File) -> Vec<u8> {
    let mut received = Vec::new();
    loop {
        let mut fds = [pipe.as_fd(), pidfd.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let _ = poll(&mut fds, PollTimeout::NONE);
        let dead = fds[1].any().unwrap_or(true);
        match pipe.read_to_end(&mut received) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && !dead && !received.ends_with(FINISHED) => {
            }
            _ => return received,
        }
    }
}

/// Ends the agent's tools, which may still run after the agent's end.
fn end_group(agent: Pid) {
    let group = Pid::from_raw(-agent.as_raw());
    let deadline = clock::monotonic() + GROUP_EXIT_NS;
    while kill(group, Signal::SIGKILL).is_ok() && !only_dead(agent) && clock::monotonic() < deadline {
        clock::sleep(POLL_INTERVAL_NS);
    }
}

/// Returns whether all remaining processes of a group are zombies.
fn only_dead(group: Pid) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            // `pid (name) state parent group`: the name may contain any character
            let mut fields = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
            Some((fields.next()?, fields.nth(1)?))
        })
        .filter(|(_, stat_group)| *stat_group == group.to_string())
        .all(|(state, _)| state == "Z" || state == "X")
}

/// Undoes a change and returns the parts that could not be undone.
fn undo(change: &Undo, nodes: &Nodes) -> Result<Vec<String>> {
    let describe = |subject: &str, error: &io::Error| vec![format!("{subject}: {}", error_text(error))];
    match change {
        Undo::Device { home, snapshot, node, within } => {
            nodes.enter(home.as_deref())?;
            let mut present = snapshot.is_present();
            if !matches!(present, Ok(true)) && node != home {
                nodes.enter(node.as_deref())?;
                present = snapshot.take_back(within, nodes.namespace_fd(home.as_deref()));
                nodes.enter(home.as_deref())?;
            }
            Ok(match present {
                Ok(true) => snapshot.restore(),
                Ok(false) => vec![format!("{}: no longer exists", snapshot.name())],
                Err(error) => describe(snapshot.name(), &error),
            })
        }
        Undo::File { node, path, value } => {
            nodes.enter(node.as_deref())?;
            if nodes.read(path).is_ok_and(|current| current == *value) {
                return Ok(Vec::new());
            }
            let written = nodes.write(path, value);
            Ok(match written.and_then(|()| nodes.read(path)) {
                Ok(current) if current == *value => Vec::new(),
                Ok(current) => vec![format!("{path}: is {}, not {}", current.trim(), value.trim())],
                Err(error) => describe(path, &error),
            })
        }
        Undo::Absent { node, device } => {
            nodes.enter(node.as_deref())?;
            let delete = || {
                let mut net = Net::open()?;
                let link = device_snapshot::find(&mut net, |link| link.name == *device)?;
                link.map_or(Ok(()), |link| link.delete(&mut net))
            };
            Ok(delete().err().map_or_else(Vec::new, |error| describe(device, &error)))
        }
        Undo::Finished => Ok(Vec::new()),
    }
}

/// Writes to the console, or to the kernel's log if the console has no reader.
fn print_problem(problem: &str) {
    let line = format!("guard: {problem}\n");
    if io::stdout().lock().write_all(line.as_bytes()).and_then(|()| io::stdout().flush()).is_err() {
        let log = OpenOptions::new().write(true).open("/dev/kmsg");
        let _ = log.and_then(|mut log| log.write_all(format!("hourglass {line}").as_bytes()));
    }
}
