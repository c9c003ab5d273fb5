// SPDX-License-Identifier: Apache-2.0
//! Bulk flows: TCP connections that one end fills and the other end drains.
//!
//! Each end has a thread. The sender's sits in one system call per gibibyte, all of which is one page of zeros. With the
//! backend `load` the guest's kernel does not copy it, and the receiver's thread sits in one call too, in which the
//! kernel discards what arrives; with `socket` the kernel copies, and the receiver reads, as an application does, and
//! crosses between user and kernel whenever something is there. The packets are the same, at the same ns.
//!
//! Sockets are made, and congestion controls asked for, before test time starts: a wrong name ends the run at once. The
//! main thread starts and stops flows; what happens in between is noted by the flow's own threads, and a flow that fails
//! does not end the run.

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

use crate::clock::{monotonic, sleep_until, Epoch};
use crate::column::Cell;
use crate::netns::{family, set_class, Nodes};
use crate::plan;
use crate::plan::{Backend, Base, Ecn, Plan};
use crate::records::Records;
use crate::report::{words, Failure, Result};
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

/// What the two threads of a flow and the main thread share. Its sockets live until the agent ends. An end that another
/// machine plays is none; then the client's alone tells how the flow fared, and ends it.
struct Flow {
    base: Base,
    plan: plan::Flow,
    epoch: Epoch,
    client: Option<OwnedFd>,
    listener: Option<OwnedFd>,
    accepted: OnceLock<OwnedFd>,
    /// The client's own address, known once it is connected.
    local: OnceLock<SocketAddr>,
    start: Gate,
    stopped: AtomicBool,
    events: Mutex<Vec<Event>>,
}

impl Flow {
    /// Sockets of both ends, in the namespaces of their nodes. What the listener is set to, its connection inherits.
    fn open(base: &Base, plan: &plan::Flow, nodes: &Nodes, epoch: Epoch) -> Result<Self> {
        let blame = |failure: Failure| Failure::of(format!("flow {}", base.name), failure.message);
        let end = End::of(base, &plan.cc);
        let open = |node| -> Result<_> {
            nodes.enter_if_here(node)?.then(|| open_end(&end)).transpose().map_err(blame)
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

    /// Whether the client sends.
    fn upload(&self) -> bool {
        self.plan.upload(&self.base)
    }

    /// The end of a flow, be it stopped or failed, is noted once, whichever of its ends notices first.
    fn note(&self, name: &'static str, detail: String) {
        if self.client.is_none() {
            return;
        }
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if events.iter().all(|event| event.name == CONNECTED) {
            events.push(Event { t_ns: self.epoch.now(), name, detail });
        }
    }

    /// A connection that ends by itself has failed; one that was stopped has not.
    fn note_end(&self, result: &io::Result<()>) {
        if !self.stopped.load(Ordering::SeqCst) {
            let detail = result.as_ref().err().map_or("the sender closed the connection".to_owned(), words);
            self.note("failed", detail);
        }
    }

    fn run_client(&self, zeros: &Zeros) -> io::Result<()> {
        let client = self.client.as_ref().expect("the thread of an end that is here");
        self.start.pass();
        connect(client.as_raw_fd(), &SockaddrStorage::from(self.address()))?;
        let local = address_of(&getsockname(client.as_raw_fd())?)?;
        let _ = self.local.set(local);
        self.note(CONNECTED, format!("{local} to {}", self.address()));
        self.transfer(client, self.upload(), zeros)
    }

    fn run_server(&self, zeros: &Zeros) -> io::Result<()> {
        let listener = self.listener.as_ref().expect("the thread of an end that is here");
        let fd = sys::accept(listener.as_fd())?;
        if self.client.is_none() {
            let _ = self.local.set(address_of(&getpeername(fd.as_raw_fd())?)?);
        }
        let fd = self.accepted.get_or_init(|| fd);
        self.transfer(fd, !self.upload(), zeros)
    }

    /// Moves data until the connection ends. Ends it if that is still to do: it came through as it was being stopped, or
    /// `stop_end` left it to this thread.
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

    /// What the application has to send, for as long as the connection lives.
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
        let server = self.accepted.get().map(|fd| (fd, !self.upload()));
        let error = [Some((client, self.upload())), server]
            .into_iter()
            .flatten()
            .find_map(|(fd, sends)| stop_end(fd, sends).err());
        self.note("stopped", error.as_ref().map_or_else(String::new, words));
    }
}

/// Some kernels of 2023 (Linux 6.4 to 6.6, and stable ones such as 5.10) refuse to abort what a thread is blocked in.
/// There the thread is woken, by the shutdown that sends least, and aborts.
pub fn stop_end(fd: &OwnedFd, sends: bool) -> io::Result<()> {
    let way = if sends { Shutdown::Write } else { Shutdown::Read };
    match sys::abort(fd.as_fd()) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Ok(shutdown(fd.as_raw_fd(), way)?),
        result => result,
    }
}

/// One end of a TCP connection to be: what its socket is set to.
pub struct End<'a> {
    pub address: IpAddr,
    pub port: u16,
    pub cc: &'a str,
    pub dscp: u8,
}

impl<'a> End<'a> {
    pub fn of(base: &Base, cc: &'a str) -> Self {
        Self { address: base.address, port: base.port, cc, dscp: base.dscp }
    }
}

pub fn open_end(plan: &End) -> Result<OwnedFd> {
    let open = || -> io::Result<OwnedFd> {
        let fd = socket(family(plan.address), SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
        set_class(fd.as_fd(), plan.address, plan.dscp, Ecn::NotEct)?;
        Ok(fd)
    };
    let fd = open().map_err(|error| Failure::system("making its socket", error))?;
    setsockopt(&fd, sockopt::TcpCongestion, &plan.cc.into()).map_err(|error| {
        Failure::system(format!("congestion control {} is not in this kernel", plan.cc), error)
    })?;
    Ok(fd)
}

/// An upper bound for what the socket sends; the kernel's is in bytes per second.
fn pace(fd: &OwnedFd, pace_bps: Option<u64>) -> io::Result<()> {
    pace_bps.map_or(Ok(()), |pace_bps| {
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, pace_bps / 8)
    })
}

pub fn listen_at(fd: &OwnedFd, plan: &End) -> io::Result<()> {
    let any = match plan.address {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    setsockopt(fd, sockopt::ReuseAddr, &true)?; // a machine remembers the connections of the last run for a minute
    bind(fd.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(any, plan.port)))?;
    Ok(listen(fd, Backlog::new(1)?)?)
}

/// What is sent from now on is not copied into the kernel: the guest's knows that it is zeros (kernel/drivers/load.c). A
/// real machine's kernel copies.
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
    let four = name.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    let six = name.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into()));
    four.or(six).ok_or_else(|| io::Error::other("its address is neither IPv4 nor IPv6"))
}

pub struct Flows {
    by_id: BTreeMap<u16, Arc<Flow>>,
}

impl Flows {
    /// Sockets and threads of all flows. Leaves the calling thread in one of the nodes.
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
        let live = self.by_id.values().filter(|flow| !flow.stopped.load(Ordering::SeqCst));
        let known = live.filter_map(|flow| Some((flow, *flow.local.get()?)));
        let ends = known.flat_map(|(flow, local)| {
            let (base, remote, sender) = (&flow.base, flow.address(), flow.upload());
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
