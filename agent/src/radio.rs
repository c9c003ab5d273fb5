// SPDX-License-Identifier: Apache-2.0
//! The counters of the radios: a line of JSON per radio in `/proc/hourglass/radio`, whose names are the driver's.
//!
//! A number is a row, an array a row for each entry that is not 0 (`subframes.17`), an object within a row for each of its
//! numbers (`air.data_ns`). What stands below `stations` belongs to the station whose address is the key.

use std::fs::File;
use std::io::Error;
use std::os::unix::fs::FileExt;

use serde_json::{Map, Value};

use crate::column::Cell;
use crate::plan::Radio;
use crate::records::{Records, Table};
use crate::report::{Failure, Result};

const DRIVER: &str = "/proc/hourglass/radio";
const STATIONS: &str = "stations";
/// A line has some KB: the histogram of aggregates, a dozen counters for each station.
const CHUNK: usize = 1 << 16;

pub struct Radios {
    file: Option<File>,
    list: Vec<Radio>,
    buffer: Vec<u8>,
}

impl Radios {
    pub fn open(radios: &[Radio]) -> Result<Self> {
        let file = if radios.is_empty() { None } else { Some(File::open(DRIVER).map_err(failure)?) };
        Ok(Self { file, list: radios.to_vec(), buffer: Vec::new() })
    }

    /// All counters of the plan's radios.
    pub fn sample(&mut self, t_ns: i64, records: &mut Records) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        read(file, &mut self.buffer).map_err(failure)?;
        for line in self.buffer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let counters: Map<String, Value> =
                serde_json::from_slice(line).map_err(|error| Failure::of(DRIVER, error))?;
            let phy = counters.get("phy").and_then(Value::as_str).unwrap_or_default();
            if let Some(radio) = self.list.iter().find(|radio| radio.phy == phy) {
                write(t_ns, radio, &counters, records)?;
            }
        }
        Ok(())
    }
}

fn failure(error: Error) -> Failure {
    Failure::system(DRIVER, error)
}

/// The whole file, from its beginning.
fn read(file: &File, buffer: &mut Vec<u8>) -> std::io::Result<()> {
    let mut size = 0;
    loop {
        buffer.resize(size + CHUNK, 0);
        let more = file.read_at(&mut buffer[size..], size as u64)?;
        size += more;
        if more == 0 {
            buffer.truncate(size);
            return Ok(());
        }
    }
}

fn write(t_ns: i64, radio: &Radio, counters: &Map<String, Value>, records: &mut Records) -> Result<()> {
    let head = [Cell::I64(t_ns), Cell::Text(&radio.node), Cell::Text(&radio.device)];
    let mut result = Ok(());
    for (key, value) in counters {
        if key == STATIONS {
            for (station, counters) in value.as_object().into_iter().flatten() {
                flatten("", counters, &mut |name, value| {
                    let row =
                        [&head[..], &[Cell::Text(station), Cell::Text(name), Cell::I64(value)]].concat();
                    if result.is_ok() {
                        result = records.push(Table::Station, &row);
                    }
                });
            }
        } else {
            flatten(key, value, &mut |name, value| {
                let row = [&head[..], &[Cell::Text(name), Cell::I64(value)]].concat();
                if result.is_ok() {
                    result = records.push(Table::Radio, &row);
                }
            });
        }
    }
    result
}

/// Every number below `value`, under its dotted name.
fn flatten(name: &str, value: &Value, take: &mut dyn FnMut(&str, i64)) {
    let below = |key: &str| if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") };
    match value {
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                take(name, number);
            }
        }
        Value::Array(entries) => {
            for (place, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.as_i64() != Some(0)) {
                flatten(&below(&place.to_string()), entry, take);
            }
        }
        Value::Object(entries) => entries.iter().for_each(|(key, entry)| flatten(&below(key), entry, take)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_wherever_they_stand() {
        let value =
            serde_json::json!({"a": 1, "b": {"c_ns": -2}, "hist": [0, 7, 0, 9], "name": "x", "half": 0.5});
        let mut rows = Vec::new();
        flatten("", &value, &mut |name, value| rows.push((name.to_owned(), value)));
        let expected = [("a", 1), ("b.c_ns", -2), ("hist.1", 7), ("hist.3", 9)];
        assert_eq!(rows, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
