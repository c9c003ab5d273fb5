// SPDX-License-Identifier: Apache-2.0
//! The network namespaces that programs make: further nodes of the records.
//!
//! The kernel's probe numbers each namespace when a program makes it, and reports it. The agent searches for namespaces
//! to get their names and devices: at each sample of the devices, when a program has mounted a namespace (`ip netns
//! add`), and when the probe reports a namespace without a name. No file of a namespace stays open between two samples,
//! because the namespace would then exist longer than its program wants.
//!
//! A name is `NODE/NAME`: the name for `ip netns`, or that of a Mininet host (the last word of its shell is
//! `mininet:NAME`). Other namespaces are numbered. Without the probe, the agent numbers them in the order of detection.
//!
//! Left out: devices in namespaces of programs that do not run as root.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::fcntl::OFlag;

use crate::abi;
use crate::column::Cell;
use crate::container::{open_in, Container, Processes};
use crate::device::Devices;
use crate::netns;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::tables::Table;

const MININET: &str = "mininet:";
/// The probe's number of the namespace of the reading thread.
const NUMBER: &str = "/proc/hourglass/node";

/// Shared by the threads that search for namespaces and the reader of the probe, which needs their names.
#[derive(Clone)]
pub struct Namespaces(Arc<Mutex<State>>);

struct State {
    containers: Vec<Processes>,
    /// Whether the probe numbers and reports the namespaces.
    reported: bool,
    nodes: Vec<String>,
    /// The names by number. The numbers follow those of `nodes`.
    names: BTreeMap<u16, String>,
    /// The existing namespaces by inode.
    existing: BTreeMap<u32, Namespace>,
}

struct Namespace {
    number: u16,
    name: String,
    place: Place,
}

/// A current path of a namespace. `root`: of the programs that mounted it, and can change what is at the path.
struct Place {
    inode: u32,
    root: Option<PathBuf>,
    path: PathBuf,
    name: Option<String>,
}

