// SPDX-License-Identifier: Apache-2.0
//! One program: what it is at, what it waits for, and the row that each of its starts leaves.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::{fcntl, FcntlArg, OFlag};
use nix::sys::memfd::{memfd_create, MFdFlags};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{pipe2, Pid};

use crate::account::Account;
use crate::app_output::Output;
use crate::app_plan::{App, Ready, Transport};
use crate::clock::{seconds, SECOND};
use crate::column::Cell;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::room::{open_in, Room};
use crate::room_post::{send, Order};
use crate::steps::Act;
use crate::tables::Table;
use crate::{report, sys};

/// How often a port or a file is looked for.
const LOOK: i64 = 1_000_000;
/// The machine's second console.
const TERMINAL: &str = "/dev/tty1";
/// Enough of what it said last for a message.
const SHOWN: usize = 300;

pub enum State {
    /// Not started yet, or to be started again, then.
    Waiting {
        from_ns: i64,
    },
    Running(Run),
    Over,
}

/// One start of a program.
pub struct Run {
    number: u16,
    pid: u32,
    /// As the agent sees it; none if it was gone at once.
    group: Option<Pid>,
    started_ns: i64,
    ready_ns: Option<i64>,
    /// Set by who stops it.
    why: Option<&'static str>,
    kill_ns: Option<i64>,
    /// Killed, and not heard to end by then: it never will be.
    lost_ns: Option<i64>,
    look_ns: i64,
    /// It is started again when it has ended, by order of an event.
    again: bool,
}

pub struct Program {
    pub plan: App,
    node: String,
    pub state: State,
    /// Once is enough for those who wait.
    pub was_ready: bool,
    starts: u16,
    restarts: u32,
    /// Events that start it again and are still to come: the test waits for them.
    revivals: usize,
    /// It has the machine's second console; else its outputs are recorded.
    terminal: bool,
    outputs: [Output; 2],
    last_words: String,
    /// What the starts did that have ended.
    before: Account,
}

impl Program {
    pub fn new(plan: &App, node: &str, folder: &Path, revivals: usize, terminal: bool) -> Result<Self> {
        let output = |name| {
            let path = folder.join(format!("{}.{name}", plan.name));
            Output::create(&path, name, plan.output_bytes)
                .map_err(|error| Failure::system(path.display(), error))
        };
        Ok(Self {
            node: node.to_owned(),
            state: State::Waiting { from_ns: plan.start_ns },
            was_ready: false,
            starts: 0,
            restarts: plan.restarts,
            revivals,
            terminal,
            outputs: [output("stdout")?, output("stderr")?],
            last_words: String::new(),
            before: Account::default(),
            plan: plan.clone(),
        })
    }

    /// A failure of the run that is this program's.
    pub fn blame(&self, message: String) -> Failure {
        Failure {
            origin: self.plan.origin.clone(),
            step: Some("app"),
            node: Some(self.node.clone()),
            line: Some(self.plan.command.join(" ")),
            message,
        }
    }

    pub fn runs(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether the test may end as far as this program is concerned.
    pub fn is_waited_for_no_more(&self) -> bool {
        self.plan.background || (matches!(self.state, State::Over) && self.revivals == 0)
    }

    /// When it may be started.
    pub fn start_ns(&self) -> Option<i64> {
        match self.state {
            State::Waiting { from_ns } => Some(from_ns),
            _ => None,
        }
    }

    /// When something is to be done for it that no event will tell.
    pub fn due(&self) -> Option<i64> {
        let outputs = self.outputs.iter().filter_map(Output::due);
        let run = match &self.state {
            State::Running(run) => [
                self.plan.stop_ns.filter(|_| run.why.is_none()),
                run.kill_ns,
                run.lost_ns,
                run.ready_ns.is_none().then_some(run.look_ns),
            ],
            _ => [None; 4],
        };
        outputs.chain(run.into_iter().flatten()).min()
    }

    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.outputs.iter().filter_map(Output::waits)
    }

