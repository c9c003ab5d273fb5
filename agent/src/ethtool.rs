// SPDX-License-Identifier: Apache-2.0
//! A driver's own counters: what `ethtool -S` prints (include/uapi/linux/ethtool.h), without starting it.

use std::io::Result;
use std::os::fd::BorrowedFd;

use crate::netlink::u32_at;
use crate::sys;

const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSTATS: u32 = 0x1d;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETH_SS_STATS: u32 = 1;
const NAME: usize = 32;

const ETHTOOL_GDRVINFO: u32 = 0x03;
const DRIVER_INFO: usize = 196;
/// The names that `ethtool -k` prints, and the commands that ask for them.
const OFFLOADS: [(&str, u32); 3] = [
    ("tcp-segmentation-offload", 0x1e),
    ("generic-segmentation-offload", 0x23),
    ("generic-receive-offload", 0x2b),
];

/// The driver's name.
pub fn driver(control: BorrowedFd, device: &str) -> Result<String> {
    // `struct ethtool_drvinfo`: command, then the driver in 32 bytes
    let answer = ask(control, device, &[ETHTOOL_GDRVINFO], DRIVER_INFO)?;
    Ok(name(&answer[4..4 + NAME]))
}

/// Which offloads are on, of those that the device can tell.
pub fn offloads(control: BorrowedFd, device: &str) -> Vec<(&'static str, bool)> {
    let told =
        |command: u32| ask(control, device, &[command, 0], 8).ok().and_then(|answer| u32_at(&answer, 4));
    OFFLOADS.iter().filter_map(|(name, command)| Some((*name, told(*command)? != 0))).collect()
}

/// Names and values, in the driver's order; nothing if the driver counts nothing.
pub fn counters(control: BorrowedFd, device: &str) -> Result<Vec<(String, u64)>> {
    let Some(count) = count(control, device) else { return Ok(Vec::new()) };
    let count_word = u32::try_from(count).expect("came from a u32");
    let names = ask(control, device, &[ETHTOOL_GSTRINGS, ETH_SS_STATS, count_word], 12 + count * NAME)?;
    let values = ask(control, device, &[ETHTOOL_GSTATS, count_word], 8 + count * 8)?;
    let names = names[12..].chunks_exact(NAME).map(name);
    let values =
        values[8..].chunks_exact(8).map(|bytes| u64::from_ne_bytes(*bytes.first_chunk().expect("is 8")));
    Ok(names.zip(values).take(count).collect())
}

/// `struct ethtool_sset_info`: command, reserved, a mask of sets (two words), then the size of each set in the mask.
fn count(control: BorrowedFd, device: &str) -> Option<usize> {
    let answer = ask(control, device, &[ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_STATS, 0], 20).ok()?;
    let known = u32_at(&answer, 8)? == 1 << ETH_SS_STATS;
    usize::try_from(u32_at(&answer, 16)?).ok().filter(|count| known && *count > 0)
}

/// How many features the kernel knows: offloads are a bit each.
pub fn features(control: BorrowedFd, device: &str) -> Result<usize> {
    const ETH_SS_FEATURES: u32 = 4;
    let answer = ask(control, device, &[ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0], 20)?;
    Ok(u32_at(&answer, 16).and_then(|count| usize::try_from(count).ok()).unwrap_or_default())
}

/// Sends a command and gives back the structure of `size` bytes that the kernel made of it.
pub fn ask(control: BorrowedFd, device: &str, command: &[u32], size: usize) -> Result<Vec<u8>> {
    let bytes: Vec<u8> = command.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let mut padded = vec![0; size.next_multiple_of(8)];
    padded[..bytes.len()].copy_from_slice(&bytes);
    let mut buffer: Vec<u64> =
        padded.chunks_exact(8).map(|eight| u64::from_ne_bytes(*eight.first_chunk().expect("is 8"))).collect();
    sys::ethtool(control, device, &mut buffer)?;
    Ok(buffer.iter().flat_map(|word| word.to_ne_bytes()).collect())
}

fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
