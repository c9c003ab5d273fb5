// SPDX-License-Identifier: Apache-2.0
//! Converts records of the kernel's probe to rows and captured frames, with the names of the plan.

use std::net::Ipv6Addr;

use zerocopy::IntoBytes;

use crate::abi::{
    self, Balance, Cc, Codepoints, Drop, Layers, Mark, Packet, Queue, Socket, Stream, Tcp, Visit,
};
use crate::capture::{Captures, RawFrame};
use crate::column::Cell;
use crate::namespaces::Namespaces;
use crate::plan::{Plan, Traffic};
use crate::probe_records::{text, Record, Records as Parsed};
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::tables::Table;
use crate::tcp_row::{self, ESTABLISHED};

/// `IPPROTO_TCP`.
const TCP: u16 = 6;

pub struct Rows {
    /// Test time 0, `CLOCK_MONOTONIC`.
    zero_ns: i64,
    /// By number: those of the plan, then the namespaces that programs have made.
    nodes: Vec<String>,
    namespaces: Namespaces,
    /// Name by id, and for a flow whether its data go to the server. Higher ids belong to programs.
    streams: Vec<(String, Option<bool>)>,
    captures: Captures,
}

impl Rows {
    pub fn new(plan: &Plan, zero_ns: i64, captures: Captures, namespaces: Namespaces) -> Self {
        let streams = plan.streams.iter().map(|stream| match &stream.traffic {
            Traffic::Flow(flow) => (stream.base.name.clone(), Some(flow.is_upload(&stream.base))),
            _ => (stream.base.name.clone(), None),
        });
        Self { zero_ns, nodes: plan.nodes.clone(), namespaces, streams: streams.collect(), captures }
    }

    /// Writes the records of one read of the probe.
    pub fn take(&mut self, buffer: &[u64], records: &mut Records) -> Result<()> {
        for record in Parsed(buffer) {
            match record {
                Some(Record::Packet(packet, visits)) => self.packet(packet, visits, records)?,
                Some(Record::Layers(layers)) => self.layers(layers, records)?,
                Some(Record::Tcp(tcp)) => self.tcp(tcp, records)?,
                Some(Record::Queue(queue)) => self.queue(queue, records)?,
                Some(Record::Drop(drop)) => self.drop(drop, records)?,
                Some(Record::Frame(frame, visits, data)) => self.frame(&RawFrame { frame, visits, data })?,
                Some(Record::Balance(balance)) => self.balance(balance, records)?,
                Some(Record::Socket(socket)) => self.socket(socket, records)?,
                Some(Record::Cc(cc)) => self.cc(cc, records)?,
                Some(Record::Mark(mark)) => self.mark(mark, records)?,
                Some(Record::Codepoints(codepoints)) => self.codepoints(codepoints, records)?,
                Some(Record::Namespace(made)) => {
                    self.nodes.push(self.namespaces.report(made, self.zero_ns, records)?);
                }
                Some(Record::Unknown) => {}
                None => return Err(Failure::probe("a record that is cut off")),
            }
        }
        Ok(())
    }

    pub fn finish(self) -> Result<()> {
        self.captures.finish()
    }

