// SPDX-License-Identifier: Apache-2.0
//! The agent on the kernel that runs this test: three nodes joined by `veth`, a flow each way, both kinds of ping.
//! The tests need root, iproute2, ethtool and a kernel with veth. If one is missing, they print its name and pass.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Seek;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use serde_json::{json, Value};

const SECOND: u64 = 1_000_000_000;

fn permitted() -> bool {
    let veth = ["--net", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "v1"];
    let works = |tool: &str, args: &[&str]| {
        Command::new(tool).args(args).output().is_ok_and(|output| output.status.success())
    };
    let permitted = works("unshare", &veth) && works("ethtool", &["--version"]);
    if !permitted {
        eprintln!("skipped: this machine lacks network namespaces with veth, ip or ethtool");
    }
    permitted
}

fn stream(id: u64, kind: &str, name: &str, properties: &Value) -> Value {
    let mut stream = json!({"id": id, "kind": kind, "name": name, "client": "client", "server": "server",
        "address": "10.0.2.2", "port": 5000 + id, "dscp": 0, "start_ns": 0, "stop_ns": 2 * SECOND});
    for (key, value) in properties.as_object().expect("an object") {
        stream[key] = value.clone();
    }
    stream
}

fn step(kind: &str, node: &str, key: &str, value: &Value) -> Value {
    json!({"do": kind, "node": node, "origin": format!("{kind} of {node}"), key: value})
}

fn flow(id: u64, sender: &str) -> Value {
    let properties = json!({"sender": sender, "cc": "cubic", "dscp": 8, "pace_bps": null, "writes": null, "backend": "socket",
        "start_ns": SECOND / 2, "stop_ns": 3 * SECOND / 2});
    stream(id, "flow", &format!("flow {id}"), &properties)
}

fn ping(id: u64, protocol: &str) -> Value {
    let properties = json!({"protocol": protocol, "ecn": "not_ect", "payload_bytes": 56, "interval_ns": SECOND / 10,
        "jitter_ns": SECOND / 100, "jitter_seed": id});
    stream(id, "ping", protocol, &properties)
}

fn plan() -> Value {
    let lines = |node: &str, lines: &[&str]| step("ip", node, "lines", &json!(lines));
    let write = |node: &str, path: &str, value: &str| json!({"do": "write", "node": node, "path": path, "value": value, "origin": null});
    json!({
        "version": 8, "seed": 1, "end_ns": 2 * SECOND, "nodes": ["client", "router", "server"],
        "setup": [
            lines("client", &["link add eth0 type veth peer name eth0 netns router"]),
            lines("server", &["link add eth0 type veth peer name eth1 netns router"]),
            lines("router", &["addr add 10.0.1.1/24 dev eth0", "addr add 10.0.2.1/24 dev eth1"]),
            lines("router", &["link set eth0 up", "link set eth1 up"]),
            lines("client", &["addr add 10.0.1.2/24 dev eth0", "link set eth0 up", "route add default via 10.0.1.1"]),
            lines("server", &["addr add 10.0.2.2/24 dev eth0", "link set eth0 up", "route add default via 10.0.2.1"]),
            write("router", "/proc/sys/net/ipv4/ip_forward", "1"),
            write("client", "/sys/class/net/eth0/tx_queue_len", "500"),
            step("tc", "router", "lines", &json!(["qdisc add dev eth1 root pfifo limit 100"])),
            step("ethtool", "client", "args", &json!(["-K", "eth0", "gro", "on"])),
            {"do": "reach", "node": "client", "address": "10.0.2.2", "timeout_ns": SECOND, "origin": null},
        ],
        "streams": [flow(0, "client"), flow(1, "server"), ping(2, "icmp"), ping(3, "udp")],
        "paths": [{"client": "client", "server": "server", "there": [], "back": []}],
        "sampling": {"tcp_ns": SECOND / 100, "device_ns": SECOND / 5, "totals_ns": SECOND / 5, "packets": 9},
        "captures": [], "radios": [], "events": [], "roots": [], "rooms": [], "apps": [],
        "apps_end": false,
    })
}

/// Runs the agent in a separate folder; returns its output and its records' path.
fn run(name: &str, plan: &Value) -> (Output, PathBuf) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    let (plan_path, records) = (folder.join("plan.json"), folder.join("records.arrows"));
    std::fs::write(&plan_path, plan.to_string()).expect("a plan");
    let agent = env!("CARGO_BIN_EXE_hourglass-agent");
    let output = Command::new(agent).args([&plan_path, &records]).output().expect("the agent starts");
    (output, records)
}

