// SPDX-License-Identifier: Apache-2.0
//! The first process of a container: starts its programs, reaps processes that end, and notifies the agent.
//!
//! It is a copy of the agent with one thread. It never ends before the agent: when the agent ends, the machine stops.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sched::{unshare, CloneFlags};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{umask, Mode};
use nix::unistd::{chdir, chroot, dup2_stderr, dup2_stdin, dup2_stdout, execve, pipe2, sethostname, setsid};
use nix::unistd::{ForkResult, Pid};

use crate::app_plan::{App, Container, File as PlannedFile};
use crate::cause::Cause;
use crate::container_channel::{receive, send, Notice, Order};
use crate::container_user::User;
use crate::sys::{self, attach, EndedChild};

/// Capabilities that a program lacks even as root: clocks and modules belong to the machine, and device nodes lead to
/// its console. Without `SYS_PTRACE` it cannot trace the container's first process, which has more rights; it can still
/// trace its own children.
const WITHHELD_CAPABILITIES: [libc::c_ulong; 6] = [16, 17, 19, 22, 25, 27]; // SYS_MODULE, _RAWIO, _PTRACE, _BOOT, _TIME, MKNOD

/// The file that sets how early a process is killed when memory is short. The first process of a container is exempt,
/// unlike its programs.
const OUT_OF_MEMORY: &str = "/proc/self/oom_score_adj";

/// Mounts of the agent that a container must not see.
const AGENT_MOUNTS: [&str; 6] = ["/out", "/run", "/tmp", "/dev", "/sys", "/proc"];

/// Executes orders; returns only when the agent has ended.
pub fn run(
    plan: &Container,
    apps: &[&App],
    groups: Vec<File>,
    channel: BorrowedFd,
    root: &Path,
) -> io::Result<()> {
    if let Err(error) = enter_root(plan, root) {
        let cause = Cause::system("making the container of its programs", error);
        return send(channel, &Notice::Failed { cause }, &[]);
    }
    let mut chld = SigSet::empty();
    chld.add(Signal::SIGCHLD);
    chld.thread_block()?;
    let child_signals = SignalFd::with_flags(&chld, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    send(channel, &Notice::Ready {}, &[])?;
    let mut init = ContainerInit { apps, groups, running: Vec::new() };
    loop {
        let mut events =
            [PollFd::new(channel, PollFlags::POLLIN), PollFd::new(child_signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut events, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            result => result?,
        };
        let [has_order, has_death] = events.map(|event| event.any().unwrap_or(false));
        if has_death {
            while child_signals.read_signal()?.is_some() {}
            init.reap(channel)?;
        }
        if has_order {
            let Some((Order::Start { app }, fds)) = receive(channel)? else { return Ok(()) };
            let notice = match init.start(app, fds) {
                Ok(pid) => Notice::Started { app, pid: pid.as_raw().unsigned_abs() },
                Err(cause) => Notice::Refused { app, cause },
            };
            send(channel, &notice, &[])?;
        }
    }
}

/// Enters the container's file system and writes the plan's files there.
fn enter_root(plan: &Container, root: &Path) -> io::Result<()> {
    let failure = |what, error: Errno| io::Error::other(format!("{what}: {}", error.desc()));
    chdir(root)?;
    for path in AGENT_MOUNTS {
        umount2(path, MntFlags::MNT_DETACH).map_err(|error| failure(path, error))?;
    }
    // pivot_root(2) does not work in the guest's first root; nothing is mounted on it any more
    mount(Some("."), "/", None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .map_err(|error| failure("entering it", error))?;
    chroot(".")?;
    chdir("/")?;
    sethostname(&plan.node)?;
    attach("proc", Path::new("/proc"), MsFlags::empty(), None)?;
    fs::write(OUT_OF_MEMORY, "-1000")?;
    umask(Mode::from_bits_truncate(0o022));
    let failure = |file: &PlannedFile, error| io::Error::other(format!("{}: {error}", file.path));
    plan.files.iter().try_for_each(|file| write_file(file).map_err(|error| failure(file, error)))
}

/// Writes a file of the plan. A link at its path is replaced, not followed.
fn write_file(file: &PlannedFile) -> io::Result<()> {
    let path = Path::new(&file.path);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut target = fs::OpenOptions::new().write(true).create_new(true).mode(file.mode).open(path)?;
    target.write_all(&file.content.bytes())?;
    target.set_permissions(PermissionsExt::from_mode(file.mode))
}

struct ContainerInit<'a> {
    apps: &'a [&'a App],
    /// The file by which each program enters its control group, in the order of `apps`.
    groups: Vec<File>,
    running: Vec<(Pid, u16)>,
}

impl ContainerInit<'_> {
    /// Reaps all processes that ended and reports programs among them.
    fn reap(&mut self, channel: BorrowedFd) -> io::Result<()> {
        loop {
            let Some(EndedChild { pid, exit, signal }) = sys::ended_child()? else { return Ok(()) };
            if let Some(index) = self.running.iter().position(|(running, _)| *running == pid) {
                let (_, app) = self.running.swap_remove(index);
                send(channel, &Notice::Ended { app, exit, signal }, &[])?;
            }
        }
    }

    /// Starts a program. Returns the cause if that fails.
    fn start(&mut self, id: u16, fds: Vec<OwnedFd>) -> Result<Pid, Cause> {
        let bug = |text: &str| Cause::AgentBug { text: text.to_owned() };
        let index =
            self.apps.iter().position(|app| app.id == id).ok_or_else(|| bug("the container lacks it"))?;
        let (app, group) = (self.apps[index], &self.groups[index]);
        let fds: [OwnedFd; 3] = fds.try_into().map_err(|_| bug("its output files are missing"))?;
        let user = User::find(&app.user).ok_or_else(|| Cause::UserMissing { user: app.user.clone() })?;
        let exec =
            Exec::of(app, user.home()).map_err(|text| Cause::Data { what: "its command".into(), text })?;
        let failure = |error: io::Error| Cause::system("starting it", error);
        let (message_pipe, message_end) =
            pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|error| failure(error.into()))?;
        match sys::fork().map_err(failure)? {
            ForkResult::Child => {
                drop(message_pipe);
                let cause = exec_program(app, &user, &exec, group, &fds);
                let message = serde_json::to_vec(&cause).expect("a cause has only string keys");
                let _ = File::from(message_end).write_all(&message);
                sys::exit_at_once()
            }
            ForkResult::Parent { child } => {
                drop((message_end, fds));
                let mut message = Vec::new();
                File::from(message_pipe).read_to_end(&mut message).map_err(failure)?;
                if message.is_empty() {
                    self.running.push((child, id));
                    Ok(child)
                } else {
                    Err(serde_json::from_slice(&message).unwrap_or_else(|error| bug(&error.to_string())))
                }
            }
        }
    }
}

