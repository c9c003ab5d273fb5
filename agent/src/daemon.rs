// SPDX-License-Identifier: Apache-2.0
//! Programs that run until the end, such as hostapd. The set-up starts them and waits until they are ready. During the
//! test the agent checks that they run, and it kills them when it ends.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::poll::{poll, PollFd, PollFlags, PollTimeout};

use crate::cause::Cause;
use crate::report::{Failure, Result};
use crate::steps::{ControlLine, Daemon, Step};
use crate::tool;
use crate::tool_process::{Listened, ToolProcess};

/// Memory that only the run uses, in a guest and on a real machine.
const FOLDER: &str = "/run";
/// A daemon's answer to an accepted line.
const ANSWER: &str = "OK";

/// The daemons of the run, shared by several threads.
#[derive(Clone, Default)]
pub struct Daemons(Arc<Mutex<Vec<Running>>>);

struct Running {
    /// The step that started the daemon.
    step: Step,
    daemon: Daemon,
    program: ToolProcess,
}

impl Daemons {
    /// Starts a program in the namespace of the calling thread; returns when the program is ready. A program that runs
    /// there with the same configuration is ended first, as in a restart of a service.
    pub fn start(&self, daemon: &Daemon, step: &Step) -> Result<()> {
        let tool = daemon.tool.name();
        let failure = |error| Failure::system(tool, error);
        let index = self.stop_previous(daemon, step)?;
        let config = format!("{FOLDER}/{tool}-{index}.conf");
        fs::write(&config, &daemon.config).map_err(|error| Failure::system(&config, error))?;
        let mut command = Command::new(tool::find(tool)?);
        command.arg(&config);
        let mut program = ToolProcess::start(command).map_err(failure)?;
        match program.listen(Some(&daemon.ready), daemon.timeout_ns).map_err(failure)? {
            Listened::Match => {}
            Listened::End => return Err(Cause::DaemonNotStarted { text: program.last_output() }.into()),
            Listened::Late => {
                let text = program.last_output();
                return Err(Cause::DaemonLate { timeout_ns: daemon.timeout_ns, text }.into());
            }
        }
        let running = Running { step: step.clone(), daemon: daemon.clone(), program };
        let mut daemons = self.lock();
        let index = index.min(daemons.len());
        daemons.insert(index, running);
        Ok(())
    }

    /// Ends the daemon that a new daemon replaces; returns its index.
    fn stop_previous(&self, daemon: &Daemon, step: &Step) -> Result<usize> {
        let mut daemons = self.lock();
        let same = |running: &Running| running.daemon == *daemon && running.step.node() == step.node();
        let Some(index) = daemons.iter().position(same) else { return Ok(daemons.len()) };
        let mut previous = daemons.remove(index);
        drop(daemons);
        previous
            .program
            .end(daemon.timeout_ns)
            .map_err(|error| Failure::system(daemon.tool.name(), error))?;
        Ok(index)
    }

    /// Sends a line to the control socket of a daemon of the step's node, and waits until the daemon reports success.
    pub fn send_command(&self, control: &ControlLine, step: &Step) -> Result<()> {
        let tool = control.tool.name();
        let mut daemons = self.lock();
        let matches = |running: &&mut Running| {
            running.daemon.tool == control.tool && running.step.node() == step.node()
        };
        let Some(running) = daemons.iter_mut().find(matches) else {
            return Err(Cause::DaemonMissing { tool: tool.to_owned() }.into());
        };
        let program = &mut running.program;
        program.listen(None, 0).map_err(|error| Failure::system(tool, error))?;
        let length = program.output_length();
        let answer = exchange(control).map_err(|error| Failure::system(&control.socket, error))?;
        if answer != ANSWER {
            program.listen(None, 0).map_err(|error| Failure::system(tool, error))?;
            let (tool, text) = (tool.to_owned(), program.last_output());
            return Err(Cause::DaemonRefused { tool, answer, text }.into());
        }
        match program.listen_from(length, Some(&control.says), control.timeout_ns) {
            Ok(Listened::Match) => Ok(()),
            Ok(_) => {
                let text = program.last_output();
                Err(Cause::DaemonBusy { timeout_ns: control.timeout_ns, text }.into())
            }
            Err(error) => Err(Failure::system(tool, error)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the programs' output, so that no full pipe stops them; fails if one has ended.
    pub fn check(&self) -> Result<()> {
        for Running { step, daemon, program } in self.lock().iter_mut() {
            let tool = daemon.tool.name();
            let listened = program.listen(None, 0).map_err(|error| Failure::system(tool, error))?;
            if listened == Listened::End {
                let cause = Cause::DaemonEnded { text: program.last_output() };
                return Err(step.blame(tool.to_owned(), cause.into()));
            }
        }
        Ok(())
    }
}

/// Sends one line to a daemon's control socket and returns the answer.
fn exchange(control: &ControlLine) -> io::Result<String> {
    let path = format!("{FOLDER}/hourglass-control");
    let _ = fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path)?;
    socket.connect(&control.socket)?;
    socket.send(control.line.as_bytes())?;
    let mut descriptors = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let patience = PollTimeout::try_from(control.timeout_ns / 1_000_000).map_err(io::Error::other)?;
    if poll(&mut descriptors, patience)? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    let mut buffer = [0; 4096];
    let size = socket.recv(&mut buffer)?;
    let _ = fs::remove_file(&path);
    Ok(String::from_utf8_lossy(&buffer[..size]).trim().to_owned())
}
