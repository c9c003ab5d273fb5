// SPDX-License-Identifier: Apache-2.0
//! The counters of the radios: a line of JSON per radio in `/proc/hourglass/radio`, with the driver's names.
//!
//! Each number becomes a row, also within an object (`aggregates.17`). The part `stations` has the driver's counters of
//! the radio's peers, each with its address. A row has the growth of a counter since test time 0, so it excludes the
//! frames of the set-up.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Error;
use std::os::unix::fs::FileExt;

use serde_json::{Map, Value};

use crate::column::Cell;
use crate::plan::Radio;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::tables::Table;

const DRIVER: &str = "/proc/hourglass/radio";
const STATIONS: &str = "stations";
const ADDRESS: &str = "addr";
/// The bytes of a read. A line has some KB: the histogram of aggregates, a dozen counters for each station.
const CHUNK: usize = 1 << 16;

/// Values that are not counters: a number, or a current level.
const LEVELS: [&str; 4] = ["medium", "tx_queued", "txq.backlog_packets", "txq.backlog_bytes"];

/// A radio by its index in the plan, the node of the counted station if any, and the counter's name.
type Key = (usize, Option<String>, String);

pub struct Radios {
    file: Option<File>,
    list: Vec<Radio>,
    buffer: Vec<u8>,
    /// The counters at test time 0.
    baseline: BTreeMap<Key, i64>,
}

impl Radios {
    pub fn open(radios: &[Radio]) -> Result<Self> {
        let file = if radios.is_empty() { None } else { Some(File::open(DRIVER).map_err(failure)?) };
        Ok(Self { file, list: radios.to_vec(), buffer: Vec::new(), baseline: BTreeMap::new() })
    }

    /// Reads the counters at test time 0.
    pub fn set_baseline(&mut self) -> Result<()> {
        let rows = self.read()?;
        self.baseline =
            rows.into_iter().filter(|((_, _, name), _)| !LEVELS.contains(&name.as_str())).collect();
        Ok(())
    }

    /// Writes all counters of the plan's radios.
    pub fn sample(&mut self, t_ns: i64, records: &mut Records) -> Result<()> {
        for (key, value) in self.read()? {
            let growth = value.wrapping_sub(self.baseline.get(&key).copied().unwrap_or_default());
            let (number, station, name) = key;
            let radio = &self.list[number];
            let table = if station.is_some() { Table::Station } else { Table::Radio };
            let head = [Cell::I64(t_ns), Cell::Text(&radio.node), Cell::Text(&radio.device)];
            let tail = [Cell::Text(&name), Cell::I64(growth)];
            records.push(table, head.into_iter().chain(station.as_deref().map(Cell::Text)).chain(tail))?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<(Key, i64)>> {
        let mut rows = Vec::new();
        let Some(file) = &self.file else { return Ok(rows) };
        read(file, &mut self.buffer).map_err(failure)?;
        for line in self.buffer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let counters: Map<String, Value> =
                serde_json::from_slice(line).map_err(|error| Failure::data(DRIVER, error))?;
            let phy = counters.get("phy").and_then(Value::as_str).unwrap_or_default();
            if let Some(number) = self.list.iter().position(|radio| radio.phy == phy) {
                self.flatten_radio(number, &counters, &mut rows);
            }
        }
        Ok(rows)
    }

    fn flatten_radio(&self, number: usize, counters: &Map<String, Value>, rows: &mut Vec<(Key, i64)>) {
        let mut push = |station: Option<&str>, name: &str, value: i64| {
            rows.push(((number, station.map(str::to_owned), name.to_owned()), value));
        };
        for (key, value) in counters.iter().filter(|(key, _)| *key != STATIONS) {
            flatten(key, value, &mut |name, value| push(None, name, value));
        }
        for station in counters.get(STATIONS).and_then(Value::as_array).into_iter().flatten() {
            let address = station.get(ADDRESS).and_then(Value::as_str).unwrap_or_default();
            let node =
                self.list.iter().find(|radio| radio.address == address).map_or(address, |radio| &radio.node);
            flatten("", station, &mut |name, value| push(Some(node), name, value));
        }
    }
}

fn failure(error: Error) -> Failure {
    Failure::system(DRIVER, error)
}

/// Reads the whole file, from its beginning.
fn read(file: &File, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let mut size = 0;
    loop {
        buffer.resize(size + CHUNK, 0);
        let count = file.read_at(&mut buffer[size..], size as u64)?;
        size += count;
        if count == 0 {
            buffer.truncate(size);
            return Ok(());
        }
    }
}

/// Emits every number below `value` under its dotted name. All are u64.
fn flatten(name: &str, value: &Value, emit: &mut dyn FnMut(&str, i64)) {
    match value {
        // a digest has all 64 bits
        Value::Number(number) => {
            number
                .as_u64()
                .into_iter()
                .for_each(|number| emit(name, i64::from_ne_bytes(number.to_ne_bytes())));
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                let path = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&path, entry, emit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_at_every_level() {
        let value = serde_json::json!({"a": 1, "tx_ns": {"be": 2}, "aggregates": {"17": 9}, "name": "x"});
        let mut rows = Vec::new();
        flatten("", &value, &mut |name, value| rows.push((name.to_owned(), value)));
        let expected = [("a", 1), ("aggregates.17", 9), ("tx_ns.be", 2)];
        assert_eq!(rows, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
