// SPDX-License-Identifier: Apache-2.0
//! Containers: the environment of a node's programs (`rooms` in the plan). A container has its own file system (a root
//! of the host, read-only, under a layer in memory), the network of its node, and its own processes, host name and IPC.
//!
//! The first process of a container is a copy of the agent (`container_init`), forked in the set-up while the agent has
//! a single thread. It starts programs on order and reports how they ended. Programs see no process outside of their
//! container and nothing of the agent's file system: neither `/out` nor the roots of other containers.

use std::fs::{self, create_dir, create_dir_all, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{open, openat2, OFlag, OpenHow, ResolveFlag};
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::sys::stat::{makedev, mkdirat, mknod, Mode, SFlag};
use nix::unistd::{getpid, ForkResult, Pid};

use crate::app_plan::{App, Container as ContainerPlan};
use crate::cause::Cause;
use crate::container_channel::{self, Notice};
use crate::netns::Nodes;
use crate::plan::Plan;
use crate::report::{Failure, Result};
use crate::sys::attach;
use crate::{container_init, sys};

/// The agent's mount point of the control groups.
const GROUPS: &str = "/run/cgroup";
/// The mount point of a container under construction. Each has its own mount namespace.
const BUILD_FOLDER: &str = "/room";
/// Limits of the data that the programs of a container may write in total, in MiB. The limit is `MEMORY_MAX_MIB` or an
/// equal part of the total of all containers, which leaves some of the guest's memory for everything else. With
/// hundreds of containers the minimum suffices for small files.
const MEMORY_MAX_MIB: usize = 512;
const MEMORY_TOTAL_MIB: usize = 1280;
const MEMORY_MIN_MIB: usize = 8;
/// The limit of processes and threads of a container.
const PROCESSES: &str = "512";
/// The limit of control groups below a container's. The agent reads all of them.
const GROUPS_MAX: &str = "1024";

/// Character devices that every program may expect: name, major and minor number.
const DEVICES: [(&str, u64, u64); 7] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
    ("net/tun", 10, 200),
];
const CLOCKS: &str = "/sys/class/ptp";
const LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

pub struct Container {
    pub node: String,
    /// Carries orders to the container and its notices.
    pub channel: OwnedFd,
    /// The container's first process, as the agent sees it.
    pub init: Pid,
    groups: PathBuf,
    /// Whether a program runs as root, and so may make namespaces.
    root: bool,
}

/// Where another thread finds the processes of a container.
pub struct Processes {
    pub node: String,
    pub init: Pid,
    groups: PathBuf,
}

impl Processes {
    /// Returns the threads of all programs, as the agent sees them.
    pub fn threads(&self) -> Vec<String> {
        listed(&self.groups, "cgroup.threads")
    }
}

/// Returns the lines of a file in a group and in all groups below it, which programs may make.
fn listed(group: &Path, file: &str) -> Vec<String> {
    let (mut lines, mut waiting) = (Vec::new(), vec![group.to_owned()]);
    while let Some(folder) = waiting.pop() {
        let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
        lines.extend(text.lines().map(str::to_owned));
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> =
            entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        below.sort_unstable_by(|first, second| second.cmp(first));
        waiting.append(&mut below);
    }
    lines
}

/// Makes the containers of a plan, in their order.
pub fn make(plan: &Plan, nodes: &Nodes) -> Result<Vec<Container>> {
    if plan.containers.is_empty() {
        return Ok(Vec::new());
    }
    control_groups().map_err(|error| Failure::system("control groups", error))?;
    let memory = (MEMORY_TOTAL_MIB / plan.containers.len()).clamp(MEMORY_MIN_MIB, MEMORY_MAX_MIB);
    let containers = plan.containers.iter().zip(0_usize..).map(|(container, number)| {
        nodes.enter(Some(&container.node))?;
        allow_users().map_err(|error| Failure::system("setting the rights of users", error))?;
        let apps: Vec<&App> = plan.apps.iter().filter(|app| app.container as usize == number).collect();
        Container::make(container, number, memory, &apps)
            .map_err(|failure| Failure { node: Some(container.node.clone()), ..failure })
    });
    let containers: Result<Vec<Container>> = containers.collect();
    nodes.enter(None)?;
    containers
}

fn control_groups() -> io::Result<()> {
    create_dir_all(GROUPS)?;
    // nsdelegate: a program that mounts the hierarchy of its namespace neither leaves its group nor changes its limit
    mount(Some("none"), GROUPS, Some("cgroup2"), MsFlags::empty(), Some("nsdelegate"))?;
    fs::write(Path::new(GROUPS).join("cgroup.subtree_control"), "+pids")
}