impl Namespaces {
    /// `nodes`: the nodes of the plan. `reported`: whether the probe is open.
    pub fn new(nodes: &[String], containers: &[Container], reported: bool) -> Self {
        let containers = containers.iter().filter_map(Container::processes_of_root).collect();
        let (names, existing) = (BTreeMap::new(), BTreeMap::new());
        Self(Arc::new(Mutex::new(State { containers, reported, nodes: nodes.to_vec(), names, existing })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns files that are readable out of band (`POLLPRI`) when a program has mounted or unmounted something.
    pub fn mounts(&self) -> Vec<File> {
        let open = |container: &Processes| File::open(format!("/proc/{}/mountinfo", container.init)).ok();
        self.lock().containers.iter().filter_map(open).collect()
    }

    /// Returns whether programs have made namespaces.
    pub fn exist(&self) -> bool {
        !self.lock().names.is_empty()
    }

    /// Writes the row of a namespace that the probe has reported. `zero_ns`: test time 0. Returns its name.
    pub fn report(&self, report: &abi::Namespace, zero_ns: i64, records: &mut Records) -> Result<String> {
        let (mut state, t_ns) = (self.lock(), report.t_ns - zero_ns);
        // a new namespace may have the inode of a deleted one
        if state.existing.get(&report.inode).is_some_and(|listed| listed.number < report.node) {
            state.existing.remove(&report.inode);
        }
        if !state.names.contains_key(&report.node) {
            state.find(t_ns, records)?;
        }
        let node = state.node_of(report.parent)?;
        let name = state.name(report.node, &node, None);
        records.push(Table::Namespace, [Cell::I64(t_ns), Cell::Text(&name), Cell::Text(&node)])?;
        Ok(name)
    }

    /// Searches for new namespaces.
    pub fn find(&self, t_ns: i64, records: &mut Records) -> Result<()> {
        self.lock().find(t_ns, records)
    }

    /// Samples the devices of all namespaces.
    pub fn sample(&self, t_ns: i64, records: &mut Records) -> Result<()> {
        let mut state = self.lock();
        state.find(t_ns, records)?;
        for Namespace { name, place, .. } in state.existing.values() {
            let sample = || {
                let devices = Devices::open(name).map_err(|error| Failure::system("route netlink", error));
                devices?.sample(t_ns, records)
            };
            place.visit(sample).map_err(|failure| Failure { node: Some(name.clone()), ..failure })?;
        }
        Ok(())
    }
}

impl State {
    fn find(&mut self, t_ns: i64, records: &mut Records) -> Result<()> {
        let mut inodes = BTreeSet::new();
        for (node, place) in places(&self.containers) {
            let inode = place.inode;
            if !inodes.insert(inode) {
                continue;
            }
            let listed = self.existing.get_mut(&inode).filter(|listed| listed.place.name == place.name);
            if let Some(listed) = listed {
                listed.place = place;
            } else if let Some(number) = self.number(&place)? {
                let name = self.name(number, &node, place.name.as_deref());
                if !self.reported {
                    records
                        .push(Table::Namespace, [Cell::I64(t_ns), Cell::Text(&name), Cell::Text(&node)])?;
                }
                self.existing.insert(inode, Namespace { number, name, place });
            }
        }
        self.existing.retain(|inode, _| inodes.contains(inode));
        Ok(())
    }

    /// Returns the number of a new namespace; None if it has just ended, or if too many exist.
    fn number(&self, place: &Place) -> Result<Option<u16>> {
        if !self.reported {
            let next = self.nodes.len() + self.names.len();
            return Ok(u16::try_from(next).ok().filter(|next| *next != abi::NO_NODE));
        }
        let mut number = None;
        place.visit(|| {
            number = fs::read_to_string(NUMBER).ok().and_then(|text| text.trim().parse().ok());
            Ok(())
        })?;
        Ok(number)
    }

    /// Returns the name of a number. A number without a name becomes `label` in `node`.
    fn name(&mut self, number: u16, node: &str, label: Option<&str>) -> String {
        let count = usize::from(number) + 1 - self.nodes.len();
        let name = || label.map_or_else(|| format!("{node}/{count}"), |label| format!("{node}/{label}"));
        self.names.entry(number).or_insert_with(name).clone()
    }

    /// Returns the node of a number, or the node whose programs have made this namespace.
    fn node_of(&self, number: u16) -> Result<String> {
        let planned = self.nodes.get(usize::from(number)).map(String::as_str);
        let node = planned.or_else(|| self.names.get(&number)?.split('/').next());
        node.map(str::to_owned).ok_or_else(|| Failure::probe(format!("node {number}")))
    }
}

/// Returns the namespaces of all programs with their nodes, except the nodes' own. Those with names come first.
fn places(containers: &[Processes]) -> Vec<(String, Place)> {
    let of = |container: &Processes| -> io::Result<Vec<(String, Place)>> {
        let folder = PathBuf::from(format!("/proc/{}", container.init));
        let node_inode = link_inode(&folder.join("ns/net"));
        let mounts = fs::read_to_string(folder.join("mountinfo"))?;
        let mounted = mounts.lines().filter_map(|line| parse_mount(&folder.join("root"), line));
        let threads = container.threads().into_iter();
        let places = mounted.chain(threads.filter_map(|thread| Place::of_thread(&thread, node_inode)));
        let program_places = places.filter(|place| Some(place.inode) != node_inode);
        Ok(program_places.map(|place| (container.node.clone(), place)).collect())
    };
    let mut places: Vec<_> =
        containers.iter().flat_map(|container| of(container).unwrap_or_default()).collect();
    places.sort_by_key(|(_, place)| place.name.is_none());
    places
}

/// Returns the namespace in a line of `mountinfo`: the fourth field is the root, the fifth the mount point.
fn parse_mount(root: &Path, line: &str) -> Option<Place> {
    let mut fields = line.split(' ').skip(3);
    let (inode, point) = (inode(fields.next()?)?, fields.next()?);
    let name = point.rsplit('/').next().map(str::to_owned);
    Some(Place { inode, root: Some(root.to_owned()), path: PathBuf::from(point), name })
}

impl Place {
    /// Returns the place of a thread's namespace; None in the namespace `node_inode`, or if it has ended.
    fn of_thread(thread: &str, node_inode: Option<u32>) -> Option<Self> {
        let path = PathBuf::from(format!("/proc/{thread}/ns/net"));
        let inode = link_inode(&path).filter(|inode| Some(*inode) != node_inode)?;
        let command = fs::read(format!("/proc/{thread}/cmdline")).unwrap_or_default();
        let last = command.split(|byte| *byte == 0).rfind(|word| !word.is_empty());
        let name = last.and_then(|word| std::str::from_utf8(word).ok()?.strip_prefix(MININET));
        Some(Self { inode, root: None, path, name: name.map(str::to_owned) })
    }

    /// Does `work` inside, unless the namespace has just ended or is not at its path.
    fn visit(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        self.open().map_or(Ok(()), |file| netns::visit(&file, work))
    }

    /// Opens the namespace. No link leads out of the programs' root, and no other file takes its place.
    fn open(&self) -> io::Result<File> {
        let file = match &self.root {
            Some(root) => {
                let path = self.path.to_str().ok_or(io::ErrorKind::InvalidInput)?;
                open_in(File::open(root)?.as_fd(), path, OFlag::O_RDONLY | OFlag::O_NONBLOCK)?.into()
            }
            None => File::open(&self.path)?,
        };
        let is_same = file.metadata()?.ino() == u64::from(self.inode);
        is_same.then_some(file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

fn link_inode(path: &Path) -> Option<u32> {
    inode(fs::read_link(path).ok()?.to_str()?)
}

/// Returns the number in `net:[NUMBER]`.
fn inode(text: &str) -> Option<u32> {
    text.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_namespace_has_the_name_of_its_file() {
        let line = "84 65 0:4 net:[4026532244] /run/netns/left rw shared:2 - nsfs nsfs rw";
        let place = parse_mount(Path::new("/proc/7/root"), line).expect("a namespace");
        assert_eq!((place.inode, place.name.as_deref()), (4_026_532_244, Some("left")));
        assert_eq!(place.root.as_deref(), Some(Path::new("/proc/7/root")));
        assert_eq!(place.path, Path::new("/run/netns/left"));
        assert!(parse_mount(Path::new("/"), "20 19 0:18 / /proc rw - proc proc rw").is_none());
        assert!(parse_mount(Path::new("/"), "").is_none());
    }

    #[test]
    fn a_reported_namespace_without_a_name_is_numbered_below_the_node_of_its_program() {
        let path = std::env::temp_dir().join(format!("hourglass-namespaces-{}", std::process::id()));
        let mut records = Records::create(&path).expect("a file");
        let namespaces = Namespaces::new(&["c".to_owned(), "s".to_owned()], &[], true);
        let mut name = |node, parent| {
            let report = abi::Namespace { t_ns: 1_000, inode: 4_026_532_244, node, parent };
            namespaces.report(&report, 0, &mut records).map_err(|failure| failure.to_string())
        };
        assert_eq!(name(2, 1).as_deref(), Ok("s/1"));
        assert_eq!(name(3, 2).as_deref(), Ok("s/2"));
        assert!(name(4, 9).is_err(), "no node has this number");
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn the_namespace_of_a_thread_is_left_out_if_it_is_the_nodes_own() {
        let node_inode = link_inode(Path::new("/proc/self/ns/net")).expect("a namespace");
        assert!(Place::of_thread("self", Some(node_inode)).is_none());
        let place = Place::of_thread("self", None).expect("a namespace");
        assert_eq!((place.inode, place.name), (node_inode, None));
    }
}
