// SPDX-License-Identifier: Apache-2.0
//! The programs of a plan, which `src/hourglass/contract/plan/apps.py` describes.

pub use crate::app_parts::*;

impl Ready {
    /// Returns the awaited condition as text.
    pub fn condition(&self) -> String {
        match self {
            Self::Start {} | Self::Delay { .. } => "its start".to_owned(),
            Self::Listen { protocol, port } => format!("a listener on {}:{port}", protocol.name()),
            Self::Output { text } => format!("{text:?} in its output"),
            Self::File { path } => format!("the file {path}"),
            Self::Exit {} => "its end with status 0".to_owned(),
        }
    }
}