    /// Has the room start it.
    pub fn order_start(&mut self, room: &Room) -> Result<()> {
        if self.terminal {
            let order = || -> io::Result<()> {
                let flags = OFlag::O_NOCTTY.bits();
                let terminal = File::options().read(true).write(true).custom_flags(flags).open(TERMINAL)?;
                send(room.post.as_fd(), &Order::Start { app: self.plan.id }, &[terminal.as_raw_fd(); 3])
            };
            return order().map_err(|error| self.blame(format!("its terminal: {error}")));
        }
        let order = || -> io::Result<[File; 2]> {
            let (out, out_end) = pipe2(OFlag::O_CLOEXEC)?;
            let (err, err_end) = pipe2(OFlag::O_CLOEXEC)?;
            for ours in [&out, &err] {
                fcntl(ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            }
            let input = self.input()?;
            let fds = [input.as_raw_fd(), out_end.as_raw_fd(), err_end.as_raw_fd()];
            send(room.post.as_fd(), &Order::Start { app: self.plan.id }, &fds)?;
            Ok([File::from(out), File::from(err)])
        };
        let pipes = order().map_err(|error| self.blame(format!("starting it: {error}")))?;
        for (output, pipe) in self.outputs.iter_mut().zip(pipes) {
            output.listen(pipe);
        }
        Ok(())
    }

    fn input(&self) -> io::Result<OwnedFd> {
        let content = self.plan.stdin.bytes();
        if content.is_empty() {
            return Ok(File::open("/dev/null")?.into());
        }
        let mut file = File::from(memfd_create(c"stdin", MFdFlags::MFD_CLOEXEC)?);
        file.write_all(&content)?;
        file.rewind()?;
        Ok(file.into())
    }

    pub fn started(&mut self, now: i64, pid: u32, room: &Room) {
        let group = room.members(self.plan.id).into_iter().find(|outer| sys::inner_pid(*outer) == Some(pid));
        self.state = State::Running(Run {
            number: self.starts,
            pid,
            group,
            started_ns: now,
            ready_ns: None,
            why: None,
            kill_ns: None,
            lost_ns: None,
            look_ns: now,
            again: false,
        });
        self.starts += 1;
    }

    /// What is due. Whether it has become ready.
    pub fn advance(&mut self, now: i64, room: &Room, records: &mut Records) -> Result<bool> {
        self.listen(now, records)?;
        let State::Running(run) = &mut self.state else {
            if self.plan.stop_ns.is_some_and(|stop_ns| stop_ns <= now) {
                self.state = State::Over;
            }
            return Ok(false);
        };
        if run.why.is_none() && self.plan.stop_ns.is_some_and(|stop_ns| stop_ns <= now) {
            stop(&self.plan, run, now, "stopped", room);
        }
        if run.kill_ns.is_some_and(|kill_ns| kill_ns <= now) {
            (run.why, run.kill_ns) = (Some("killed"), None);
            run.lost_ns = Some(now + SECOND);
            kill_all(room, self.plan.id);
        }
        if run.lost_ns.is_some_and(|lost_ns| lost_ns <= now) {
            self.row(None, (None, None), records)?;
            self.state = State::Over;
            return Ok(false);
        }
        self.look(now, room)
    }

    /// Whether it is ready now and was not before.
    fn look(&mut self, now: i64, room: &Room) -> Result<bool> {
        let State::Running(run) = &mut self.state else { return Ok(false) };
        if run.ready_ns.is_some() || now < run.look_ns {
            return Ok(false);
        }
        let (is_ready, next_ns) = match &self.plan.ready {
            Ready::Start {} => (true, 0),
            Ready::Delay { ns } => (run.started_ns + ns <= now, run.started_ns + ns),
            Ready::Listen { protocol, port } => (listens(room, *protocol, *port), now + LOOK),
            Ready::File { path } => {
                let found = room.root().map(|root| open_in(root.as_fd(), path, OFlag::O_PATH).is_ok());
                (found.unwrap_or(false), now + LOOK)
            }
            Ready::Output { .. } | Ready::Exit {} => (false, i64::MAX),
        };
        let late_ns = run.started_ns.saturating_add(self.plan.ready_ns);
        run.look_ns = next_ns.min(late_ns);
        if is_ready {
            run.ready_ns = Some(now);
            self.was_ready = true;
        } else if late_ns <= now && run.why.is_none() {
            let words = if self.last_words.is_empty() { "it said nothing" } else { &self.last_words };
            let (within, awaited) = (seconds(self.plan.ready_ns), self.plan.ready.awaited());
            let message = format!("not ready within {within} s, waiting for {awaited}; {words}");
            return Err(self.blame(message));
        }
        Ok(is_ready)
    }

    /// What it printed.
    pub fn listen(&mut self, now: i64, records: &mut Records) -> Result<()> {
        let of = (self.plan.id, self.starts.saturating_sub(1));
        let (plan, state, last_words) = (&self.plan, &mut self.state, &mut self.last_words);
        let mut heard = false;
        for output in &mut self.outputs {
            output.read(now, of, records, |line| {
                heard |= matches!(&plan.ready, Ready::Output { text } if line.contains(text.as_str()));
                if !line.trim().is_empty() {
                    *last_words = line.chars().take(SHOWN).collect();
                }
            })?;
        }
        if let State::Running(run) = state {
            if heard && run.ready_ns.is_none() {
                run.ready_ns = Some(now);
                self.was_ready = true;
            }
        }
        Ok(())
    }

    /// What an event does to it. A program that does not run is left alone, except by a restart.
    pub fn act(&mut self, act: Act, now: i64, room: &Room) {
        if act == Act::Restart {
            self.revivals -= 1;
        }
        match (&mut self.state, act) {
            (State::Running(run), Act::Kill) => {
                run.why.get_or_insert("killed");
                kill_all(room, self.plan.id);
            }
            (State::Running(run), Act::Pause) => signal(run, Signal::SIGSTOP),
            (State::Running(run), Act::Resume) => signal(run, Signal::SIGCONT),
            (State::Running(run), Act::Restart) => {
                run.again = true;
                stop(&self.plan, run, now, "stopped", room);
            }
            (State::Over, Act::Restart) => self.state = State::Waiting { from_ns: now },
            // ended by itself, and about to be started again
            (State::Waiting { .. }, Act::Kill) if self.starts > 0 => self.state = State::Over,
            _ => {}
        }
    }

    /// The end of the test.
    pub fn end(&mut self, now: i64, room: &Room) {
        match &mut self.state {
            State::Running(run) => {
                run.again = false;
                if run.why.is_none() {
                    stop(&self.plan, run, now, "end", room);
                }
            }
            state => {
                *state = State::Over;
                kill_all(room, self.plan.id); // what it left behind
            }
        }
    }

    pub fn ended(
        &mut self,
        now: i64,
        (exit, signal): (Option<u8>, Option<u8>),
        ending: bool,
        records: &mut Records,
    ) -> Result<()> {
        self.listen(now, records)?;
        let State::Running(run) = &mut self.state else { return Ok(()) };
        if matches!(self.plan.ready, Ready::Exit {}) && exit == Some(0) {
            run.ready_ns = Some(now);
            self.was_ready = true;
        }
        let (again, by_itself) = (run.again, run.why.is_none());
        self.row(Some(now), (exit, signal), records)?;
        self.before = Account::of(self.plan.id).unwrap_or_default();
        let restart = !again && by_itself && self.restarts > 0;
        self.restarts -= u32::from(restart);
        let from_ns = if again { now } else { now + self.plan.restart_ns };
        self.state = if (again || restart) && !ending { State::Waiting { from_ns } } else { State::Over };
        Ok(())
    }

    /// Of the start that is at work.
    fn row(
        &self,
        end_ns: Option<i64>,
        (exit, signal): (Option<u8>, Option<u8>),
        records: &mut Records,
    ) -> Result<()> {
        let State::Running(run) = &self.state else { return Ok(()) };
        let by_itself = if signal.is_some() { "signal" } else { "exit" };
        let number = |value: Option<u8>| Cell::from(value.map(u64::from));
        let time = |value: Option<i64>| value.map_or(Cell::Null, Cell::I64);
        let did = Account::of(self.plan.id).map(|account| account.since(&self.before));
        for ((what, call), ns) in did.iter().flat_map(|did| &did.waits_ns) {
            records.push(
                Table::AppWait,
                [
                    Cell::I64(run.started_ns),
                    Cell::U64(self.plan.id.into()),
                    Cell::U64(run.number.into()),
                    Cell::Text(what),
                    Cell::from(call.map(u64::from)),
                    Cell::U64(*ns),
                ],
            )?;
        }
        records.push(
            Table::App,
            [
                Cell::I64(run.started_ns),
                Cell::U64(self.plan.id.into()),
                Cell::U64(run.number.into()),
                Cell::U64(run.pid.into()),
                time(run.ready_ns),
                time(end_ns),
                number(exit),
                number(signal),
                Cell::Text(run.why.unwrap_or(by_itself)),
                Cell::U64(self.outputs[0].bytes),
                Cell::U64(self.outputs[1].bytes),
                Cell::from(did.map(|did| did.calls)),
            ],
        )
    }

    pub fn finish(&self) -> Result<()> {
        if let Some(account) = Account::of(self.plan.id) {
            report::used(&self.plan.name, account.host_ns);
        }
        self.outputs
            .iter()
            .try_for_each(Output::finish)
            .map_err(|error| self.blame(format!("what it printed: {error}")))
    }
}

/// Asks it to end; what is left of it after its grace is killed.
fn stop(plan: &App, run: &mut Run, now: i64, why: &'static str, room: &Room) {
    run.why = Some(why);
    run.kill_ns = Some(now.saturating_add(plan.grace_ns));
    match (run.group, Signal::try_from(plan.stop_signal)) {
        (Some(group), Ok(number)) => drop(kill(Pid::from_raw(-group.as_raw()), number)),
        _ => kill_all(room, plan.id),
    }
    // one that is paused hears of it
    signal(run, Signal::SIGCONT);
}

/// To its process group; one that is gone needs no signal.
fn signal(run: &Run, number: Signal) {
    if let Some(group) = run.group {
        let _ = kill(Pid::from_raw(-group.as_raw()), number);
    }
}

/// Until no process of it is left: one may have been born meanwhile.
fn kill_all(room: &Room, app: u16) {
    for pid in room.members(app) {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Whether some socket of the node listens on a TCP port, or is bound to a UDP port.
fn listens(room: &Room, protocol: Transport, port: u16) -> bool {
    let (files, state) = match protocol {
        Transport::Tcp => (["tcp", "tcp6"], "0A"),
        Transport::Udp => (["udp", "udp6"], "07"),
    };
    files.iter().any(|file| room.net(file).is_ok_and(|table| has_socket(&table, state, port)))
}

/// In a table of /proc/net, whose lines are `sl local_address rem_address st …`, addresses as ADDRESS:PORT in hex.
fn has_socket(table: &str, state: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|fields| {
        fields.get(1).is_some_and(|local| local.ends_with(&end)) && fields.get(3) == Some(&state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_among_sockets() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                     \x20  0: 00000000:0050 00000000:0000 0A 00000000:00000000\n\
                     \x20  1: 0100000A:01BB 0200000A:C350 01 00000000:00000000\n";
        assert!(has_socket(table, "0A", 80));
        assert!(!has_socket(table, "0A", 443), "it is connected and does not listen");
        assert!(!has_socket(table, "0A", 8));
    }
}
