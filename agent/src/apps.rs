// SPDX-License-Identifier: Apache-2.0
//! The programs of a plan: started at their ns, listened to, waited for, stopped; by a thread of their own.
//!
//! The thread sleeps until something is due or comes: a word of a room, output of a program, an order of the test loop.
//! Each loop does first what is ordered, then what is due, then hears what came. `app.rs` is one program.

use std::collections::VecDeque;
use std::fs::create_dir_all;
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
use crate::clock::{Epoch, SECOND};
use crate::plan::Plan;
use crate::records::Shared;
use crate::report::{Failure, Result};
use crate::room::Room;
use crate::room_post::{receive, News};
use crate::steps::Act;
use crate::{collect, sys};

enum Order {
    Act(u16, Act),
    End,
}

/// By which other threads reach the programs.
#[derive(Clone)]
pub struct Handle {
    orders: Sender<Order>,
    bell: Arc<OwnedFd>,
}

impl Handle {
    /// Done at this instant; nobody waits for it.
    pub fn act(&self, app: u16, act: Act) {
        self.order(Order::Act(app, act));
    }

    fn order(&self, order: Order) {
        // a thread that is gone has ended the run
        let _ = self.orders.send(order);
        let _ = write(&*self.bell, &[0]);
    }
}

pub struct Apps {
    handle: Handle,
    thread: JoinHandle<Result<()>>,
    /// Hung up when the test need not wait any longer.
    over: OwnedFd,
    ends_test: bool,
}

impl Apps {
    /// None without programs. `out`: the run directory. `terminal`: the program that has one.
    pub fn start(
        plan: &Plan,
        rooms: Vec<Room>,
        epoch: Epoch,
        records: Shared,
        out: &Path,
        terminal: Option<&str>,
    ) -> Result<Option<Self>> {
        if plan.apps.is_empty() {
            return Ok(None);
        }
        let of = |error: Errno| Failure::system("programs", error);
        let folder = out.join("apps");
        create_dir_all(&folder).map_err(|error| Failure::system(folder.display(), error))?;
        let program = |app: &App| {
            let (node, terminal) = (&rooms[app.room as usize].node, terminal == Some(&app.name));
            Program::new(app, node, &folder, plan.revivals(app.id), terminal)
        };
        let programs: Result<Vec<Program>> = plan.apps.iter().map(program).collect();
        let (orders, ordered) = channel();
        let (rung, bell) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK).map_err(of)?;
        let (over, alive) = pipe2(OFlag::O_CLOEXEC).map_err(of)?;
        let keeper = Keeper {
            epoch,
            records,
            rooms,
            programs: programs?,
            backlog: VecDeque::new(),
            ordered,
            bell: rung,
            alive: Some(alive),
            ending: false,
            folder,
        };
        let work = move || keeper.run().inspect_err(|failure| crate::leave(&Err(failure.clone())));
        let thread = thread::Builder::new().spawn(work);
        let thread = thread.map_err(|error| Failure::system("starting a thread", error))?;
        let handle = Handle { orders, bell: Arc::new(bell) };
        Ok(Some(Self { handle, thread, over, ends_test: plan.apps_end }))
    }

    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Until that time, or until the test is over because all programs that it waits for are; whether that is so.
    pub fn sleep_until(&self, epoch: Epoch, t_ns: i64) -> Result<bool> {
        if !self.ends_test {
            epoch.sleep_until(t_ns);
            return Ok(false);
        }
        let mut over = [PollFd::new(self.over.as_fd(), PollFlags::POLLIN)];
        loop {
            let left = (t_ns - epoch.now()).max(0);
            match ppoll(&mut over, Some(TimeSpec::new(left / SECOND, left % SECOND)), None) {
                Err(Errno::EINTR) => {}
                result => return Ok(result.map_err(|error| Failure::system("programs", error))? > 0),
            }
        }
    }

    /// At the end of the test: what runs is stopped, everything is on disk.
    pub fn finish(self) -> Result<()> {
        self.handle.order(Order::End);
        self.thread
            .join()
            .unwrap_or_else(|_| Err(Failure::new("a bug in the agent: the programs' thread died")))
    }
}

/// What the thread has.
struct Keeper {
    epoch: Epoch,
    records: Shared,
    rooms: Vec<Room>,
    programs: Vec<Program>,
    /// What rooms said while the answer to an order was awaited.
    backlog: VecDeque<News>,
    ordered: Receiver<Order>,
    bell: OwnedFd,
    alive: Option<OwnedFd>,
    ending: bool,
    folder: PathBuf,
}

impl Keeper {
    fn run(mut self) -> Result<()> {
        sys::become_exact();
        loop {
            self.obey();
            self.advance()?;
            if self.programs.iter().all(Program::is_waited_for_no_more) {
                self.alive = None;
            }
            if self.ending && !self.programs.iter().any(Program::runs) {
                return self.finish();
            }
            self.wait()?;
            self.hear()?;
        }
    }

