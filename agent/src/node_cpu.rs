// SPDX-License-Identifier: Apache-2.0
//! The CPU of a node on which packets and calls take time: its work so far (`kernel/hooks/program_cpu.c`).

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;

use crate::column::Cell;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::tables::Table;

const PATH: &str = "/proc/hourglass/cpu";

pub struct NodeCpu {
    node: String,
    file: File,
}

impl NodeCpu {
    /// Opens the CPU of the calling thread's node; None if it has none.
    pub fn open(node: &str) -> Result<Option<Self>> {
        let file = match File::open(PATH) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None), // another kernel
            file => file.map_err(|error| Failure::system(PATH, error))?,
        };
        let cpu = Self { node: node.to_owned(), file };
        Ok(cpu.work_ns()?.map(|_| cpu))
    }

    pub fn sample(&self, t_ns: i64, records: &mut Records) -> Result<()> {
        let Some(work_ns) = self.work_ns()? else { return Ok(()) };
        let head = [Cell::I64(t_ns), Cell::Text(&self.node)];
        records.push(Table::Cpu, head.into_iter().chain(work_ns.map(Cell::U64)))
    }

    /// Returns the time of received frames, of sent skbs and of calls, and of the work that is not complete; None
    /// without a CPU.
    fn work_ns(&self) -> Result<Option<[u64; 4]>> {
        let mut buffer = [0; 128];
        let length = self.file.read_at(&mut buffer, 0).map_err(|error| Failure::system(PATH, error))?;
        let text = String::from_utf8_lossy(&buffer[..length]);
        let numbers: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        Ok(numbers.try_into().ok())
    }
}
