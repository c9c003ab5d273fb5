// SPDX-License-Identifier: Apache-2.0
//! The programs of a plan: a separate thread starts, reads and stops them.
//!
//! The thread sleeps until something is due or arrives: a notice of a container, output of a program, an order of the
//! test loop. Each iteration carries out orders, then everything that is due, then handles arrivals. `app.rs` is one
//! program.

use std::collections::VecDeque;
use std::fs::{create_dir_all, File};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{ppoll, PollFd, PollFlags};
use nix::sys::time::TimeSpec;
use nix::unistd::{pipe2, read, write};

use crate::app::{Program, State};
use crate::app_plan::App;
use crate::cause::Cause;
use crate::clock::{Epoch, SECOND};
use crate::container::Container;
use crate::container_channel::{receive, Notice};
use crate::namespaces::Namespaces;
use crate::plan::Plan;
use crate::records::Shared;
use crate::report::{Failure, Result};
use crate::steps::Act;
use crate::{collect, report, sys};

enum Order {
    Act(u16, Act),
    End,
}

/// Sends orders of other threads to the programs.
#[derive(Clone)]
pub struct Handle {
    orders: Sender<Order>,
    wakeup: Arc<OwnedFd>,
}

impl Handle {
    /// Orders an action at this instant, without waiting for it.
    pub fn act(&self, app: u16, act: Act) {
        self.order(Order::Act(app, act));
    }

    fn order(&self, order: Order) {
        // if the thread has ended, so has the run
        let _ = self.orders.send(order);
        let _ = write(&*self.wakeup, &[0]);
    }
}

pub struct Apps {
    handle: Handle,
    thread: JoinHandle<Result<()>>,
    /// A pipe that is closed when the test need not wait any longer.
    finished: OwnedFd,
    ends_test: bool,
}

impl Apps {
    /// Starts the thread; None without programs. `out`: the run directory. `terminal`: the program with a terminal.
    pub fn start(
        plan: &Plan,
        containers: Vec<Container>,
        epoch: Epoch,
        records: Shared,
        namespaces: Namespaces,
        out: &Path,
        terminal: Option<&str>,
    ) -> Result<Option<Self>> {
        if plan.apps.is_empty() {
            return Ok(None);
        }
        let failure = |error: Errno| Failure::system("programs", error);
        let folder = out.join("apps");
        create_dir_all(&folder).map_err(|error| Failure::system(folder.display(), error))?;
        let program = |app: &App| {
            let (node, terminal) = (&containers[app.container as usize].node, terminal == Some(&app.name));
            Program::new(app, node, &folder, plan.event_restarts(app.id), terminal)
        };
        let programs: Result<Vec<Program>> = plan.apps.iter().map(program).collect();
        let (orders, inbox) = channel();
        let (wakeup_reader, wakeup) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(failure)?;
        let (finished, unfinished) = pipe2(OFlag::O_CLOEXEC).map_err(failure)?;
        let supervisor = Supervisor {
            epoch,
            records,
            mounts: namespaces.mounts(),
            namespaces,
            containers,
            programs: programs?,
            backlog: VecDeque::new(),
            inbox,
            wakeup: wakeup_reader,
            unfinished: Some(unfinished),
            ending: false,
            folder,
        };
        let work = move || supervisor.run().inspect_err(|failure| crate::leave(&Err(failure.clone())));
        let thread = thread::Builder::new().spawn(work);
        let thread = thread.map_err(|error| Failure::system("starting a thread", error))?;
        let handle = Handle { orders, wakeup: Arc::new(wakeup) };
        Ok(Some(Self { handle, thread, finished, ends_test: plan.apps_end }))
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Sleeps until `t_ns`, or until all programs that the test waits for have ended. Returns whether they have.
    pub fn sleep_until(&self, epoch: Epoch, t_ns: i64) -> Result<bool> {
        if !self.ends_test {
            epoch.sleep_until(t_ns);
            return Ok(false);
        }
        let mut finished = [PollFd::new(self.finished.as_fd(), PollFlags::POLLIN)];
        loop {
            let remaining = (t_ns - epoch.now()).max(0);
            match ppoll(&mut finished, Some(TimeSpec::new(remaining / SECOND, remaining % SECOND)), None) {
                Err(Errno::EINTR) => {}
                result => return Ok(result.map_err(|error| Failure::system("programs", error))? > 0),
            }
        }
    }

    /// Ends the test: stops running programs and writes everything to disk.
    pub fn finish(self) -> Result<()> {
        self.handle.order(Order::End);
        self.thread.join().unwrap_or_else(|_| Err(Failure::bug("the programs' thread died")))
    }
}

/// The state of the thread.
struct Supervisor {
    epoch: Epoch,
    records: Shared,
    namespaces: Namespaces,
    mounts: Vec<File>,
    containers: Vec<Container>,
    programs: Vec<Program>,
    /// Notices that arrived while the answer to an order was awaited.
    backlog: VecDeque<Notice>,
    inbox: Receiver<Order>,
    wakeup: OwnedFd,
    unfinished: Option<OwnedFd>,
    ending: bool,
    folder: PathBuf,
}

impl Supervisor {
    fn run(mut self) -> Result<()> {
        sys::set_realtime_priority();
        loop {
            self.carry_out_orders();
            self.advance()?;
            if self.programs.iter().all(Program::is_settled) {
                self.unfinished = None;
            }
            if self.ending && !self.programs.iter().any(Program::is_running) {
                return self.finish();
            }
            if self.wait()? {
                self.namespaces.find(self.epoch.now(), &mut self.records.lock())?;
            }
            self.receive_notices()?;
        }
    }

