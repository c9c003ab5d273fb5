// SPDX-License-Identifier: Apache-2.0
//! Rooms: what the programs of a node have for a world. A room has a file system of its own (a root of the host's,
//! read-only, and memory laid over it), the network of its node, and its own processes, host name and IPC.
//!
//! A room's first process is a copy of the agent (`room_init`), made in the set-up while the agent has a single thread. It
//! starts programs when it is told to and says how they ended. Programs see no process outside of their room, and of the
//! agent's file system nothing at all: neither `/out` nor the roots of other rooms.

use std::fs::{self, create_dir, create_dir_all, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{open, openat2, OFlag, OpenHow, ResolveFlag};
use nix::mount::{mount, MsFlags};
use nix::sched::{unshare, CloneFlags};
use nix::sys::socket::{socketpair, AddressFamily, SockFlag, SockType};
use nix::sys::stat::{makedev, mknod, Mode, SFlag};
use nix::unistd::{getpid, ForkResult, Pid};

use crate::app_plan::{App, Room as RoomPlan};
use crate::netns::Nodes;
use crate::plan::Plan;
use crate::report::{Failure, Result};
use crate::room_post::{self, News};
use crate::sys::attach;
use crate::{room_init, sys};

/// Where the agent sees control groups.
const GROUPS: &str = "/run/cgroup";
/// Where a room is built, each in a view of the file system of its own.
const SITE: &str = "/room";
/// What programs of a room may write in all, MiB: so much, or a part of what all rooms may together, which leaves some of
/// the guest's memory for everything else; but with hundreds of rooms what small files need.
const MEMORY: usize = 512;
const ALL_MEMORY: usize = 1280;
const LEAST_MEMORY: usize = 8;
/// Processes and threads of a room.
const PROCESSES: &str = "512";

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
const LINKS: [(&str, &str); 5] = [
    ("ptmx", "pts/ptmx"),
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

pub struct Room {
    pub node: String,
    /// Orders go there, news come from there.
    pub post: OwnedFd,
    /// Its first process, as the agent sees it.
    pub init: Pid,
    groups: PathBuf,
}

/// Makes the rooms of a plan, in their order.
pub fn make(plan: &Plan, nodes: &Nodes) -> Result<Vec<Room>> {
    if plan.rooms.is_empty() {
        return Ok(Vec::new());
    }
    control_groups().map_err(|error| Failure::system("control groups", error))?;
    let memory = (ALL_MEMORY / plan.rooms.len()).clamp(LEAST_MEMORY, MEMORY);
    let rooms = plan.rooms.iter().zip(0_usize..).map(|(room, number)| {
        nodes.enter(Some(&room.node))?;
        let apps: Vec<&App> = plan.apps.iter().filter(|app| app.room as usize == number).collect();
        Room::make(room, number, memory, &apps)
            .map_err(|failure| Failure { node: Some(room.node.clone()), ..failure })
    });
    let rooms: Result<Vec<Room>> = rooms.collect();
    nodes.enter(None)?;
    rooms
}

fn control_groups() -> io::Result<()> {
    create_dir_all(GROUPS)?;
    mount(Some("none"), GROUPS, Some("cgroup2"), MsFlags::empty(), None::<&str>)?;
    fs::write(Path::new(GROUPS).join("cgroup.subtree_control"), "+pids")
}

impl Room {
    fn make(plan: &RoomPlan, number: usize, memory: usize, apps: &[&App]) -> Result<Self> {
        let of = |error: io::Error| Failure::system("making the room of its programs", error);
        let groups = Path::new(GROUPS).join(format!("room-{number}"));
        let members = groups_of(&groups, apps).map_err(of)?;
        let (post, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)
                .map_err(|error| of(error.into()))?;
        match sys::fork().map_err(of)? {
            ForkResult::Child => {
                drop(post);
                begin(plan, memory, apps, members, theirs.as_fd())
            }
            ForkResult::Parent { child } => {
                drop(theirs);
                sys::wait(child).map_err(of)?;
                let init = match first_news(&post)? {
                    News::Init { pid } => Pid::from_raw(pid),
                    news => return Err(Failure::new(format!("a room began with {news:?}"))),
                };
                match first_news(&post)? {
                    News::Ready {} => Ok(Self { node: plan.node.clone(), post, init, groups }),
                    News::Failed { message } => Err(Failure::new(message)),
                    news => Err(Failure::new(format!("a room began with {news:?}"))),
                }
            }
        }
    }

    /// The processes of a program, as the agent sees them.
    pub fn members(&self, app: u16) -> Vec<Pid> {
        let text =
            fs::read_to_string(self.groups.join(format!("app-{app}/cgroup.procs"))).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).map(Pid::from_raw).collect()
    }

    /// A file of the node's /proc/net.
    pub fn net(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(format!("/proc/{}/net/{file}", self.init))
    }

    /// The room's own root, to open paths from.
    pub fn root(&self) -> io::Result<OwnedFd> {
        let path = format!("/proc/{}/root", self.init);
        Ok(open(path.as_str(), OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())?)
    }
}

/// Opens an absolute path as the programs of a room mean it: links lead no further than its root.
pub fn open_in(root: BorrowedFd, path: &str, flags: OFlag) -> nix::Result<OwnedFd> {
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_IN_ROOT);
    openat2(root, path, how)
}

