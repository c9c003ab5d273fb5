// SPDX-License-Identifier: Apache-2.0
//! Fetches: requests answered by so many bytes, a new TCP connection each, as a simple web client and server make them.
//!
//! The client asks again when the last answer is complete, and no sooner than its interval allows: load that waits for
//! its answers does not pile up. A request is a line of so many bytes whose first eight are the size of the answer. The
//! time of a fetch counts from before the connection is made to the answer's last byte.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::socket::{connect, recv, send, MsgFlags, SockaddrStorage};

use crate::clock::Epoch;
use crate::column::Cell;
use crate::flow::{listen_at, open_end, stop_end, End};
use crate::netns::Nodes;
use crate::plan::{self, Base, Plan};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::streams::{spawn, Gate, Streams};
use crate::sys::{self, Zeros};
use crate::tables::Table;

/// The size of the answer, in a request.
const SIZE: usize = 8;

/// Test times of one fetch; what did not happen before the stop is none.
#[derive(Clone)]
struct Fetch {
    start_ns: i64,
    bytes: u64,
    first_ns: Option<i64>,
    done_ns: Option<i64>,
}

/// What the client's thread and the main thread share.
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
            // An answer that does not come is a fetch without an end.
            let _ = self.fetch(bytes);
            due = self.epoch.now().max(start_ns + self.plan.interval_ns);
        }
    }

    fn fetch(&self, bytes: u64) -> io::Result<()> {
        let end = End::of(&self.base, &self.plan.cc);
        let fd = Arc::new(open_end(&end).map_err(|failure| io::Error::other(failure.message))?);
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
        self.last(|fetch, now| fetch.first_ns = Some(now));
        sys::discard_all(fd.as_fd(), bytes - first)?;
        self.last(|fetch, now| fetch.done_ns = Some(now));
        Ok(())
    }

    fn note(&self, change: impl FnOnce(&mut Vec<Fetch>)) {
        change(&mut self.fetches.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Notes something about the fetch at hand; what comes after the stop is not counted.
    fn last(&self, change: impl FnOnce(&mut Fetch, i64)) {
        let now = self.epoch.now();
        self.note(|fetches| {
            if let Some(fetch) = fetches.last_mut().filter(|_| !self.stopped()) {
                change(fetch, now);
            }
        });
    }
}

/// Answers one request after the other, for ever.
fn serve(listener: BorrowedFd, request_bytes: usize, zeros: &Zeros) {
    loop {
        // An error is about a connection that was given up; the next one may live.
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
    /// Sockets and threads of all. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes, epoch: Epoch) -> Result<Self> {
        let mut by_id = BTreeMap::new();
        for (base, plan) in plan.fetches() {
            let blame = |failure: Failure| Failure::of(format!("fetches {}", base.name), failure.message);
            let zeros = Zeros::new().map_err(|error| Failure::system("memory to send from", error))?;
            if nodes.enter_if_here(&base.server)? {
                let end = End::of(base, &plan.cc);
                let listener = open_end(&end).map_err(blame)?;
                listen_at(&listener, &end).map_err(|error| blame(Failure::system("listening", error)))?;
                let request_bytes = plan.request_bytes;
                spawn(move || serve(listener.as_fd(), request_bytes, &zeros))?;
            }
            if !nodes.enter_if_here(&base.client)? {
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
            // A connection that is being made or has ended by itself needs no stop.
            let _ = stop_end(fd, false);
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
