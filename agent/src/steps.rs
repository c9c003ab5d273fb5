// SPDX-License-Identifier: Apache-2.0
//! The steps of a plan's set-up, and the origin of a failure.

use serde_json::Value;

use crate::report::Failure;
pub use crate::step_parts::*;

impl Step {
    /// Returns the node in which the step runs; None is the first namespace.
    pub fn node(&self) -> Option<&str> {
        self.context.node.as_deref()
    }

    pub fn name(&self) -> &'static str {
        self.work.name()
    }

    /// Returns the tool of the step: `ip`, `tc` or `bridge`.
    pub fn tool(&self) -> Option<&'static str> {
        let row = TEMPLATES.iter().find(|(name, ..)| *name == self.name());
        match self.work {
            Work::Ip { .. } => Some("ip"),
            Work::Tc { .. } => Some("tc"),
            Work::Bridge { .. } => Some("bridge"),
            _ => row.map(|(_, tool, _)| *tool),
        }
    }

    /// Returns the tool's lines; none without a tool.
    pub fn lines(&self) -> Vec<String> {
        if let Work::Ip { lines } | Work::Tc { lines } | Work::Bridge { lines } = &self.work {
            return lines.clone();
        }
        let fields = serde_json::to_value(&self.work).expect("a step is an object");
        let rows = TEMPLATES.iter().filter(|(name, ..)| *name == self.name());
        rows.flat_map(|(.., templates)| templates.iter().map(|template| fill(template, &fields))).collect()
    }

    /// Returns the failure with `line`, node, origin, and the step's tool or name.
    pub fn blame(&self, line: String, failure: Failure) -> Failure {
        Failure {
            origin: self.context.origin.clone(),
            step: Some(self.tool().unwrap_or_else(|| self.name())),
            node: self.context.node.clone(),
            line: Some(line),
            ..failure
        }
    }
}

impl Work {
    pub fn needs_node(&self) -> bool {
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

    /// Returns whether the guard must know the step, to undo changes that outlive the run.
    pub fn needs_guard(&self) -> bool {
        matches!(self, Self::Take { .. } | Self::Keep { .. })
    }

    /// Returns whether the step may be part of an event only.
    pub fn needs_event(&self) -> bool {
        matches!(self, Self::App { .. } | Self::Decision { .. })
    }

    /// Returns whether the step may be part of an event.
    pub fn fits_event(&self) -> bool {
        !matches!(self, Self::Reach { .. } | Self::Epoch { .. } | Self::Host { .. }) && !self.needs_guard()
    }
}

/// Fills a template (its syntax: `ToolStep` of `contract/plan/steps.py`) with a step's values.
fn fill(template: &str, fields: &Value) -> String {
    let (mut line, mut rest) = (String::new(), template);
    while let Some(start) = rest.find(['[', '{']) {
        line += &rest[..start];
        let closing = if rest[start..].starts_with('[') { ']' } else { '}' };
        let (part, after) = rest[start + 1..].split_once(closing).expect("a template closes its brackets");
        let (part, otherwise) = part.split_once('|').unwrap_or((part, ""));
        let (before, name) = part.rsplit_once('{').unwrap_or(("", part));
        let name = name.trim_end_matches('}');
        match value_text(name, &fields[name]) {
            text if text.is_empty() => line += otherwise,
            text => line.extend([before, &text]),
        }
        rest = after;
    }
    line + rest
}

fn value_text(name: &str, value: &Value) -> String {
    match value {
        Value::Null | Value::Bool(false) => String::new(),
        Value::Bool(true) => name.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(json: &str) -> Vec<String> {
        let context = r#""node": "a", "origin": null"#;
        serde_json::from_str::<Step>(&format!("{{{json}, {context}}}")).expect("a step").lines()
    }

    #[test]
    fn steps_are_lines_of_their_tool() {
        let device = r#""do": "device", "device": "eth0", "kind": "wire", "mac": "02:00:00:00:1f:01", "mtu": 9000, "queues": null"#;
        assert_eq!(lines(device), ["link add dev eth0 address 02:00:00:00:1f:01 mtu 9000 type wire"]);
        let queues = device.replace("null", "4");
        assert_eq!(
            lines(&queues),
            ["link add dev eth0 address 02:00:00:00:1f:01 mtu 9000 numtxqueues 4 numrxqueues 4 type wire"]
        );
        let link = r#""do": "link", "device": "eth0", "mac": null, "mtu": null, "addrgenmode": null, "name": null, "state": "up""#;
        assert_eq!(lines(link), ["link set dev eth0 up"]);
        let address =
            r#""do": "address", "device": "eth0", "act": "replace", "address": "fd00::1/64", "nodad": true"#;
        assert_eq!(lines(address), ["addr replace fd00::1/64 dev eth0 nodad"]);
        let route = r#""do": "route", "act": "add", "subnet": null, "via": "10.0.1.1", "metric": 7"#;
        assert_eq!(lines(route), ["route add default via 10.0.1.1 metric 7"]);
        let qdisc = r#""do": "qdisc", "device": "eth0", "act": "add", "parent": "1:1", "handle": "10:", "kind": "fq", "options": "limit 5""#;
        assert_eq!(lines(qdisc), ["qdisc add dev eth0 parent 1:1 handle 10: fq limit 5"]);
        assert_eq!(lines(r#""do": "tc", "lines": ["qdisc show"]"#), ["qdisc show"]);
    }
}
