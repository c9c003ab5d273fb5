// SPDX-License-Identifier: Apache-2.0
//! Transactions: requests and answers in turn on one TCP connection, like those of netperf's `TCP_RR`.
//!
//! The next request is sent when the answer is complete, so one transaction is outstanding and nothing else is sent.
//! The connection is made before the first request. The time of a transaction counts from the write of its request to
//! the read of the answer's last byte. If the connection cannot be made, or breaks, the last transaction has no end.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::socket::{connect, SockaddrStorage};

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

/// The test times of a transaction; None if the stop came first.
struct Transaction {
    start_ns: i64,
    done_ns: Option<i64>,
}

/// The state that the client's thread and the main thread share. Its socket lives until the agent ends.
struct Client {
    base: Base,
    plan: plan::Transactions,
    epoch: Epoch,
    fd: OwnedFd,
    zeros: Arc<Zeros>,
    start: Gate,
    stopped: AtomicBool,
    transactions: Mutex<Vec<Transaction>>,
}

impl Client {
    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn run(&self) {
        self.start.pass();
        let address = SocketAddr::new(self.base.address, self.base.port);
        let mut result =
            connect(self.fd.as_raw_fd(), &SockaddrStorage::from(address)).map_err(io::Error::from);
        while !self.stopped() {
            let start_ns = self.epoch.now();
            self.note(|transactions| transactions.push(Transaction { start_ns, done_ns: None }));
            result = result.and_then(|()| self.exchange());
            if result.is_err() {
                break;
            }
        }
        if self.stopped() {
            // Needed if the connection was made during its stop, or if `abort_connection` left this to the thread.
            let _ = sys::abort(self.fd.as_fd());
        }
    }

    fn exchange(&self) -> io::Result<()> {
        self.zeros.send(self.fd.as_fd(), self.plan.request_bytes)?;
        sys::discard_all(self.fd.as_fd(), self.plan.response_bytes)?;
        let now = self.epoch.now();
        self.note(|transactions| {
            if let Some(last) = transactions.last_mut().filter(|_| !self.stopped()) {
                last.done_ns = Some(now);
            }
        });
        Ok(())
    }

    fn note(&self, change: impl FnOnce(&mut Vec<Transaction>)) {
        change(&mut self.transactions.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Answers every request of the only connection, until it ends.
fn serve(listener: BorrowedFd, plan: &plan::Transactions, zeros: &Zeros) -> io::Result<()> {
    let fd = sys::accept(listener)?;
    loop {
        sys::discard_all(fd.as_fd(), plan.request_bytes)?;
        zeros.send(fd.as_fd(), plan.response_bytes)?;
    }
}

pub struct Transactions {
    by_id: BTreeMap<u16, Arc<Client>>,
}

impl Transactions {
    /// Opens the sockets and starts the threads of all transactions. Leaves the calling thread in one of the nodes.
    pub fn prepare(plan: &Plan, nodes: &Nodes, epoch: Epoch) -> Result<Self> {
        let zeros = Arc::new(Zeros::new().map_err(|error| Failure::system("memory to send from", error))?);
        let mut by_id = BTreeMap::new();
        for (base, plan) in plan.transactions() {
            let blame = |failure: Failure| failure.of(format!("transactions {}", base.name));
            let end = SocketConfig::of(base, &plan.cc);
            if nodes.enter_if_local(&base.server)? {
                let listener = open_socket(&end).map_err(blame)?;
                listen_at(&listener, &end).map_err(|error| blame(Failure::system("listening", error)))?;
                let (served, source) = (plan.clone(), Arc::clone(&zeros));
                spawn(move || {
                    // The client reports the cause of the connection's end.
                    let _ = serve(listener.as_fd(), &served, &source);
                })?;
            }
            if !nodes.enter_if_local(&base.client)? {
                continue;
            }
            let client = Arc::new(Client {
                base: base.clone(),
                plan: plan.clone(),
                epoch,
                fd: open_socket(&end).map_err(blame)?,
                zeros: Arc::clone(&zeros),
                start: Gate::default(),
                stopped: AtomicBool::new(false),
                transactions: Mutex::new(Vec::new()),
            });
            let runner = Arc::clone(&client);
            spawn(move || runner.run())?;
            by_id.insert(base.id, client);
        }
        Ok(Self { by_id })
    }
}

impl Streams for Transactions {
    fn start(&mut self, id: u16) {
        if let Some(client) = self.by_id.get(&id) {
            client.start.open();
        }
    }

    fn stop(&mut self, id: u16) {
        if let Some(client) = self.by_id.get(&id) {
            client.stopped.store(true, Ordering::SeqCst);
            // An error means that the connection is not made yet or has ended: then it needs no stop.
            let _ = abort_connection(&client.fd, false);
        }
    }

    fn write(&self, _epoch: Epoch, records: &mut Records) -> Result<()> {
        for (id, client) in &self.by_id {
            let transactions = client.transactions.lock().unwrap_or_else(PoisonError::into_inner);
            for (transaction, seq) in transactions.iter().zip(0u64..) {
                let duration_ns = transaction.done_ns.map(|done_ns| done_ns - transaction.start_ns);
                let head = [Cell::I64(transaction.start_ns), Cell::U64((*id).into()), Cell::U64(seq)];
                records.push(Table::Transaction, head.into_iter().chain([Cell::from(duration_ns)]))?;
            }
        }
        Ok(())
    }
}
