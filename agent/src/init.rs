// SPDX-License-Identifier: Apache-2.0
//! The file system as the run needs it: the duties of a machine's first process (mounts before the run, power off after
//! it), and what any other process does instead, to leave a machine that is not its own as it was.

use std::fs::{self, create_dir_all, OpenOptions};
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::mount::{mount, umount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::reboot::{reboot, RebootMode};
use nix::sys::termios::tcdrain;
use nix::unistd::{dup2_stderr, dup2_stdin, dup2_stdout, sync};

use crate::report::{Failure, Result};

/// Where the host's side of the run is: the plan comes from there, the records go there.
const OUT: &str = "/out";

const MOUNTS: [(&str, &str); 6] = [
    ("/proc", "proc"),
    ("/sys", "sysfs"),
    ("/dev", "devtmpfs"),
    ("/run", "tmpfs"),
    ("/tmp", "tmpfs"),
    (OUT, "hostfs"),
];

pub fn is_init() -> bool {
    std::process::id() == 1
}

pub fn start() -> Result<()> {
    for (path, kind) in MOUNTS {
        attach(path, kind).map_err(|error| Failure::system(format!("mounting {kind} on {path}"), error))?;
    }
    console().map_err(|error| Failure::system("/dev/console", error))
}

/// Lets the machine have threads for so many streams: two each at most, and some of its own.
pub fn allow_threads(streams: usize) -> Result<()> {
    const ALWAYS: usize = 4000;
    if streams <= ALWAYS {
        return Ok(());
    }
    let most = (2 * (streams + ALWAYS)).max(1 << 15).to_string();
    for path in ["/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max"] {
        fs::write(path, &most).map_err(|error| Failure::system(path, error))?;
    }
    Ok(())
}

/// A view of the file system for this process and its children alone, with an empty /run in it.
pub fn isolate() -> Result<()> {
    let isolate = || -> nix::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>)?;
        mount(Some("none"), "/run", Some("tmpfs"), MsFlags::empty(), None::<&str>)
    };
    isolate().map_err(|error| Failure::system("making a mount namespace (this needs root)", error))
}

/// Mounts, unless the kernel already did; makes the mount point if it can and must.
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

/// Nothing here may fail: whatever goes wrong, the machine has to stop.
pub fn power_off() -> ! {
    let _ = tcdrain(io::stdout().as_fd());
    if umount(OUT).is_err() {
        sync(); // a file there is still open, as after a panic
    }
    let error = reboot(RebootMode::RB_POWER_OFF);
    panic!("power off: {error:?}");
}
