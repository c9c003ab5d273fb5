// SPDX-License-Identifier: Apache-2.0
//! Bulk flows: TCP connections that one end fills and the other end drains.
//!
//! Each end has a thread. The sender's thread makes one system call per gibibyte, all from one page of zeros. With the
//! backend `load` the guest's kernel does not copy the data. The receiver's thread also makes one call, in which the
//! kernel discards arriving data. With `socket` the kernel copies the data, and the receiver reads like an application,
//! with a system call whenever data are available. The packets are the same, at the same ns.
//!
//! Sockets are opened and congestion controls set before test time starts, so a wrong name ends the run at once. The
//! main thread starts and stops flows. The flow's threads record everything in between. A failure of a flow does not
//! end the run.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nix::sys::socket::{
    bind, connect, getpeername, getsockname, listen, setsockopt, shutdown, socket, sockopt, Backlog,
    Shutdown, SockFlag, SockType, SockaddrStorage,
};

use crate::cause::Cause;
use crate::clock::{monotonic, sleep_until, Epoch};
use crate::column::Cell;
use crate::error_text::error_text;
use crate::netns::{family, set_class, Nodes};
use crate::plan;
use crate::plan::{Backend, Base, Ecn, Plan};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::streams::{self, Endpoint, Gate, Streams};
use crate::sys::{self, Zeros};
use crate::tables::Table;

const CONNECTED: &str = "connected";

#[derive(Clone)]
struct Event {
    t_ns: i64,
    name: &'static str,
    detail: String,
}

/// The state that the two threads of a flow and the main thread share. Its sockets live until the agent ends. An end on
/// another machine is None. Then only the client reports the flow's events and ends the flow.
struct Flow {
    base: Base,
    plan: plan::Flow,
    epoch: Epoch,
    client: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    accepted: OnceLock<OwnedFd>,
    /// The client's address, known once it is connected.
    local: OnceLock<SocketAddr>,
    start: Gate,
    stopped: AtomicBool,
    events: Mutex<Vec<Event>>,
}

impl Flow {
    /// Opens the sockets of both ends, in the namespaces of their nodes. A connection inherits the settings of its
    /// listener.
    fn open(base: &Base, plan: &plan::Flow, nodes: &Nodes, epoch: Epoch) -> Result<Self> {
        let blame = |failure: Failure| failure.of(format!("flow {}", base.name));
        let end = SocketConfig::of(base, &plan.cc);
        let open = |node| -> Result<_> {
            nodes.enter_if_local(node)?.then(|| open_socket(&end)).transpose().map_err(blame)
        };
        let listener = open(&base.server)?;
        if let Some(listener) = &listener {
            listen_at(listener, &end).map_err(|error| blame(Failure::system("listening", error)))?;
        }
        let client = open(&base.client)?;
        for fd in [&client, &listener].into_iter().flatten() {
            pace(fd, plan.pace_bps).map_err(|error| blame(Failure::system("pacing", error)))?;
        }
        Ok(Self {
            base: base.clone(),
            plan: plan.clone(),
            epoch,
            client,
            listener,
            accepted: OnceLock::new(),
            local: OnceLock::new(),
            start: Gate::default(),
            stopped: AtomicBool::new(false),
            events: Mutex::new(Vec::new()),
        })
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::new(self.base.address, self.base.port)
    }

    /// Returns whether the client sends.
    fn is_upload(&self) -> bool {
        self.plan.is_upload(&self.base)
    }

