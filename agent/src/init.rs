// SPDX-License-Identifier: Apache-2.0
//! The file system of the run. The first process of a machine mounts file systems before the run and switches the
//! machine off after it. Any other process leaves the machine unchanged.

use std::env;
use std::fs::{self, create_dir_all, OpenOptions};
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::mount::{mount, umount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::reboot::{reboot, RebootMode};
use nix::sys::termios::tcdrain;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, sync};

use crate::report::{self, Failure, Result};
use crate::tool;

/// The run directory of the host, with the plan and the records.
const RUN_FOLDER: &str = "/out";

/// The serial line that leads to the engine.
const EVENT_LINE: &str = "/dev/ttyS0";

const MOUNTS: [(&str, &str); 6] = [
    ("/proc", "proc"),
    ("/sys", "sysfs"),
    ("/dev", "devtmpfs"),
    ("/run", "tmpfs"),
    ("/tmp", "tmpfs"),
    (RUN_FOLDER, "hostfs"),
];

pub fn is_init() -> bool {
    std::process::id() == 1
}

pub fn start() -> Result<()> {
    for (path, kind) in MOUNTS {
        attach(path, kind).map_err(|error| Failure::system(format!("mounting {kind} on {path}"), error))?;
    }
    console().map_err(|error| Failure::system("/dev/console", error))?;
    report::open_line(EVENT_LINE).map_err(|error| Failure::system(EVENT_LINE, error))
}

/// Loads the congestion controls and qdiscs in BPF. The kernel's command line has their number.
pub fn load_objects() -> Result<()> {
    let count = env::var("bpf_objects").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for number in 0..count {
        let object = format!("{RUN_FOLDER}/.guest/bpf-{number}.o");
        tool::run("bpftool", &["struct_ops", "register", &object], "").map_err(|error| error.cause)?;
    }
    Ok(())
}

/// Allows two threads for each of `streams` streams, and some others.
pub fn allow_threads(streams: usize) -> Result<()> {
    const ALWAYS: usize = 4000;
    if streams <= ALWAYS {
        return Ok(());
    }
    let limit = (2 * (streams + ALWAYS)).max(1 << 15).to_string();
    for path in ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"] {
        fs::write(path, &limit).map_err(|error| Failure::system(path, error))?;
    }
    Ok(())
}

/// Makes a view of the file system for this process and its children, with an empty /run in it.
pub fn isolate() -> Result<()> {
    let isolate = || -> nix::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        mount(Some("none"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>)
    };
    isolate().map_err(|error| Failure::system("making a mount namespace (this needs root)", error))
}

/// Mounts a file system unless the kernel has mounted it. Creates a missing mount point if possible.
fn attach(path: &str, kind: &str) -> io::Result<()> {
    let attempt = || mount(Some("none"), path, Some(kind), MsFlags::empty(), None::<&str>);
    match attempt() {
        Err(Errno::ENOENT) => {
            create_dir_all(path)?;
            Ok(attempt()?)
        }
        Ok(()) | Err(Errno::EBUSY) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn console() -> io::Result<()> {
    let console = OpenOptions::new().read(true).write(true).open("/dev/console")?;
    dup2_stdin(&console)?;
    dup2_stdout(&console)?;
    dup2_stderr(&console)?;
    Ok(())
}

/// Stops the machine. Ignores all errors, since the machine must stop in any case.
pub fn power_off() -> ! {
    let _ = tcdrain(io::stdout().as_fd());
    report::drain();
    if umount(RUN_FOLDER).is_err() {
        sync(); // a file on it is still open, for example after a panic
    }
    let error = reboot(RebootMode::RB_POWER_OFF);
    panic!("power off: {error:?}");
}