/// The arguments of execve.
struct Exec {
    paths: Vec<CString>,
    arguments: Vec<CString>,
    env: Vec<CString>,
}

impl Exec {
    /// `home`: the value of HOME, unless the plan has it.
    fn of(app: &App, home: &str) -> Result<Self, String> {
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
            arguments: app.command.iter().cloned().map(text).collect::<Result<_, _>>()?,
            env: app
                .env
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .chain((!app.env.contains_key("HOME")).then(|| format!("HOME={home}")))
                .map(text)
                .collect::<Result<_, _>>()?,
        })
    }

    /// Executes the program. Returns only after a failure.
    fn run(&self) -> Errno {
        let mut reported = Errno::ENOENT;
        for path in &self.paths {
            let Err(error) = execve(path, &self.arguments, &self.env);
            if !matches!(error, Errno::ENOENT | Errno::ENOTDIR) {
                reported = error;
            }
        }
        reported
    }
}

/// Turns a copy of the container's first process into the program. Returns only after a failure, with its cause.
fn exec_program(app: &App, user: &User, exec: &Exec, mut group: &File, fds: &[OwnedFd; 3]) -> Cause {
    let mut prepare = || -> io::Result<()> {
        group.write_all(b"0")?;
        unshare(CloneFlags::CLONE_NEWCGROUP)?; // it sees only its own group, as the root
        fs::write(OUT_OF_MEMORY, "0")?;
        setsid()?;
        dup2_stdin(&fds[0])?;
        dup2_stdout(&fds[1])?;
        dup2_stderr(&fds[2])?;
        if io::stdin().is_terminal() {
            sys::take_terminal()?;
        }
        for output in [io::stdout().as_fd(), io::stderr().as_fd()] {
            user.take_over(output)?;
        }
        sys::reset_process(&WITHHELD_CAPABILITIES)
    };
    if let Err(error) = prepare() {
        return Cause::system("starting it", error);
    }
    if let Err(error) = chdir(app.folder.as_str()) {
        return Cause::system(format!("its folder {}", app.folder), error);
    }
    if let Err(error) = user.assume() {
        return Cause::system(format!("becoming its user {}", app.user), error);
    }
    match exec.run() {
        Errno::ENOENT => Cause::ProgramMissing { program: app.command[0].clone() },
        error => Cause::system(&app.command[0], error),
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
    fn a_program_is_searched_in_its_own_path() {
        let paths = |command, path| {
            let exec = Exec::of(&app(command, path), "/").expect("words");
            exec.paths.iter().map(|path| path.to_str().expect("text").to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(paths("ls", "/a:/b"), ["/a/ls", "/b/ls"]);
        assert_eq!(paths("./ls", "/a:/b"), ["./ls"]);
        assert_eq!(paths("ls", ":/b"), ["./ls", "/b/ls"]);
    }

    #[test]
    fn the_home_of_the_user_yields_to_the_plans() {
        let mut app = app("ls", "/a");
        let env = |app: &App| Exec::of(app, "/home/x").expect("words").env.pop();
        assert_eq!(env(&app), CString::new("HOME=/home/x").ok());
        app.env.insert("HOME".into(), "/tmp".into());
        assert_eq!(env(&app), CString::new("PATH=/a").ok());
    }

    #[test]
    fn a_missing_program_is_named() {
        let exec = Exec::of(&app("no-such-program", "/nowhere"), "/").expect("words");
        assert_eq!(exec.run(), Errno::ENOENT);
        let exec = Exec::of(&app("/", ""), "/").expect("words");
        assert_eq!(exec.run(), Errno::EACCES);
    }
}