/// Programs run as ordinary users. As in containers, they may ping and listen on every port of their node.
fn allow_users() -> io::Result<()> {
    fs::write("/proc/sys/net/ipv4/ping_group_range", "0 2147483647")?;
    fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

fn runs_root(apps: &[&App]) -> bool {
    apps.iter().any(|app| app.user == "root")
}

impl Container {
    fn make(plan: &ContainerPlan, number: usize, memory: usize, apps: &[&App]) -> Result<Self> {
        let failure = |error: io::Error| Failure::system("making the container of its programs", error);
        let groups = Path::new(GROUPS).join(format!("room-{number}"));
        let members = make_groups(&groups, apps).map_err(failure)?;
        let (channel, init_channel) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|error| failure(error.into()))?;
        match sys::fork().map_err(failure)? {
            ForkResult::Child => {
                drop(channel);
                let group = groups.join("cgroup.procs");
                run_first_process(plan, memory, apps, members, &group, init_channel.as_fd())
            }
            ForkResult::Parent { child } => {
                drop(init_channel);
                sys::wait(child).map_err(failure)?;
                let init = match first_notice(&channel)? {
                    Notice::Init { pid } => Pid::from_raw(pid),
                    notice => return Err(Failure::bug(format!("a container began with {notice:?}"))),
                };
                match first_notice(&channel)? {
                    Notice::Ready {} => {
                        let root = runs_root(apps);
                        Ok(Self { node: plan.node.clone(), channel, init, groups, root })
                    }
                    Notice::Failed { cause } => Err(cause.into()),
                    notice => Err(Failure::bug(format!("a container began with {notice:?}"))),
                }
            }
        }
    }

    /// Returns its processes for another thread; None if no program runs as root.
    pub fn processes_of_root(&self) -> Option<Processes> {
        let processes =
            || Processes { node: self.node.clone(), init: self.init, groups: self.groups.clone() };
        self.root.then(processes)
    }

    /// Returns the processes of a program, as the agent sees them.
    pub fn members(&self, app: u16) -> Vec<Pid> {
        let lines = listed(&self.groups.join(format!("app-{app}")), "cgroup.procs");
        lines.iter().filter_map(|line| line.parse().ok()).map(Pid::from_raw).collect()
    }

    /// Reads a file of the node's /proc/net.
    pub fn net(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(format!("/proc/{}/net/{file}", self.init))
    }

    /// Opens the container's root, for paths below it.
    pub fn root(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/{}/root", self.init);
        Ok(open(path.as_str(), OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?)
    }
}

/// Opens an absolute path as seen by the programs of a container: links cannot leave its root.
pub fn open_in(root: BorrowedFd, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_IN_ROOT);
    openat2(root, path, how)
}

fn first_notice(channel: &OwnedFd) -> Result<Notice> {
    let notice =
        container_channel::receive(channel.as_fd()).map_err(|error| Failure::system("a container", error))?;
    match notice {
        Some((notice, _)) => Ok(notice),
        None => Err(Failure::bug("a container ended before it began")),
    }
}

/// Makes the control groups of a container and its programs; returns the file by which each program enters its group.
fn make_groups(groups: &Path, apps: &[&App]) -> io::Result<Vec<File>> {
    create_dir(groups)?;
    fs::write(groups.join("pids.max"), PROCESSES)?;
    fs::write(groups.join("cgroup.max.descendants"), GROUPS_MAX)?;
    let open_group = |app: &&App| {
        let group = groups.join(format!("app-{}", app.id));
        create_dir(&group)?;
        OpenOptions::new().write(true).open(group.join("cgroup.procs"))
    };
    apps.iter().map(open_group).collect()
}

/// Builds a container and forks its first process. Runs in a copy of the agent.
fn run_first_process(
    plan: &ContainerPlan,
    memory: usize,
    apps: &[&App],
    groups: Vec<File>,
    group: &Path,
    channel: BorrowedFd,
) -> ! {
    let send_notice = |notice: &Notice| container_channel::send(channel, notice, &[]);
    let built =
        fs::write(group, "0").and_then(|()| build(plan, memory, runs_root(apps))).and_then(|()| sys::fork());
    let _ = match built {
        Ok(ForkResult::Child) => {
            container_init::run(plan, apps, groups, channel, &Path::new(BUILD_FOLDER).join("root"))
        }
        Ok(ForkResult::Parent { child }) => send_notice(&Notice::Init { pid: child.as_raw() }),
        Err(error) => send_notice(&Notice::Init { pid: getpid().as_raw() }).and_then(|()| {
            send_notice(&Notice::Failed {
                cause: Cause::system("making the container of its programs", error),
            })
        }),
    };
    sys::exit_at_once()
}