fn first_news(post: &OwnedFd) -> Result<News> {
    let news = room_post::receive(post.as_fd()).map_err(|error| Failure::system("a room", error))?;
    match news {
        Some((letter, _)) => Ok(letter),
        None => Err(Failure::new("a room ended before it began")),
    }
}

/// Makes the control groups of a room and its programs; gives where a program enters its own.
fn groups_of(groups: &Path, apps: &[&App]) -> io::Result<Vec<File>> {
    create_dir(groups)?;
    fs::write(groups.join("pids.max"), PROCESSES)?;
    let one = |app: &&App| {
        let group = groups.join(format!("app-{}", app.id));
        create_dir(&group)?;
        OpenOptions::new().write(true).open(group.join("cgroup.procs"))
    };
    apps.iter().map(one).collect()
}

/// What the copy of the agent does that becomes a room's first process, but for what only that process can do.
fn begin(plan: &RoomPlan, memory: usize, apps: &[&App], groups: Vec<File>, post: BorrowedFd) -> ! {
    let tell = |news: &News| room_post::send(post, news, &[]);
    let built = build(plan, memory).and_then(|()| sys::fork());
    let _ = match built {
        Ok(ForkResult::Child) => room_init::live(plan, apps, groups, post, &Path::new(SITE).join("root")),
        Ok(ForkResult::Parent { child }) => tell(&News::Init { pid: child.as_raw() }),
        Err(error) => tell(&News::Init { pid: getpid().as_raw() }).and_then(|()| {
            tell(&News::Failed { message: format!("making the room of its programs: {error}") })
        }),
    };
    sys::leave_at_once()
}

/// A view of the file system of its own, and in it, at SITE, that of the room.
fn build(plan: &RoomPlan, memory: usize) -> io::Result<()> {
    let own = [
        CloneFlags::CLONE_NEWNS,
        CloneFlags::CLONE_NEWUTS,
        CloneFlags::CLONE_NEWIPC,
        CloneFlags::CLONE_NEWPID,
    ];
    unshare(own.into_iter().collect())?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let site = Path::new(SITE);
    create_dir_all(site)?;
    attach("tmpfs", site, MsFlags::empty(), Some(&format!("size={memory}m,mode=755")))?;
    for name in ["lower", "upper", "work", "root"] {
        create_dir(site.join(name))?;
    }
    attach("hourglass", &site.join("lower"), MsFlags::MS_RDONLY, Some(&plan.root.to_string()))?;
    let layers = format!("lowerdir={SITE}/lower,upperdir={SITE}/upper,workdir={SITE}/work");
    let root = site.join("root");
    attach("overlay", &root, MsFlags::empty(), Some(&layers))?;
    for name in ["proc", "sys", "dev", "run", "tmp"] {
        make_folder(&root.join(name))?;
    }
    attach("sysfs", &root.join("sys"), MsFlags::MS_RDONLY, none)?;
    devices(&root.join("dev"))?;
    for (name, mode) in [("run", 0o755), ("tmp", 0o1777), ("dev/shm", 0o1777)] {
        share(&site.join(name.replace('/', "-")), &root.join(name), mode)?;
    }
    Ok(())
}

/// A folder of the room's memory, beside those of the overlay.
fn share(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    let none = None::<&str>;
    create_dir(from)?;
    fs::set_permissions(from, Permissions::from_mode(mode))?;
    mount(Some(from), to, none, MsFlags::MS_BIND, none)?;
    let open_to_all = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    Ok(mount(none, to, none, open_to_all, none)?)
}

fn devices(dev: &Path) -> io::Result<()> {
    attach("tmpfs", dev, MsFlags::MS_NOSUID, Some("size=64k,mode=755"))?;
    for name in ["net", "pts", "shm", "mqueue"] {
        create_dir(dev.join(name))?;
    }
    for (name, major, minor) in DEVICES {
        mknod(&dev.join(name), SFlag::S_IFCHR, Mode::empty(), makedev(major, minor))?;
        fs::set_permissions(dev.join(name), Permissions::from_mode(0o666))?;
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name))?;
    }
    let terminals = "newinstance,mode=620,ptmxmode=666,gid=5";
    attach("devpts", &dev.join("pts"), MsFlags::MS_NOSUID, Some(terminals))?;
    let open_to_all = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    attach("mqueue", &dev.join("mqueue"), open_to_all, None)
}

fn make_folder(path: &Path) -> io::Result<()> {
    match create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}
