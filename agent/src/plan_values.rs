// SPDX-License-Identifier: Apache-2.0
//! Values of a plan that are restricted beyond their type: `contract/plan/` describes each restriction. They are
//! checked while the plan is parsed.

use std::fmt::Display;
use std::net::IpAddr;

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

const VERSION: u32 = 8;
/// The largest payload of an IPv4 packet with an eight-byte ICMP or UDP header.
const PAYLOAD_MAX: usize = 65_507;
const DSCP_MAX: u8 = 63;
const NAME_MAX: usize = 32;
const SIGNAL_MAX: i32 = 64;
const MODE_MAX: u32 = 0o7777;

fn bounded<'de, T, D>(deserializer: D, minimum: &T, maximum: &T) -> Result<T, D::Error>
where
    T: Deserialize<'de> + PartialOrd + Display,
    D: Deserializer<'de>,
{
    let value = T::deserialize(deserializer)?;
    if (minimum..=maximum).contains(&&value) {
        Ok(value)
    } else {
        Err(D::Error::custom(format!("{value} is not in {minimum}..={maximum}")))
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

/// Parses a count of at least 1.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    bounded(deserializer, &1, &u32::MAX)
}

/// Parses a size in bytes.
pub fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    bounded(deserializer, &1, &i64::MAX.unsigned_abs())
}

pub fn size_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
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

/// Parses a value or `null`. The key itself must exist.
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

/// Parses a rate in bit/s that is a whole number of bytes per second, or `null`.
pub fn present_pace<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    match present(deserializer)? {
        Some(value) if !(8..=i64::MAX.unsigned_abs()).contains(&value) || value % 8 != 0 => {
            Err(D::Error::custom(format!("{value} is not a multiple of 8 in 8..={}", i64::MAX)))
        }
        value => Ok(value),
    }
}

/// Parses a file name without a folder.
pub fn file_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.is_empty() || name.contains('/') {
        return Err(D::Error::custom(format!("a capture's file {name:?} is not a plain name")));
    }
    Ok(name)
}

/// Parses an address in the form in which it is printed, so that equal addresses are equal texts.
fn canonical(text: &str) -> Option<IpAddr> {
    text.parse().ok().filter(|address: &IpAddr| address.to_string() == text)
}

pub fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    canonical(&text).ok_or_else(|| D::Error::custom(format!("{text:?} is not an address")))
}

/// Parses an IP address and its prefix length: `10.0.0.1/24`.
pub fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let address = canonical(address)?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let length = bits.parse().ok().filter(|length: &u8| *length <= longest && length.to_string() == bits)?;
    Some((address, length))
}

fn lower_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Parses a hardware address: `02:00:00:00:00:01`.
pub fn hardware(text: &str) -> Option<[u8; 6]> {
    let pairs = text.split(':').map(|pair| {
        (pair.len() == 2 && lower_hex(pair)).then(|| u8::from_str_radix(pair, 16).ok()).flatten()
    });
    pairs.collect::<Option<Vec<_>>>()?.try_into().ok()
}

/// Parses a handle `10:` or a class `1:1`: two hexadecimal numbers.
pub fn handle_number(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    if [major, minor].iter().any(|digits| digits.len() > 4 || !lower_hex(digits)) {
        return None;
    }
    let major = u32::from_str_radix(major, 16).ok()?;
    Some(major << 16 | if minor.is_empty() { 0 } else { u32::from_str_radix(minor, 16).ok()? })
}

fn parsed<'de, T, D: Deserializer<'de>>(
    deserializer: D,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<String>, D::Error> {
    match present::<String, D>(deserializer)? {
        Some(text) if parse(&text).is_none() => {
            Err(D::Error::custom(format!("{text:?} is not of the right form")))
        }
        text => Ok(text),
    }
}

pub fn present_interface<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    parsed(deserializer, prefix)
}

pub fn present_mac<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    parsed(deserializer, hardware)
}

