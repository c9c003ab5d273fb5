// SPDX-License-Identifier: Apache-2.0
//! The guard: a namespace represents a machine with two NICs. Its state before a run is compared with that after the run,
//! however the run ended. The tests need HTB and the requirements of `native.rs`. If one is missing, they print its name
//! and pass.

#![allow(clippy::disallowed_methods, reason = "a test runs in wall time")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{json, Value};

const SECOND: u64 = 1_000_000_000;

/// The limit of every wait. Even on a busy machine, only a process that hangs takes so long.
const HANG: Duration = Duration::from_secs(120);

/// The administrator's configuration of the machine: two NICs, connected by a cable.
const MACHINE: &[&str] = &[
    "ip link add enp3s0 address 02:11:22:33:44:55 mtu 1400 txqueuelen 321 type veth peer name enp4s0",
    "ip link set enp3s0 group 7 alias uplink",
    "ip link add kept type ifb",
    "sysctl -qw net.ipv6.conf.enp3s0.accept_ra=0 net.ipv4.conf.enp3s0.rp_filter=2 net.ipv4.neigh.enp3s0.gc_stale_time=77",
    "ethtool -K enp3s0 tso off gro off",
    "ip addr add 192.0.2.1/24 dev enp3s0",
    "ip addr add 192.0.2.9/24 dev enp3s0",
    "ip addr add 198.51.100.1/25 dev enp3s0 valid_lft 5000 preferred_lft 4000 noprefixroute",
    "ip addr add 2001:db8::1/64 dev enp3s0 nodad",
    "ip link set enp3s0 up",
    "ip link set enp4s0 up",
    "ip route add default via 192.0.2.254 dev enp3s0 metric 50",
    "ip route add 203.0.113.0/24 via 192.0.2.253 dev enp3s0 table 77 mtu 1280",
    "ip -6 route add 2001:db8:1::/48 via 2001:db8::fe dev enp3s0 metric 9",
    "ip neigh add 192.0.2.254 lladdr 02:00:00:00:00:99 nud permanent dev enp3s0",
    "tc qdisc add dev enp3s0 root handle 5: htb default 20 r2q 20",
    "tc class add dev enp3s0 parent 5: classid 5:1 htb rate 90mbit burst 20k",
    "tc class add dev enp3s0 parent 5:1 classid 5:10 htb rate 10mbit ceil 90mbit prio 1",
    "tc class add dev enp3s0 parent 5:1 classid 5:20 htb rate 80mbit ceil 90mbit quantum 3000",
    "tc qdisc add dev enp3s0 parent 5:10 handle 50: tbf rate 9mbit burst 10k limit 30k",
    "tc qdisc add dev enp3s0 parent 5:20 handle 60: pfifo limit 123",
    "tc filter add dev enp3s0 parent 5: protocol ip prio 3 u32 match ip dport 22 0xffff flowid 5:10",
    "tc qdisc add dev enp4s0 handle ffff: ingress",
    "tc filter add dev enp4s0 parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev kept",
];

/// Prints the state that is compared.
const STATE: &str = "mount -t sysfs none /sys; ip -d -o link; ip -o addr; ip route show table all; ip -6 route show table all; \
    ip neigh show nud permanent; ip rule; tc -d qdisc; for d in enp3s0 enp4s0; do tc -d class show dev $d; \
    tc filter show dev $d; tc filter show dev $d parent ffff:; ethtool -k $d; \
    for f in /sys/class/net/$d/queues/*/*; do [ -f $f ] && echo $f $(cat $f); done; done 2>&1; sysctl -a 2>&1 | grep -F net. | grep -v nf_conntrack_count";

/// Waits until a condition is true. Returns whether it is.
fn until(mut condition: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + HANG;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        sleep(Duration::from_millis(10));
    }
}

struct Machine(Child);