/// Makes a new mount namespace and mounts the container's file system at `BUILD_FOLDER`.
fn build(plan: &ContainerPlan, memory: usize, has_clocks: bool) -> io::Result<()> {
    let namespaces = [
        CloneFlags::CLONE_NEWNS,
        CloneFlags::CLONE_NEWUTS,
        CloneFlags::CLONE_NEWIPC,
        CloneFlags::CLONE_NEWPID,
        CloneFlags::CLONE_NEWCGROUP,
    ];
    unshare(namespaces.into_iter().collect())?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let folder = Path::new(BUILD_FOLDER);
    create_dir_all(folder)?;
    attach("tmpfs", folder, MsFlags::empty(), Some(&format!("size={memory}m,mode=755")))?;
    let root = folder.join("root");
    create_dir(&root)?;
    overlay(folder, plan.root, &root)?;
    for name in ["proc", "sys", "dev", "run", "tmp"] {
        make_folder(&root.join(name))?;
    }
    attach("sysfs", &root.join("sys"), MsFlags::MS_RDONLY, none)?;
    devices(&root.join("dev"), has_clocks)?;
    for name in ["tmp", "dev/shm"] {
        share(&folder.join(name.replace('/', "-")), &root.join(name))?;
    }
    let opened = open(&root, OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?;
    for (mounted, number) in plan.mounts.iter().zip(0..) {
        let layers = folder.join(format!("mount-{number}"));
        create_dir(&layers)?;
        let failure = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", mounted.path));
        make_folders(opened.as_fd(), &mounted.path)
            .map_err(io::Error::from)
            .and_then(|at| {
                overlay(&layers, mounted.root, Path::new(&format!("/proc/self/fd/{}", at.as_raw_fd())))
            })
            .map_err(failure)?;
    }
    Ok(())
}

/// Mounts a folder of the host with a layer in the container's memory. `layers`: an empty folder for both.
fn overlay(layers: &Path, folder: u32, at: &Path) -> io::Result<()> {
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| layers.join(name));
    [&lower, &upper, &work].into_iter().try_for_each(create_dir)?;
    attach("hourglass", &lower, MsFlags::MS_RDONLY, Some(&folder.to_string()))?;
    let options =
        format!("lowerdir={},upperdir={},workdir={}", lower.display(), upper.display(), work.display());
    attach("overlay", at, MsFlags::empty(), Some(&options))
}

/// Opens the folder at an absolute path as the container's programs see it. Creates missing folders.
fn make_folders(root: BorrowedFd, path: &str) -> nix::Result<OwnedFd> {
    let folder = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let mut parent_path = "/".to_owned();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let parent = open_in(root, &parent_path, folder)?;
        match mkdirat(&parent, part, Mode::from_bits_truncate(0o755)) {
            Err(Errno::EEXIST) => {}
            result => result?,
        }
        parent_path = format!("{parent_path}/{part}");
    }
    open_in(root, path, folder)
}

/// Mounts a folder of the container's memory, next to those of the overlay, in which all may write.
fn share(from: &Path, to: &Path) -> io::Result<()> {
    let none = None::<&str>;
    create_dir(from)?;
    fs::set_permissions(from, Permissions::from_mode(0o1777))?;
    mount(Some(from), to, none, MsFlags::MS_BIND, none)?;
    let open_to_all = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(none, to, none, open_to_all, none)?)
}

fn devices(dev: &Path, has_clocks: bool) -> io::Result<()> {
    attach("tmpfs", dev, MsFlags::MS_NOSUID, Some("size=64k,mode=755"))?;
    for name in ["net", "pts", "shm", "mqueue"] {
        create_dir(dev.join(name))?;
    }
    for (name, major, minor) in DEVICES {
        mknod(&dev.join(name), SFlag::S_IFCHR, Mode::empty(), makedev(major, minor))?;
        fs::set_permissions(dev.join(name), Permissions::from_mode(0o666))?;
    }
    if has_clocks {
        clocks(dev)?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    let terminals = "newinstance,mode=620,ptmxmode=666,gid=5";
    attach("devpts", &dev.join("pts"), MsFlags::MS_NOSUID, Some(terminals))?;
    let open_to_all = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("mqueue", &dev.join("mqueue"), open_to_all, None)
}

/// Makes the devices of the NICs' PTP clocks, of all nodes, for programs of root.
fn clocks(dev: &Path) -> io::Result<()> {
    let Ok(clocks) = fs::read_dir(CLOCKS) else {
        return Ok(()); // a kernel without them
    };
    for clock in clocks {
        let clock = clock?;
        let numbers = fs::read_to_string(clock.path().join("dev"))?;
        let (major, minor) = numbers.trim().split_once(':').ok_or(Errno::EINVAL)?;
        let number = |text: &str| text.parse::<u64>().map_err(|_| Errno::EINVAL);
        let mode = Mode::S_IRUSR | Mode::S_IWUSR;
        mknod(&dev.join(clock.file_name()), SFlag::S_IFCHR, mode, makedev(number(major)?, number(minor)?))?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> io::Result<()> {
    match create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}
