// SPDX-License-Identifier: Apache-2.0
//! The nodes, each a network namespace. The agent holds them by file descriptors and by names in its private mount
//! namespace, so they vanish with the agent. (If the agent is the first process, they end with the machine.) The names
//! are those that `ip` expects, so a line of the plan may contain `netns router`.
//!
//! A thread moves from node to node (`enter`). Sockets, files and tools that it opens in a node belong to that node
//! permanently. `/proc/sys/net` follows the thread that opens it. sysfs shows the namespace that mounted it. So a node
//! gets a separate mount without a path at the first write to it: see `sys::mount_detached_sysfs`.

use std::cell::Cell;
use std::fs::{create_dir_all, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::fcntl::{openat, OFlag};
use nix::mount::{mount, MsFlags};
use nix::sched::{setns, unshare, CloneFlags};
use nix::sys::socket::{setsockopt, socket, sockopt, AddressFamily, SockFlag, SockType};
use nix::sys::stat::Mode;

use crate::plan::Ecn;
use crate::report::{Failure, Result};
use crate::sys;

const THREAD_NAMESPACE: &str = "/proc/thread-self/ns/net";
/// The folder in which iproute2 searches for names of namespaces.
const NAMES_FOLDER: &str = "/run/netns";

struct Namespace {
    name: String,
    file: File,
    /// A socket for ioctls on the node's devices.
    control: OwnedFd,
    sysfs: OnceLock<OwnedFd>,
}

/// The nodes, with the current position of one thread.
pub struct Nodes {
    initial: Arc<File>,
    list: Arc<Vec<Namespace>>,
    /// The node of the thread; None is the first namespace.
    current: Cell<Option<usize>>,
    /// Whether the only node is the machine itself: then no thread moves.
    single: bool,
}

impl Nodes {
    pub fn make(names: &[String]) -> Result<Self> {
        let initial =
            File::open(THREAD_NAMESPACE).map_err(|error| Failure::system(THREAD_NAMESPACE, error))?;
        create_dir_all(NAMES_FOLDER).map_err(|error| Failure::system(NAMES_FOLDER, error))?;
        let mut list = Vec::new();
        for name in names {
            let namespace = Namespace::make(name).map_err(|error| Failure {
                node: Some(name.clone()),
                ..Failure::system("making the network namespace", error)
            })?;
            list.push(namespace);
        }
        let current = Cell::new(list.len().checked_sub(1));
        Ok(Self { initial: Arc::new(initial), list: Arc::new(list), current, single: false })
    }

    /// Returns the machine itself as the only node.
    pub fn of_this_machine(name: &str) -> Result<Self> {
        let namespace =
            Namespace::of_thread(name).map_err(|error| Failure::system("this machine's network", error))?;
        let initial =
            Arc::new(File::open(THREAD_NAMESPACE).map_err(|error| Failure::system(THREAD_NAMESPACE, error))?);
        Ok(Self { initial, list: Arc::new(vec![namespace]), current: Cell::new(Some(0)), single: true })
    }

    /// Returns the nodes for a new thread, which starts in the same node.
    pub fn for_new_thread(&self) -> Self {
        let current = Cell::new(self.current.get());
        Self {
            initial: Arc::clone(&self.initial),
            list: Arc::clone(&self.list),
            current,
            single: self.single,
        }
    }

    /// Moves the calling thread to the node if this machine has it; returns whether it has.
    pub fn enter_if_local(&self, name: &str) -> Result<bool> {
        let local = self.list.iter().any(|node| node.name == name);
        if local {
            self.enter(Some(name))?;
        }
        Ok(local)
    }

    fn index(&self, name: &str) -> usize {
        self.list.iter().position(|node| node.name == name).expect("Plan::check knows every node")
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|node| node.name.as_str())
    }

    /// Moves the calling thread, to which these nodes must belong.
    pub fn enter(&self, name: Option<&str>) -> Result<()> {
        if self.single {
            return Ok(());
        }
        let target = name.map(|name| self.index(name));
        if target != self.current.get() {
            let file = target.map_or(self.initial.as_ref(), |index| &self.list[index].file);
            setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| Failure {
                node: name.map(str::to_owned),
                ..Failure::system("entering the network namespace", error)
            })?;
            self.current.set(target);
        }
        Ok(())
    }

    /// Returns the namespace of a node, or the first, as the target of a move.
    pub fn namespace_fd(&self, name: Option<&str>) -> BorrowedFd<'_> {
        name.map_or(self.initial.as_fd(), |name| self.list[self.index(name)].file.as_fd())
    }

    pub fn control(&self, name: &str) -> BorrowedFd<'_> {
        self.list[self.index(name)].control.as_fd()
    }

    /// Reads a file of /sys, as seen from the thread's node.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let node = self.current.get().map(|index| &self.list[index]);
        let mut file = match (path.strip_prefix("/sys/"), node) {
            (Some(relative), Some(node)) => {
                let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
                File::from(openat(node.sysfs()?, relative, flags, Mode::empty())?)
            }
            _ => File::open(path)?,
        };
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Writes to an existing file, as seen from the thread's node.
    pub fn write(&self, path: &str, value: &str) -> io::Result<()> {
        let node = self.current.get().map(|index| &self.list[index]);
        let mut file = match (path.strip_prefix("/sys/"), node) {
            (Some(relative), Some(node)) => {
                let flags = OFlag::O_WRONLY | OFlag::O_CLOEXEC;
                File::from(openat(node.sysfs()?, relative, flags, Mode::empty())?)
            }
            _ => OpenOptions::new().write(true).open(path)?,
        };
        file.write_all(value.as_bytes())
    }
}