    /// Records an event of the flow. Its end is recorded once, by the end of the connection that detects it first.
    fn note(&self, name: &'static str, detail: String) {
        if self.client.is_none() {
            return;
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.iter().all(|event| event.name == CONNECTED) {
            events.push(Event { t_ns: self.epoch.now(), name, detail });
        }
    }

    /// Records the end of a transfer: without a stop the connection has failed.
    fn note_end(&self, result: &io::Result<()>) {
        if !self.stopped.load(Ordering::SeqCst) {
            let detail =
                result.as_ref().err().map_or("the sender closed the connection".to_owned(), error_text);
            self.note("failed", detail);
        }
    }

    fn run_client(&self, zeros: &Zeros) -> io::Result<()> {
        let client = self.client.as_ref().expect("this thread belongs to an end on this machine");
        self.start.pass();
        connect(client.as_raw_fd(), &SockaddrStorage::from(self.address()))?;
        let local = address_of(&getsockname(client.as_raw_fd())?)?;
        let _ = self.local.set(local);
        self.note(CONNECTED, format!("{local} to {}", self.address()));
        self.transfer(client, self.is_upload(), zeros)
    }

    fn run_server(&self, zeros: &Zeros) -> io::Result<()> {
        let listener = self.listener.as_ref().expect("this thread belongs to an end on this machine");
        let fd = sys::accept(listener.as_fd())?;
        if self.client.is_none() {
            let _ = self.local.set(address_of(&getpeername(fd.as_raw_fd())?)?);
        }
        let fd = self.accepted.get_or_init(|| fd);
        self.transfer(fd, !self.is_upload(), zeros)
    }

    /// Transfers data until the connection ends. Then aborts the connection, in case it was established during its
    /// stop, or `abort_connection` left this to the thread.
    fn transfer(&self, fd: &OwnedFd, sends: bool, zeros: &Zeros) -> io::Result<()> {
        let stopped = || self.stopped.load(Ordering::SeqCst);
        let result = match self.plan.backend {
            _ if stopped() => Ok(()),
            Backend::Load if sends => leave_uncopied(fd).and_then(|()| self.send(fd, zeros)),
            Backend::Socket if sends => self.send(fd, zeros),
            Backend::Load => sys::discard_forever(fd.as_fd()),
            Backend::Socket => sys::read_forever(fd.as_fd()),
        };
        if stopped() {
            sys::abort(fd.as_fd())?;
        }
        result
    }

    /// Sends the application's data until the connection ends.
    fn send(&self, fd: &OwnedFd, zeros: &Zeros) -> io::Result<()> {
        let Some(writes) = self.plan.writes else { return zeros.send_forever(fd.as_fd()) };
        let mut due_ns = monotonic();
        for count in 0.. {
            sleep_until(due_ns);
            zeros.send(fd.as_fd(), writes.bytes(count + 1) - writes.bytes(count))?;
            due_ns += writes.interval_ns;
        }
        Ok(())
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let Some(client) = &self.client else { return };
        let server = self.accepted.get().map(|fd| (fd, !self.is_upload()));
        let error = [Some((client, self.is_upload())), server]
            .into_iter()
            .flatten()
            .find_map(|(fd, sends)| abort_connection(fd, sends).err());
        self.note("stopped", error.as_ref().map_or_else(String::new, error_text));
    }
}

/// Aborts a connection. Some kernels of 2023 (Linux 6.4 to 6.6, and stable releases such as 5.10's) refuse this while a
/// thread is blocked in the socket. There a shutdown in one direction wakes the thread, which then aborts.
pub fn abort_connection(fd: &OwnedFd, sends: bool) -> io::Result<()> {
    let direction = if sends { Shutdown::Write } else { Shutdown::Read };
    match sys::abort(fd.as_fd()) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(shutdown(fd.as_raw_fd(), direction)?),
        result => result,
    }
}

/// The settings of one end of a TCP connection.
pub struct SocketConfig<'a> {
    pub address: IpAddr,
    pub port: u16,
    pub cc: &'a str,
    pub dscp: u8,
}

impl<'a> SocketConfig<'a> {
    pub fn of(base: &Base, cc: &'a str) -> Self {
        Self { address: base.address, port: base.port, cc, dscp: base.dscp }
    }
}

pub fn open_socket(plan: &SocketConfig) -> Result<OwnedFd> {
    let open = || -> io::Result<OwnedFd> {
        let fd = socket(family(plan.address), SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        set_class(fd.as_fd(), plan.address, plan.dscp, Ecn::NotEct)?;
        Ok(fd)
    };
    let fd = open().map_err(|error| Failure::system("making its socket", error))?;
    setsockopt(&fd, sockopt::TcpCongestion, &plan.cc.into())
        .map_err(|error| Cause::CongestionControlMissing { cc: plan.cc.to_owned(), errno: error as i32 })?;
    Ok(fd)
}

/// Limits the socket's rate. The kernel's limit is in bytes per second.
fn pace(fd: &OwnedFd, pace_bps: Option<u64>) -> io::Result<()> {
    pace_bps.map_or(Ok(()), |pace_bps| {
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, pace_bps / 8)
    })
}

