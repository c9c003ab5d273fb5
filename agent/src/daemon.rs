// SPDX-License-Identifier: Apache-2.0
//! Programs that stay for the whole run, such as hostapd: started and waited for in the set-up, looked after during the
//! test, killed when the agent leaves.

use std::fs;
use std::process::Command;

use crate::clock;
use crate::program::{Heard, Program};
use crate::report::{Failure, Result};
use crate::steps::{Daemon, Step};
use crate::tool;

/// Memory that is the run's own, in a guest and on a real machine.
const FOLDER: &str = "/run";

#[derive(Default)]
pub struct Daemons {
    /// Each with the step that started it, and its name.
    running: Vec<(Step, &'static str, Program)>,
}

impl Daemons {
    /// Starts a program in the namespace of the calling thread; comes back when it is ready.
    pub fn start(&mut self, daemon: &Daemon, step: &Step) -> Result<()> {
        let tool = daemon.tool.name();
        let of = |error| Failure::system(tool, error);
        let config = format!("{FOLDER}/{tool}-{}.conf", self.running.len());
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
        self.running.push((step.clone(), tool, program));
        Ok(())
    }

    /// Takes what the programs have printed, so that none is ever stopped by a full pipe; fails when one has ended.
    pub fn check(&mut self) -> Result<()> {
        for (step, tool, program) in &mut self.running {
            let heard = program.listen(None, 0).map_err(|error| Failure::system(*tool, error))?;
            if heard == Heard::End {
                let failure = Failure::of("ended during the test", program.last_words());
                return Err(step.blame((*tool).to_owned(), failure));
            }
        }
        Ok(())
    }
}