    fn time(&self, t_ns: i64) -> Cell<'static> {
        Cell::I64(t_ns - self.zero_ns)
    }

    fn node(&self, number: u16) -> Result<Cell<'_>> {
        let name = self.nodes.get(usize::from(number));
        name.map(|name| Cell::Text(name)).ok_or_else(|| Failure::probe(format!("node {number}")))
    }

    fn packet(&self, packet: &Packet, visits: &[Visit], records: &mut Records) -> Result<()> {
        let [stream, direction] = stream(&packet.stream);
        for (visit, number) in visits.iter().zip(0..) {
            let head = [
                self.time(packet.t_ns),
                self.time(packet.end_ns),
                stream,
                direction,
                Cell::U64(packet.number.into()),
                Cell::U64(packet.bytes.into()),
                Cell::Bool(packet.data != 0),
                Cell::U64(number),
                self.node(visit.node)?,
            ];
            let ecn = if visit.ecn == abi::ECN_NOT_ECT { Cell::Null } else { codepoint(visit.ecn)? };
            records
                .push(Table::Packet, head.into_iter().chain(visit.layer_ns.map(Cell::I64)).chain([ecn]))?;
        }
        Ok(())
    }

    fn layers(&self, layers: &Layers, records: &mut Records) -> Result<()> {
        let [stream, direction] = stream(&layers.stream);
        let (node, packets) = (self.node(layers.node)?, Cell::U64(layers.packets));
        let head = [self.time(layers.t_ns), stream, direction, Cell::Bool(layers.data != 0), node, packets];
        records.push(Table::Layer, head.into_iter().chain(layers.layer_ns.map(Cell::U64)))
    }

    /// Writes a row of a flow's or a program's connection while it is established, as `sock_diag` does.
    fn tcp(&self, tcp: &Tcp, records: &mut Records) -> Result<()> {
        let Some(sender) = self.sender(&tcp.stream) else { return Ok(()) };
        let info = &tcp.info[..tcp.info.len().min(tcp.info_bytes as usize)];
        if info.first() != Some(&ESTABLISHED) {
            return Ok(());
        }
        let mut socket = tcp_row::Socket::default();
        (socket.info, socket.memory, socket.sending) = (info, tcp.meminfo.as_bytes(), Some(tcp));
        if let Ok(attribute) = u16::try_from(tcp.ca_attribute) {
            socket.set_congestion(attribute, &tcp.ca_info);
        }
        socket.write(tcp.t_ns - self.zero_ns, tcp.stream.id, sender, records)
    }

    /// Returns whether a socket is its flow's sender; None without a flow. For programs, the client counts as the
    /// sender.
    fn sender(&self, stream: &Stream) -> Option<bool> {
        let entry = self.streams.get(usize::from(stream.id));
        let upload = entry.map_or(Some(true), |(_, upload)| *upload)?;
        Some((stream.way == abi::WAY_UP) == upload)
    }

    /// Writes the state of a congestion control. The kernel reports only established connections.
    fn cc(&self, cc: &Cc, records: &mut Records) -> Result<()> {
        let Some(sender) = self.sender(&cc.stream) else { return Ok(()) };
        let row = [
            self.time(cc.t_ns),
            Cell::U64(cc.stream.id.into()),
            Cell::Bool(sender),
            Cell::Text(name(&cc.name)?),
            Cell::I64(cc.value),
        ];
        records.push(Table::Cc, row)
    }

    fn queue(&self, queue: &Queue, records: &mut Records) -> Result<()> {
        let head = [self.time(queue.t_ns), self.node(queue.node)?, Cell::Text(name(&queue.device)?)];
        let qdisc = [queue.qdisc_packets, queue.qdisc_bytes];
        let ring = [queue.ring_skbs, queue.ring_bytes, queue.bql_limit, queue.bql_inflight];
        let (table, number, txq) = match queue.number {
            abi::WHOLE_NIC => (Table::Queue, None, vec![queue.txq_packets, queue.txq_bytes]),
            number => (Table::TxQueue, Some(Cell::U64(number.into())), Vec::new()),
        };
        let sizes = qdisc.into_iter().chain(ring).chain(txq).map(|size| Cell::U64(size.into()));
        records.push(table, head.into_iter().chain(number).chain(sizes))
    }

    fn drop(&self, drop: &Drop, records: &mut Records) -> Result<()> {
        let [stream, direction] = stream(&drop.stream);
        let row = [
            self.time(drop.t_ns),
            stream,
            direction,
            self.node(drop.node)?,
            device(&drop.device)?,
            place_name(drop.place)?,
            Cell::Text(name(&drop.reason)?),
            Cell::U64(drop.packets.into()),
            Cell::U64(drop.bytes.into()),
        ];
        records.push(Table::Drop, row)
    }

    fn balance(&self, balance: &Balance, records: &mut Records) -> Result<()> {
        let [stream, direction] = stream(&balance.stream);
        let counts = [
            balance.sent,
            balance.duplicated,
            balance.delivered,
            balance.dropped,
            balance.in_flight,
            balance.unmatched,
        ];
        let head = [self.time(balance.t_ns), stream, direction];
        records.push(Table::Balance, head.into_iter().chain(counts.map(Cell::U64)))
    }

    fn mark(&self, mark: &Mark, records: &mut Records) -> Result<()> {
        let [stream, direction] = stream(&mark.stream);
        let row = [
            self.time(mark.t_ns),
            stream,
            direction,
            Cell::U64(mark.number.into()),
            Cell::U64(mark.bytes.into()),
            Cell::Bool(mark.data != 0),
            self.node(mark.node)?,
            device(&mark.device)?,
            place_name(mark.place)?,
            codepoint(mark.was)?,
            codepoint(mark.ecn)?,
        ];
        records.push(Table::Mark, row)
    }

    /// Writes a row for each codepoint that a packet had.
    fn codepoints(&self, counts: &Codepoints, records: &mut Records) -> Result<()> {
        for (ecn, name) in abi::ECN.iter().enumerate() {
            let before = [counts.sent[ecn], counts.duplicated[ecn]];
            let after = [counts.delivered[ecn], counts.dropped[ecn], counts.in_flight[ecn]];
            if counts.became[ecn] == 0 && before.iter().chain(&after).all(|count| *count == 0) {
                continue;
            }
            let [stream, direction] = stream(&counts.stream);
            let head = [self.time(counts.t_ns), stream, direction, Cell::Text(name)].into_iter();
            let row = head.chain(before.map(Cell::U64)).chain([Cell::I64(counts.became[ecn])]);
            records.push(Table::Codepoint, row.chain(after.map(Cell::U64)))?;
        }
        Ok(())
    }

    fn socket(&self, socket: &Socket, records: &mut Records) -> Result<()> {
        let id = socket.stream.id;
        let followed = id != abi::NO_STREAM;
        let app = |app: u16| if app == abi::NO_APP { Cell::Null } else { Cell::U64(app.into()) };
        let if_followed = |value: Cell<'static>| if followed { value } else { Cell::Null };
        let (address, to_address) = (address(socket.address), address(socket.to_address));
        let optional = |text: &'_ str| !text.is_empty();
        let (name, to_name) = (name(&socket.name)?, name(&socket.to_name)?);
        let row = [
            if followed { self.time(socket.t_ns) } else { Cell::I64(0) },
            if_followed(self.time(socket.end_ns)),
            if_followed(Cell::U64(id.into())),
            Cell::U64(socket.connections.into()),
            if_followed(Cell::Text(if socket.protocol == TCP { "tcp" } else { "udp" })),
            if_followed(Cell::Bool(socket.mptcp != 0)),
            if followed { self.node(socket.node)? } else { Cell::Null },
            app(socket.app[0]),
            if optional(name) { Cell::Text(name) } else { Cell::Null },
            address.as_deref().map_or(Cell::Null, Cell::Text),
            if socket.port == 0 { Cell::Null } else { Cell::U64(socket.port.into()) },
            if socket.to_node == abi::NO_NODE { Cell::Null } else { self.node(socket.to_node)? },
            app(socket.app[1]),
            if optional(to_name) { Cell::Text(to_name) } else { Cell::Null },
            to_address.as_deref().map_or(Cell::Null, Cell::Text),
            if_followed(Cell::U64(socket.to_port.into())),
            if_followed(Cell::U64(socket.bytes[0])),
            if_followed(Cell::U64(socket.bytes[1])),
        ];
        records.push(Table::Socket, row)
    }

    fn frame(&mut self, probed: &RawFrame) -> Result<()> {
        let frame = probed.frame;
        self.node(frame.node)?;
        let named = self.streams.get(usize::from(frame.stream.id)).map(|(name, _)| name.clone());
        let title = named.unwrap_or_else(|| format!("socket {}", frame.stream.id));
        self.captures.take(self.zero_ns, name(&frame.device)?, probed, &self.nodes, &title)
    }
}

