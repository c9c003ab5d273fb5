// SPDX-License-Identifier: Apache-2.0
//! The guard: a process that gives a machine back as it was, in whatever way the agent ends.
//!
//! It is forked before anything is changed that outlives the agent, leads a session of its own, and no signal that can
//! be ignored ends it. Before each change the agent writes how it is undone into a pipe; what is written there survives it.
//! When the pipe closes the guard ends what is left of the agent's process group, so that no tool works on, and undoes
//! the changes, the last one first. A clean end takes the same way: `finish` says so and waits.
//!
//! It keeps the agent's namespaces alive, so that the kernel does not take back, or delete, what is in them first; and its
//! standard output, so that who reads the console to its end has waited for it.

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

use crate::keep::{self, Kept};
use crate::keep_net::Net;
use crate::netns::Nodes;
use crate::report::{words, Failure, Result};
use crate::{clock, sys};

/// How long processes that were killed may take to be gone.
const DYING: i64 = 5_000_000_000;
const STEP: i64 = 10_000_000;

/// The last record, as it is written.
const OVER: &[u8] = b"\"over\"\n";

/// A change, as it is undone. `node`: the namespace in which the change is; none is the first.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Undo {
    /// A device of the namespace `home` to be there as it was; it may be in `node` under the name `within`.
    Device { home: Option<String>, kept: Box<Kept>, node: Option<String>, within: String },
    /// A file of /proc or /sys to hold that again.
    File { node: Option<String>, path: String, value: String },
    /// A device that did not exist, not to exist.
    Gone { node: Option<String>, device: String },
    /// The agent has ended its work by itself.
    Over,
}

/// The agent's end of it. Threads may share it.
pub struct Guard {
    pipe: Mutex<File>,
    process: Pid,
}

impl Guard {
    /// Forks the guard of a process that has one thread and whose nodes are made. It is there until the process ends: the
    /// agent has to say why it fails before it counts as ended.
    pub fn start(nodes: &Nodes) -> Result<&'static Self> {
        let guard = Self::fork(nodes).map_err(|error| Failure::system("starting the guard", error))?;
        Ok(Box::leak(Box::new(guard)))
    }

    fn fork(nodes: &Nodes) -> io::Result<Self> {
        let (reader, writer) = pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        if getpgrp() != getpid() {
            setpgid(Pid::from_raw(0), Pid::from_raw(0))?; // the tools are to be told from those of others
        }
        let agent = getpid();
        let life = sys::process_file(agent)?;
        match sys::fork()? {
            ForkResult::Parent { child } => Ok(Self { pipe: Mutex::new(writer.into()), process: child }),
            ForkResult::Child => {
                drop(writer);
                sys::leave(i32::from(!watch(agent, &life, reader.into(), &nodes.of_another_thread())))
            }
        }
    }

    /// A device of the first namespace will be moved to `node`, with the name `within`; it is moved when this returns.
    pub fn take(&self, nodes: &Nodes, device: &str, node: &str, within: &str) -> Result<()> {
        nodes.enter(None)?;
        let kept = self.keep(None, device, Some(node), within)?;
        let moved = kept.hand_over(nodes.home(Some(node)), within);
        moved.map_err(|error| Failure::system(format!("moving {device} to the node"), error))
    }

    /// A device of a node, which is a namespace of the machine's own, will be changed where it is. The calling thread is
    /// in that namespace.
    pub fn device(&self, node: Option<&str>, device: &str) -> Result<()> {
        self.keep(node, device, node, device).map(drop)
    }

    fn keep(&self, home: Option<&str>, device: &str, node: Option<&str>, within: &str) -> Result<Kept> {
        let of = |error: io::Error| Failure::system(device, error);
        let kept = Kept::read(device).map_err(of)?;
        if let Some(obstacle) = kept.obstacle().map_err(of)? {
            return Err(Failure::new(format!("{device} {obstacle}")));
        }
        self.note(&Undo::Device {
            home: home.map(str::to_owned),
            kept: Box::new(kept.clone()),
            node: node.map(str::to_owned),
            within: within.to_owned(),
        })?;
        Ok(kept)
    }

    /// A file of /proc or /sys will be written, as seen from the node that the thread is in.
    pub fn file(&self, nodes: &Nodes, node: Option<&str>, path: &str) -> Result<()> {
        let value = nodes.read(path).map_err(|error| Failure::system(path, error))?;
        self.note(&Undo::File { node: node.map(str::to_owned), path: path.to_owned(), value })
    }

    /// A device will be made in a namespace that outlives the agent.
    pub fn made(&self, node: Option<&str>, device: &str) -> Result<()> {
        self.note(&Undo::Gone { node: node.map(str::to_owned), device: device.to_owned() })
    }

    /// When it returns the record is out of the agent's hands.
    fn note(&self, undo: &Undo) -> Result<()> {
        let mut line = serde_json::to_vec(undo).expect("a record has only string keys");
        line.push(b'\n');
        let mut pipe = self.pipe.lock().unwrap_or_else(PoisonError::into_inner);
        pipe.write_all(&line).map_err(|error| Failure::system("the guard is gone", error))
    }

    /// Has everything undone; fails if something is not as it was.
    pub fn finish(&self) -> Result<()> {
        self.note(&Undo::Over)?;
        let end = loop {
            match waitpid(self.process, None) {
                Err(Errno::EINTR) => {}
                end => break end,
            }
        };
        match end {
            Ok(WaitStatus::Exited(_, 0)) => Ok(()),
            _ => Err(Failure::new(
                "the machine could not be given back as it was: the log's lines `guard: …` say what",
            )),
        }
    }
}

