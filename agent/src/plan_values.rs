// SPDX-License-Identifier: Apache-2.0
//! Values of a plan that not every value of their type can be: what `contract/plan.py` says of each, while it is read.

use std::fmt::Display;
use std::net::IpAddr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

const VERSION: u32 = 6;
/// The largest payload of an IPv4 packet with an eight-byte ICMP or UDP header.
const PAYLOAD_MAX: usize = 65_507;
const DSCP_MAX: u8 = 63;

fn bounded<'de, T, D>(deserializer: D, least: &T, most: &T) -> Result<T, D::Error>
where
    T: Deserialize<'de> + PartialOrd + Display,
    D: Deserializer<'de>,
{
    let value = T::deserialize(deserializer)?;
    if (least..=most).contains(&&value) {
        Ok(value)
    } else {
        Err(D::Error::custom(format!("{value} is not in {least}..={most}")))
    }
}

pub fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => Err(D::Error::custom(format!("version {other} (this agent knows {VERSION})"))),
    }
}

pub fn ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    bounded(deserializer, &0, &i64::MAX)
}

pub fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    bounded(deserializer, &1, &i64::MAX)
}

/// Of things, at least one.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    bounded(deserializer, &1, &u32::MAX)
}

/// Of something, in bytes.
pub fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    bounded(deserializer, &1, &i64::MAX.unsigned_abs())
}

pub fn positives<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
    let values = Vec::<u64>::deserialize(deserializer)?;
    match values.iter().find(|value| !(1..=i64::MAX.unsigned_abs()).contains(*value)) {
        Some(value) => Err(D::Error::custom(format!("{value} is not in 1..={}", i64::MAX))),
        None => Ok(values),
    }
}

pub fn payload<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    bounded(deserializer, &0, &PAYLOAD_MAX)
}

pub fn dscp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    bounded(deserializer, &0, &DSCP_MAX)
}

/// `null`, but not left out.
pub fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

pub fn present_ns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    match present(deserializer)? {
        Some(value) if value < 0 => Err(D::Error::custom(format!("{value} is below 0"))),
        value => Ok(value),
    }
}

/// bit/s, whole bytes of them.
pub fn pace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match present(deserializer)? {
        Some(value) if !(8..=i64::MAX.unsigned_abs()).contains(&value) || value % 8 != 0 => {
            Err(D::Error::custom(format!("{value} is no multiple of 8 in 8..={}", i64::MAX)))
        }
        value => Ok(value),
    }
}

/// A name without a folder.
pub fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() || name.contains('/') {
        return Err(D::Error::custom(format!("a capture's file {name:?} is not a plain name")));
    }
    Ok(name)
}

/// As it is printed: equal addresses are equal texts.
fn canonical(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address: &IpAddr| address.to_string() == text)
}

pub fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    canonical(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is no address")))
}

/// An IP address with its prefix length: `10.0.0.1/24`.
pub fn interface<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = text.split_once('/').and_then(|(address, bits)| {
        let longest = if canonical(address)?.is_ipv4() { 32 } else { 128 };
        bits.parse::<u8>().ok().filter(|length| *length <= longest && length.to_string() == bits)
    });
    match parsed {
        Some(_) => Ok(text),
        None => Err(D::Error::custom(format!("{text:?} is no address with a prefix length"))),
    }
}

/// An object whose keys are those of `A` and those of `B`, both strict. (`flatten` would let any key pass.)
pub fn split<'de, A, B, D>(deserializer: D) -> Result<(A, B), D::Error>
where
    A: DeserializeOwned + Serialize,
    B: DeserializeOwned,
    D: Deserializer<'de>,
{
    let mut rest = Map::deserialize(deserializer)?;
    let first: A = serde_json::from_value(Value::Object(rest.clone())).map_err(D::Error::custom)?;
    if let Ok(Value::Object(taken)) = serde_json::to_value(&first) {
        rest.retain(|key, _| !taken.contains_key(key));
    }
    Ok((first, serde_json::from_value(Value::Object(rest)).map_err(D::Error::custom)?))
}
