// SPDX-License-Identifier: Apache-2.0
//! Fetches: requests with answers of given sizes, each on a new TCP connection, as a simple web client and server make
//! them.
//!
//! The client sends the next request when the last answer is complete, and no sooner than its interval allows, so load
//! does not pile up. A request has a given number of bytes, and its first eight are the size of the answer. The time of
//! a fetch counts from before the connection is made to the answer's last byte.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::socket::{connect, recv, send, MsgFlags, SockaddrStorage};

use crate::clock::Epoch;
use crate::column::Cell;
use crate::flow::{abort_connection, listen_at, open_socket, SocketConfig};
use crate::netns::Nodes;
use crate::plan::{self, Base, Plan};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::streams::{spawn, Gate, Streams};
use crate::sys::{self, Zeros};
use crate::tables::Table;

/// The bytes of a request that hold the size of the answer.
const SIZE: usize = 8;

/// Test times of one fetch; None if the stop came first.
#[derive(Clone)]
struct Fetch {
    start_ns: i64,
    bytes: u64,
    first_ns: Option<i64>,
    done_ns: Option<i64>,
}

/// The state that the client's thread and the main thread share.
struct Client {
    base: Base,
    plan: plan::Fetches,
    epoch: Epoch,
    start: Gate,
    stopped: AtomicBool,
    current: Mutex<Option<Arc<OwnedFd>>>,
    fetches: Mutex<Vec<Fetch>>,
}

impl Client {
    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn run(&self) {
        self.start.pass();
        let mut due = self.base.start_ns;
        for bytes in self.plan.sizes.iter().copied().cycle() {
            if self.stopped() || due >= self.base.stop_ns {
                return;
            }
            self.epoch.sleep_until(due);
            let start_ns = self.epoch.now();
            self.note(|fetches| fetches.push(Fetch { start_ns, bytes, first_ns: None, done_ns: None }));
            // If no answer comes, the fetch has no end.
            let _ = self.fetch(bytes);
            due = self.epoch.now().max(start_ns + self.plan.interval_ns);
        }
    }

    fn fetch(&self, bytes: u64) -> io::Result<()> {
        let end = SocketConfig::of(&self.base, &self.plan.cc);
        let fd = Arc::new(open_socket(&end).map_err(|failure| io::Error::other(failure.to_string()))?);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&fd));
        let result = self.exchange(&fd, bytes);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
        result
    }

    fn exchange(&self, fd: &OwnedFd, bytes: u64) -> io::Result<()> {
        let address = SocketAddr::new(self.base.address, self.base.port);
        connect(fd.as_raw_fd(), &SockaddrStorage::from(address))?;
        let mut request = vec![0; self.plan.request_bytes];
        request[..SIZE].copy_from_slice(&bytes.to_be_bytes());
        send(fd.as_raw_fd(), &request, MsgFlags::MSG_NOSIGNAL)?;
        let first = sys::discard(fd.as_fd(), 1)?;
        self.update_last(|fetch, now| fetch.first_ns = Some(now));
        sys::discard_all(fd.as_fd(), bytes - first)?;
        self.update_last(|fetch, now| fetch.done_ns = Some(now));
        Ok(())
    }

    fn note(&self, change: impl FnOnce(&mut Vec<Fetch>)) {
        change(&mut self.fetches.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Updates the current fetch, unless it was stopped.
    fn update_last(&self, change: impl FnOnce(&mut Fetch, i64)) {
        let now = self.epoch.now();
        self.note(|fetches| {
            if let Some(fetch) = fetches.last_mut().filter(|_| !self.stopped()) {
                change(fetch, now);
            }
        });
    }
}

/// Answers requests one after another, forever.
fn serve(listener: BorrowedFd, request_bytes: usize, zeros: &Zeros) {
    loop {
        // An error means that a connection was given up. The next connection may succeed.
        let _ = answer(listener, request_bytes, zeros);
    }
}

fn answer(listener: BorrowedFd, request_bytes: usize, zeros: &Zeros) -> io::Result<()> {
    let fd = sys::accept(listener)?;
    let mut request = vec![0; request_bytes];
    recv(fd.as_raw_fd(), &mut request, MsgFlags::MSG_WAITALL)?;
    let size = request.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
    zeros.send(fd.as_fd(), size)
}

pub struct Fetches {
    by_id: BTreeMap<u16, Arc<Client>>,
}

impl Fetches {
    /// Opens the sockets and starts the threads of all fetches. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes, epoch: Epoch) -> Result<Self> {
        let mut by_id = BTreeMap::new();
        for (base, plan) in plan.fetches() {
            let blame = |failure: Failure| failure.of(format!("fetches {}", base.name));
            let zeros = Zeros::new().map_err(|error| Failure::system("memory to send from", error))?;
            if nodes.enter_if_local(&base.server)? {
                let end = SocketConfig::of(base, &plan.cc);
                let listener = open_socket(&end).map_err(blame)?;
                listen_at(&listener, &end).map_err(|error| blame(Failure::system("listening", error)))?;
                let request_bytes = plan.request_bytes;
                spawn(move || serve(listener.as_fd(), request_bytes, &zeros))?;
            }
            if !nodes.enter_if_local(&base.client)? {
                continue;
            }
            let client = Arc::new(Client {
                base: base.clone(),
                plan: plan.clone(),
                epoch,
                start: Gate::default(),
                stopped: AtomicBool::new(false),
                current: Mutex::new(None),
                fetches: Mutex::new(Vec::new()),
            });
            let runner = Arc::clone(&client);
            spawn(move || runner.run())?;
            by_id.insert(base.id, client);
        }
        Ok(Self { by_id })
    }
}

impl Streams for Fetches {
    fn start(&mut self, id: u16) {
        if let Some(client) = self.by_id.get(&id) {
            client.start.open();
        }
    }

    fn stop(&mut self, id: u16) {
        let Some(client) = self.by_id.get(&id) else { return };
        client.stopped.store(true, Ordering::SeqCst);
        let current = client.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = current.as_ref() {
            // An error means that the connection is not made yet or has ended: then it needs no stop.
            let _ = abort_connection(fd, false);
        }
    }

    fn write(&self, _epoch: Epoch, records: &mut Records) -> Result<()> {
        for (id, client) in &self.by_id {
            let fetches = client.fetches.lock().unwrap_or_else(PoisonError::into_inner);
            for (fetch, seq) in fetches.iter().zip(0u64..) {
                let since = |end: Option<i64>| Cell::from(end.map(|end| end - fetch.start_ns));
                let row = [
                    Cell::I64(fetch.start_ns),
                    Cell::U64((*id).into()),
                    Cell::U64(seq),
                    Cell::U64(fetch.bytes),
                    since(fetch.first_ns),
                    since(fetch.done_ns),
                ];
                records.push(Table::Fetch, row)?;
            }
        }
        Ok(())
    }
}
