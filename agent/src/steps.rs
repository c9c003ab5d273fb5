// SPDX-License-Identifier: Apache-2.0
//! The steps of a plan's set-up: what each is, and who is to blame when it fails.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Deserializer, Serialize};

use crate::plan_values::{address, ns, present, split};
use crate::report::Failure;

/// A step of the set-up: where it runs, whom to blame for it, and what is done.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    #[serde(flatten)]
    pub place: Place,
    #[serde(flatten)]
    pub work: Work,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Place {
    #[serde(deserialize_with = "present")]
    pub node: Option<String>,
    #[serde(deserialize_with = "present")]
    origin: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "lowercase", deny_unknown_fields)]
pub enum Work {
    Ip {
        lines: Vec<String>,
    },
    Tc {
        lines: Vec<String>,
    },
    Write {
        path: String,
        value: String,
    },
    Ethtool {
        args: Vec<String>,
    },
    Reach {
        #[serde(deserialize_with = "address")]
        address: IpAddr,
        #[serde(deserialize_with = "ns")]
        timeout_ns: i64,
    },
    Iw {
        args: Vec<String>,
        #[serde(deserialize_with = "present")]
        says: Option<String>,
        #[serde(deserialize_with = "ns")]
        timeout_ns: i64,
    },
    Daemon(Daemon),
    /// A device of the machine's own, moved into the node; the guard gives it back.
    Take {
        real: String,
        device: String,
    },
    /// What the steps that follow change of a namespace that outlives the run, and the guard makes as it was: devices,
    /// files of /proc and /sys; and devices that they make.
    Keep {
        devices: Vec<String>,
        files: Vec<String>,
        made: Vec<String>,
    },
    /// The node is a machine, which is reached so, and its devices are these interfaces: for those who conduct it.
    Host {
        destination: String,
        devices: BTreeMap<String, String>,
    },
    Tell(Tell),
    Epoch {
        path: String,
    },
    App {
        app: u16,
        act: Act,
    },
}

/// What an event does to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Act {
    Kill,
    Pause,
    Resume,
    Restart,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Daemon {
    pub tool: Tool,
    pub config: String,
    pub ready: String,
    #[serde(deserialize_with = "ns")]
    pub timeout_ns: i64,
}

/// A line for a daemon's control socket, and what the daemon says when it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tell {
    pub tool: Tool,
    pub socket: String,
    pub line: String,
    pub says: String,
    #[serde(deserialize_with = "ns")]
    pub timeout_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    Hostapd,
}

impl<'de> Deserialize<'de> for Step {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        split(deserializer).map(|(place, work)| Self { place, work })
    }
}

impl Step {
    /// The namespace it runs in; none is the first namespace.
    pub fn node(&self) -> Option<&str> {
        self.place.node.as_deref()
    }

    pub fn name(&self) -> &'static str {
        match self.work {
            Work::Ip { .. } => "ip",
            Work::Tc { .. } => "tc",
            Work::Write { .. } => "write",
            Work::Ethtool { .. } => "ethtool",
            Work::Reach { .. } => "reach",
            Work::Epoch { .. } => "epoch",
            Work::Iw { .. } => "iw",
            Work::Daemon(_) => "daemon",
            Work::Take { .. } => "take",
            Work::Keep { .. } => "keep",
            Work::Host { .. } => "host",
            Work::Tell(_) => "tell",
            Work::App { .. } => "app",
        }
    }

    /// The failure as this step's, at `line`.
    pub fn blame(&self, line: String, failure: Failure) -> Failure {
        Failure {
            origin: self.place.origin.clone(),
            step: Some(self.name()),
            node: self.place.node.clone(),
            line: Some(line),
            message: failure.message,
        }
    }
}

impl Work {
    pub fn is_of_a_node(&self) -> bool {
        matches!(
            self,
            Self::Ethtool { .. }
                | Self::Reach { .. }
                | Self::Epoch { .. }
                | Self::Daemon(_)
                | Self::Take { .. }
                | Self::Host { .. }
                | Self::Tell(_)
                | Self::App { .. }
        )
    }

    /// Whether it is about what outlives the run.
    pub fn needs_guard(&self) -> bool {
        matches!(self, Self::Take { .. } | Self::Keep { .. })
    }

    /// Whether it can be done during the test.
    pub fn is_of_an_event(&self) -> bool {
        !matches!(self, Self::Reach { .. } | Self::Epoch { .. } | Self::Host { .. }) && !self.needs_guard()
    }
}

impl Tool {
    pub fn name(self) -> &'static str {
        match self {
            Self::Hostapd => "hostapd",
        }
    }
}
