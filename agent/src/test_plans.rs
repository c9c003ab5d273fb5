// SPDX-License-Identifier: Apache-2.0
//! Small plans for tests: two nodes, and streams from `c` to `s`.

use serde_json::{json, Value};

use crate::clock::SECOND;
use crate::plan::Plan;

/// Returns a plan of two seconds that samples everything.
pub fn plan_of(streams: &[Value]) -> Plan {
    plan_with(streams, &json!({}))
}

/// Returns the same plan with other values of some keys.
pub fn plan_with(streams: &[Value], changes: &Value) -> Plan {
    let mut plan = json!({
        "version": 8, "seed": 1, "end_ns": 2 * SECOND, "nodes": ["c", "s"], "setup": [], "streams": streams,
        "paths": [{"client": "c", "server": "s", "there": [], "back": []}],
        "sampling": {"tcp_ns": 10, "device_ns": 200, "totals_ns": 200, "packets": 9}, "captures": [], "radios": [],
        "events": [], "roots": [], "rooms": [], "apps": [], "apps_end": false,
    });
    for (key, value) in changes.as_object().expect("an object") {
        plan[key] = value.clone();
    }
    Plan::parse(plan.to_string().as_bytes()).expect("a plan")
}

fn stream(id: u16, kind: &str, port: u16, extra: &Value) -> Value {
    let mut stream = json!({
        "id": id, "kind": kind, "name": format!("{kind} {id}"), "client": "c", "server": "s", "address": "10.0.0.1",
        "port": port, "dscp": 0, "start_ns": 0, "stop_ns": 2 * SECOND,
    });
    for (key, value) in extra.as_object().expect("an object") {
        stream[key] = value.clone();
    }
    stream
}

pub fn flow(id: u16, sender: &str) -> Value {
    stream(
        id,
        "flow",
        5000 + id,
        &json!({"sender": sender, "cc": "reno", "pace_bps": null, "writes": null, "backend": "load"}),
    )
}

fn ping(id: u16, protocol: &str, port: u16) -> Value {
    let extra = json!({"protocol": protocol, "ecn": "not_ect", "payload_bytes": 56, "interval_ns": SECOND / 2, "jitter_ns": 0, "jitter_seed": 1});
    stream(id, "ping", port, &extra)
}

pub fn icmp(id: u16) -> Value {
    ping(id, "icmp", 0)
}

pub fn udp(id: u16) -> Value {
    ping(id, "udp", 2112)
}

pub fn datagrams(id: u16) -> Value {
    datagrams_in(id, 1, &json!([{"start_ns": 0, "stop_ns": 2 * SECOND, "interval_ns": SECOND / 2}]))
}

pub fn datagrams_in(id: u16, burst: u32, phases: &Value) -> Value {
    stream(
        id,
        "datagrams",
        9,
        &json!({"ecn": "not_ect", "payload_bytes": 56, "burst": burst, "phases": phases}),
    )
}

pub fn fetches(id: u16) -> Value {
    let extra = json!({"cc": "reno", "request_bytes": 300, "sizes": [1000], "interval_ns": SECOND / 2});
    stream(id, "fetches", 80, &extra)
}

pub fn transactions(id: u16) -> Value {
    stream(id, "transactions", 12865, &json!({"cc": "reno", "request_bytes": 1, "response_bytes": 1}))
}
