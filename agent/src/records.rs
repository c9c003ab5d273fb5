// SPDX-License-Identifier: Apache-2.0
//! The records: every table's schema, declared here and nowhere else, and the file they are appended to.
//!
//! Rows are buffered by table. A full buffer goes to the file as one small but complete Arrow IPC stream (schema,
//! one batch, end), so the file can be cut at any stream and a reader needs no index. The bytes depend on the rows
//! and on nothing else: the schema's only metadata is the key `table`.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use crate::column::{Buffer, Cell, Column, Kind};
use crate::report::{Failure, Result};
use crate::tcp_info;

/// Rows per stream: a few hundred KiB to two MiB per write, against some KiB of schema.
const ROWS: usize = 4096;

#[derive(Clone, Copy)]
pub enum Table {
    Tcp,
    Ping,
    Device,
    Ethtool,
    Qdisc,
    Flow,
    Fact,
    Radio,
    Station,
}

/// Every table, in the order of `Table`.
const TABLES: [(&str, &[&[Column]]); 9] = [
    ("tcp", &[TCP, &tcp_info::COLUMNS, TCP_EXTRAS]),
    ("ping", &[PING]),
    ("device", &[DEVICE]),
    ("ethtool", &[ETHTOOL]),
    ("qdisc", &[QDISC]),
    ("flow", &[FLOW]),
    ("fact", &[FACT]),
    ("radio", &[RADIO]),
    ("station", &[STATION]),
];

const TCP: &[Column] =
    &[Column::of("t_ns", Kind::I64), Column::of("flow", Kind::U16), Column::of("sender", Kind::Bool)];

/// What stands beside `struct tcp_info`, in the order of the kernel's structures: `sk_meminfo`, `tcp_bbr_info`
/// (its two halves of `bw` joined), `tcpvegas_info`, `tcp_dctcp_info`.
const TCP_EXTRAS: &[Column] = &[
    Column::optional("sk_rmem_alloc", Kind::U32),
    Column::optional("sk_rcvbuf", Kind::U32),
    Column::optional("sk_wmem_alloc", Kind::U32),
    Column::optional("sk_sndbuf", Kind::U32),
    Column::optional("sk_fwd_alloc", Kind::U32),
    Column::optional("sk_wmem_queued", Kind::U32),
    Column::optional("sk_optmem", Kind::U32),
    Column::optional("sk_backlog", Kind::U32),
    Column::optional("sk_drops", Kind::U32),
    Column::optional("bbr_bw", Kind::U64),
    Column::optional("bbr_min_rtt", Kind::U32),
    Column::optional("bbr_pacing_gain", Kind::U32),
    Column::optional("bbr_cwnd_gain", Kind::U32),
    Column::optional("vegas_enabled", Kind::U32),
    Column::optional("vegas_rttcnt", Kind::U32),
    Column::optional("vegas_rtt", Kind::U32),
    Column::optional("vegas_minrtt", Kind::U32),
    Column::optional("dctcp_enabled", Kind::U16),
    Column::optional("dctcp_ce_state", Kind::U16),
    Column::optional("dctcp_alpha", Kind::U32),
    Column::optional("dctcp_ab_ecn", Kind::U32),
    Column::optional("dctcp_ab_tot", Kind::U32),
];

const PING: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("probe", Kind::U16),
    Column::of("seq", Kind::U32),
    Column::optional("rtt_ns", Kind::I64),
    Column::optional("owd_up_ns", Kind::I64),
    Column::optional("owd_down_ns", Kind::I64),
];

const DEVICE: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("rx_packets", Kind::U64),
    Column::of("tx_packets", Kind::U64),
    Column::of("rx_bytes", Kind::U64),
    Column::of("tx_bytes", Kind::U64),
    Column::of("rx_dropped", Kind::U64),
    Column::of("tx_dropped", Kind::U64),
    Column::of("rx_errors", Kind::U64),
    Column::of("tx_errors", Kind::U64),
];

const ETHTOOL: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("name", Kind::Text),
    Column::of("value", Kind::U64),
];

const QDISC: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("kind", Kind::Text),
    Column::of("handle", Kind::Text),
    Column::of("parent", Kind::Text),
    Column::of("bytes", Kind::U64),
    Column::of("packets", Kind::U64),
    Column::of("drops", Kind::U64),
    Column::of("overlimits", Kind::U64),
    Column::of("requeues", Kind::U64),
    Column::of("qlen", Kind::U64),
    Column::of("backlog", Kind::U64),
];

const FLOW: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("flow", Kind::U16),
    Column::of("event", Kind::Text),
    Column::of("detail", Kind::Text),
];

const FACT: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::optional("node", Kind::Text),
    Column::of("key", Kind::Text),
    Column::of("value", Kind::Text),
];

