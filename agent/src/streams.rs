// SPDX-License-Identifier: Apache-2.0
//! The interface between the test loop and traffic. An implementation represents all streams of one kind. A new kind
//! needs a file like `flow.rs` and a line in `test_loop.rs`; `events.rs` has its events.

use std::net::SocketAddr;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::clock::Epoch;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::sys;

/// `id` may be a stream of any kind: an implementation ignores the streams that it does not have.
pub trait Streams {
    fn start(&mut self, _id: u16) {}

    fn stop(&mut self, _id: u16) {}

    /// Sends packet `seq` of a stream.
    fn send(&mut self, _id: u16, _seq: u32) -> Result<()> {
        Ok(())
    }

    /// Reads arrived packets, so that sockets do not overflow.
    fn collect(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns both ends of every live TCP connection whose state is sampled, in the order of the plan, the client
    /// first.
    fn endpoints(&self) -> Vec<Endpoint<'_>> {
        Vec::new()
    }

    /// Writes the rows of the whole test, at its end.
    fn write(&self, epoch: Epoch, records: &mut Records) -> Result<()>;
}

/// One end of a live connection, as the kernel's tables name it.
pub struct Endpoint<'a> {
    pub node: &'a str,
    pub stream: u16,
    pub sender: bool,
    pub local: SocketAddr,
    pub remote: SocketAddr,
}

/// A gate at which the thread of a stream waits for its start.
#[derive(Default)]
pub struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub fn pass(&self) {
        let closed = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(closed, |is_open| !*is_open));
    }

    pub fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }
}

/// Starts a thread of a stream, in the namespaces of the calling thread.
pub fn spawn(body: impl FnOnce() + Send + 'static) -> Result<()> {
    sys::start_thread(body).map_err(|error| Failure::system("starting a thread", error))
}