    fn obey(&mut self) {
        let now = self.epoch.now();
        while let Ok(order) = self.ordered.try_recv() {
            match order {
                Order::Act(app, act) => {
                    let program = &mut self.programs[usize::from(app)];
                    program.act(act, now, &self.rooms[program.plan.room as usize]);
                }
                Order::End => {
                    self.ending = true;
                    for program in &mut self.programs {
                        program.end(now, &self.rooms[program.plan.room as usize]);
                    }
                }
            }
        }
    }

    /// All that is due. What becomes ready may make another one due, whatever their order.
    fn advance(&mut self) -> Result<()> {
        let mut again = true;
        while again {
            again = false;
            for place in 0..self.programs.len() {
                let now = self.epoch.now();
                if self.is_due_to_start(place, now)? {
                    self.start(place, now)?;
                    again = true;
                }
                let program = &mut self.programs[place];
                let room = &self.rooms[program.plan.room as usize];
                again |= program.advance(now, room, &mut self.records.lock())?;
            }
        }
        Ok(())
    }

    fn is_due_to_start(&self, place: usize, now: i64) -> Result<bool> {
        let program = &self.programs[place];
        let Some(at) = program.start_ns() else { return Ok(false) };
        for other in program.plan.after.iter().map(|id| &self.programs[usize::from(*id)]) {
            if !other.was_ready && matches!(other.state, State::Over) {
                let message = format!("it comes after {}, which ended before it was ready", other.plan.name);
                return Err(program.blame(message));
            }
            if !other.was_ready {
                return Ok(false);
            }
        }
        Ok(at <= now)
    }

    fn start(&mut self, place: usize, now: i64) -> Result<()> {
        let program = &mut self.programs[place];
        let room = &self.rooms[program.plan.room as usize];
        program.order_start(room)?;
        loop {
            match next_news(room)? {
                News::Started { app, pid } if app == program.plan.id => {
                    program.started(now, pid, room);
                    return Ok(());
                }
                News::Refused { app, message } if app == program.plan.id => {
                    return Err(program.blame(message))
                }
                news => self.backlog.push_back(news),
            }
        }
    }

    /// Until something is due, or comes.
    fn wait(&self) -> Result<()> {
        if !self.backlog.is_empty() {
            return Ok(());
        }
        let now = self.epoch.now();
        let ready = |program: &Program| {
            let was_ready = |id: &u16| self.programs[usize::from(*id)].was_ready;
            program.start_ns().filter(|_| program.plan.after.iter().all(was_ready))
        };
        let due = self.programs.iter().flat_map(|program| [ready(program), program.due()]).flatten().min();
        let left = due.map(|due| (due - now).max(0)).map(|left| TimeSpec::new(left / SECOND, left % SECOND));
        let posts = self.rooms.iter().map(|room| room.post.as_fd());
        let outputs = self.programs.iter().flat_map(Program::pipes);
        let mut waited: Vec<PollFd> = posts
            .chain(outputs)
            .chain([self.bell.as_fd()])
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        match ppoll(&mut waited, left, None) {
            Err(error) if error != Errno::EINTR => Err(Failure::system("programs", error)),
            _ => Ok(()),
        }
    }

    /// First what programs printed, then that they ended.
    fn hear(&mut self) -> Result<()> {
        let mut dust = [0; 64];
        while read(&self.bell, &mut dust).is_ok_and(|length| length > 0) {}
        let now = self.epoch.now();
        for program in &mut self.programs {
            program.listen(now, &mut self.records.lock())?;
        }
        for room in &self.rooms {
            while is_readable(&room.post)? {
                self.backlog.push_back(next_news(room)?);
            }
        }
        while let Some(news) = self.backlog.pop_front() {
            if let News::Ended { app, exit, signal } = news {
                let program = &mut self.programs[usize::from(app)];
                program.ended(now, (exit, signal), self.ending, &mut self.records.lock())?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        for program in &self.programs {
            let room = &self.rooms[program.plan.room as usize];
            collect::collect(room, &program.plan.collect, &self.folder.join(&program.plan.name))
                .map_err(|error| program.blame(format!("collecting its files: {error}")))?;
            program.finish()?;
        }
        Ok(())
    }
}

fn is_readable(fd: &OwnedFd) -> Result<bool> {
    let mut one = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let found = ppoll(&mut one, Some(TimeSpec::new(0, 0)), None);
    Ok(found.map_err(|error| Failure::system("a room", error))? > 0)
}

fn next_news(room: &Room) -> Result<News> {
    let news = receive(room.post.as_fd()).map_err(|error| Failure::system("a room", error))?;
    news.map(|(news, _)| news).ok_or_else(|| Failure::new(format!("the room of {} ended", room.node)))
}
