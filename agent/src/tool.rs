// SPDX-License-Identifier: Apache-2.0
//! Runs the real `ip`, `tc`, `ethtool` and `iw` in the namespace of the calling thread.
//!
//! A process start is by far the most expensive part of a set-up, so lines go to one process through `-batch -`. The
//! child is started without copying this process (`posix_spawn`), so nothing here uses a hook before exec.

use std::env;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::cause::Cause;
use crate::tool_process::{Listened, ToolProcess};

const USUAL_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// The cause of a tool's failure, and the number of the input line (from 0).
#[derive(Debug, PartialEq, Eq)]
pub struct ToolError {
    pub line: Option<usize>,
    pub cause: Cause,
}

impl From<Cause> for ToolError {
    fn from(cause: Cause) -> Self {
        Self { line: None, cause }
    }
}

pub fn find(tool: &str) -> Result<PathBuf, Cause> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(USUAL_FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(tool))
        .find(|file| file.is_file())
        .ok_or_else(|| Cause::ToolMissing { tool: tool.to_owned() })
}

/// Runs `tool args` with `input`; returns its warnings, or its error if it fails.
pub fn run(tool: &str, args: &[&str], input: &str) -> Result<String, ToolError> {
    match output(find(tool)?, args, input).map_err(|error| Cause::system(tool, error))? {
        (true, text) => Ok(text),
        (false, text) => Err(parse_error(&text, tool)),
    }
}

/// Runs a tool that may wait for something, at most for `timeout_ns`; returns its output.
pub fn run_within(tool: &str, args: &[&str], timeout_ns: i64) -> Result<String, ToolError> {
    let unavailable = |error: io::Error| Cause::system(tool, error);
    let mut command = Command::new(find(tool)?);
    command.args(args);
    let mut program = ToolProcess::start(command).map_err(unavailable)?;
    if program.listen(None, timeout_ns).map_err(unavailable)? == Listened::Late {
        let (tool, text) = (tool.to_owned(), program.last_output());
        return Err(Cause::ToolLate { tool, timeout_ns, text }.into());
    }
    if program.status().map_err(unavailable)?.success() {
        Ok(program.text())
    } else {
        Err(parse_error(&program.text(), tool))
    }
}

/// Returns whether the tool succeeded, and its standard error.
fn output(tool: PathBuf, args: &[&str], input: &str) -> io::Result<(bool, String)> {
    let mut command = Command::new(tool);
    command.args(args).stderr(Stdio::piped());
    let mut child = command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() }).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A tool that stops at its first line does not read the rest.
        stdin.write_all(input.as_bytes()).or_else(|error| match error.kind() {
            ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        })?;
    }
    let mut text = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut text)?;
    }
    let succeeded = child.wait()?.success();
    Ok((succeeded, String::from_utf8_lossy(&text).into_owned()))
}

/// Parses a tool's messages. iproute2's end with `Command failed -:N`; N is the line of the batch, from 1.
fn parse_error(stderr: &str, tool: &str) -> ToolError {
    let mut line = None;
    let mut lines = Vec::new();
    for line_text in stderr.lines().map(str::trim).filter(|text| !text.is_empty()) {
        match line_text.strip_prefix("Command failed ").and_then(|location| location.rsplit_once(':')) {
            Some((_, number)) => line = number.parse::<usize>().ok().and_then(|number| number.checked_sub(1)),
            None => lines.push(line_text),
        }
    }
    let text = if lines.is_empty() { format!("{tool} failed without a message") } else { lines.join(" ") };
    ToolError { line, cause: Cause::ToolFailed { tool: tool.to_owned(), text } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(line: Option<usize>, text: &str) -> ToolError {
        ToolError { line, cause: Cause::ToolFailed { tool: "tc".into(), text: text.into() } }
    }

    #[test]
    fn the_failing_line_of_a_batch_is_identified() {
        let stderr = "Error: Exclusivity flag on, cannot modify.\nCommand failed -:3\n";
        assert_eq!(parse_error(stderr, "tc"), failed(Some(2), "Error: Exclusivity flag on, cannot modify."));
    }

    #[test]
    fn messages_of_many_lines_become_one_line() {
        let stderr = "Unknown qdisc \"nonsense\"\n\n  hence option is unparsable\n";
        let expected = "Unknown qdisc \"nonsense\" hence option is unparsable";
        assert_eq!(parse_error(stderr, "tc"), failed(None, expected));
    }

    #[test]
    fn a_failure_without_output_has_a_message() {
        assert_eq!(parse_error("", "ip").cause.to_string(), "ip failed without a message");
    }

    #[test]
    fn a_missing_tool_is_named() {
        let error = run("no-such-tool", &[], "").expect_err("fails");
        assert_eq!(error, Cause::ToolMissing { tool: "no-such-tool".into() }.into());
    }
}
