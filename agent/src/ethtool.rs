// SPDX-License-Identifier: Apache-2.0
//! A driver's counters: the output of `ethtool -S` (include/uapi/linux/ethtool.h), without starting it.

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
/// The names that `ethtool -k` prints, and the commands that read them.
const OFFLOADS: [(&str, u32); 3] = [
    ("tcp-segmentation-offload", 0x1e),
    ("generic-segmentation-offload", 0x23),
    ("generic-receive-offload", 0x2b),
];

/// Returns the driver's name.
pub fn driver(control: BorrowedFd, device: &str) -> Result<String> {
    // `struct ethtool_drvinfo`: command, then the driver in 32 bytes
    let answer = request(control, device, &[ETHTOOL_GDRVINFO], DRIVER_INFO)?;
    Ok(name(&answer[4..4 + NAME]))
}

/// Returns the offloads that the device reports, and whether each is on.
pub fn offloads(control: BorrowedFd, device: &str) -> Vec<(&'static str, bool)> {
    let is_enabled =
        |command: u32| request(control, device, &[command, 0], 8).ok().and_then(|answer| u32_at(&answer, 4));
    OFFLOADS.iter().filter_map(|(name, command)| Some((*name, is_enabled(*command)? != 0))).collect()
}

/// Returns names and values in the driver's order; empty if the driver has no counters.
pub fn counters(control: BorrowedFd, device: &str) -> Result<Vec<(String, u64)>> {
    let Some(count) = count(control, device) else { return Ok(Vec::new()) };
    let count_word = u32::try_from(count).expect("came from a u32");
    let names = request(control, device, &[ETHTOOL_GSTRINGS, ETH_SS_STATS, count_word], 12 + count * NAME)?;
    let values = request(control, device, &[ETHTOOL_GSTATS, count_word], 8 + count * 8)?;
    let names = names[12..].chunks_exact(NAME).map(name);
    let values =
        values[8..].chunks_exact(8).map(|bytes| u64::from_ne_bytes(*bytes.first_chunk().expect("is 8")));
    Ok(names.zip(values).take(count).collect())
}

/// Reads the number of counters from `struct ethtool_sset_info`: command, reserved, a mask of sets (two words), then
/// the size of each set in the mask.
fn count(control: BorrowedFd, device: &str) -> Option<usize> {
    let answer = request(control, device, &[ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_STATS, 0], 20).ok()?;
    let supported = u32_at(&answer, 8)? == 1 << ETH_SS_STATS;
    usize::try_from(u32_at(&answer, 16)?).ok().filter(|count| supported && *count > 0)
}

/// Returns the number of features that the kernel knows. An offload is one feature.
pub fn features(control: BorrowedFd, device: &str) -> Result<usize> {
    const ETH_SS_FEATURES: u32 = 4;
    let answer = request(control, device, &[ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0], 20)?;
    Ok(u32_at(&answer, 16).and_then(|count| usize::try_from(count).ok()).unwrap_or_default())
}

/// Sends a command and returns the structure of `size` bytes that the kernel filled in.
pub fn request(control: BorrowedFd, device: &str, command: &[u32], size: usize) -> Result<Vec<u8>> {
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
