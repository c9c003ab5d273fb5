// SPDX-License-Identifier: Apache-2.0
//! Programs that stay for the whole run, such as hostapd: started and waited for in the set-up, looked after during the
//! test, killed when the agent leaves.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use crate::clock;
use crate::program::{Heard, Program};
use crate::report::{Failure, Result};
use crate::steps::{Daemon, Step, Tell};
use crate::tool;

/// Memory that is the run's own, in a guest and on a real machine.
const FOLDER: &str = "/run";
/// A daemon's answer to a line that it takes.
const ANSWER: &str = "OK";

/// Those of the run, as several threads have them.
#[derive(Clone, Default)]
pub struct Daemons(Arc<Mutex<Vec<Running>>>);

struct Running {
    /// That started it.
    step: Step,
    daemon: Daemon,
    program: Program,
}

impl Daemons {
    /// Starts a program in the namespace of the calling thread; comes back when it is ready. One that runs there with the
    /// same configuration is ended first, as a service is restarted.
    pub fn start(&self, daemon: &Daemon, step: &Step) -> Result<()> {
        let tool = daemon.tool.name();
        let of = |error| Failure::system(tool, error);
        let place = self.take(daemon, step)?;
        let config = format!("{FOLDER}/{tool}-{place}.conf");
        fs::write(&config, &daemon.config).map_err(|error| Failure::system(&config, error))?;
        let mut command = Command::new(tool::find(tool).map_err(|error| Failure::of(tool, error))?);
        command.arg(&config);
        let mut program = Program::start(command).map_err(of)?;
        match program.listen(Some(&daemon.ready), daemon.timeout_ns).map_err(of)? {
            Heard::Word => {}
            Heard::End => return Err(Failure::of("ended before it was ready", program.last_words())),
            Heard::Late => {
                let patience = format!("not ready within {} s", clock::seconds(daemon.timeout_ns));
                return Err(Failure::of(patience, program.last_words()));
            }
        }
        let running = Running { step: step.clone(), daemon: daemon.clone(), program };
        let mut all = self.lock();
        let place = place.min(all.len());
        all.insert(place, running);
        Ok(())
    }

    /// Ends the daemon whose place another takes; gives the place.
    fn take(&self, daemon: &Daemon, step: &Step) -> Result<usize> {
        let mut all = self.lock();
        let same = |one: &Running| one.daemon == *daemon && one.step.node() == step.node();
        let Some(place) = all.iter().position(same) else { return Ok(all.len()) };
        let mut before = all.remove(place);
        drop(all);
        before.program.end(daemon.timeout_ns).map_err(|error| Failure::system(daemon.tool.name(), error))?;
        Ok(place)
    }

    /// Gives a line to the control socket of a daemon of the step's node, and waits until the daemon says that it is done.
    pub fn tell(&self, tell: &Tell, step: &Step) -> Result<()> {
        let tool = tell.tool.name();
        let mut all = self.lock();
        let here = |one: &&mut Running| one.daemon.tool == tell.tool && one.step.node() == step.node();
        let Some(running) = all.iter_mut().find(here) else {
            return Err(Failure::new(format!("no {tool} runs here")));
        };
        let program = &mut running.program;
        program.listen(None, 0).map_err(|error| Failure::system(tool, error))?;
        let before = program.said();
        let answer = ask(tell).map_err(|error| Failure::system(&tell.socket, error))?;
        if answer != ANSWER {
            program.listen(None, 0).map_err(|error| Failure::system(tool, error))?;
            return Err(Failure::of(format!("{tool} answers {answer}"), program.last_words()));
        }
        match program.listen_from(before, Some(&tell.says), tell.timeout_ns) {
            Ok(Heard::Word) => Ok(()),
            Ok(_) => {
                let patience = format!("not done within {} s", clock::seconds(tell.timeout_ns));
                Err(Failure::of(patience, program.last_words()))
            }
            Err(error) => Err(Failure::system(tool, error)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what the programs have printed, so that none is ever stopped by a full pipe; fails when one has ended.
    pub fn check(&self) -> Result<()> {
        for Running { step, daemon, program } in self.lock().iter_mut() {
            let tool = daemon.tool.name();
            let heard = program.listen(None, 0).map_err(|error| Failure::system(tool, error))?;
            if heard == Heard::End {
                let failure = Failure::of("ended during the test", program.last_words());
                return Err(step.blame(tool.to_owned(), failure));
            }
        }
        Ok(())
    }
}

/// One line and its answer, over a daemon's control socket.
fn ask(tell: &Tell) -> io::Result<String> {
    let own = format!("{FOLDER}/hourglass-control");
    let _ = fs::remove_file(&own);
    let socket = UnixDatagram::bind(&own)?;
    socket.connect(&tell.socket)?;
    socket.send(tell.line.as_bytes())?;
    let mut descriptors = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(tell.timeout_ns / 1_000_000).map_err(io::Error::other)?;
    if poll(&mut descriptors, patience)? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut buffer = [0; 4096];
    let size = socket.recv(&mut buffer)?;
    let _ = fs::remove_file(&own);
    Ok(String::from_utf8_lossy(&buffer[..size]).trim().to_owned())
}
