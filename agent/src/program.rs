// SPDX-License-Identifier: Apache-2.0
//! A program whose words are listened to: what it prints, on either output, until it says a word, ends, or is late.
//!
//! Waiting is one `poll` with the time that is left, so a program that waits costs nothing. A program that is dropped is
//! killed: daemons end with the agent.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::fcntl::OFlag;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{kill, Signal};
use nix::unistd::{pipe2, Pid};

use crate::clock;

const MILLISECOND: i64 = 1_000_000;
/// Enough for the last words of a tool.
const SHOWN: usize = 300;

/// Why listening ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    Word,
    End,
    Late,
}

pub struct Program {
    child: Child,
    output: File,
    said: Vec<u8>,
    ended: bool,
}

impl Program {
    /// Starts the program in the namespace of the calling thread.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (output, input) = pipe2(OFlag::O_CLOEXEC)?; // no other program started meanwhile holds its end
        command.stdin(Stdio::null()).stdout(Stdio::from(input.try_clone()?)).stderr(Stdio::from(input));
        let child = command.spawn()?;
        drop(command); // its ends of the pipe: the child's are the only ones now
        Ok(Self { child, output: File::from(output), said: Vec::new(), ended: false })
    }

    /// Listens until the program has printed `word` (if one is wanted), has closed its outputs, or the time is over.
    pub fn listen(&mut self, word: Option<&str>, timeout_ns: i64) -> io::Result<Heard> {
        self.listen_from(0, word, timeout_ns)
    }

    /// How much it has said so far, in bytes.
    pub fn said(&self) -> usize {
        self.said.len()
    }

    /// As `listen`, for a word behind the first `from` bytes.
    pub fn listen_from(&mut self, from: usize, word: Option<&str>, timeout_ns: i64) -> io::Result<Heard> {
        let deadline = clock::monotonic() + timeout_ns;
        loop {
            if word.is_some_and(|word| String::from_utf8_lossy(&self.said[from..]).contains(word)) {
                return Ok(Heard::Word);
            }
            if self.ended {
                return Ok(Heard::End);
            }
            let left = (deadline - clock::monotonic()).max(0);
            if !self.readable(left)? {
                return Ok(Heard::Late);
            }
            let mut buffer = [0; 4096];
            let size = self.output.read(&mut buffer)?;
            self.ended = size == 0;
            self.said.extend_from_slice(&buffer[..size]);
        }
    }

    fn readable(&self, within_ns: i64) -> io::Result<bool> {
        let milliseconds = i32::try_from((within_ns + MILLISECOND - 1) / MILLISECOND).unwrap_or(i32::MAX);
        let mut descriptors = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(milliseconds).map_err(io::Error::other)?;
        Ok(poll(&mut descriptors, timeout)? > 0)
    }

    /// Asks it to end (SIGTERM) and waits until it has; after `timeout_ns` it is killed.
    pub fn end(&mut self, timeout_ns: i64) -> io::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).map_err(io::Error::other)?);
        kill(pid, Signal::SIGTERM)?;
        if self.listen(None, timeout_ns)? != Heard::End {
            self.child.kill()?;
        }
        self.child.wait().map(drop)
    }

    pub fn words(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }

    /// How it ended; to be asked when it has.
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Its last words, on one line.
    pub fn last_words(&self) -> String {
        let words = self.words();
        let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let from = line.char_indices().rev().nth(SHOWN - 1).map_or(0, |(at, _)| at);
        if line.is_empty() {
            "it said nothing".to_owned()
        } else {
            line[from..].to_owned()
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: i64 = 20_000 * MILLISECOND;

    fn shell(script: &str) -> Program {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Program::start(command).expect("starts")
    }

    #[test]
    fn a_word_is_heard_while_the_program_goes_on() {
        let mut daemon = shell("echo one; echo READY now >&2; exec sleep 1000");
        assert_eq!(daemon.listen(Some("READY"), PATIENCE).expect("listens"), Heard::Word);
        assert_eq!(daemon.listen(None, 0).expect("listens"), Heard::Late);
        assert!(daemon.words().contains("one\nREADY now\n"));
    }

    #[test]
    fn a_program_that_ends_is_heard_to_end() {
        let mut failing = shell("echo no such device; exit 3");
        assert_eq!(failing.listen(Some("READY"), PATIENCE).expect("listens"), Heard::End);
        assert_eq!(failing.status().expect("ended").code(), Some(3));
        assert_eq!(failing.last_words(), "no such device");
    }

    #[test]
    fn a_program_ends_when_it_is_asked_to_and_else_it_is_killed() {
        let mut good = shell("trap 'echo bye; exit 0' TERM; echo on; while :; do sleep 0.05; done");
        assert_eq!(good.listen(Some("on"), PATIENCE).expect("listens"), Heard::Word);
        good.end(PATIENCE).expect("ends");
        assert!(good.words().ends_with("bye\n"));
        let mut bad = shell("trap '' TERM; echo on; exec sleep 1000");
        assert_eq!(bad.listen(Some("on"), PATIENCE).expect("listens"), Heard::Word);
        bad.end(MILLISECOND).expect("is ended");
        assert!(!bad.status().expect("ended").success());
    }

    #[test]
    fn a_program_that_is_late_is_not_waited_for() {
        let mut slow = shell("exec sleep 1000");
        assert_eq!(slow.listen(None, 10 * MILLISECOND).expect("listens"), Heard::Late);
        assert_eq!(slow.last_words(), "it said nothing");
    }
}
