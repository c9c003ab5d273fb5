// SPDX-License-Identifier: Apache-2.0
//! The first process of a room: starts its programs, reaps all that ends there, and tells the agent.
//!
//! It is a copy of the agent, with one thread, and never leaves: when the agent does, the machine stops.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{umask, Mode};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::{chdir, chroot, dup2_stderr, dup2_stdin, dup2_stdout, execve, pipe2, sethostname, setsid};
use nix::unistd::{ForkResult, Pid};

use crate::app_plan::{App, File as PlannedFile, Room};
use crate::room_post::{receive, send, News, Order};
use crate::room_user::User;
use crate::sys::{self, attach};

/// What a program may not do although it is root: clocks and modules are the machine's, device nodes lead to its
/// console. Without `SYS_PTRACE` it cannot trace the room's first process, which can do more; its own it still can.
const WITHHELD: [libc::c_ulong; 6] = [16, 17, 19, 22, 25, 27]; // SYS_MODULE, _RAWIO, _PTRACE, _BOOT, _TIME, MKNOD

/// How much sooner than others a process is killed where memory is short: a room's first never is, unlike its programs.
const OUT_OF_MEMORY: &str = "/proc/self/oom_score_adj";

/// What of the agent's file system a room must not see.
const AGENTS: [&str; 6] = ["/out", "/run", "/tmp", "/dev", "/sys", "/proc"];

/// Comes back only when the agent is gone.
pub fn live(plan: &Room, apps: &[&App], groups: Vec<File>, post: BorrowedFd, root: &Path) -> io::Result<()> {
    if let Err(error) = move_in(plan, root) {
        return send(
            post,
            &News::Failed { message: format!("making the room of its programs: {error}") },
            &[],
        );
    }
    let mut chld = SigSet::empty();
    chld.add(Signal::SIGCHLD);
    chld.thread_block()?;
    let deaths = SignalFd::with_flags(&chld, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    send(post, &News::Ready {}, &[])?;
    let mut keeper = Keeper { apps, groups, running: Vec::new() };
    loop {
        let mut events =
            [PollFd::new(post, PollFlags::POLLIN), PollFd::new(deaths.as_fd(), PollFlags::POLLIN)];
        match poll(&mut events, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            result => result?,
        };
        let [ordered, died] = events.map(|event| event.any().unwrap_or(false));
        if died {
            while deaths.read_signal()?.is_some() {}
            keeper.reap(post)?;
        }
        if ordered {
            let Some((Order::Start { app }, fds)) = receive(post)? else { return Ok(()) };
            let news = match keeper.start(app, fds) {
                Ok(pid) => News::Started { app, pid: pid.as_raw().unsigned_abs() },
                Err(message) => News::Refused { app, message },
            };
            send(post, &news, &[])?;
        }
    }
}

/// Leaves the agent's file system for the room's, and puts the plan's files there.
fn move_in(plan: &Room, root: &Path) -> io::Result<()> {
    let of = |what, error: Errno| io::Error::other(format!("{what}: {}", error.desc()));
    chdir(root)?;
    for place in AGENTS {
        umount2(place, MntFlags::MNT_DETACH).map_err(|error| of(place, error))?;
    }
    // the first root of all cannot be left by pivot_root(2); nothing is mounted on it any more
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .map_err(|error| of("entering it", error))?;
    chroot(".")?;
    chdir("/")?;
    sethostname(&plan.node)?;
    attach("proc", Path::new("/proc"), MsFlags::empty(), None)?;
    fs::write(OUT_OF_MEMORY, "-1000")?;
    umask(Mode::from_bits_truncate(0o022));
    let of = |file: &PlannedFile, error| io::Error::other(format!("{}: {error}", file.path));
    plan.files.iter().try_for_each(|file| place(file).map_err(|error| of(file, error)))
}

/// A file of the plan. A link in its place is replaced, not followed.
fn place(file: &PlannedFile) -> io::Result<()> {
    let path = Path::new(&file.path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut made = fs::OpenOptions::new().write(true).create_new(true).mode(file.mode).open(path)?;
    made.write_all(&file.content.bytes())?;
    made.set_permissions(PermissionsExt::from_mode(file.mode))
}

struct Keeper<'a> {
    apps: &'a [&'a App],
    /// Where a program enters its control group, in the order of `apps`.
    groups: Vec<File>,
    running: Vec<(Pid, u16)>,
}