pub fn listen_at(fd: &OwnedFd, plan: &SocketConfig) -> io::Result<()> {
    let wildcard = match plan.address {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    setsockopt(fd, sockopt::ReuseAddr, &true)?; // the kernel stores the connections of the last run for a minute
    bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(wildcard, plan.port)))?;
    Ok(listen(fd, Backlog::new(1)?)?)
}

/// Marks a socket, so that the guest's kernel sends zeros without copying its data (kernel/drivers/lib/load.c). A real
/// machine's kernel copies them.
fn leave_uncopied(fd: &OwnedFd) -> io::Result<()> {
    static FILE: Mutex<Option<File>> = Mutex::new(None);
    let mut file = FILE.lock().unwrap_or_else(PoisonError::into_inner);
    if file.is_none() {
        match File::options().write(true).open("/proc/hourglass/load") {
            Ok(opened) => *file = Some(opened),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    file.as_mut().map_or(Ok(()), |file| file.write_all(fd.as_raw_fd().to_string().as_bytes()))
}

fn address_of(name: &SockaddrStorage) -> io::Result<SocketAddr> {
    let ipv4 = name.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    let ipv6 = name.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into()));
    ipv4.or(ipv6).ok_or_else(|| io::Error::other("its address is neither IPv4 nor IPv6"))
}

pub struct Flows {
    by_id: BTreeMap<u16, Arc<Flow>>,
}

impl Flows {
    /// Opens the sockets and starts the threads of all flows. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes, epoch: Epoch) -> Result<Self> {
        let zeros = Arc::new(Zeros::new().map_err(|error| Failure::system("memory to send from", error))?);
        let mut by_id = BTreeMap::new();
        for (base, flow) in plan.flows() {
            let flow = Arc::new(Flow::open(base, flow, nodes, epoch)?);
            if flow.listener.is_some() {
                spawn(&flow, &zeros, Flow::run_server)?;
            }
            if flow.client.is_some() {
                spawn(&flow, &zeros, Flow::run_client)?;
            }
            by_id.insert(base.id, flow);
        }
        Ok(Self { by_id })
    }
}

impl Streams for Flows {
    fn start(&mut self, id: u16) {
        if let Some(flow) = self.by_id.get(&id) {
            flow.start.open();
        }
    }

    fn stop(&mut self, id: u16) {
        if let Some(flow) = self.by_id.get(&id) {
            flow.stop();
        }
    }

    fn endpoints(&self) -> Vec<Endpoint<'_>> {
        let active = self.by_id.values().filter(|flow| !flow.stopped.load(Ordering::SeqCst));
        let connected = active.filter_map(|flow| Some((flow, *flow.local.get()?)));
        let ends = connected.flat_map(|(flow, local)| {
            let (base, remote, sender) = (&flow.base, flow.address(), flow.is_upload());
            let stream = base.id;
            let client = Endpoint { node: &base.client, stream, sender, local, remote };
            let server =
                Endpoint { node: &base.server, stream, sender: !sender, local: remote, remote: local };
            let (client, server) =
                (flow.client.as_ref().map(|_| client), flow.listener.as_ref().map(|_| server));
            client.into_iter().chain(server)
        });
        ends.collect()
    }

    fn write(&self, _epoch: Epoch, records: &mut Records) -> Result<()> {
        let mut rows: Vec<(i64, u16, Event)> = Vec::new();
        for (id, flow) in &self.by_id {
            let events = flow.events.lock().unwrap_or_else(PoisonError::into_inner);
            rows.extend(events.iter().map(|event| (event.t_ns, *id, event.clone())));
        }
        rows.sort_by_key(|(t_ns, id, _)| (*t_ns, *id));
        for (t_ns, id, event) in &rows {
            let texts = [event.name, &event.detail].map(Cell::Text);
            let row = [Cell::I64(*t_ns), Cell::U64((*id).into())].into_iter().chain(texts);
            records.push(Table::Flow, row)?;
        }
        Ok(())
    }
}

type Role = fn(&Flow, &Zeros) -> io::Result<()>;

fn spawn(flow: &Arc<Flow>, zeros: &Arc<Zeros>, role: Role) -> Result<()> {
    let (flow, zeros) = (Arc::clone(flow), Arc::clone(zeros));
    streams::spawn(move || flow.note_end(&role(&flow, &zeros)))
}
