// SPDX-License-Identifier: Apache-2.0
//! What a program prints on one of its outputs: bytes to a file of the run directory, lines with the time of each to the
//! records.
//!
//! So many bytes are kept; what comes then is read and dropped, not faster than 64 KiB per ms, so that a program that
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
const PIECE: usize = 64 << 10;
const PAUSE: i64 = 1_000_000;

pub struct Output {
    name: &'static str,
    /// None between the starts of a program, and when all who could write have closed it.
    pipe: Option<File>,
    kept: File,
    left: i64,
    line: Vec<u8>,
    /// What the start that is at work wrote, kept or not.
    pub bytes: u64,
    resume_ns: Option<i64>,
}

impl Output {
    pub fn create(path: &Path, name: &'static str, most: i64) -> io::Result<Self> {
        let kept = File::create(path)?;
        Ok(Self { name, pipe: None, kept, left: most, line: Vec::new(), bytes: 0, resume_ns: None })
    }

    /// Listens to a pipe that does not block.
    pub fn listen(&mut self, pipe: File) {
        self.pipe = Some(pipe);
        self.bytes = 0;
    }

    /// The pipe, if it is to be waited for now.
    pub fn waits(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().filter(|_| self.resume_ns.is_none()).map(AsFd::as_fd)
    }

    /// When it wants to be read although nothing new has come.
    pub fn due(&self) -> Option<i64> {
        self.pipe.as_ref().and(self.resume_ns)
    }

    /// Reads what is there. `said` hears each line.
    pub fn read(
        &mut self,
        now: i64,
        (app, run): (u16, u16),
        records: &mut Records,
        mut said: impl FnMut(&str),
    ) -> Result<()> {
        if self.resume_ns.is_some_and(|resume_ns| now < resume_ns) {
            return Ok(());
        }
        self.resume_ns = None;
        let mut piece = vec![0; PIECE];
        while let Some(pipe) = &mut self.pipe {
            let of = |error| crate::report::Failure::system("what a program printed", error);
            let length = match pipe.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                result => result.map_err(of)?,
            };
            if length == 0 {
                self.pipe = None;
                break;
            }
            self.bytes += length as u64;
            let keep = length.min(usize::try_from(self.left).unwrap_or(0));
            self.left -= i64::try_from(keep).expect("is small");
            self.kept.write_all(&piece[..keep]).map_err(of)?;
            self.split(&piece[..keep], now, (app, run), records, &mut said)?;
            if keep < length {
                self.resume_ns = Some(now + PAUSE);
                break;
            }
        }
        if self.pipe.is_none() && !self.line.is_empty() {
            self.row(now, (app, run), records, &mut said)?;
        }
        Ok(())
    }

    fn split(
        &mut self,
        bytes: &[u8],
        now: i64,
        of: (u16, u16),
        records: &mut Records,
        said: &mut impl FnMut(&str),
    ) -> Result<()> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole = part.ends_with(b"\n");
            for byte in &part[..part.len() - usize::from(whole)] {
                self.line.push(*byte);
                if self.line.len() == LINE_MAX {
                    self.row(now, of, records, said)?;
                }
            }
            if whole {
                self.row(now, of, records, said)?;
            }
        }
        Ok(())
    }

    fn row(
        &mut self,
        now: i64,
        (app, run): (u16, u16),
        records: &mut Records,
        said: &mut impl FnMut(&str),
    ) -> Result<()> {
        let line = take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        said(&line);
        let row = [
            Cell::I64(now),
            Cell::U64(app.into()),
            Cell::U64(run.into()),
            Cell::Text(self.name),
            Cell::Text(&line),
        ];
        records.push(Table::AppOutput, row)
    }

    /// To the run directory, and out of this kernel's page cache.
    pub fn finish(&self) -> io::Result<()> {
        crate::sys::write_back(&self.kept)
    }
}