/// Returns the cells `stream, way`.
fn stream(stream: &Stream) -> [Cell<'static>; 2] {
    match abi::DIRECTION.get(usize::from(stream.way)) {
        Some(name) if stream.id != abi::NO_STREAM => [Cell::U64(stream.id.into()), Cell::Text(name)],
        _ => [Cell::Null; 2],
    }
}

/// Returns the address as text; None for several addresses.
fn address(bytes: [u8; 16]) -> Option<String> {
    let address = Ipv6Addr::from(bytes);
    (!address.is_unspecified()).then(|| address.to_canonical().to_string())
}

/// Returns the device's name; null if the field is empty.
fn device(field: &[u8]) -> Result<Cell<'_>> {
    name(field).map(|name| if name.is_empty() { Cell::Null } else { Cell::Text(name) })
}

fn place_name(number: u16) -> Result<Cell<'static>> {
    let name = abi::PLACE.get(usize::from(number));
    name.map(|name| Cell::Text(name)).ok_or_else(|| Failure::probe("an unknown place"))
}

fn codepoint(number: u16) -> Result<Cell<'static>> {
    let name = abi::ECN.get(usize::from(number));
    name.map(|name| Cell::Text(name)).ok_or_else(|| Failure::probe("an unknown ECN codepoint"))
}

