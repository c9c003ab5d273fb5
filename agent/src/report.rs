// SPDX-License-Identifier: Apache-2.0
//! The agent's reports, and the type of a failure. Reports go to standard output. The first process of a machine uses a
//! separate serial line, which no program of a node can open.
//!
//! Lines of the console protocol are `hourglass: ` and one JSON object; ARCHITECTURE.md has the table of events. A run
//! has at most one `error` event: the first failure is the cause, and later ones follow from it.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use nix::sys::termios::tcdrain;
use serde::Serialize;

use crate::cause::Cause;
use crate::clock;
use crate::column::Cell;

static FAILED: AtomicBool = AtomicBool::new(false);
/// The serial line of the events; without it, standard output.
static EVENT_LINE: OnceLock<File> = OnceLock::new();

pub type Result<T> = std::result::Result<T, Failure>;

/// The cause of a failed run, with the plan's step or stream (`subject`) that failed, if any.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    pub origin: Option<String>,
    pub step: Option<&'static str>,
    pub node: Option<String>,
    pub line: Option<String>,
    pub subject: Option<String>,
    #[serde(flatten)]
    pub cause: Box<Cause>,
}

impl Failure {
    /// Returns an error of the system.
    pub fn system(subject: impl Display, error: impl Into<io::Error>) -> Self {
        Cause::system(subject, error).into()
    }

    /// Returns a failure for data that cannot be read or written.
    pub fn data(subject: impl Display, error: impl Display) -> Self {
        Cause::Data { what: subject.to_string(), text: error.to_string() }.into()
    }

    /// Returns a failure for a plan that is not accepted.
    pub fn plan(error: impl Display) -> Self {
        Cause::PlanRefused { text: error.to_string() }.into()
    }

    /// Returns a failure for data of the probe that this agent cannot read, since it belongs to another kernel.
    pub fn probe(text: impl Display) -> Self {
        Cause::Probe { text: text.to_string() }.into()
    }

    pub fn bug(text: impl Display) -> Self {
        Cause::AgentBug { text: text.to_string() }.into()
    }

    /// Returns the failure with a stream as its subject.
    pub fn of(self, subject: impl Display) -> Self {
        Self { subject: Some(subject.to_string()), ..self }
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self { origin: None, step: None, node: None, line: None, subject: None, cause: Box::new(cause) }
    }
}

impl Display for Failure {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        self.subject.iter().try_for_each(|subject| write!(to, "{subject}: "))?;
        self.cause.fmt(to)
    }
}

