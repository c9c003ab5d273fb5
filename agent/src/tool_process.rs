// SPDX-License-Identifier: Apache-2.0
//! A program whose two outputs are read until it prints a pattern, ends, or is late.
//!
//! Waiting is one `poll` with the time that is left, so a program that waits costs nothing. A program that is dropped
//! is killed: daemons end with the agent.

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
/// The bytes of a tool's last output that a message quotes.
const LAST_OUTPUT_MAX: usize = 300;

/// The reason for which listening ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Listened {
    Match,
    End,
    Late,
}

pub struct ToolProcess {
    child: Child,
    output: File,
    printed: Vec<u8>,
    closed: bool,
}

impl ToolProcess {
    /// Starts the program in the namespace of the calling thread.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (output, input) = pipe2(OFlag::O_CLOEXEC)?; // a program that starts meanwhile does not inherit it
        command.stdin(Stdio::null()).stdout(Stdio::from(input.try_clone()?)).stderr(Stdio::from(input));
        let child = command.spawn()?;
        drop(command); // closes this process's copies, so only the child writes to the pipe
        Ok(Self { child, output: File::from(output), printed: Vec::new(), closed: false })
    }

    /// Listens until the program has printed `pattern` (if any), has closed its outputs, or the time is over.
    pub fn listen(&mut self, pattern: Option<&str>, timeout_ns: i64) -> io::Result<Listened> {
        self.listen_from(0, pattern, timeout_ns)
    }

    /// Returns the number of bytes that the program has printed so far.
    pub fn output_length(&self) -> usize {
        self.printed.len()
    }

    /// Listens like `listen`, for a pattern after the first `from` bytes.
    pub fn listen_from(
        &mut self,
        from: usize,
        pattern: Option<&str>,
        timeout_ns: i64,
    ) -> io::Result<Listened> {
        let deadline = clock::monotonic() + timeout_ns;
        loop {
            if pattern.is_some_and(|pattern| String::from_utf8_lossy(&self.printed[from..]).contains(pattern))
            {
                return Ok(Listened::Match);
            }
            if self.closed {
                return Ok(Listened::End);
            }
            let remaining = (deadline - clock::monotonic()).max(0);
            if !self.readable(remaining)? {
                return Ok(Listened::Late);
            }
            let mut buffer = [0; 4096];
            let size = self.output.read(&mut buffer)?;
            self.closed = size == 0;
            self.printed.extend_from_slice(&buffer[..size]);
        }
    }

    fn readable(&self, within_ns: i64) -> io::Result<bool> {
        let milliseconds = i32::try_from((within_ns + MILLISECOND - 1) / MILLISECOND).unwrap_or(i32::MAX);
        let mut descriptors = [PollFd::new(self.output.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(milliseconds).map_err(io::Error::other)?;
        Ok(poll(&mut descriptors, timeout)? > 0)
    }

    /// Sends SIGTERM and waits until the program has ended; kills it after `timeout_ns`.
    pub fn end(&mut self, timeout_ns: i64) -> io::Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).map_err(io::Error::other)?);
        kill(pid, Signal::SIGTERM)?;
        if self.listen(None, timeout_ns)? != Listened::End {
            self.child.kill()?;
        }
        self.child.wait().map(drop)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.printed).into_owned()
    }

    /// Returns the exit status of a program that has ended.
    pub fn status(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }

    /// Returns the program's last output, on one line.
    pub fn last_output(&self) -> String {
        let text = self.text();
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let from = line.char_indices().rev().nth(LAST_OUTPUT_MAX - 1).map_or(0, |(offset, _)| offset);
        if line.is_empty() {
            "it printed nothing".to_owned()
        } else {
            line[from..].to_owned()
        }
    }
}

impl Drop for ToolProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: i64 = 20_000 * MILLISECOND;

    fn shell(script: &str) -> ToolProcess {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        ToolProcess::start(command).expect("starts")
    }

    #[test]
    fn a_pattern_is_detected_while_the_program_continues() {
        let mut daemon = shell("echo one; echo READY now >&2; exec sleep 1000");
        assert_eq!(daemon.listen(Some("READY"), PATIENCE).expect("listens"), Listened::Match);
        assert_eq!(daemon.listen(None, 0).expect("listens"), Listened::Late);
        assert!(daemon.text().contains("one\nREADY now\n"));
    }

    #[test]
    fn the_end_of_a_program_is_detected() {
        let mut failing = shell("echo no such device; exit 3");
        assert_eq!(failing.listen(Some("READY"), PATIENCE).expect("listens"), Listened::End);
        assert_eq!(failing.status().expect("ended").code(), Some(3));
        assert_eq!(failing.last_output(), "no such device");
    }

    #[test]
    fn a_program_ends_on_sigterm_or_is_killed() {
        let mut graceful = shell("trap 'echo bye; exit 0' TERM; echo on; while :; do sleep 0.05; done");
        assert_eq!(graceful.listen(Some("on"), PATIENCE).expect("listens"), Listened::Match);
        graceful.end(PATIENCE).expect("ends");
        assert!(graceful.text().ends_with("bye\n"));
        let mut unresponsive = shell("trap '' TERM; echo on; exec sleep 1000");
        assert_eq!(unresponsive.listen(Some("on"), PATIENCE).expect("listens"), Listened::Match);
        unresponsive.end(MILLISECOND).expect("is ended");
        assert!(!unresponsive.status().expect("ended").success());
    }

    #[test]
    fn a_late_program_reaches_the_timeout() {
        let mut slow = shell("exec sleep 1000");
        assert_eq!(slow.listen(None, 10 * MILLISECOND).expect("listens"), Listened::Late);
        assert_eq!(slow.last_output(), "it printed nothing");
    }
}