fn name(field: &[u8]) -> Result<&str> {
    text(field).ok_or_else(|| Failure::probe("a name that is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_records::fixtures::{fields, record, stream, text, visit};
    use crate::test_plans::{flow, icmp, plan_of};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int64Type, UInt16Type, UInt32Type, UInt64Type, UInt8Type};
    use arrow_array::{Array, RecordBatch};
    use arrow_ipc::reader::StreamReader;
    use std::collections::BTreeMap;

    const ZERO: i64 = 1000;

    fn write(name: &str, buffer: &[u64]) -> Result<BTreeMap<String, RecordBatch>> {
        let plan = plan_of(&[flow(0, "s"), icmp(1)]);
        let path = std::env::temp_dir().join(format!("hourglass-rows-{name}-{}", std::process::id()));
        let mut records = Records::create(&path).expect("a file");
        let captures = Captures::create(&[], &[], &std::env::temp_dir()).expect("none");
        let mut rows = Rows::new(&plan, ZERO, captures, Namespaces::new(&plan.nodes, &[], true));
        let result = rows.take(buffer, &mut records);
        records.finish().expect("finished");
        let file = std::fs::read(&path).expect("the file");
        std::fs::remove_file(&path).expect("removed");
        result?;
        let (mut unread, mut tables) = (file.as_slice(), BTreeMap::new());
        while !unread.is_empty() {
            let mut reader = StreamReader::try_new(&mut unread, None).expect("a stream");
            let table = reader.schema().metadata()["table"].clone();
            tables.insert(table, reader.next().expect("a batch").expect("whole"));
            assert!(reader.next().is_none());
        }
        Ok(tables)
    }

    fn strings(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
        batch[column].as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    fn tcp(info: &[u8], direction: u8) -> Vec<u64> {
        let mut body = fields![ZERO + 7];
        body.extend(stream(0, direction));
        body.extend(fields![232u32]);
        body.extend(info.iter().copied().chain(std::iter::repeat(0)).take(320));
        body.extend((0..9u32).flat_map(u32::to_ne_bytes));
        body.extend(fields![16u32, 5u32, 1u32, 20_000u32, 739u32, 512u32, 0u32]);
        body.extend(fields![3_000u64, 2_304u32, 2u32, 77u64, 10u32, 6u32, 4u32, 1_448u32]);
        body.extend((0..6u64).flat_map(u64::to_ne_bytes));
        record(abi::TCP, &body)
    }

    #[test]
    fn a_packet_has_a_row_for_each_node_and_its_layers_sum_up() {
        let mut body = fields![ZERO + 5, ZERO + 5 + 20 * 10 + 190];
        body.extend(stream(0, 1));
        body.extend(fields![9u32, 1_448u32, 1u16, 2u16]);
        body.extend([visit(1, 10), visit(0, 0)].concat());
        let tables = write("packet", &record(abi::PACKET, &body)).expect("rows");
        let packet = &tables["packet"];
        assert_eq!(packet.num_rows(), 2);
        assert_eq!(strings(packet, "node"), [Some("s".to_owned()), Some("c".to_owned())]);
        assert_eq!(strings(packet, "way")[0].as_deref(), Some("down"));
        assert_eq!(packet["stream"].as_primitive::<UInt16Type>().value(0), 0);
        assert_eq!(packet["visit"].as_primitive::<UInt8Type>().values()[..], [0, 1]);
        let number = |column: &str| packet[column].as_primitive::<Int64Type>().value(0);
        assert_eq!((number("t_ns"), number("rx_ns"), number("propagation_ns")), (5, 10, 29));
        let layers = packet.schema().fields().iter().skip(9).map(|field| number(field.name())).sum::<i64>();
        assert_eq!(layers, number("end_ns") - number("t_ns"));
        assert!(packet.column_by_name("ecn").is_none(), "a stream without marks lacks the column");
    }

    #[test]
    fn marks_and_codepoints_have_rows() {
        let mut packet = fields![ZERO + 5, ZERO + 6];
        packet.extend(stream(0, 0));
        packet.extend(fields![9u32, 1_448u32, 1u16, 2u16]);
        let mut visited = visit(1, 0);
        visited[2..4].copy_from_slice(&abi::ECN_ECT1.to_ne_bytes());
        packet.extend([visited, visit(0, 0)].concat());
        let mut mark = fields![ZERO + 3];
        mark.extend(stream(0, 1));
        mark.extend(fields![7u32, 1_448u32, 1u16, 1u16, 2u16, abi::ECN_ECT0, abi::ECN_CE, 0u16]);
        mark.extend(text("eth0", 16));
        let mut sums = fields![ZERO + 4];
        sums.extend(stream(1, 0));
        sums.extend(fields![0u32, 0u64, 0u64, 5u64, 0u64, 0u64, 0u64, 0u64, 0u64, 0i64, 0i64, -2i64, 2i64]);
        sums.extend(fields![0u64, 0u64, 3u64, 1u64, 0u64, 0u64, 0u64, 0u64, 0u64, 0u64, 0u64, 1u64]);
        let records =
            [record(abi::PACKET, &packet), record(abi::MARK, &mark), record(abi::CODEPOINTS, &sums)];
        let tables = write("marks", &records.concat()).expect("rows");
        assert_eq!(strings(&tables["packet"], "ecn"), [Some("ect1".to_owned()), None]);
        let cells = ["was", "ecn", "place", "device"]
            .map(|column| strings(&tables["mark"], column)[0].clone().unwrap());
        assert_eq!(cells, ["ect0", "ce", "qdisc", "eth0"]);
        assert_eq!(tables["codepoint"]["became"].as_primitive::<Int64Type>().values()[..], [-2, 2]);
        assert_eq!(tables["codepoint"]["in_flight"].as_primitive::<UInt64Type>().values()[..], [0, 1]);
    }

    #[test]
    fn totals_queues_drops_and_balances_fill_their_tables() {
        let mut layers = fields![ZERO + 1];
        layers.extend(stream(1, 0));
        layers.extend(fields![0u16, 0u16, 3u64]);
        layers.extend((0..20u64).flat_map(u64::to_ne_bytes));
        let queue = |number: u16| {
            let head = [fields![ZERO + 2, 1u16, number, 0u16, 0u16], text("eth0", 16)].concat();
            let sizes = (1..9u32).flat_map(u32::to_ne_bytes);
            record(abi::QUEUE, &head.into_iter().chain(sizes).collect::<Vec<_>>())
        };
        let drop = |id: u16, device: &str| {
            let mut body = fields![ZERO + 3];
            body.extend(stream(id, 0));
            body.extend(fields![0u16, 2u16, 2u32, 2_896u32]);
            body.extend(text(device, 16));
            body.extend(text("QDISC_DROP", 40));
            record(abi::DROP, &body)
        };
        let mut balance = [fields![ZERO + 4], stream(0, 0), fields![0u32]].concat();
        balance.extend([10u64, 1, 8, 2, 1, 0].into_iter().flat_map(u64::to_ne_bytes));
        let bytes = [
            record(abi::LAYERS, &layers),
            queue(abi::WHOLE_NIC),
            queue(3),
            drop(0, "eth0"),
            drop(abi::NO_STREAM, ""),
            record(abi::BALANCE, &balance),
        ];
        let tables = write("others", &bytes.concat()).expect("rows");
        assert_eq!(tables["layer"]["stream"].as_primitive::<UInt16Type>().value(0), 1);
        assert_eq!(tables["layer"]["propagation_ns"].as_primitive::<UInt64Type>().value(0), 19);
        assert_eq!(tables["queue"]["bql_inflight"].as_primitive::<UInt32Type>().values()[..], [6]);
        assert_eq!(tables["tx_queue"]["bql_inflight"].as_primitive::<UInt32Type>().values()[..], [6]);
        assert_eq!(tables["tx_queue"]["tx_queue"].as_primitive::<UInt16Type>().values()[..], [3]);
        let drop = &tables["drop"];
        assert_eq!(strings(drop, "device"), [Some("eth0".to_owned()), None]);
        assert_eq!(strings(drop, "way"), [Some("up".to_owned()), None]);
        assert_eq!(strings(drop, "place")[0].as_deref(), Some("qdisc"));
        assert_eq!(strings(drop, "reason")[1].as_deref(), Some("QDISC_DROP"));
        assert_eq!(tables["balance"]["in_flight"].as_primitive::<UInt64Type>().value(0), 1);
    }

    #[test]
    fn a_socket_has_a_row_while_it_is_established() {
        let bytes = [tcp(&[ESTABLISHED], 1), tcp(&[7], 0), tcp(&[ESTABLISHED], 0)].concat();
        let tables = write("tcp", &bytes).expect("rows");
        let tcp = &tables["tcp"];
        assert_eq!(tcp["t_ns"].as_primitive::<Int64Type>().values()[..], [7, 7]);
        let sender: Vec<bool> = tcp["sender"].as_boolean().iter().flatten().collect();
        assert_eq!(sender, [true, false], "the server of this flow sends");
        assert_eq!(tcp["bbr_bw"].as_primitive::<UInt64Type>().value(0), 1 << 32 | 5);
        assert_eq!(tcp["sk_drops"].as_primitive::<UInt32Type>().value(0), 8);
        assert_eq!(tcp["rcv_wnd"].null_count(), 2, "is not in 232 bytes");
        assert_eq!(tcp["tsq_limit"].as_primitive::<UInt64Type>().value(0), 3_000);
        assert_eq!(strings(tcp, "tsq_term")[0].as_deref(), Some("rate"));
        assert_eq!(strings(tcp, "hold")[0].as_deref(), Some("tsq"));
        assert_eq!(tcp["hold_push_ns"].as_primitive::<UInt64Type>().value(0), 5);
    }

    fn opened(id: u16, port: u16, to_node: u16, address: [u8; 16]) -> Vec<u64> {
        let mut body = fields![ZERO + 3, ZERO + 9];
        body.extend(stream(id, 0));
        body.extend(fields![4u32, 0u16, to_node, port, 443u16, 1u16, abi::NO_APP, 17u16, 0u16, 70u64, 80u64]);
        body.extend(address);
        body.extend([[0; 10].as_slice(), &[255, 255, 10, 0, 1, 2]].concat());
        body.extend([text("curl", 16), text("", 16)].concat());
        record(abi::SOCKET, &body)
    }

    #[test]
    fn streams_of_programs_and_unfollowed_connections_have_rows() {
        let client = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        let bytes = [
            opened(2, 5000, 1, client),
            opened(3, 0, abi::NO_NODE, [0; 16]),
            opened(abi::NO_STREAM, 0, abi::NO_NODE, [0; 16]),
        ];
        let tables = write("socket", &bytes.concat()).expect("rows");
        let socket = &tables["socket"];
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(socket["t_ns"].as_primitive::<Int64Type>().values()[..], [3, 3, 0]);
        assert_eq!(
            socket["stream"].as_primitive::<UInt16Type>().iter().collect::<Vec<_>>(),
            [Some(2), Some(3), None]
        );
        assert_eq!(
            socket["port"].as_primitive::<UInt16Type>().iter().collect::<Vec<_>>(),
            [Some(5000), None, None]
        );
        assert_eq!(strings(socket, "address"), [some("fd00::1"), None, None]);
        assert_eq!(strings(socket, "to_address")[0], some("10.0.1.2"));
        assert_eq!(strings(socket, "to_node"), [some("s"), None, None]);
        assert_eq!(strings(socket, "protocol"), [some("udp"), some("udp"), None]);
        assert_eq!(strings(socket, "program")[0], some("curl"));
        assert_eq!(socket["to_app"].null_count(), 3);
        assert_eq!(socket["connections"].as_primitive::<UInt32Type>().values()[..], [4, 4, 4]);
        assert_eq!(socket["bytes_down"].as_primitive::<UInt64Type>().value(0), 80);
    }

    #[test]
    fn an_impossible_record_is_a_failure() {
        let failure = |buffer: &[u64]| write("wrong", buffer).expect_err("refused").to_string();
        let mut queue = fields![0i64, 2u16, 0u16, 0u16, 0u16];
        queue.resize(64, 0);
        assert_eq!(failure(&record(abi::QUEUE, &queue)), "the kernel's probe gave node 2");
        assert_eq!(failure(&[1, 2]), "the kernel's probe gave a record that is cut off");
    }
}