impl Cause {
    /// Returns an error of the system. An error without a number is an error of data.
    pub fn system(subject: impl Display, error: impl Into<io::Error>) -> Self {
        let (what, error) = (subject.to_string(), error.into());
        match error.raw_os_error() {
            Some(errno) => Self::System { what, errno },
            None => Self::Data { what, text: error.to_string() },
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event<'a> {
    Ready { boot_ns: i64 },
    Time { ns: i64 },
    Error(&'a Failure),
    Done { ns: i64 },
    Set,
    Reached,
    Measured { ns: i64 },
    Records { bytes: u64 },
    Used { app: &'a str, cpu_ns: u64 },
    Omitted(&'a Omitted),
    Decision { number: u32, ns: i64, senders: &'a [Sender] },
    Clock { number: u64, received_ns: i64, sent_ns: i64, ahead_ns: i64 },
}

/// The state of a TCP sender: the columns of the table `tcp`.
#[derive(Serialize)]
pub struct Sender {
    pub stream: u16,
    #[serde(flatten)]
    pub state: BTreeMap<&'static str, Cell<'static>>,
}

/// Collected files that are incomplete or missing because of the limits, and folders that are too deep.
#[derive(Serialize)]
pub struct Omitted {
    pub app: String,
    pub count: u64,
    pub first: String,
    pub limit_bytes: u64,
    pub depth_max: usize,
}

/// Opens the serial line to which all later events go.
pub fn open_line(path: &str) -> io::Result<()> {
    let line = OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(path)?;
    EVENT_LINE.set(line).map_err(|_| io::Error::other("the line is already open"))
}

/// Waits until the events have left the machine.
pub fn drain() {
    if let Some(line) = EVENT_LINE.get() {
        let _ = tcdrain(line);
    }
}

/// Prints an event in one write, so that output of the tools never splits its line. Ignores a closed console.
fn print_event(event: &Event) {
    let json = serde_json::to_string(event).expect("an event has only string keys");
    let text = format!("hourglass: {json}\n");
    let _ = match EVENT_LINE.get() {
        Some(mut line) => line.write_all(text.as_bytes()),
        None => io::stdout().lock().write_all(text.as_bytes()),
    };
}

pub fn ready(boot_ns: i64) {
    print_event(&Event::Ready { boot_ns });
}

pub fn time(ns: i64) {
    print_event(&Event::Time { ns });
}

/// Reports to the coordinator of several machines that this machine is set up.
pub fn set() {
    print_event(&Event::Set);
}

/// Reports that the neighbours answer.
pub fn reached() {
    print_event(&Event::Reached);
}

/// Reports the end of the test. Records follow on request.
pub fn measured(ns: i64) {
    print_event(&Event::Measured { ns });
}

/// Reports the number of bytes that follow.
pub fn records(bytes: u64) {
    print_event(&Event::Records { bytes });
}

/// Answers the question with this number: the monotonic clock at its arrival, and now.
pub fn clock(number: u64, received_ns: i64) {
    let ahead_ns = clock::ahead();
    print_event(&Event::Clock { number, received_ns, sent_ns: clock::monotonic(), ahead_ns });
}

/// Reports a program's CPU time on the host. It differs between runs, so it is no record.
pub fn used(app: &str, cpu_ns: u64) {
    print_event(&Event::Used { app, cpu_ns });
}

/// Reports files of a program that are not in the run directory although it collects them.
pub fn omitted(omitted: &Omitted) {
    print_event(&Event::Omitted(omitted));
}

/// Reports that the clock stops until the engine answers.
pub fn decision(number: u32, ns: i64, senders: &[Sender]) {
    print_event(&Event::Decision { number, ns, senders });
}

pub fn done(ns: i64) {
    print_event(&Event::Done { ns });
}

/// Reports the first failure of the run. Later failures are its consequences and are not reported.
pub fn error(failure: &Failure) {
    if !FAILED.swap(true, Ordering::Relaxed) {
        print_event(&Event::Error(failure));
    }
}

/// Reports one refused plan of several.
pub fn refused(failure: &Failure) {
    print_event(&Event::Error(failure));
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn events_have_the_form_of_the_protocol() {
        let text = |event: &Event| serde_json::to_string(event).expect("serialises");
        assert_eq!(text(&Event::Ready { boot_ns: 7 }), r#"{"event":"ready","boot_ns":7}"#);
        assert_eq!(text(&Event::Time { ns: 8 }), r#"{"event":"time","ns":8}"#);
        assert_eq!(text(&Event::Done { ns: 9 }), r#"{"event":"done","ns":9}"#);
        let failure = Failure {
            origin: Some("a.b".to_owned()),
            step: Some("tc"),
            ..Failure::system("eth0", Errno::ENODEV).of("flow 1")
        };
        assert_eq!(
            text(&Event::Error(&failure)),
            r#"{"event":"error","origin":"a.b","step":"tc","node":null,"line":null,"subject":"flow 1","code":"system","what":"eth0","errno":19}"#
        );
        assert_eq!(failure.to_string(), "flow 1: eth0: No such device");
    }

    #[test]
    fn an_error_without_a_number_is_an_error_of_data() {
        let failure = Failure::system("a file", io::ErrorKind::UnexpectedEof);
        assert_eq!(failure.cause, Failure::data("a file", "unexpected end of file").cause);
    }
}
