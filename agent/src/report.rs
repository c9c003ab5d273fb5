// SPDX-License-Identifier: Apache-2.0
//! What the agent says on its standard output, and how a failure travels there.
//!
//! Lines of the console protocol are `hourglass: ` and one JSON object; the table of events stands in ARCHITECTURE.md.
//! A run has at most one `error` event: the first failure is the cause, whatever follows is an echo of it.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use serde::Serialize;

use crate::clock;

static FAILED: AtomicBool = AtomicBool::new(false);

pub type Result<T> = std::result::Result<T, Failure>;

/// Why the run failed, and the step of the plan that was to blame, if it was one.
#[derive(Debug, Default, Clone, Serialize)]
pub struct Failure {
    pub origin: Option<String>,
    pub step: Option<&'static str>,
    pub node: Option<String>,
    pub line: Option<String>,
    pub message: String,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// `what: the system's words for the error`.
    pub fn system(what: impl Display, error: impl Into<io::Error>) -> Self {
        Self::of(what, words(&error.into()))
    }

    /// `what: the error's own words`, the way system tools say it.
    pub fn of(what: impl Display, error: impl Display) -> Self {
        Self::new(format!("{what}: {error}"))
    }
}

/// The system's text of an error, without the number that the standard library adds.
pub fn words(error: &io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |raw| Errno::from_raw(raw).desc().to_owned())
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
    Clock { number: u64, received_ns: i64, sent_ns: i64, ahead_ns: i64 },
}

/// One write per line, so that lines of the tools never cut into it. A console that is gone is no reason to fail.
fn say(event: &Event) {
    let json = serde_json::to_string(event).expect("an event has only string keys");
    let _ = io::stdout().lock().write_all(format!("hourglass: {json}\n").as_bytes());
}

pub fn ready(boot_ns: i64) {
    say(&Event::Ready { boot_ns });
}

pub fn time(ns: i64) {
    say(&Event::Time { ns });
}

/// To whoever conducts several machines: this one is set up.
pub fn set() {
    say(&Event::Set);
}

/// Its neighbours answer.
pub fn reached() {
    say(&Event::Reached);
}

/// The test is over; records follow when they are asked for.
pub fn measured(ns: i64) {
    say(&Event::Measured { ns });
}

/// So many bytes follow.
pub fn records(bytes: u64) {
    say(&Event::Records { bytes });
}

/// The answer to a question of that number: the monotonic clock when it came, and now.
pub fn clock(number: u64, received_ns: i64) {
    let ahead_ns = clock::ahead();
    say(&Event::Clock { number, received_ns, sent_ns: clock::monotonic(), ahead_ns });
}

/// The time of the host's CPU that a program took: no two runs have the same, so that it is no record.
pub fn used(app: &str, cpu_ns: u64) {
    say(&Event::Used { app, cpu_ns });
}

pub fn done(ns: i64) {
    say(&Event::Done { ns });
}

/// What made the run fail: what fails after it does so because of it, and is not told.
pub fn error(failure: &Failure) {
    if !FAILED.swap(true, Ordering::Relaxed) {
        say(&Event::Error(failure));
    }
}

/// A plan that is not taken, of several.
pub fn refused(failure: &Failure) {
    say(&Event::Error(failure));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_spelled_as_the_protocol_says() {
        let text = |event: &Event| serde_json::to_string(event).expect("serialises");
        assert_eq!(text(&Event::Ready { boot_ns: 7 }), r#"{"event":"ready","boot_ns":7}"#);
        assert_eq!(text(&Event::Time { ns: 8 }), r#"{"event":"time","ns":8}"#);
        assert_eq!(text(&Event::Done { ns: 9 }), r#"{"event":"done","ns":9}"#);
        let failure = Failure { origin: Some("a.b".to_owned()), step: Some("tc"), ..Failure::new("no") };
        assert_eq!(
            text(&Event::Error(&failure)),
            r#"{"event":"error","origin":"a.b","step":"tc","node":null,"line":null,"message":"no"}"#
        );
    }

    #[test]
    fn errors_are_in_the_words_of_the_system() {
        assert_eq!(words(&io::Error::from_raw_os_error(libc::EACCES)), "Permission denied");
        assert_eq!(words(&io::Error::from(io::ErrorKind::NotFound)), "entity not found");
    }
}
