// SPDX-License-Identifier: Apache-2.0
//! One program: its state, the conditions it waits for, and the row for each of its starts.

use std::collections::VecDeque;
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
use crate::cause::Cause;
use crate::clock::SECOND;
use crate::column::Cell;
use crate::container::{open_in, Container};
use crate::container_channel::{send, Order};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::steps::Act;
use crate::tables::Table;
use crate::{report, sys};

/// The interval of checks for a port or a file.
const POLL_INTERVAL_NS: i64 = 1_000_000;
/// The machine's second console.
const TERMINAL: &str = "/dev/tty1";
/// The bytes of a last line that a message quotes.
const LAST_LINE_MAX: usize = 300;
/// The number of last lines that a failure quotes.
const LAST_LINES: usize = 3;

pub enum State {
    /// The program starts, or restarts, at `from_ns`.
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
    /// The process as the agent sees it; None if it ended at once.
    group: Option<Pid>,
    started_ns: i64,
    ready_ns: Option<i64>,
    /// The reason, if the agent stops the program.
    cause: Option<&'static str>,
    kill_ns: Option<i64>,
    /// The program was killed. If its end is not reported by this time, it never will be.
    lost_ns: Option<i64>,
    poll_ns: i64,
    /// An event has ordered a restart after the program's end.
    restart_ordered: bool,
}

pub struct Program {
    pub plan: App,
    node: String,
    pub state: State,
    /// Whether the program was ready once. Programs that wait for it need nothing else.
    pub was_ready: bool,
    starts: u16,
    restarts: u32,
    /// The number of future events that restart the program. The test waits for them.
    event_restarts: usize,
    /// Whether the program has the machine's second console. Otherwise its outputs are recorded.
    terminal: bool,
    outputs: [Output; 2],
    last_lines: VecDeque<String>,
    /// The exit status or the signal of the last start that ended.
    last_end: (Option<u8>, Option<u8>),
    /// The counters of the starts that have ended.
    previous: Account,
}