/// The guard's whole life; gives whether the machine is as it was.
fn watch(agent: Pid, life: &OwnedFd, pipe: File, nodes: &Nodes) -> bool {
    let _ = setsid();
    sys::ignore_signals();
    let _ = fs::write("/proc/self/oom_score_adj", "-1000");
    if let Ok(nothing) = File::open("/dev/null") {
        let _ = nix::unistd::dup2_stdin(&nothing);
    }
    let heard = hear(life, pipe);
    // what was cut off was not yet done
    let lines = heard.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut complaints = Vec::new();
    let mut records: Vec<Undo> = Vec::new();
    for line in lines {
        match serde_json::from_slice(line) {
            Ok(record) => records.push(record),
            Err(error) => complaints.push(format!("a bug: a record that cannot be read: {error}")),
        }
    }
    if !matches!(records.last(), Some(Undo::Over)) {
        end_group(agent);
    }
    for record in records.iter().rev() {
        complaints.extend(undo(record, nodes).unwrap_or_else(|failure| vec![failure.message]));
    }
    for complaint in &complaints {
        say(complaint);
    }
    complaints.is_empty()
}

/// All that the agent says until it closes the pipe or is dead: copies of it that run programs have the pipe too.
fn hear(life: &OwnedFd, mut pipe: File) -> Vec<u8> {
    let mut heard = Vec::new();
    loop {
        let mut fds = [pipe.as_fd(), life.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let _ = poll(&mut fds, PollTimeout::NONE);
        let dead = fds[1].any().unwrap_or(true);
        match pipe.read_to_end(&mut heard) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && !dead && !heard.ends_with(OVER) => {}
            _ => return heard,
        }
    }
}

/// The agent has ended; its tools may be at work yet.
fn end_group(agent: Pid) {
    let group = Pid::from_raw(-agent.as_raw());
    let deadline = clock::monotonic() + DYING;
    while kill(group, Signal::SIGKILL).is_ok() && !only_dead(agent) && clock::monotonic() < deadline {
        clock::sleep(STEP);
    }
}

/// Whether all that is left of a process group waits for somebody to ask how it ended.
fn only_dead(group: Pid) -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let stats = processes.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            // `pid (name) state parent group`: the name may hold anything
            let mut words = stat.rsplit_once(") ")?.1.split(' ').map(str::to_owned);
            Some((words.next()?, words.nth(1)?))
        })
        .filter(|(_, found)| *found == group.to_string())
        .all(|(state, _)| state == "Z" || state == "X")
}

/// Gives what could not be undone.
fn undo(record: &Undo, nodes: &Nodes) -> Result<Vec<String>> {
    let of = |what: &str, error: &io::Error| vec![format!("{what}: {}", words(error))];
    match record {
        Undo::Device { home, kept, node, within } => {
            nodes.enter(home.as_deref())?;
            let mut here = kept.is_here();
            if !matches!(here, Ok(true)) && node != home {
                nodes.enter(node.as_deref())?;
                here = kept.fetch(within, nodes.home(home.as_deref()));
                nodes.enter(home.as_deref())?;
            }
            Ok(match here {
                Ok(true) => kept.restore(),
                Ok(false) => vec![format!("{}: is not there any more", kept.name())],
                Err(error) => of(kept.name(), &error),
            })
        }
        Undo::File { node, path, value } => {
            nodes.enter(node.as_deref())?;
            if nodes.read(path).is_ok_and(|now| now == *value) {
                return Ok(Vec::new());
            }
            let written = nodes.write(path, value);
            Ok(match written.and_then(|()| nodes.read(path)) {
                Ok(now) if now == *value => Vec::new(),
                Ok(now) => vec![format!("{path}: holds {}, not {}", now.trim(), value.trim())],
                Err(error) => of(path, &error),
            })
        }
        Undo::Gone { node, device } => {
            nodes.enter(node.as_deref())?;
            let delete = || {
                let mut net = Net::open()?;
                let found = keep::find(&mut net, |link| link.name == *device)?;
                found.map_or(Ok(()), |link| link.delete(&mut net))
            };
            Ok(delete().err().map_or_else(Vec::new, |error| of(device, &error)))
        }
        Undo::Over => Ok(Vec::new()),
    }
}

/// To the console; to the kernel's log if nobody listens any more.
fn say(complaint: &str) {
    let line = format!("guard: {complaint}\n");
    if io::stdout().lock().write_all(line.as_bytes()).and_then(|()| io::stdout().flush()).is_err() {
        let log = OpenOptions::new().write(true).open("/dev/kmsg");
        let _ = log.and_then(|mut log| log.write_all(format!("hourglass {line}").as_bytes()));
    }
}
