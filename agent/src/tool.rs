// SPDX-License-Identifier: Apache-2.0
//! Runs the real `ip`, `tc`, `ethtool` and `iw` in the namespace of the calling thread.
//!
//! A process start is by far the dearest thing in a set-up, so lines go to one process through `-batch -`. The child
//! is started without copying this process (`posix_spawn`), which is why nothing here asks for a hook before exec.

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::clock;
use crate::program::{Heard, Program};

const USUAL_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Why a tool failed: its own words, and which of its input lines (from 0) they are about.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub line: Option<usize>,
    pub words: String,
}

pub fn find(tool: &str) -> io::Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(USUAL_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
        .ok_or_else(|| io::Error::new(ErrorKind::NotFound, "is not installed"))
}

/// Runs `tool args`, feeding it `input`; gives its warnings, or its complaint if it fails.
pub fn run(tool: &str, args: &[&str], input: &str) -> Result<String, Complaint> {
    match output(tool, args, input) {
        Ok((true, words)) => Ok(words),
        Ok((false, words)) => Err(complaint(&words, tool)),
        Err(error) => Err(Complaint { line: None, words: format!("{tool}: {error}") }),
    }
}

/// Runs a tool that may wait for something, but not for longer than `timeout_ns`; gives what it said.
pub fn run_within(tool: &str, args: &[&str], timeout_ns: i64) -> Result<String, Complaint> {
    let of = |error: io::Error| Complaint { line: None, words: format!("{tool}: {error}") };
    let mut command = Command::new(find(tool).map_err(of)?);
    command.args(args);
    let mut program = Program::start(command).map_err(of)?;
    if program.listen(None, timeout_ns).map_err(of)? == Heard::Late {
        let words = format!("did not end within {} s; {}", clock::seconds(timeout_ns), program.last_words());
        return Err(Complaint { line: None, words });
    }
    if program.status().map_err(of)?.success() {
        Ok(program.words())
    } else {
        Err(complaint(&program.words(), tool))
    }
}

/// Whether the tool succeeded, and what it said on its standard error.
fn output(tool: &str, args: &[&str], input: &str) -> io::Result<(bool, String)> {
    let mut command = Command::new(find(tool)?);
    command.args(args).stderr(Stdio::piped());
    let mut child = command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() }).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A tool that gives up at its first line does not read the rest.
        stdin.write_all(input.as_bytes()).or_else(|error| match error.kind() {
            ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        })?;
    }
    let mut words = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut words)?;
    }
    let succeeded = child.wait()?.success();
    Ok((succeeded, String::from_utf8_lossy(&words).into_owned()))
}

/// iproute2 ends its words with `Command failed -:N`, N counting the lines of the batch from 1.
fn complaint(stderr: &str, tool: &str) -> Complaint {
    let mut line = None;
    let mut words = Vec::new();
    for text in stderr.lines().map(str::trim).filter(|text| !text.is_empty()) {
        match text.strip_prefix("Command failed ").and_then(|place| place.rsplit_once(':')) {
            Some((_, number)) => line = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)),
            None => words.push(text),
        }
    }
    let words = if words.is_empty() { format!("{tool} failed and said nothing") } else { words.join(" ") };
    Complaint { line, words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_line_of_a_batch_is_found() {
        let stderr = "Error: Exclusivity flag on, cannot modify.\nCommand failed -:3\n";
        let expected =
            Complaint { line: Some(2), words: "Error: Exclusivity flag on, cannot modify.".into() };
        assert_eq!(complaint(stderr, "tc"), expected);
    }

    #[test]
    fn words_on_many_lines_become_one_line() {
        let stderr = "Unknown qdisc \"nonsense\"\n\n  hence option is unparsable\n";
        let expected = "Unknown qdisc \"nonsense\" hence option is unparsable";
        assert_eq!(complaint(stderr, "tc"), Complaint { line: None, words: expected.into() });
    }

    #[test]
    fn a_silent_failure_still_says_something() {
        assert_eq!(complaint("", "ip").words, "ip failed and said nothing");
    }

    #[test]
    fn a_tool_that_is_not_there_is_named() {
        let complaint = run("no-such-tool", &[], "").expect_err("fails");
        assert_eq!(complaint.words, "no-such-tool: is not installed");
    }
}
