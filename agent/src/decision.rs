// SPDX-License-Identifier: Apache-2.0
//! Decisions: instants at which the engine chooses the steps of an event.
//!
//! The engine writes the steps of decision N, as a JSON list, to the file `.guest/decisions/N` of the run directory. The
//! file is complete when it appears. Until then the agent lists the folder repeatedly. In virtual time code takes no
//! time, so the clock does not advance. Listing an open folder leaves nothing behind in the kernel, so the number of
//! attempts changes nothing.

use std::fs;
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::report::{Failure, Result};
use crate::steps::Step;

const FOLDER: &str = ".guest/decisions";

pub struct Decisions {
    path: PathBuf,
    folder: Dir,
}

impl Decisions {
    /// Opens the folder of decisions, which the engine has made in the run directory.
    pub fn open(out: &Path) -> Result<Self> {
        let path = out.join(FOLDER);
        let folder = Dir::open(&path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty());
        Ok(Self { folder: folder.map_err(|error| Failure::system(path.display(), error))?, path })
    }

    /// Waits for the steps of a decision. In virtual time the clock does not advance meanwhile.
    pub fn await_steps(&mut self, number: u32) -> Result<Vec<Step>> {
        let name = number.to_string();
        while !self.lists(&name)? {}
        let path = self.path.join(name);
        let text = fs::read(&path).map_err(|error| Failure::system(path.display(), error))?;
        serde_json::from_slice(&text).map_err(|error| Failure::data(path.display(), error))
    }

    fn lists(&mut self, name: &str) -> Result<bool> {
        for entry in self.folder.iter() {
            let entry = entry.map_err(|error| Failure::system(self.path.display(), error))?;
            if entry.file_name().to_bytes() == name.as_bytes() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, process};

    #[test]
    fn steps_arrive_with_their_file() {
        let out = env::temp_dir().join(format!("hourglass-decision-{}", process::id()));
        fs::create_dir_all(out.join(FOLDER)).expect("a folder");
        let mut decisions = Decisions::open(&out).expect("opens");
        assert!(!decisions.lists("7").expect("lists"));
        let step = r#"[{"do": "write", "node": "a", "path": "/sys/x", "value": "1", "origin": null}]"#;
        fs::write(out.join(FOLDER).join("7"), step).expect("writes");
        let steps = decisions.await_steps(7).expect("arrive");
        assert_eq!((steps.len(), steps[0].name()), (1, "write"));
        fs::remove_dir_all(out).expect("removes");
    }
}
