// SPDX-License-Identifier: Apache-2.0
//! A program that uses what a host must provide to the programs of a guest: threads, signal handlers, a child process,
//! and floating-point registers that survive all of these. `hourglass doctor` runs it in a guest of each kernel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::{process, thread};

use nix::sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::unistd::gettid;

/// The terms of a series, in each thread.
const TERMS: u32 = 20_000;

/// The result of the handler's computation, as bits.
static IN_HANDLER: AtomicU64 = AtomicU64::new(0);

/// Returns what does not work, or None.
pub fn run() -> Option<&'static str> {
    let expected = series(TERMS).to_bits();
    if handle().is_err() {
        return Some("a signal handler cannot be set");
    }
    let (value, kept) = (std::f64::consts::PI.to_bits(), 0.5f64.to_bits());
    if register_across_signal(value) != value || register_across_signal(kept) != kept {
        return Some("a signal handler changes floating-point registers");
    }
    if IN_HANDLER.load(Ordering::SeqCst) != series(7).to_bits() {
        return Some("floating point is wrong in a signal handler");
    }
    if !threads_agree(expected) {
        return Some("floating point is wrong in threads");
    }
    match process::Command::new("/proc/self/exe").arg("--self-check-child").status() {
        Ok(status) if status.success() => None,
        _ => Some("a child process does not start"),
    }
}

/// Computes in two threads that run in turns.
fn threads_agree(expected: u64) -> bool {
    let barrier = Arc::new(Barrier::new(2));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || {
                let mut sum = 0.0;
                for part in 0..4 {
                    barrier.wait();
                    sum = series_from(part * TERMS / 4, (part + 1) * TERMS / 4, sum);
                }
                sum.to_bits()
            })
        })
        .collect();
    threads.into_iter().all(|thread| thread.join().is_ok_and(|bits| bits == expected))
}

/// Returns the sum of 1 / (1 + n^2) for n below a number.
fn series(terms: u32) -> f64 {
    series_from(0, terms, 0.0)
}

fn series_from(first: u32, end: u32, start: f64) -> f64 {
    (first..end).map(f64::from).fold(start, |sum, n| sum + 1.0 / (1.0 + n * n))
}

extern "C" fn compute(_number: libc::c_int) {
    IN_HANDLER.store(series(std::hint::black_box(7)).to_bits(), Ordering::SeqCst);
}

fn handle() -> nix::Result<SigAction> {
    let action = SigAction::new(SigHandler::Handler(compute), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler only computes and stores into an atomic.
    unsafe { signal::sigaction(Signal::SIGUSR1, &action) }
}

/// Returns the content of a floating-point register after this thread sent itself the signal, with `value` before.
#[cfg(target_arch = "x86_64")]
fn register_across_signal(value: u64) -> u64 {
    let after: u64;
    // SAFETY: tkill(2) on this thread changes only rax, rcx and r11; the handler restores all others.
    unsafe {
        std::arch::asm!(
            "movq xmm0, {value}",
            "syscall",
            "movq {after}, xmm0",
            value = in(reg) value,
            after = out(reg) after,
            inlateout("rax") libc::SYS_tkill => _,
            in("rdi") i64::from(gettid().as_raw()),
            in("rsi") i64::from(libc::SIGUSR1),
            out("rcx") _,
            out("r11") _,
            out("xmm0") _,
        );
    }
    after
}

/// The register is the compiler's choice.
#[cfg(not(target_arch = "x86_64"))]
fn register_across_signal(value: u64) -> u64 {
    let before = f64::from_bits(std::hint::black_box(value));
    let _ = signal::raise(Signal::SIGUSR1);
    before.to_bits()
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_passes() {
        assert!(super::handle().is_ok());
        assert_eq!(super::register_across_signal(7), 7);
        assert!(super::threads_agree(super::series(super::TERMS).to_bits()));
    }
}