impl Program {
    pub fn new(plan: &App, node: &str, folder: &Path, event_restarts: usize, terminal: bool) -> Result<Self> {
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
            event_restarts,
            terminal,
            outputs: [output("stdout")?, output("stderr")?],
            last_lines: VecDeque::new(),
            last_end: (None, None),
            previous: Account::default(),
            plan: plan.clone(),
        })
    }

    /// Returns a failure of the run that names this program.
    pub fn blame(&self, cause: Cause) -> Failure {
        Failure {
            origin: self.plan.origin.clone(),
            step: Some("app"),
            node: Some(self.node.clone()),
            line: Some(self.plan.command.join(" ")),
            ..cause.into()
        }
    }

    /// Returns the program's last lines, the earliest first.
    pub fn last_output(&self) -> String {
        self.last_lines.iter().rev().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Returns how its last start ended, for a message.
    pub fn ending(&self) -> String {
        match self.last_end {
            (Some(status), _) => format!("exit status {status}"),
            (_, Some(number)) => Signal::try_from(i32::from(number))
                .map_or_else(|_| format!("signal {number}"), |signal| signal.as_str().to_owned()),
            _ if self.starts == 0 => "stopped before its start".to_owned(),
            _ => "no process".to_owned(),
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Returns whether the test may end as far as this program is concerned.
    pub fn is_settled(&self) -> bool {
        self.plan.background || (matches!(self.state, State::Over) && self.event_restarts == 0)
    }

    /// Returns the earliest time of the next start.
    pub fn start_ns(&self) -> Option<i64> {
        match self.state {
            State::Waiting { from_ns } => Some(from_ns),
            _ => None,
        }
    }

    /// Returns the time of the next action that no event triggers.
    pub fn due_ns(&self) -> Option<i64> {
        let outputs = self.outputs.iter().filter_map(Output::due_ns);
        let run = match &self.state {
            State::Running(run) => [
                self.plan.stop_ns.filter(|_| run.cause.is_none()),
                run.kill_ns,
                run.lost_ns,
                run.ready_ns.is_none().then_some(run.poll_ns),
            ],
            _ => [None; 4],
        };
        outputs.chain(run.into_iter().flatten()).min()
    }

    pub fn pipes(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.outputs.iter().filter_map(Output::pollable_pipe)
    }

    /// Orders the container to start the program.
    pub fn order_start(&mut self, container: &Container) -> Result<()> {
        if self.terminal {
            let order = || -> io::Result<()> {
                let flags = OFlag::O_NOCTTY.bits();
                let terminal = File::options().read(true).write(true).custom_flags(flags).open(TERMINAL)?;
                send(
                    container.channel.as_fd(),
                    &Order::Start { app: self.plan.id },
                    &[terminal.as_raw_fd(); 3],
                )
            };
            return order().map_err(|error| self.blame(Cause::system("its terminal", error)));
        }
        let order = || -> io::Result<[File; 2]> {
            let (out, out_end) = pipe2(OFlag::O_CLOEXEC)?;
            let (err, err_end) = pipe2(OFlag::O_CLOEXEC)?;
            for pipe in [&out, &err] {
                fcntl(pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            }
            let input = self.input()?;
            let fds = [input.as_raw_fd(), out_end.as_raw_fd(), err_end.as_raw_fd()];
            send(container.channel.as_fd(), &Order::Start { app: self.plan.id }, &fds)?;
            Ok([File::from(out), File::from(err)])
        };
        let pipes = order().map_err(|error| self.blame(Cause::system("starting it", error)))?;
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

    pub fn note_start(&mut self, now: i64, pid: u32, container: &Container) {
        let group =
            container.members(self.plan.id).into_iter().find(|outer| sys::inner_pid(*outer) == Some(pid));
        self.last_end = (None, None);
        self.state = State::Running(Run {
            number: self.starts,
            pid,
            group,
            started_ns: now,
            ready_ns: None,
            cause: None,
            kill_ns: None,
            lost_ns: None,
            poll_ns: now,
            restart_ordered: false,
        });
        self.starts += 1;
    }

    /// Carries out everything that is due; returns whether the program has become ready.
    pub fn advance(&mut self, now: i64, container: &Container, records: &mut Records) -> Result<bool> {
        self.listen(now, records)?;
        let State::Running(run) = &mut self.state else {
            if self.plan.stop_ns.is_some_and(|stop_ns| stop_ns <= now) {
                self.state = State::Over;
            }
            return Ok(false);
        };
        if run.cause.is_none() && self.plan.stop_ns.is_some_and(|stop_ns| stop_ns <= now) {
            stop(&self.plan, run, now, "stopped", container);
        }
        if run.kill_ns.is_some_and(|kill_ns| kill_ns <= now) {
            (run.cause, run.kill_ns) = (Some("grace"), None);
            run.lost_ns = Some(now + SECOND);
            kill_all(container, self.plan.id);
        }
        if run.lost_ns.is_some_and(|lost_ns| lost_ns <= now) {
            self.row(None, (None, None), records)?;
            self.state = State::Over;
            return Ok(false);
        }
        self.poll_ready(now, container)
    }

    /// Returns whether it is ready now and was not before.
    fn poll_ready(&mut self, now: i64, container: &Container) -> Result<bool> {
        let State::Running(run) = &mut self.state else { return Ok(false) };
        if run.ready_ns.is_some() || now < run.poll_ns {
            return Ok(false);
        }
        let (is_ready, next_ns) = match &self.plan.ready {
            Ready::Start {} => (true, 0),
            Ready::Delay { ns } => (run.started_ns + ns <= now, run.started_ns + ns),
            Ready::Listen { protocol, port } => {
                (listens(container, *protocol, *port), now + POLL_INTERVAL_NS)
            }
            Ready::File { path } => {
                let exists = container.root().map(|root| open_in(root.as_fd(), path, OFlag::O_PATH).is_ok());
                (exists.unwrap_or(false), now + POLL_INTERVAL_NS)
            }
            Ready::Output { .. } | Ready::Exit {} => (false, i64::MAX),
        };
        let late_ns = run.started_ns.saturating_add(self.plan.ready_ns);
        run.poll_ns = next_ns.min(late_ns);
        if is_ready {
            run.ready_ns = Some(now);
            self.was_ready = true;
        } else if late_ns <= now && run.cause.is_none() {
            return Err(self.blame(Cause::ProgramLate {
                program: self.plan.name.clone(),
                timeout_ns: self.plan.ready_ns,
                condition: self.plan.ready.condition(),
                output: self.last_output(),
            }));
        }
        Ok(is_ready)
    }

    /// Reads the program's output.
    pub fn listen(&mut self, now: i64, records: &mut Records) -> Result<()> {
        let run_key = (self.plan.id, self.starts.saturating_sub(1));
        let (plan, state, last_lines) = (&self.plan, &mut self.state, &mut self.last_lines);
        let mut matched = false;
        for output in &mut self.outputs {
            output.read(now, run_key, records, |line| {
                matched |= matches!(&plan.ready, Ready::Output { text } if line.contains(text.as_str()));
                if !line.trim().is_empty() {
                    last_lines.truncate(LAST_LINES - 1);
                    last_lines.push_front(line.chars().take(LAST_LINE_MAX).collect());
                }
            })?;
        }
        if let State::Running(run) = state {
            if matched && run.ready_ns.is_none() {
                run.ready_ns = Some(now);
                self.was_ready = true;
            }
        }
        Ok(())
    }

    /// Carries out an event's action. Only a restart affects a program that is not running.
    pub fn act(&mut self, act: Act, now: i64, container: &Container) {
        if act == Act::Restart {
            self.event_restarts -= 1;
        }
        match (&mut self.state, act) {
            (State::Running(run), Act::Kill) => {
                run.cause.get_or_insert("killed");
                kill_all(container, self.plan.id);
            }
            (State::Running(run), Act::Pause) => signal(run, Signal::SIGSTOP),
            (State::Running(run), Act::Resume) => signal(run, Signal::SIGCONT),
            (State::Running(run), Act::Restart) => {
                run.restart_ordered = true;
                stop(&self.plan, run, now, "stopped", container);
            }
            (State::Over, Act::Restart) => self.state = State::Waiting { from_ns: now },
            // it ended by itself and would be restarted
            (State::Waiting { .. }, Act::Kill) if self.starts > 0 => self.state = State::Over,
            _ => {}
        }
    }

    /// Stops the program at the end of the test.
    pub fn end(&mut self, now: i64, container: &Container) {
        match &mut self.state {
            State::Running(run) => {
                run.restart_ordered = false;
                if run.cause.is_none() {
                    stop(&self.plan, run, now, "end", container);
                }
            }
            state => {
                *state = State::Over;
                kill_all(container, self.plan.id); // its remaining processes
            }
        }
    }

    pub fn note_end(
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
        self.last_end = (exit, signal);
        let (restart_ordered, spontaneous) = (run.restart_ordered, run.cause.is_none());
        self.row(Some(now), (exit, signal), records)?;
        self.previous = Account::of(self.plan.id).unwrap_or_default();
        let restart = !restart_ordered && spontaneous && self.restarts > 0;
        self.restarts -= u32::from(restart);
        let from_ns = if restart_ordered { now } else { now + self.plan.restart_ns };
        self.state =
            if (restart_ordered || restart) && !ending { State::Waiting { from_ns } } else { State::Over };
        Ok(())
    }

    /// Writes the row of the current start.
    fn row(
        &self,
        end_ns: Option<i64>,
        (exit, signal): (Option<u8>, Option<u8>),
        records: &mut Records,
    ) -> Result<()> {
        let State::Running(run) = &self.state else { return Ok(()) };
        let default_cause = if signal.is_some() { "signal" } else { "exit" };
        let number = |value: Option<u8>| Cell::from(value.map(u64::from));
        let time = |value: Option<i64>| value.map_or(Cell::Null, Cell::I64);
        let account = Account::of(self.plan.id).map(|account| account.since(&self.previous));
        for ((wait, call), ns) in account.iter().flat_map(|account| &account.waits_ns) {
            records.push(
                Table::AppWait,
                [
                    Cell::I64(run.started_ns),
                    Cell::U64(self.plan.id.into()),
                    Cell::U64(run.number.into()),
                    Cell::Text(wait),
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
                Cell::Text(run.cause.unwrap_or(default_cause)),
                Cell::U64(self.outputs[0].bytes),
                Cell::U64(self.outputs[1].bytes),
                Cell::from(account.map(|account| account.calls)),
            ],
        )
    }

    /// Reports the CPU time that the program used.
    pub fn finish(&self) {
        if let Some(account) = Account::of(self.plan.id) {
            report::used(&self.plan.name, account.host_ns);
        }
    }
}

/// Sends the program the signal to end. Processes that remain after its grace period are killed.
fn stop(plan: &App, run: &mut Run, now: i64, cause: &'static str, container: &Container) {
    run.cause = Some(cause);
    run.kill_ns = Some(now.saturating_add(plan.grace_ns));
    match (run.group, Signal::try_from(plan.stop_signal)) {
        (Some(group), Ok(number)) => drop(kill(Pid::from_raw(-group.as_raw()), number)),
        _ => kill_all(container, plan.id),
    }
    // a paused program continues, so that it handles the signal
    signal(run, Signal::SIGCONT);
}

/// Sends a signal to the program's process group, unless the group has ended.
fn signal(run: &Run, number: Signal) {
    if let Some(group) = run.group {
        let _ = kill(Pid::from_raw(-group.as_raw()), number);
    }
}

/// Kills all processes of a program. A process may fork meanwhile, so the caller repeats this.
fn kill_all(container: &Container, app: u16) {
    for pid in container.members(app) {
        let _ = kill(pid, Signal::SIGKILL);
    }
}

/// Returns whether a socket of the node listens on a TCP port or is bound to a UDP port.
fn listens(container: &Container, protocol: Transport, port: u16) -> bool {
    let (files, state) = match protocol {
        Transport::Tcp => (["tcp", "tcp6"], "0A"),
        Transport::Udp => (["udp", "udp6"], "07"),
    };
    files.iter().any(|file| container.net(file).is_ok_and(|table| has_socket(&table, state, port)))
}

/// Returns whether a table of /proc/net has a socket with this port and state. Its lines are `sl local_address
/// rem_address st …`, with addresses as ADDRESS:PORT in hex.
fn has_socket(table: &str, state: &str, port: u16) -> bool {
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|fields| {
        fields.get(1).is_some_and(|local| local.ends_with(&suffix)) && fields.get(3) == Some(&state)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_detected_among_sockets() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                     \x20  0: 00000000:0050 00000000:0000 0A 00000000:00000000\n\
                     \x20  1: 0100000A:01BB 0200000A:C350 01 00000000:00000000\n";
        assert!(has_socket(table, "0A", 80));
        assert!(!has_socket(table, "0A", 443), "it is connected and does not listen");
        assert!(!has_socket(table, "0A", 8));
    }
}