/// The events of the console protocol.
fn events(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines = text.lines().filter_map(|line| line.strip_prefix("hourglass: "));
    lines.map(|json| serde_json::from_str(json).expect("an event")).collect()
}

fn read(path: &Path) -> BTreeMap<String, Vec<RecordBatch>> {
    let mut file = File::open(path).expect("records");
    let length = file.metadata().expect("records").len();
    let mut tables: BTreeMap<String, Vec<RecordBatch>> = BTreeMap::new();
    while file.stream_position().expect("a position") < length {
        let reader = StreamReader::try_new(&mut file, None).expect("a stream");
        let table = reader.schema().metadata()["table"].clone();
        tables.entry(table).or_default().extend(reader.map(|batch| batch.expect("whole")));
    }
    tables
}

fn texts(batches: &[RecordBatch], column: &str) -> Vec<String> {
    let columns = batches.iter().map(|batch| batch[column].as_string::<i32>().clone());
    columns.flat_map(|column| column.iter().flatten().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn largest(batches: &[RecordBatch], column: &str) -> u64 {
    let columns = batches.iter().map(|batch| batch[column].as_primitive::<UInt64Type>().clone());
    columns.filter_map(|column| column.iter().flatten().max()).max().expect("a row")
}

#[test]
fn a_plan_produces_its_records() {
    if !permitted() {
        return;
    }
    let (output, records) = run("complete", &plan());
    let names: Vec<Value> = events(&output).iter().map(|event| event["event"].clone()).collect();
    assert_eq!(names, ["ready", "time", "time", "done"], "{output:?}");
    assert!(output.status.success());

    let tables = read(&records);
    let expected = ["device", "ethtool", "fact", "flow", "ping", "qdisc", "tcp"];
    assert_eq!(tables.keys().collect::<Vec<_>>(), expected);
    let mut flow_events = texts(&tables["flow"], "event");
    flow_events.sort();
    assert_eq!(flow_events, ["connected", "connected", "stopped", "stopped"]);
    assert!(largest(&tables["tcp"], "bytes_acked") > 1_000_000, "the flows carried data");
    assert!(texts(&tables["qdisc"], "kind").contains(&"pfifo".to_owned()));

    let times = |batch: &RecordBatch| batch["t_ns"].as_primitive::<Int64Type>().values().to_vec();
    let sampled: Vec<i64> = tables["tcp"].iter().flat_map(times).collect();
    assert_eq!(sampled.last(), Some(&1_500_000_000), "the sample at the stop sees the flow");
    assert_eq!(sampled.iter().filter(|t_ns| **t_ns == 1_500_000_000).count(), 4, "both ends of both flows");

    let pings: usize = tables["ping"].iter().map(RecordBatch::num_rows).sum();
    let lost: usize = tables["ping"].iter().map(|batch| batch["rtt_ns"].null_count()).sum();
    assert_eq!(pings, 40);
    assert!(lost < pings / 2, "{lost} of {pings} packets lost");
    let ways: usize =
        tables["ping"].iter().map(|batch| batch["owd_up_ns"].len() - batch["owd_up_ns"].null_count()).sum();
    assert!(ways > 0 && ways <= 20, "only UDP pings have one-way delays");
}

fn failure(name: &str, plan: &Value) -> Value {
    let (output, _) = run(name, plan);
    assert_eq!(output.status.code(), Some(1));
    let events = events(&output);
    let [event] = events.as_slice() else { panic!("one event, not {events:?}") };
    assert_eq!(event["event"], "error");
    event.clone()
}

#[test]
fn a_failing_line_is_assigned_to_its_step() {
    if !permitted() {
        return;
    }
    let mut plan = plan();
    plan["setup"][3]["lines"][1] = "link set eth9 up".into();
    plan["setup"][3]["origin"] = "testbed.link.1".into();
    let event = failure("line", &plan);
    assert_eq!(event["origin"], "testbed.link.1");
    assert_eq!((&event["step"], &event["node"]), (&"ip".into(), &"router".into()));
    assert_eq!(event["line"], "link set eth9 up");
    assert_eq!((&event["code"], &event["tool"]), (&"tool-failed".into(), &"ip".into()));
    assert_eq!(event["text"], "Cannot find device \"eth9\"");
}

const QDISCS: [&str; 8] = ["cake", "codel", "fq", "fq_codel", "fq_pie", "pfifo", "pfifo_fast", "sfq"];

/// Returns the qdiscs that this machine's kernel has.
fn available_qdiscs() -> impl Iterator<Item = &'static str> {
    QDISCS.into_iter().filter(|kind| {
        let args = ["--net", "tc", "qdisc", "add", "dev", "lo", "root", kind];
        Command::new("unshare").args(args).output().expect("unshare").status.success()
    })
}

/// Executes lines of a plan with `space` between their words. Returns the state of two nodes as `ip` and `tc` print it.
fn listing(name: &str, space: &str) -> Vec<String> {
    let lines = |node: &str, lines: &[&str]| {
        let lines: Vec<String> = lines.iter().map(|line| line.replace(' ', space)).collect();
        step("ip", node, "lines", &json!(lines))
    };
    let mut plan = plan();
    plan["setup"] = json!([
        lines("router", &["link add dev ifb99 address 02:00:00:00:00:09 mtu 1300 type ifb"]),
        lines("client", &["link add dev eth0 type veth peer name eth0 netns router"]),
        lines(
            "client",
            &[
                "link set dev eth0 address 02:00:00:00:00:01 mtu 1400 up",
                "addr add 10.0.1.2/24 dev eth0",
                "addr replace fd00:1::2/64 dev eth0 nodad",
                "addr replace 10.0.1.2/24 dev eth0",
            ]
        ),
        lines(
            "router",
            &[
                "link set dev eth0 address 02:00:00:00:00:02",
                "link set dev eth0 up",
                "link set dev ifb99 down",
                "addr add 10.0.1.1/24 dev eth0",
                "addr add fd00:1::1/64 dev eth0 nodad",
            ]
        ),
        lines(
            "client",
            &[
                "route add 10.0.2.0/24 via 10.0.1.1",
                "route replace 10.0.3.0/24 via 10.0.1.1 metric 7",
                "route add fd00:2::/64 via fd00:1::1",
            ]
        ),
        lines("client", &["link show", "addr show", "route show table all"]),
        lines("router", &["link show", "addr show", "route show table all"]),
    ]);
    for (place, kind) in available_qdiscs().enumerate() {
        let name = format!("ifb{place}");
        let qdisc = format!("qdisc add dev {name} root handle 10: {kind}").replace(' ', space);
        let setup = plan["setup"].as_array_mut().expect("a list");
        setup.push(lines("router", &[&format!("link add dev {name} type ifb")]));
        setup.push(step("tc", "router", "lines", &json!([qdisc])));
    }
    let setup = plan["setup"].as_array_mut().expect("a list");
    setup.push(step("tc", "router", "lines", &json!(["qdisc show"])));
    plan["streams"] = json!([]);
    plan["end_ns"] = 1.into();
    let (output, _) = run(name, &plan);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // the kernel adds link-local addresses later, after duplicate address detection
    let lines = text.lines().filter(|line| !line.starts_with("hourglass: ") && !line.contains("fe80:"));
    lines.map(str::to_owned).collect()
}

#[test]
fn steps_without_tools_have_the_effect_of_the_tools() {
    if !permitted() {
        return;
    }
    let (direct, tool) = (listing("direct", " "), listing("tool", "  "));
    assert!(
        direct.iter().any(|line| line.contains("10.0.3.0/24 via 10.0.1.1 dev eth0 metric 7")),
        "{direct:?}"
    );
    assert!(direct.iter().any(|line| line.contains("mtu 1300")), "{direct:?}");
    for kind in available_qdiscs() {
        assert!(
            direct.iter().any(|line| line.contains(&format!("qdisc {kind} 10: dev ifb"))),
            "{kind}: {direct:?}"
        );
    }
    assert_eq!(direct, tool);
}

#[test]
fn an_unknown_congestion_control_is_named_with_its_flow() {
    if !permitted() {
        return;
    }
    let mut plan = plan();
    plan["streams"][1]["cc"] = "hope".into();
    let event = failure("cc", &plan);
    assert_eq!((&event["code"], &event["cc"]), (&"congestion-control-missing".into(), &"hope".into()));
    assert!(event["subject"].to_string().contains("flow 1"), "{event}");
}

#[test]
fn an_unreachable_address_is_reported() {
    if !permitted() {
        return;
    }
    let mut plan = plan();
    plan["setup"][10]["address"] = "10.0.2.9".into();
    plan["setup"][10]["timeout_ns"] = (SECOND / 5).into();
    let event = failure("reach", &plan);
    assert_eq!((&event["code"], &event["timeout_ns"]), (&"unreachable".into(), &(SECOND / 5).into()));
}

#[test]
fn a_missing_plan_is_an_error_event() {
    let agent = env!("CARGO_BIN_EXE_hourglass-agent");
    let output =
        Command::new(agent).args(["/nonexistent/plan", "/nonexistent/records"]).output().expect("starts");
    let event = &events(&output)[0];
    assert_eq!((&event["code"], &event["errno"]), (&"system".into(), &libc::ENOENT.into()));
    assert_eq!(event["what"], "/nonexistent/plan");
}