impl Namespace {
    /// Makes a namespace and leaves the thread in it.
    fn make(name: &str) -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let file = File::open(THREAD_NAMESPACE)?;
        let path = Path::new(NAMES_FOLDER).join(name);
        File::create(&path)?;
        mount(Some(THREAD_NAMESPACE), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        sys::set_up(control.as_fd(), "lo")?;
        Ok(Self { name: name.to_owned(), file, control, sysfs: OnceLock::new() })
    }

    /// Returns the thread's current namespace.
    fn of_thread(name: &str) -> io::Result<Self> {
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let sysfs = OnceLock::from(OwnedFd::from(File::open("/sys")?));
        Ok(Self { name: name.to_owned(), file: File::open(THREAD_NAMESPACE)?, control, sysfs })
    }

    fn sysfs(&self) -> io::Result<&OwnedFd> {
        if self.sysfs.get().is_none() {
            let _ = self.sysfs.set(sys::mount_detached_sysfs()?);
        }
        Ok(self.sysfs.get().expect("was just set"))
    }
}

/// Returns the address family of an address.
pub fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Does something in another namespace. The thread returns to its own.
pub fn visit<T>(namespace: &File, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let failure = |error: io::Error| Failure::system("entering a network namespace", error);
    let origin = File::open(THREAD_NAMESPACE).map_err(failure)?;
    setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|error| failure(error.into()))?;
    let result = work();
    setns(origin, CloneFlags::CLONE_NEWNET).map_err(|error| failure(error.into()))?;
    result
}

/// Sets the receive buffer of a socket. The machine's limit applies to root of a user namespace.
pub fn set_receive_buffer(fd: &OwnedFd, bytes: usize) -> io::Result<()> {
    match setsockopt(fd, sockopt::RcvBufForce, &bytes) {
        Err(Errno::EPERM) => Ok(setsockopt(fd, sockopt::RcvBuf, &bytes)?),
        result => Ok(result?),
    }
}

/// Sets the traffic class of a socket's packets: six bits of DSCP, then two bits of ECN. TCP writes the ECN bits
/// itself.
pub fn set_class(fd: BorrowedFd, address: IpAddr, dscp: u8, ecn: Ecn) -> io::Result<()> {
    let class = libc::c_int::from(dscp << 2 | ecn as u8);
    match address {
        _ if class == 0 => Ok(()),
        IpAddr::V4(_) => sys::set_option(fd, libc::IPPROTO_IP, libc::IP_TOS, class),
        IpAddr::V6(_) => sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class),
    }
}
