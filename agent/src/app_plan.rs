// SPDX-License-Identifier: Apache-2.0
//! The programs of a plan: this end of the contract whose other end is `src/hourglass/contract/plan_apps.py`, where the
//! parts are described.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::plan_values::{ns, present, present_ns};

const NAME_MAX: usize = 32;
const SIGNAL_MAX: i32 = 64;
const MODE_MAX: u32 = 0o7777;

/// Where programs are taken from: the engine's affair, which gives it as a folder by its place in the list.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    kind: RootKind,
    place: String,
    packages: Vec<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RootKind {
    Folder,
    Archive,
    Debian,
    Host,
}

/// The file system of a node's programs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Room {
    pub node: String,
    /// The place in the plan's roots.
    pub root: u32,
    pub files: Vec<File>,
}

/// A file that is written into a room before anything starts there.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    #[serde(deserialize_with = "absolute")]
    pub path: String,
    #[serde(deserialize_with = "mode")]
    pub mode: u32,
    pub content: Content,
}

/// Bytes, in base64.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Content(String);

/// A program.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct App {
    pub id: u16,
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// The place in the plan's rooms.
    pub room: u32,
    #[serde(deserialize_with = "command")]
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
    #[serde(deserialize_with = "absolute")]
    pub folder: String,
    pub user: String,
    pub stdin: Content,
    #[serde(deserialize_with = "ns")]
    pub start_ns: i64,
    pub after: Vec<u16>,
    #[serde(deserialize_with = "present_ns")]
    pub stop_ns: Option<i64>,
    #[serde(deserialize_with = "signal")]
    pub stop_signal: i32,
    #[serde(deserialize_with = "ns")]
    pub grace_ns: i64,
    pub ready: Ready,
    #[serde(deserialize_with = "ns")]
    pub ready_ns: i64,
    pub restarts: u32,
    #[serde(deserialize_with = "ns")]
    pub restart_ns: i64,
    pub background: bool,
    #[serde(deserialize_with = "ns")]
    pub output_bytes: i64,
    #[serde(deserialize_with = "absolutes")]
    pub collect: Vec<String>,
    #[serde(deserialize_with = "present")]
    pub origin: Option<String>,
}

/// What those who come after a program wait for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "when", rename_all = "lowercase", deny_unknown_fields)]
pub enum Ready {
    Start {},
    Listen {
        protocol: Transport,
        port: u16,
    },
    Output {
        #[serde(deserialize_with = "some_text")]
        text: String,
    },
    File {
        #[serde(deserialize_with = "absolute")]
        path: String,
    },
    Delay {
        #[serde(deserialize_with = "ns")]
        ns: i64,
    },
    Exit {},
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    Tcp,
    Udp,
}

impl Ready {
    /// What it waits for, in words.
    pub fn awaited(&self) -> String {
        match self {
            Self::Start {} | Self::Delay { .. } => "its start".to_owned(),
            Self::Listen { protocol, port } => format!("{protocol}:{port} to be listened on"),
            Self::Output { text } => format!("{text:?} in its output"),
            Self::File { path } => format!("the file {path}"),
            Self::Exit {} => "its end with status 0".to_owned(),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

impl Content {
    #[allow(dead_code, reason = "for what runs the programs")]
    pub fn bytes(&self) -> Vec<u8> {
        decode(&self.0).expect("was checked when it was read")
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match decode(&text) {
            Some(_) => Ok(Self(text)),
            None => Err(D::Error::custom("a content that is not base64 (RFC 4648, with padding)")),
        }
    }
}

/// The bytes of a text in base64, which is the only one that stands for them.
fn decode(text: &str) -> Option<Vec<u8>> {
    let padding = text.bytes().rev().take_while(|letter| *letter == b'=').count();
    if text.len() % 4 != 0 || padding > 2 {
        return None;
    }
    let (mut bytes, mut bits, mut held) = (Vec::with_capacity(text.len() / 4 * 3), 0_u32, 0_u32);
    for letter in text[..text.len() - padding].bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (bits, held) = (bits << 6 | u32::from(value), held + 6);
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from(bits >> held).ok()?);
            bits &= (1 << held) - 1;
        }
    }
    (bits == 0 && held as usize == 2 * padding).then_some(bytes)
}

fn checked<'de, D: Deserializer<'de>>(
    deserializer: D,
    what: &str,
    good: impl Fn(&str) -> bool,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    if good(&text) {
        Ok(text)
    } else {
        Err(D::Error::custom(format!("{text:?} is no {what}")))
    }
}

fn is_absolute(path: &str) -> bool {
    path.starts_with('/') && !path.contains('\0')
}

fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, "absolute path", is_absolute)
}

fn absolutes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let paths = Vec::<String>::deserialize(deserializer)?;
    match paths.iter().find(|path| !is_absolute(path)) {
        Some(path) => Err(D::Error::custom(format!("{path:?} is no absolute path"))),
        None => Ok(paths),
    }
}

fn some_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, "text to wait for", |text| !text.is_empty())
}

/// It names files.
fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(deserializer, "name of a program", |text| {
        text.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && text.len() <= NAME_MAX
            && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || b"_-".contains(&letter))
    })
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.is_empty() {
        return Err(D::Error::custom("a command without words"));
    }
    Ok(words)
}

fn signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    match i32::deserialize(deserializer)? {
        number @ 1..=SIGNAL_MAX => Ok(number),
        number => Err(D::Error::custom(format!("{number} is no signal"))),
    }
}

fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        bits @ 0..=MODE_MAX => Ok(bits),
        bits => Err(D::Error::custom(format!("{bits} is no mode of a file"))),
    }
}

/// What no single part shows.
pub fn check(
    nodes: &[String],
    root_list: &[Root],
    rooms: &[Room],
    apps: &[App],
    end_ns: i64,
) -> Result<(), String> {
    let require = |holds: bool, message: String| if holds { Ok(()) } else { Err(message) };
    let mut seen = BTreeSet::new();
    for Room { node, root, .. } in rooms {
        require(nodes.contains(node), format!("a room names the node {node}, which is not in nodes"))?;
        require((*root as usize) < root_list.len(), format!("a room names root {root}, which is not there"))?;
        require(seen.insert((node, root)), "two rooms are the same".into())?;
    }
    let mut names = BTreeSet::new();
    for (app, place) in apps.iter().zip(0_u16..) {
        let App { id, name, start_ns, .. } = app;
        require(names.insert(name), format!("two apps are both {name}"))?;
        require(*id == place, format!("app {name} has the id {id}, not its place {place}"))?;
        require((app.room as usize) < rooms.len(), format!("app {name} is in a room that is not there"))?;
        let known = |one: &u16| usize::from(*one) < apps.len() && *one != place;
        require(app.after.iter().all(known), format!("app {name} comes after one that is not there"))?;
        require(*start_ns < end_ns, format!("app {name} starts at the end of the test or later"))?;
        let stops = app.stop_ns.is_none_or(|stop_ns| *start_ns < stop_ns && stop_ns <= end_ns);
        require(stops, format!("app {name}: start_ns < stop_ns <= end_ns does not hold"))?;
    }
    Ok(())
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
