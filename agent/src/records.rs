// SPDX-License-Identifier: Apache-2.0
//! The records: rows of the tables that `tables` declares, and their file.
//!
//! Rows are buffered by table. A full buffer goes to the file as one small but complete Arrow IPC stream (schema, one
//! batch, end), so the file can be cut at any stream and a reader needs no index. The bytes depend only on the rows:
//! the schema's only metadata is the key `table`.
//!
//! There may be two writers, the test loop and the reader of the kernel's probe. Each has separate tables, so only the
//! order of the streams depends on which of them comes first. A probe exists only in virtual time, where the order of
//! threads is deterministic.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_ipc::CompressionType;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::column::{Block, Buffer, Cell, Column};
use crate::report::{Failure, Result};
use crate::tables::{Table, TABLES};

/// Rows per stream. A write has a few hundred KiB to two MiB, of which some KiB are the schema.
const ROWS: usize = 4096;

/// The rows of one table that are not in the file yet.
struct Pending {
    schema: SchemaRef,
    buffers: Vec<Buffer>,
    /// The rows that are not in the buffers yet.
    block: Block,
    rows: usize,
    /// The late columns. A stream contains a late column only if it has a value for it.
    late: Vec<usize>,
}

impl Pending {
    fn new(name: &str, columns: &[Column]) -> Self {
        let fields: Vec<Field> = columns.iter().map(Column::field).collect();
        let metadata = HashMap::from([("table".to_owned(), name.to_owned())]);
        let buffers = columns.iter().map(Buffer::new).collect();
        let late = (0..columns.len()).filter(|&index| columns[index].is_late()).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
        Self { schema, buffers, block: Block::new(columns), rows: 0, late }
    }

    fn push<'a>(&mut self, row: impl IntoIterator<Item = Cell<'a>>) {
        self.block.push(row);
        if self.block.rows() == Block::ROWS {
            self.block.spread(&mut self.buffers);
        }
        self.rows += 1;
    }

    /// Returns the rows as a complete stream; leaves the table empty.
    fn encode(&mut self) -> std::result::Result<Vec<u8>, ArrowError> {
        self.rows = 0;
        self.block.spread(&mut self.buffers);
        let mut arrays: Vec<ArrayRef> = self.buffers.iter_mut().map(Buffer::take).collect();
        let empty = |array: &ArrayRef| array.null_count() == array.len();
        let omitted: Vec<usize> = self.late.iter().copied().filter(|&index| empty(&arrays[index])).collect();
        let columns: Vec<usize> = (0..arrays.len()).filter(|index| !omitted.contains(index)).collect();
        let schema = Arc::new(self.schema.project(&columns)?);
        for &index in omitted.iter().rev() {
            arrays.remove(index);
        }
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
        writer.write(&batch)?;
        writer.into_inner()
    }
}

/// The records, shared by two threads.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Records>>);

impl Shared {
    pub fn new(records: Records) -> Self {
        Self(Arc::new(Mutex::new(records)))
    }

    pub fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Records {
    file: File,
    tables: Vec<Pending>,
}

impl Records {
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|error| Failure::system(path.display(), error))?;
        let tables = TABLES.iter().map(|(name, columns)| Pending::new(name, columns)).collect();
        Ok(Self { file, tables })
    }

    /// Returns the file, which may have no name.
    pub fn file(&self) -> Result<File> {
        self.file.try_clone().map_err(|error| Failure::system("records", error))
    }

    pub fn push<'a>(&mut self, table: Table, row: impl IntoIterator<Item = Cell<'a>>) -> Result<()> {
        let pending = &mut self.tables[table as usize];
        pending.push(row);
        if pending.rows == ROWS {
            append(&mut self.file, pending)?;
        }
        Ok(())
    }

    /// Writes everything to the file, and the file from this kernel's page cache to disk.
    pub fn finish(&mut self) -> Result<()> {
        for pending in self.tables.iter_mut().filter(|pending| pending.rows > 0) {
            append(&mut self.file, pending)?;
        }
        crate::sys::write_back(&self.file).map_err(|error| Failure::system("records", error))
    }
}

fn append(file: &mut File, pending: &mut Pending) -> Result<()> {
    let stream = pending.encode().map_err(|error| Failure::data("records", error))?;
    file.write_all(&stream).map_err(|error| Failure::system("records", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Kind;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt16Type};
    use arrow_ipc::reader::StreamReader;

    fn ping(t: i64, rtt: Cell<'static>) -> [Cell<'static>; 6] {
        [Cell::I64(t), Cell::U64(3), Cell::U64(9), rtt, Cell::Null, Cell::Null]
    }

    #[test]
    fn a_stream_has_its_rows_and_the_name_of_its_table() {
        let (name, columns) = TABLES[Table::Ping as usize];
        let mut pending = Pending::new(name, columns);
        pending.push(ping(5, Cell::I64(77)));
        pending.push(ping(6, Cell::Null));
        let bytes = pending.encode().expect("encodes");
        let mut reader = StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
        assert_eq!(reader.schema().metadata()["table"], "ping");
        let batch = reader.next().expect("a batch").expect("whole");
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch["stream"].as_primitive::<UInt16Type>().value(0), 3);
        let rtt = batch["rtt_ns"].as_primitive::<Int64Type>();
        assert_eq!((rtt.value(0), rtt.iter().nth(1)), (77, Some(None)));
        assert!(reader.next().is_none());
    }

    #[test]
    fn a_late_column_is_only_in_streams_that_fill_it() {
        const COLUMNS: [Column; 3] =
            [Column::of("t", Kind::I64), Column::late("new", Kind::U32), Column::optional("old", Kind::U32)];
        let names = |streams: &[Cell<'static>]| -> Vec<Vec<String>> {
            let mut pending = Pending::new("ping", &COLUMNS);
            let written = streams.iter().map(|new| {
                pending.push([Cell::I64(1), *new, Cell::Null]);
                let bytes = pending.encode().expect("encodes");
                let schema = StreamReader::try_new(bytes.as_slice(), None).expect("a stream").schema();
                assert_eq!(schema.metadata()["table"], "ping");
                schema.fields().iter().map(|field| field.name().clone()).collect()
            });
            written.collect()
        };
        assert_eq!(names(&[Cell::Null, Cell::Null]), [["t", "old"], ["t", "old"]]);
        let both = [vec!["t", "old"], vec!["t", "new", "old"]];
        assert_eq!(names(&[Cell::Null, Cell::U64(1)]), both);
    }

    #[test]
    fn equal_rows_are_equal_bytes() {
        let encode = || {
            let (name, columns) = TABLES[Table::Ping as usize];
            let mut pending = Pending::new(name, columns);
            pending.push(ping(5, Cell::I64(77)));
            pending.encode().expect("encodes")
        };
        assert_eq!(encode(), encode());
    }
}
