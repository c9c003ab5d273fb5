// SPDX-License-Identifier: Apache-2.0
//! The nodes: a network namespace each. They vanish with the agent, which holds them by file descriptors and by names
//! in a mount namespace that is its own (or, if it is the first process, dies with the machine). The names are those
//! `ip` looks for, so a line of the plan may say `netns router`.
//!
//! A thread walks from node to node (`enter`); sockets, files and tools it opens there belong to the node for ever. `/proc/sys/net` follows the thread that opens it. sysfs shows the namespace that mounted it, so a node gets a
//! mount of its own, at the first write to it, on no path: see `sys::mount_detached_sysfs`.

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

const OWN_NAMESPACE: &str = "/proc/thread-self/ns/net";
/// Where iproute2 looks for names of namespaces.
const NAMES: &str = "/run/netns";

struct Namespace {
    name: String,
    file: File,
    /// For ioctls on the node's devices.
    control: OwnedFd,
    sysfs: OnceLock<OwnedFd>,
}

/// The nodes as one thread walks among them.
pub struct Nodes {
    first: Arc<File>,
    list: Arc<Vec<Namespace>>,
    /// Where the thread is: none is the first namespace.
    current: Cell<Option<usize>>,
    /// There is one node, the machine itself: nobody walks.
    stays: bool,
}

impl Nodes {
    pub fn make(names: &[String]) -> Result<Self> {
        let first = File::open(OWN_NAMESPACE).map_err(|error| Failure::system(OWN_NAMESPACE, error))?;
        create_dir_all(NAMES).map_err(|error| Failure::system(NAMES, error))?;
        let mut list = Vec::new();
        for name in names {
            let namespace = Namespace::make(name).map_err(|error| Failure {
                node: Some(name.clone()),
                ..Failure::system("making the network namespace", error)
            })?;
            list.push(namespace);
        }
        let current = Cell::new(list.len().checked_sub(1));
        Ok(Self { first: Arc::new(first), list: Arc::new(list), current, stays: false })
    }

    /// The machine itself as the only node.
    pub fn of_this_machine(name: &str) -> Result<Self> {
        let here = Namespace::here(name).map_err(|error| Failure::system("this machine's network", error))?;
        let first =
            Arc::new(File::open(OWN_NAMESPACE).map_err(|error| Failure::system(OWN_NAMESPACE, error))?);
        Ok(Self { first, list: Arc::new(vec![here]), current: Cell::new(Some(0)), stays: true })
    }

    /// The same for a thread that is started from here.
    pub fn of_another_thread(&self) -> Self {
        let current = Cell::new(self.current.get());
        Self { first: Arc::clone(&self.first), list: Arc::clone(&self.list), current, stays: self.stays }
    }

    /// Whether the node is played here; if so, moves the calling thread there.
    pub fn enter_if_here(&self, name: &str) -> Result<bool> {
        let here = self.list.iter().any(|node| node.name == name);
        if here {
            self.enter(Some(name))?;
        }
        Ok(here)
    }

    fn index(&self, name: &str) -> usize {
        self.list.iter().position(|node| node.name == name).expect("Plan::check knows every node")
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|node| node.name.as_str())
    }

    /// Moves the calling thread, whose nodes these must be.
    pub fn enter(&self, name: Option<&str>) -> Result<()> {
        if self.stays {
            return Ok(());
        }
        let target = name.map(|name| self.index(name));
        if target != self.current.get() {
            let file = target.map_or(self.first.as_ref(), |index| &self.list[index].file);
            setns(file, CloneFlags::CLONE_NEWNET).map_err(|error| Failure {
                node: name.map(str::to_owned),
                ..Failure::system("entering the network namespace", error)
            })?;
            self.current.set(target);
        }
        Ok(())
    }

    /// The namespace of that node, or the first, for something to be moved there.
    pub fn home(&self, name: Option<&str>) -> BorrowedFd<'_> {
        name.map_or(self.first.as_fd(), |name| self.list[self.index(name)].file.as_fd())
    }

    pub fn control(&self, name: &str) -> BorrowedFd<'_> {
        self.list[self.index(name)].control.as_fd()
    }

    /// Reads a file of /sys, as seen from the node that the thread is in.
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

    /// Writes to an existing file, as seen from the node that the thread is in.
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
        let file = File::open(OWN_NAMESPACE)?;
        let path = Path::new(NAMES).join(name);
        File::create(&path)?;
        mount(Some(OWN_NAMESPACE), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        sys::set_up(control.as_fd(), "lo")?;
        Ok(Self { name: name.to_owned(), file, control, sysfs: OnceLock::new() })
    }

    /// The one that the thread is in.
    fn here(name: &str) -> io::Result<Self> {
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let sysfs = OnceLock::from(OwnedFd::from(File::open("/sys")?));
        Ok(Self { name: name.to_owned(), file: File::open(OWN_NAMESPACE)?, control, sysfs })
    }

    fn sysfs(&self) -> io::Result<&OwnedFd> {
        if self.sysfs.get().is_none() {
            let _ = self.sysfs.set(sys::mount_detached_sysfs()?);
        }
        Ok(self.sysfs.get().expect("was just set"))
    }
}

/// The address family of an address.
pub fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Room for what has arrived and is not read yet. Root of a user namespace gets no more than the machine's limit.
pub fn set_room(fd: &OwnedFd, bytes: usize) -> io::Result<()> {
    match setsockopt(fd, sockopt::RcvBufForce, &bytes) {
        Err(Errno::EPERM) => Ok(setsockopt(fd, sockopt::RcvBuf, &bytes)?),
        result => Ok(result?),
    }
}

/// Marks what a socket sends: the DSCP is the upper six bits of the traffic class, the ECN field the others, which TCP
/// writes itself.
pub fn set_class(fd: BorrowedFd, address: IpAddr, dscp: u8, ecn: Ecn) -> io::Result<()> {
    let class = libc::c_int::from(dscp << 2 | ecn as u8);
    match address {
        _ if class == 0 => Ok(()),
        IpAddr::V4(_) => sys::set_option(fd, libc::IPPROTO_IP, libc::IP_TOS, class),
        IpAddr::V6(_) => sys::set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class),
    }
}