pub fn mac<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    present_mac(deserializer)?.ok_or_else(|| D::Error::custom("a hardware address is null"))
}

pub fn present_handle<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    parsed(deserializer, handle_number)
}

pub fn interface<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    present_interface(deserializer)?
        .ok_or_else(|| D::Error::custom("an address with a prefix length is null"))
}

/// Parses an object with the keys of `A` and of `B` and no others. (`flatten` would accept any key.)
pub fn split<'de, A, B, D>(deserializer: D) -> Result<(A, B), D::Error>
where
    A: DeserializeOwned + Serialize,
    B: DeserializeOwned,
    D: Deserializer<'de>,
{
    let mut remaining = Map::deserialize(deserializer)?;
    let first: A = serde_json::from_value(Value::Object(remaining.clone())).map_err(D::Error::custom)?;
    if let Ok(Value::Object(consumed)) = serde_json::to_value(&first) {
        remaining.retain(|key, _| !consumed.contains_key(key));
    }
    Ok((first, serde_json::from_value(Value::Object(remaining)).map_err(D::Error::custom)?))
}

/// Bytes, as base64 in the plan.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Content(String);

impl Content {
    #[allow(dead_code, reason = "only programs use it")]
    pub fn bytes(&self) -> Vec<u8> {
        decode(&self.0).expect("base64, since parsing checks it")
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match decode(&text) {
            Some(_) => Ok(Self(text)),
            None => Err(D::Error::custom("a content is not base64 (RFC 4648, with padding)")),
        }
    }
}

/// Decodes base64. Only the canonical text of some bytes is accepted.
fn decode(text: &str) -> Option<Vec<u8>> {
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    if text.len() % 4 != 0 || padding > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut bit_count) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0_u32);
    for byte in text[..text.len() - padding].bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, bit_count) = (bits << 6 | u32::from(value), bit_count + 6);
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from(bits >> bit_count).ok()?);
            bits &= (1 << bit_count) - 1;
        }
    }
    (bits == 0 && bit_count as usize == 2 * padding).then_some(bytes)
}

fn checked_text<'de, D: Deserializer<'de>>(
    deserializer: D,
    kind: &str,
    is_valid: impl Fn(&str) -> bool,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if is_valid(&text) {
        Ok(text)
    } else {
        Err(D::Error::custom(format!("{text:?} is not a {kind}")))
    }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && !path.contains('\0')
}

pub fn absolute_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked_text(deserializer, "absolute path", is_absolute)
}

pub fn absolute_path_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let paths = Vec::<String>::deserialize(deserializer)?;
    match paths.iter().find(|path| !is_absolute(path)) {
        Some(path) => Err(D::Error::custom(format!("{path:?} is not an absolute path"))),
        None => Ok(paths),
    }
}

pub fn some_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked_text(deserializer, "text to wait for", |text| !text.is_empty())
}

/// Parses a program's name, which also names files.
pub fn app_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked_text(deserializer, "name of a program", |text| {
        text.starts_with(|byte: char| byte.is_ascii_alphabetic())
            && text.len() <= NAME_MAX
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    })
}

pub fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let arguments = Vec::<String>::deserialize(deserializer)?;
    if arguments.is_empty() {
        return Err(D::Error::custom("a command without words"));
    }
    Ok(arguments)
}

pub fn signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    match i32::deserialize(deserializer)? {
        number @ 1..=SIGNAL_MAX => Ok(number),
        number => Err(D::Error::custom(format!("{number} is not a signal"))),
    }
}

pub fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        bits @ 0..=MODE_MAX => Ok(bits),
        bits => Err(D::Error::custom(format!("{bits} is not a mode of a file"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded_and_every_content_has_one_text() {
        let decoded = |text| decode(text).map(|bytes| String::from_utf8(bytes).expect("text"));
        for (text, content) in
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decoded(text).as_deref(), Some(content));
        }
        for text in ["Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Zm 9", "Zm9v\n"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