impl Machine {
    /// Creates the machine; None if this host does not permit it.
    fn boot() -> Option<Self> {
        let child = Command::new("unshare").args(["--net", "sleep", "600"]).spawn().ok()?;
        let machine = Self(child);
        let host_namespace = std::fs::read_link("/proc/self/ns/net").ok()?;
        let namespace = format!("/proc/{}/ns/net", machine.0.id());
        if !until(|| std::fs::read_link(&namespace).map_or(true, |now| now != host_namespace)) {
            return None;
        }
        let failed = MACHINE.iter().find(|line| !machine.shell(line).status.success());
        if let Some(line) = failed {
            eprintln!("skipped: this machine does not permit: {line}");
        }
        failed.is_none().then_some(machine)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.0.id())).arg(program);
        command
    }

    fn shell(&self, line: &str) -> Output {
        let mut shell = self.command(Path::new("unshare"));
        shell.args(["--mount", "sh", "-c", line]).output().expect("a shell")
    }

    /// Returns the current state without counters and ages.
    fn state(&self) -> Vec<String> {
        let output = self.shell(STATE).stdout;
        let lines = String::from_utf8_lossy(&output).into_owned();
        lines.lines().map(timeless).collect()
    }

    /// Waits until duplicate address detection and carrier changes are complete. Returns the state.
    fn settled_state(&self) -> Vec<String> {
        let mut last = self.state();
        loop {
            sleep(Duration::from_millis(1100));
            let now = self.state();
            if now == last && !now.iter().any(|line| line.contains("tentative")) {
                return now;
            }
            last = now;
        }
    }

    /// Returns the lines that remain different from the earlier state: `-` missing, `+` added.
    fn changed(&self, before: &[String]) -> Vec<String> {
        let mut changed = Vec::new();
        until(|| {
            let now = self.state();
            let missing = before.iter().filter(|line| !now.contains(line)).map(|line| format!("-{line}"));
            let added = now.iter().filter(|line| !before.contains(line)).map(|line| format!("+{line}"));
            changed = missing.chain(added).collect();
            changed.is_empty() && now.len() == before.len()
        });
        changed
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Removes words that are counters or ages.
fn timeless(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_whitespace() {
        let counts = matches!(words.last(), Some(&("direct_packets_stat" | "valid_lft" | "preferred_lft")));
        words.push(if counts && word != "forever" { "N" } else { word });
    }
    words.join(" ")
}

fn step(kind: &str, node: &str, key: &str, value: &Value) -> Value {
    json!({"do": kind, "node": node, "origin": format!("{kind} of {node}"), key: value})
}

fn plan() -> Value {
    let ip = |node: &str, lines: &[&str]| step("ip", node, "lines", &json!(lines));
    let tc = |node: &str, lines: &[&str]| step("tc", node, "lines", &json!(lines));
    let ethtool = |args: &[&str]| step("ethtool", "client", "args", &json!(args));
    let take = |node: &str, real: &str| json!({"do": "take", "node": node, "real": real, "device": "eth0", "origin": format!("take {real}")});
    let write = |path: &str, value: &str| json!({"do": "write", "node": "client", "path": path, "value": value, "origin": null});
    json!({
        "version": 8, "seed": 1, "end_ns": SECOND / 2, "nodes": ["client", "server"],
        "setup": [
            {"do": "keep", "node": null, "devices": [], "files": ["/proc/sys/net/ipv4/ip_forward"], "made": ["made"], "origin": null},
            {"do": "ip", "node": null, "lines": ["link add made type ifb"], "origin": null},
            {"do": "write", "node": null, "path": "/proc/sys/net/ipv4/ip_forward", "value": "1", "origin": null},
            take("client", "enp3s0"),
            take("server", "enp4s0"),
            ethtool(&["-K", "eth0", "tso", "on", "gro", "on", "gso", "off"]),
            ip("client", &["link set eth0 mtu 1500 address 02:00:00:00:00:01 txqueuelen 1000 group 0"]),
            ip("client", &["link set eth0 up", "addr add 10.0.0.1/24 dev eth0", "route add 10.9.0.0/16 via 10.0.0.2"]),
            ip("server", &["link set eth0 up", "addr add 10.0.0.2/24 dev eth0"]),
            write("/proc/sys/net/ipv4/conf/eth0/rp_filter", "1"),
            write("/sys/class/net/eth0/queues/rx-0/rps_cpus", "1"),
            tc("client", &["qdisc add dev eth0 root handle 1: htb default 1", "class add dev eth0 parent 1: classid 1:1 htb rate 10mbit"]),
            tc("server", &["qdisc add dev eth0 root tbf rate 10mbit burst 10k limit 30k"]),
            {"do": "reach", "node": "client", "address": "10.0.0.2", "timeout_ns": 5 * SECOND, "origin": null},
        ],
        "streams": [{"id": 0, "kind": "ping", "name": "icmp", "client": "client", "server": "server", "address": "10.0.0.2",
            "port": 5000, "dscp": 0, "start_ns": 0, "stop_ns": SECOND / 2, "protocol": "icmp", "ecn": "not_ect", "payload_bytes": 56,
            "interval_ns": SECOND / 10, "jitter_ns": 0, "jitter_seed": 1}],
        "paths": [{"client": "client", "server": "server", "there": [], "back": []}],
        "sampling": {"tcp_ns": 0, "device_ns": SECOND / 5, "totals_ns": SECOND / 5, "packets": 0},
        "captures": [], "radios": [], "events": [], "roots": [], "rooms": [], "apps": [],
        "apps_end": false,
    })
}

fn agent() -> PathBuf {
    env!("CARGO_BIN_EXE_hourglass-agent").into()
}

fn folder(name: &str, plan: &Value) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("plan.json"), plan.to_string()).expect("a plan");
    folder
}

