// SPDX-License-Identifier: Apache-2.0
//! One output of a program: its bytes go to a file of the run directory, its lines and their times to the records.
//!
//! The file stores a limited number of bytes. Later bytes are read and dropped at 64 KiB per ms, so that a program that
//! prints without end waits as it would for a slow terminal.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::take;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use crate::column::Cell;
use crate::records::Records;
use crate::report::Result;
use crate::tables::Table;

/// A longer line becomes several rows.
const LINE_MAX: usize = 4096;
const CHUNK: usize = 64 << 10;
const PAUSE_NS: i64 = 1_000_000;

pub struct Output {
    name: &'static str,
    /// The pipe from the program; None between its starts, and after all writers have closed it.
    pipe: Option<File>,
    file: File,
    remaining: i64,
    line: Vec<u8>,
    /// The number of bytes of the current start, stored or not.
    pub bytes: u64,
    resume_ns: Option<i64>,
}

impl Output {
    pub fn create(path: &Path, name: &'static str, limit: i64) -> io::Result<Self> {
        let file = File::create(path)?;
        Ok(Self { name, pipe: None, file, remaining: limit, line: Vec::new(), bytes: 0, resume_ns: None })
    }

    /// Begins to read a pipe, which must not block.
    pub fn listen(&mut self, pipe: File) {
        self.pipe = Some(pipe);
        self.bytes = 0;
    }

    /// Returns the pipe if the caller should wait for it now.
    pub fn pollable_pipe(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| self.resume_ns.is_none()).map(AsFd::as_fd)
    }

    /// Returns the time of the next read that does not depend on new data.
    pub fn due_ns(&self) -> Option<i64> {
        self.pipe.as_ref().and(self.resume_ns)
    }

    /// Reads all available bytes and calls `on_line` for each line.
    pub fn read(
        &mut self,
        now: i64,
        (app, run): (u16, u16),
        records: &mut Records,
        mut on_line: impl FnMut(&str),
    ) -> Result<()> {
        if self.resume_ns.is_some_and(|resume_ns| now < resume_ns) {
            return Ok(());
        }
        self.resume_ns = None;
        let (mut chunk, before) = (vec![0; CHUNK], self.remaining);
        while let Some(pipe) = &mut self.pipe {
            let failure = |error| crate::report::Failure::system("a program's output", error);
            let length = match pipe.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result.map_err(failure)?,
            };
            if length == 0 {
                self.pipe = None;
                break;
            }
            self.bytes += length as u64;
            let stored = length.min(usize::try_from(self.remaining).unwrap_or(0));
            self.remaining -= i64::try_from(stored).expect("is small");
            self.file.write_all(&chunk[..stored]).map_err(failure)?;
            self.split(&chunk[..stored], now, (app, run), records, &mut on_line)?;
            if stored < length {
                self.resume_ns = Some(now + PAUSE_NS);
                break;
            }
        }
        if self.remaining < before {
            self.write_back().map_err(|error| crate::report::Failure::system("a program's output", error))?;
        }
        if self.pipe.is_none() && !self.line.is_empty() {
            self.row(now, (app, run), records, &mut on_line)?;
        }
        Ok(())
    }

    fn split(
        &mut self,
        bytes: &[u8],
        now: i64,
        run_key: (u16, u16),
        records: &mut Records,
        on_line: &mut impl FnMut(&str),
    ) -> Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let complete = part.ends_with(b"\n");
            for byte in &part[..part.len() - usize::from(complete)] {
                self.line.push(*byte);
                if self.line.len() == LINE_MAX {
                    self.row(now, run_key, records, on_line)?;
                }
            }
            if complete {
                self.row(now, run_key, records, on_line)?;
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        now: i64,
        (app, run): (u16, u16),
        records: &mut Records,
        on_line: &mut impl FnMut(&str),
    ) -> Result<()> {
        let line = take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        on_line(&line);
        let row = [
            Cell::I64(now),
            Cell::U64(app.into()),
            Cell::U64(run.into()),
            Cell::Text(self.name),
            Cell::Text(&line),
        ];
        records.push(Table::AppOutput, row)
    }

    /// Writes this kernel's page cache of the file to the run directory, so that readers there see the data now.
    fn write_back(&self) -> io::Result<()> {
        crate::sys::write_back(&self.file)
    }
}