impl Keeper<'_> {
    /// Everything that ended; programs are told of.
    fn reap(&mut self, post: BorrowedFd) -> io::Result<()> {
        loop {
            let (pid, exit, signal) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, u8::try_from(code & 0xff).ok(), None),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, None, u8::try_from(signal as i32).ok()),
                Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(()),
                Ok(_) => continue,
                Err(error) => return Err(error.into()),
            };
            if let Some(place) = self.running.iter().position(|(running, _)| *running == pid) {
                let (_, app) = self.running.swap_remove(place);
                send(post, &News::Ended { app, exit, signal }, &[])?;
            }
        }
    }

    /// Starts a program; or says in words for its user why it cannot.
    fn start(&mut self, id: u16, fds: Vec<OwnedFd>) -> Result<Pid, String> {
        let place = self.apps.iter().position(|app| app.id == id).ok_or("it is not of this room")?;
        let (app, group) = (self.apps[place], &self.groups[place]);
        let fds: [OwnedFd; 3] = fds.try_into().map_err(|_| "it came without its outputs")?;
        let user = User::find(&app.user)?;
        let exec = Exec::of(app)?;
        let of = |error: io::Error| format!("starting it: {error}");
        let (said, say) = pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| of(error.into()))?;
        match sys::fork().map_err(of)? {
            ForkResult::Child => {
                drop(said);
                let message = become_program(app, &user, &exec, group, &fds);
                let _ = File::from(say).write_all(message.as_bytes());
                sys::leave_at_once()
            }
            ForkResult::Parent { child } => {
                drop((say, fds));
                let mut message = String::new();
                File::from(said).read_to_string(&mut message).map_err(of)?;
                if message.is_empty() {
                    self.running.push((child, id));
                    Ok(child)
                } else {
                    Err(message)
                }
            }
        }
    }
}

/// What execve takes.
struct Exec {
    paths: Vec<CString>,
    words: Vec<CString>,
    env: Vec<CString>,
}

impl Exec {
    fn of(app: &App) -> Result<Self, String> {
        let text = |text: String| CString::new(text).map_err(|_| "a word with a NUL character".to_owned());
        let first = &app.command[0];
        let path = app.env.get("PATH").map_or("/usr/bin:/bin", String::as_str);
        let paths = if first.contains('/') {
            vec![first.clone()]
        } else {
            path.split(':')
                .map(|folder| format!("{}/{first}", if folder.is_empty() { "." } else { folder }))
                .collect()
        };
        Ok(Self {
            paths: paths.into_iter().map(text).collect::<Result<_, _>>()?,
            words: app.command.iter().cloned().map(text).collect::<Result<_, _>>()?,
            env: app
                .env
                .iter()
                .map(|(name, value)| text(format!("{name}={value}")))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Comes back only with why it failed.
    fn run(&self) -> Errno {
        let mut reason = Errno::ENOENT;
        for path in &self.paths {
            let Err(error) = execve(path, &self.words, &self.env);
            if !matches!(error, Errno::ENOENT | Errno::ENOTDIR) {
                reason = error;
            }
        }
        reason
    }
}

/// From a copy of the room's first process to the program. Comes back only with words on what went wrong.
fn become_program(app: &App, user: &User, exec: &Exec, mut group: &File, fds: &[OwnedFd; 3]) -> String {
    let mut prepare = || -> io::Result<()> {
        group.write_all(b"0")?;
        fs::write(OUT_OF_MEMORY, "0")?;
        setsid()?;
        dup2_stdin(&fds[0])?;
        dup2_stdout(&fds[1])?;
        dup2_stderr(&fds[2])?;
        if io::stdin().is_terminal() {
            sys::take_terminal()?;
        }
        sys::become_plain(&WITHHELD)
    };
    if let Err(error) = prepare() {
        return format!("starting it: {error}");
    }
    if let Err(error) = chdir(app.folder.as_str()) {
        return format!("its folder {}: {}", app.folder, error.desc());
    }
    if let Err(error) = user.become_it() {
        return format!("becoming its user {}: {}", app.user, error.desc());
    }
    match exec.run() {
        Errno::ENOENT => format!("{}: there is no such program in the root", app.command[0]),
        error => format!("{}: {}", app.command[0], error.desc()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn app(command: &str, path: &str) -> App {
        serde_json::from_value(serde_json::json!({
            "id": 0, "name": "a", "room": 0, "command": [command], "env": {"PATH": path}, "folder": "/", "user": "root",
            "stdin": "", "start_ns": 0, "after": [], "stop_ns": null, "stop_signal": 15, "grace_ns": 0,
            "ready": {"when": "start"}, "ready_ns": 0, "restarts": 0, "restart_ns": 0, "background": false,
            "output_bytes": 0, "collect": [], "origin": null
        }))
        .expect("an app")
    }

    #[test]
    fn a_program_is_looked_for_along_its_own_path() {
        let paths = |command, path| {
            let exec = Exec::of(&app(command, path)).expect("words");
            exec.paths.iter().map(|path| path.to_str().expect("text").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(paths("ls", "/a:/b"), ["/a/ls", "/b/ls"]);
        assert_eq!(paths("./ls", "/a:/b"), ["./ls"]);
        assert_eq!(paths("ls", ":/b"), ["./ls", "/b/ls"]);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let exec = Exec::of(&app("no-such-program", "/nowhere")).expect("words");
        assert_eq!(exec.run(), Errno::ENOENT);
        let exec = Exec::of(&app("/", "")).expect("words");
        assert_eq!(exec.run(), Errno::EACCES);
    }
}