fn start(machine: &Machine, name: &str, plan: &Value) -> Child {
    let mut command = machine.command(&agent());
    command.args(["plan.json", "records.arrows"]).current_dir(folder(name, plan));
    command.stdout(Stdio::piped()).spawn().expect("the agent starts")
}

/// Returns all output until the agent and the guard have closed it.
fn read_output(child: &mut Child) -> String {
    let mut output = String::new();
    child.stdout.take().expect("a pipe").read_to_string(&mut output).expect("text");
    child.wait().expect("ends");
    output
}

/// Waits until no process runs in one of those folders. A process closes its output before it leaves its folder.
fn all_end(name: &str) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let ended = until(|| {
        let processes = std::fs::read_dir("/proc").expect("proc").flatten();
        let mut folders = processes.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
        folders.all(|cwd| cwd != folder)
    });
    assert!(ended, "a process remains in {name}");
}

#[test]
fn a_machine_is_restored_after_a_run() {
    let Some(machine) = Machine::boot() else { return };
    let before = machine.settled_state();
    assert!(before.iter().any(|line| line.contains("5:20") && line.contains("htb")), "{before:#?}");
    let output = read_output(&mut start(&machine, "whole", &plan()));
    assert!(output.contains(r#"{"event":"done""#), "{output}");
    assert_eq!(machine.changed(&before), Vec::<String>::new(), "{output}");
}

#[test]
fn a_machine_is_restored_after_a_failed_plan() {
    let Some(machine) = Machine::boot() else { return };
    let before = machine.settled_state();
    let mut plan = plan();
    plan["setup"][11]["lines"][1] = "class add dev eth0 parent 1: classid 1:1 nonsense".into();
    let output = read_output(&mut start(&machine, "failing", &plan));
    assert!(output.contains(r#""origin":"tc of client""#), "{output}");
    assert_eq!(machine.changed(&before), Vec::<String>::new(), "{output}");
}

#[test]
#[ignore = "takes half a minute"]
fn a_machine_is_restored_when_the_agent_is_killed_at_any_moment() {
    let Some(machine) = Machine::boot() else { return };
    let before = machine.settled_state();
    let start_time = Instant::now();
    assert!(read_output(&mut start(&machine, "timed", &plan())).contains("done"));
    let run_time = start_time.elapsed();
    let mut seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").subsec_nanos();
    for round in 0..10 {
        let mut child = start(&machine, "killed", &plan());
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let moment = run_time.mul_f64((f64::from(round) + f64::from(seed) / f64::from(u32::MAX)) / 10.0);
        sleep(moment);
        child.kill().expect("is killed");
        let output = read_output(&mut child);
        assert!(!output.contains("guard: "), "killed after {moment:?}: {output}");
        assert_eq!(machine.changed(&before), Vec::<String>::new(), "killed after {moment:?}: {output}");
        all_end("killed");
    }
}

#[test]
fn a_device_that_could_not_be_restored_is_refused() {
    let Some(machine) = Machine::boot() else { return };
    for (line, why) in [
        ("ip link add link enp3s0 name vlan5 type macvlan", "carries or belongs to vlan5, which would not follow it"),
        ("ip link del vlan5; ip link add br0 type bridge; ip link set enp3s0 master br0", "belongs to br0"),
        ("ip link set enp3s0 nomaster; ip route add 10.50.0.0/16 nexthop via 192.0.2.3 nexthop via 192.0.2.4", "multipath"),
        ("ip route del 10.50.0.0/16; ip link set enp3s0 down; ip link set enp3s0 name other", r#""errno":19"#),
    ] {
        let output = machine.shell(line);
        assert!(output.status.success(), "{line}: {output:?}");
        let before = machine.settled_state();
        let output = read_output(&mut start(&machine, "refused", &plan()));
        assert!(output.contains(why) && output.contains(r#""origin":"take enp3s0""#), "{line}: {output}");
        assert_eq!(machine.changed(&before), Vec::<String>::new(), "{output}");
    }
}

#[test]
fn a_guard_names_the_differences_that_remain() {
    let Some(machine) = Machine::boot() else { return };
    let mut plan = plan();
    plan["end_ns"] = (3 * SECOND).into(); // long enough to take the name, even on a busy machine
    let child = &mut start(&machine, "lost", &plan);
    let moved = until(|| machine.shell("ip link add enp3s0 type ifb").status.success());
    assert!(moved, "the agent does not move the interface");
    let output = read_output(child);
    assert!(output.contains("guard: enp3s0: "), "{output}");
    assert!(output.contains(r#""code":"state-not-restored""#), "{output}");
}