/// One of a radio's own counters; its name is the driver's.
const RADIO: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("name", Kind::Text),
    Column::of("value", Kind::I64),
];

/// One of a radio's counters of another station, which is known by its address.
const STATION: &[Column] = &[
    Column::of("t_ns", Kind::I64),
    Column::of("node", Kind::Text),
    Column::of("device", Kind::Text),
    Column::of("station", Kind::Text),
    Column::of("name", Kind::Text),
    Column::of("value", Kind::I64),
];

/// The rows of one table that are not in the file yet.
struct Pending {
    schema: SchemaRef,
    buffers: Vec<Buffer>,
    rows: usize,
}

impl Pending {
    fn new(name: &str, parts: &[&[Column]]) -> Self {
        let columns: Vec<Column> = parts.concat();
        let fields: Vec<Field> = columns.iter().map(Column::field).collect();
        let metadata = HashMap::from([("table".to_owned(), name.to_owned())]);
        let buffers = columns.iter().map(Buffer::new).collect();
        Self { schema: Arc::new(Schema::new_with_metadata(fields, metadata)), buffers, rows: 0 }
    }

    fn push(&mut self, row: &[Cell]) {
        assert_eq!(row.len(), self.buffers.len(), "a row has a cell for each column");
        for (buffer, cell) in self.buffers.iter_mut().zip(row) {
            buffer.push(*cell);
        }
        self.rows += 1;
    }

    /// The rows as a complete stream; leaves the table empty.
    fn encode(&mut self) -> std::result::Result<Vec<u8>, ArrowError> {
        self.rows = 0;
        let arrays = self.buffers.iter_mut().map(Buffer::take).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays)?;
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        writer.write(&batch)?;
        writer.into_inner()
    }
}

pub struct Records {
    file: File,
    tables: Vec<Pending>,
}

impl Records {
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|error| Failure::system(path.display(), error))?;
        let tables = TABLES.iter().map(|(name, parts)| Pending::new(name, parts)).collect();
        Ok(Self { file, tables })
    }

    pub fn push(&mut self, table: Table, row: &[Cell]) -> Result<()> {
        let pending = &mut self.tables[table as usize];
        pending.push(row);
        if pending.rows == ROWS {
            append(&mut self.file, pending)?;
        }
        Ok(())
    }

    /// Everything to the file, and the file out of this kernel's page cache.
    pub fn finish(mut self) -> Result<()> {
        for pending in self.tables.iter_mut().filter(|pending| pending.rows > 0) {
            append(&mut self.file, pending)?;
        }
        crate::sys::write_back(&self.file).map_err(|error| Failure::system("records", error))
    }
}

fn append(file: &mut File, pending: &mut Pending) -> Result<()> {
    let stream = pending.encode().map_err(|error| Failure::of("records", error))?;
    file.write_all(&stream).map_err(|error| Failure::system("records", error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt16Type};
    use arrow_ipc::reader::StreamReader;

    fn ping(t: i64, rtt: Cell<'static>) -> [Cell<'static>; 6] {
        [Cell::I64(t), Cell::U64(3), Cell::U64(9), rtt, Cell::Null, Cell::Null]
    }

    #[test]
    fn a_stream_reads_back_and_names_its_table() {
        let (name, parts) = TABLES[Table::Ping as usize];
        let mut pending = Pending::new(name, parts);
        pending.push(&ping(5, Cell::I64(77)));
        pending.push(&ping(6, Cell::Null));
        let bytes = pending.encode().expect("encodes");
        let mut reader = StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
        assert_eq!(reader.schema().metadata()["table"], "ping");
        let batch = reader.next().expect("a batch").expect("whole");
        assert_eq!(batch.num_rows(), 2);
        assert_eq!(batch["probe"].as_primitive::<UInt16Type>().value(0), 3);
        let rtt = batch["rtt_ns"].as_primitive::<Int64Type>();
        assert_eq!((rtt.value(0), rtt.iter().nth(1)), (77, Some(None)));
        assert!(reader.next().is_none());
    }

    #[test]
    fn equal_rows_are_equal_bytes() {
        let encode = || {
            let (name, parts) = TABLES[Table::Ping as usize];
            let mut pending = Pending::new(name, parts);
            pending.push(&ping(5, Cell::I64(77)));
            pending.encode().expect("encodes")
        };
        assert_eq!(encode(), encode());
    }

    #[test]
    fn column_names_are_unique_and_t_ns_comes_first() {
        for (name, parts) in TABLES {
            let columns: Vec<&str> = parts.concat().iter().map(|column| column.name).collect();
            let unique: std::collections::BTreeSet<_> = columns.iter().collect();
            assert_eq!((columns[0], unique.len()), ("t_ns", columns.len()), "table {name}");
        }
    }
}
