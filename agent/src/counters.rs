// SPDX-License-Identifier: Apache-2.0
//! The drivers' counters (`ethtool -S`) of every device: their growth since test time 0, without the traffic of the
//! set-up.

use std::collections::BTreeMap;

use crate::column::Cell;
use crate::device::Devices;
use crate::ethtool;
use crate::netns::Nodes;
use crate::records::Records;
use crate::report::{Failure, Result};
use crate::tables::Table;

/// Values by node, device and name.
type Values = BTreeMap<[String; 3], u64>;

/// The values at test time 0.
pub struct Counters(Values);

impl Counters {
    /// Reads the values at test time 0.
    pub fn baseline(nodes: &Nodes, devices: &mut [Devices]) -> Result<Self> {
        let mut values = Values::new();
        for_each_counter(nodes, devices, |path, value| {
            values.insert(path.map(str::to_owned), value);
            Ok(())
        })?;
        Ok(Self(values))
    }

    /// Writes the growth of each counter modulo 2⁶⁴. Levels such as `rx_in_flight` are included, so that sums of
    /// counters hold.
    pub fn write(
        &self,
        t_ns: i64,
        nodes: &Nodes,
        devices: &mut [Devices],
        records: &mut Records,
    ) -> Result<()> {
        for_each_counter(nodes, devices, |path, value| {
            let baseline = self.0.get(&path.map(str::to_owned)).copied().unwrap_or_default();
            let cells = [Cell::I64(t_ns)].into_iter().chain(path.map(Cell::Text));
            records.push(Table::Ethtool, cells.chain([Cell::U64(value.wrapping_sub(baseline))]))
        })
    }
}

fn for_each_counter(
    nodes: &Nodes,
    devices: &mut [Devices],
    mut take: impl FnMut([&str; 3], u64) -> Result<()>,
) -> Result<()> {
    for (node, devices) in nodes.names().zip(devices) {
        for device in devices.names()? {
            let counters = ethtool::counters(nodes.control(node), &device)
                .map_err(|error| Failure::system(format!("ethtool counters of {device} in {node}"), error))?;
            counters.into_iter().try_for_each(|(name, value)| take([node, &device, &name], value))?;
        }
    }
    Ok(())
}