    fn carry_out_orders(&mut self) {
        let now = self.epoch.now();
        while let Ok(order) = self.inbox.try_recv() {
            match order {
                Order::Act(app, act) => {
                    let program = &mut self.programs[usize::from(app)];
                    program.act(act, now, &self.containers[program.plan.container as usize]);
                }
                Order::End => {
                    self.ending = true;
                    for program in &mut self.programs {
                        program.end(now, &self.containers[program.plan.container as usize]);
                    }
                }
            }
        }
    }

    /// Executes everything that is due. Repeats this after each start or ready program, since others may wait for it.
    fn advance(&mut self) -> Result<()> {
        let mut progressed = true;
        while progressed {
            progressed = false;
            for index in 0..self.programs.len() {
                let now = self.epoch.now();
                if self.is_due_to_start(index, now)? {
                    self.start(index, now)?;
                    progressed = true;
                }
                let program = &mut self.programs[index];
                let container = &self.containers[program.plan.container as usize];
                progressed |= program.advance(now, container, &mut self.records.lock())?;
            }
        }
        Ok(())
    }

    fn is_due_to_start(&self, index: usize, now: i64) -> Result<bool> {
        let program = &self.programs[index];
        let Some(start_ns) = program.start_ns() else { return Ok(false) };
        for other in program.plan.after.iter().map(|id| &self.programs[usize::from(*id)]) {
            if !other.was_ready && matches!(other.state, State::Over) {
                return Err(other.blame(Cause::ProgramNotReady {
                    program: other.plan.name.clone(),
                    ending: other.ending(),
                    waiting: program.plan.name.clone(),
                    output: other.last_output(),
                }));
            }
            if !other.was_ready {
                return Ok(false);
            }
        }
        Ok(start_ns <= now)
    }

    fn start(&mut self, index: usize, now: i64) -> Result<()> {
        let program = &mut self.programs[index];
        let container = &self.containers[program.plan.container as usize];
        program.order_start(container)?;
        loop {
            match next_notice(container)? {
                Notice::Started { app, pid } if app == program.plan.id => {
                    program.note_start(now, pid, container);
                    return Ok(());
                }
                Notice::Refused { app, cause } if app == program.plan.id => return Err(program.blame(cause)),
                notice => self.backlog.push_back(notice),
            }
        }
    }

    /// Sleeps until an action is due or something arrives. Returns whether a program has mounted something.
    fn wait(&self) -> Result<bool> {
        if !self.backlog.is_empty() {
            return Ok(false);
        }
        let now = self.epoch.now();
        let ready = |program: &Program| {
            let was_ready = |id: &u16| self.programs[usize::from(*id)].was_ready;
            program.start_ns().filter(|_| program.plan.after.iter().all(was_ready))
        };
        let due_ns =
            self.programs.iter().flat_map(|program| [ready(program), program.due_ns()]).flatten().min();
        let remaining = due_ns
            .map(|due_ns| (due_ns - now).max(0))
            .map(|remaining| TimeSpec::new(remaining / SECOND, remaining % SECOND));
        let channels = self.containers.iter().map(|container| container.channel.as_fd());
        let outputs = self.programs.iter().flat_map(Program::pipes);
        let readable = channels.chain(outputs).chain([self.wakeup.as_fd()]);
        let mounts = self.mounts.iter().map(|file| PollFd::new(file.as_fd(), PollFlags::POLLPRI));
        let mut waited: Vec<PollFd> =
            mounts.chain(readable.map(|fd| PollFd::new(fd, PollFlags::POLLIN))).collect();
        match ppoll(&mut waited, remaining, None) {
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(Failure::system("programs", error)),
            Ok(_) => Ok(waited[..self.mounts.len()].iter().any(|mounts| mounts.any().unwrap_or(false))),
        }
    }

    /// Reads the output of programs first, then the notices of their ends.
    fn receive_notices(&mut self) -> Result<()> {
        let mut buffer = [0; 64];
        while read(&self.wakeup, &mut buffer).is_ok_and(|length| length > 0) {}
        let now = self.epoch.now();
        for program in &mut self.programs {
            program.listen(now, &mut self.records.lock())?;
        }
        for container in &self.containers {
            while is_readable(&container.channel)? {
                self.backlog.push_back(next_notice(container)?);
            }
        }
        while let Some(notice) = self.backlog.pop_front() {
            if let Notice::Ended { app, exit, signal } = notice {
                let program = &mut self.programs[usize::from(app)];
                program.note_end(now, (exit, signal), self.ending, &mut self.records.lock())?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        for program in &self.programs {
            let container = &self.containers[program.plan.container as usize];
            let omitted = collect::collect(container, &program.plan, &self.folder.join(&program.plan.name))
                .map_err(|error| program.blame(Cause::system("collecting its files", error)))?;
            if omitted.count > 0 {
                report::omitted(&omitted);
            }
            program.finish();
        }
        Ok(())
    }
}

fn is_readable(fd: &OwnedFd) -> Result<bool> {
    let mut descriptors = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let ready = ppoll(&mut descriptors, Some(TimeSpec::new(0, 0)), None);
    Ok(ready.map_err(|error| Failure::system("a container", error))? > 0)
}

fn next_notice(container: &Container) -> Result<Notice> {
    let notice = receive(container.channel.as_fd()).map_err(|error| Failure::system("a container", error))?;
    notice
        .map(|(notice, _)| notice)
        .ok_or_else(|| Cause::ContainerEnded { container: container.node.clone() }.into())
}
