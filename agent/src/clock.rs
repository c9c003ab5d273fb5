// SPDX-License-Identifier: Apache-2.0
//! Clocks, and all sleeps until a time.
//!
//! Test time counts from an [`Epoch`]. Deadlines are absolute times of `CLOCK_MONOTONIC`, so delays never add up.
//! Packet times are `CLOCK_REALTIME`, the clock of the kernel's receive timestamps; the epoch also has its value
//! at test time 0.

use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::time::{clock_gettime, clock_nanosleep, ClockId, ClockNanosleepFlags};

pub const SECOND: i64 = 1_000_000_000;

/// The minimum time between the end of the set-up and test time 0, for the start of the test's threads.
const START_MARGIN_NS: i64 = 50_000_000;

pub fn to_ns(time: TimeSpec) -> i64 {
    time.tv_sec() * SECOND + time.tv_nsec()
}

fn read(clock: ClockId) -> i64 {
    to_ns(clock_gettime(clock).expect("these clocks exist on every Linux"))
}

pub fn monotonic() -> i64 {
    read(ClockId::CLOCK_MONOTONIC)
}

pub fn realtime() -> i64 {
    read(ClockId::CLOCK_REALTIME)
}

/// Returns the time of day minus the monotonic clock. It changes when the clock is set.
pub fn ahead() -> i64 {
    let before = monotonic();
    let wall = realtime();
    wall - before - (monotonic() - before) / 2
}

pub fn sleep_until(monotonic_ns: i64) {
    let deadline = TimeSpec::new(monotonic_ns / SECOND, monotonic_ns % SECOND);
    let absolute = ClockNanosleepFlags::TIMER_ABSTIME;
    while clock_nanosleep(ClockId::CLOCK_MONOTONIC, absolute, &deadline) == Err(Errno::EINTR) {}
}

pub fn sleep(ns: i64) {
    sleep_until(monotonic() + ns);
}

/// Sleeps until the clock is at a whole multiple of `ns`.
pub fn sleep_until_multiple(ns: i64) {
    sleep_until(next_multiple(monotonic(), ns));
}

/// Test time 0 on both clocks.
#[derive(Clone, Copy)]
pub struct Epoch {
    pub monotonic_ns: i64,
    realtime_ns: i64,
}

impl Epoch {
    /// Returns the next whole second of the monotonic clock that is at least `START_MARGIN_NS` away.
    pub fn next() -> Self {
        let (now, wall) = (monotonic(), realtime());
        let zero = next_multiple(now + START_MARGIN_NS, SECOND);
        Self { monotonic_ns: zero, realtime_ns: wall + (zero - now) }
    }

    /// Returns the epoch at that value of the monotonic clock.
    pub fn at(monotonic_ns: i64) -> Self {
        Self { monotonic_ns, realtime_ns: monotonic_ns + ahead() }
    }

    pub fn now(self) -> i64 {
        monotonic() - self.monotonic_ns
    }

    pub fn of_realtime(self, realtime_ns: i64) -> i64 {
        realtime_ns - self.realtime_ns
    }

    pub fn sleep_until(self, test_ns: i64) {
        sleep_until(self.monotonic_ns + test_ns);
    }
}

fn next_multiple(now: i64, ns: i64) -> i64 {
    (now + ns - 1) / ns * ns
}

/// Formats nanoseconds as seconds, without trailing zeros.
pub fn seconds(ns: i64) -> String {
    let text = format!("{}.{:09}", ns / SECOND, ns % SECOND);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_short() {
        assert_eq!(seconds(SECOND), "1");
        assert_eq!(seconds(1_500_000_000), "1.5");
        assert_eq!(seconds(50_000_000), "0.05");
    }

    #[test]
    fn a_whole_second_stays_and_the_rest_is_rounded_up() {
        assert_eq!(next_multiple(3 * SECOND, SECOND), 3 * SECOND);
        assert_eq!(next_multiple(3 * SECOND + 1, SECOND), 4 * SECOND);
    }
}
