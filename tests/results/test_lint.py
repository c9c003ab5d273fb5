# SPDX-License-Identifier: Apache-2.0
"""Each lint on a scenario with its trap and on one without."""

import polars as pl
import pytest

import hourglass
from hourglass import scenario
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.engine.virtual import Virtual
from hourglass.plan import build
from hourglass.results.lint import LINTS, LintContext, lint
from results.synthetic import MS, Flow, Probe, Recipe, S, make


@pytest.fixture
def make_run(tmp_path):
    """Return a function of settings, `rtt_ms`, `drops` …: it makes a run of client - router - server with 50 ms of idle
    round trip."""
    count = iter(range(99))

    def run_with(*settings, rtt_ms=50, drops=7, flows=1, length=30, **columns):
        folder = tmp_path / str(next(count))
        recipe = Recipe(
            flows=[Flow(f"upload::{i + 1}") for i in range(flows)],
            probes=[Probe("icmp", lambda seq: rtt_ms * MS), Probe("udp", lambda seq: rtt_ms * MS)],
            length=length,
            delay=5,
            qdisc_drops=drops,
        )
        make(folder, recipe)
        loaded = scenario.load("L100M", [f"test.length={length}", f"test.upload_streams={flows}", *settings])
        (folder / "scenario.json").write_bytes(loaded.to_json())
        (folder / "plan.json").write_bytes(build(loaded, Virtual.capabilities).to_json())
        run = hourglass.load(folder)
        if columns:
            run.tables["tcp"] = run.tables["tcp"].with_columns(**columns)
        return run

    return run_with


def ids(run):
    return [finding.id for finding in lint(run)]


def test_a_sound_experiment_has_no_findings(make_run):
    assert ids(make_run()) == []


@pytest.mark.parametrize(
    ("name", "trap", "sound"),
    [
        ("queue-below-bdp", ["stack.qdisc=pfifo limit 50"], ["stack.qdisc=pfifo limit 500"]),
        ("netem-limit", ["stack.router.qdisc=netem delay 200ms"], ["stack.router.qdisc=netem delay 200ms limit 9000"]),
        (
            "netem-limit",
            ["stack.router.qdisc=netem delay 200ms limit 999"],
            ["stack.router.qdisc=netem delay 200ms limit 100k"],
        ),
        ("netem-limit", ["stack.router.qdisc=netem delay 200ms"], ["stack.router.qdisc=netem lim 1mbit delay 200ms"]),
        ("queue-below-bdp", ["stack.qdisc=pfifo limit 0.1k"], ["stack.qdisc=pfifo limit 0.5k"]),
        ("queue-below-bdp", ["stack.qdisc=fq_codel limit 0x40"], ["stack.qdisc=fq_codel limit 0x400"]),
        ("netem-own-egress", ["stack.client.qdisc=netem delay 5ms"], ["stack.client.qdisc=netem loss 1%"]),
        ("shaper-above-link", ["testbed.link.0.rate=100mbit"], ["testbed.link.0.rate=110mbit"]),
        ("offloads-off", ["testbed.link.1.tso=false"], ["testbed.link.1.tso=true"]),
        ("offloads-off", ["testbed.link.1.nic=r8169", "testbed.link.1.gro=false"], ["testbed.link.1.nic=r8169"]),
        ("nic-below-rate", ["testbed.link.1.nic=tg3", "testbed.link.1.rate=10gbit"], ["testbed.link.1.rate=10gbit"]),
        (
            "nic-below-rate",
            ["testbed.link.1.nic=igc", "testbed.link.1.rate=10gbit"],
            ["testbed.link.1.nic=igc", "testbed.link.1.rate=2.5gbit"],
        ),
        (
            "receive-buffer-below-bdp",
            ["stack.server.sysctl.net.ipv4.tcp_rmem=4096 131072 400000"],
            ["stack.server.sysctl.net.ipv4.tcp_rmem=4096 131072 6291456"],
        ),
        (
            "send-buffer-below-bdp",
            ["stack.client.sysctl.net.ipv4.tcp_wmem=4096 16384 400000"],
            ["stack.client.sysctl.net.ipv4.tcp_wmem=4096 16384 4194304"],
        ),
        ("idle-samples", ["test.stream_delays=[3]"], ["test.stream_delays=[0]"]),
        ("probe-load", ["test.udp_interval=0.001", "test.ping_interval=0.001"], ["test.udp_interval=0.001"]),
    ],
)
def test_a_trap_of_the_scenario_is_named(make_run, name, trap, sound):
    assert ids(make_run(*trap)) == [name]
    assert ids(make_run(*sound)) == []


def test_a_short_queue_that_never_overflowed_is_no_trap(make_run):
    assert ids(make_run("stack.qdisc=pfifo limit 50", drops=0)) == []


def test_the_numbers_of_a_short_queue_are_in_its_finding(make_run):
    """100 Mbit/s x 50 ms = 625,000 B; 50 full frames = 75,700 B; 413 frames have room for the product."""
    (finding,) = lint(make_run("stack.qdisc=pfifo limit 50"))
    assert "75.7 KB" in finding.text
    assert "625 KB (100 Mbit/s x 50 ms)" in finding.text
    assert "413 packets" in finding.remedy


@pytest.mark.parametrize("name", ["rwnd_limited", "sndbuf_limited"])
@pytest.mark.parametrize(("share", "is_named"), [(0.5, True), (0.09, False)])
def test_limits_of_a_flow_that_the_kernel_reports_are_named(make_run, name, share, is_named):
    busy = ((pl.col("t_ns") - 5 * S) // 1000).cast(pl.UInt64)
    run = make_run(**{"busy_time": busy, name: (busy * share).cast(pl.UInt64)})
    assert ids(run) == ([name.replace("_", "-")] if is_named else [])
    if is_named:
        assert "upload::1 50%" in lint(run)[0].text


def test_pings_count_with_the_headers_of_their_ip_version(make_run):
    """1,200 pings a second of 56 B are 0.94 Mbit/s with headers of 42 B, 1.13 with 62 B. One percent is 1 Mbit/s."""
    settings = ["test.ping_interval=0.001", "test.udp_interval=0.005"]
    assert ids(make_run(*settings)) == []
    (finding,) = lint(make_run(*settings, "testbed.ip=6"))
    assert finding.id == "probe-load"
    assert "1.13 Mbit/s" in finding.text


@pytest.mark.parametrize(
    ("settings", "flows", "texts"),
    [
        # two flows with a payload of 8 Mbit/s each, for 35 s until the end, and 4 MiB that may pass at once
        (["stack.client.qdisc=tbf rate 12mbit burst 10k latency 50ms"], 2, [
            "flows from client to server have 13.7 Mbit/s of payload, and client:eth0 lets 12 Mbit/s pass"]),
        (["stack.client.qdisc=tbf rate 13mbit burst 10k latency 50ms"], 2, []),
        (["stack.client.qdisc=tbf rate 12mbit burst 4mb latency 50ms"], 2, []),
        (["testbed.link.1.delay=26ms"], 1, ["icmp has a round trip of 50 ms on a path of 52 ms",
                                                "udp has a round trip of 50 ms on a path of 52 ms"]),
        (["testbed.link.1.delay=25ms"], 1, []),
        (["testbed.link.1.delay=26ms", "testbed.link.1.jitter=1ms"], 1, []),
    ],
)  # fmt: skip
def test_figures_that_no_path_permits_are_named(make_run, settings, flows, texts):
    run = make_run(*settings, flows=flows)
    findings = [finding for finding in lint(run) if finding.id == "faster-than-path"]
    assert [finding.text for finding in findings] == (["; ".join(texts)] if texts else [])


def test_a_tail_of_few_samples_is_named(make_run):
    assert ids(make_run(length=19)) == ["few-samples"]
    assert ids(make_run(length=20)) == []


def test_a_flow_that_failed_leaves_idle_samples(make_run):
    run = make_run()
    failed = run.tables["flow"].with_columns(t_ns=pl.lit(15 * S), event=pl.lit("failed"))
    run.tables["flow"] = pl.concat([run.tables["flow"], failed])
    (finding,) = lint(run)
    assert finding.id == "idle-samples"
    assert finding.text.startswith("for 20 s of the 30 s under load (67%)")


def queue(ring, bql):
    times = [t * S for t in range(40)]
    return pl.DataFrame({"t_ns": times, "node": "router", "device": "eth1", "ring_bytes": ring, "bql_limit": bql})


WIDE = ["testbed.preset=LR1000M", "testbed.link.1.rate=20mbit"]


@pytest.mark.parametrize(
    ("name", "qdisc", "ring", "bql", "is_named"),
    [
        ("ring-hides-aqm", "fq_codel", 30_000, 40_000, True),  # 12 ms at 20 Mbit/s
        ("ring-hides-aqm", "fq_codel", 6_000, 40_000, False),
        ("ring-hides-aqm", "fq_codel target 20ms", 30_000, 40_000, False),
        ("bql-above-queue", "pfifo limit 20", 0, 40_000, True),  # 20 frames are 30,280 B
        ("bql-above-queue", "pfifo limit 30", 0, 40_000, False),
    ],
)
def test_bytes_in_the_ring_are_compared_with_the_queue_above(make_run, name, qdisc, ring, bql, is_named):
    run = make_run(*WIDE, f"stack.router.qdisc={qdisc}", drops=0)
    assert ids(run) == []
    run.queues = queue(ring, bql)
    assert ids(run) == ([name] if is_named else [])


@pytest.mark.parametrize(("ring_ms", "findings"), [(6, ["ring-hides-aqm"]), (4, [])])
def test_the_wait_in_the_nic_includes_its_fifo(make_run, ring_ms, findings):
    run = make_run(*WIDE, "stack.router.qdisc=fq_codel", drops=0)
    run.queues = queue(1_000, 40_000)  # 0.4 ms at 20 Mbit/s
    spent = dict.fromkeys(LAYER_COLUMNS, 0) | {"ring_ns": 100 * ring_ms * MS}
    row = {"t_ns": 30 * S, "stream": run.flows[0].name, "way": "up", "data": True, "node": "router", "packets": 100}
    run.layer_totals = pl.DataFrame([row | spent])
    assert ids(run) == findings


def test_a_limit_in_bytes_is_raised_to_bytes(make_run):
    (finding,) = lint(make_run("stack.qdisc=bfifo limit 100KB"))
    assert "raise the limit to at least 625000 bytes" in finding.remedy


@pytest.mark.parametrize("name", [name for name, _ in scenario.builtin()])
def test_no_built_in_scenario_is_a_trap(tmp_path, name):
    """Check static lints and the statistics. tests/guest/test_lint.py checks a real run of each."""

    def slow(t):
        return int(t * 10_000)

    loaded = scenario.load(name)
    planned = build(loaded, Virtual.capabilities)
    make(tmp_path / name, Recipe(flows=[Flow(flow.name, bytes_at=slow) for flow in planned.flows], delay=5, length=30,
                                 qdisc_drops=0, probes=[Probe("icmp", lambda seq: 30 * MS)]))  # fmt: skip
    (tmp_path / name / "scenario.json").write_bytes(loaded.to_json())
    streams = [*planned.flows, planned.pings[0].model_copy(update={"id": len(planned.flows)})]
    (tmp_path / name / "plan.json").write_bytes(planned.model_copy(update={"streams": streams}).to_json())
    assert ids(hourglass.load(tmp_path / name)) == []


CELL = ["testbed.preset=wifi-ath9k"]
"""client and ap in the air, 144.4 Mbit/s of PHY rate; a cable of 1 Gbit/s to the server."""


@pytest.mark.parametrize(
    ("name", "trap", "sound"),
    [
        ("netem-own-egress", ["stack.client.qdisc=netem delay 5ms"], ["stack.client.qdisc=netem loss 1%"]),
        ("netem-limit", ["stack.ap.qdisc=netem delay 300ms"], ["stack.ap.qdisc=netem delay 300ms limit 9000"]),
        ("queue-below-bdp", ["stack.client.qdisc=pfifo limit 280"], ["stack.client.qdisc=pfifo limit 290"]),
        (
            "shaper-above-link",
            ["stack.client.qdisc=cake bandwidth 145mbit"],
            ["stack.client.qdisc=cake bandwidth 140mbit"],
        ),
        (
            "send-buffer-below-bdp",
            ["stack.client.sysctl.net.ipv4.tcp_wmem=4096 16384 800000"],
            ["stack.client.sysctl.net.ipv4.tcp_wmem=4096 16384 1000000"],
        ),
        ("probe-load", ["test.udp_interval=0.001", "test.ping_interval=0.001"], ["test.udp_interval=0.001"]),
    ],
)
def test_a_trap_on_a_path_through_the_air_is_named(make_run, name, trap, sound):
    """Half of the PHY rate for 50 ms is 451 KB or 299 full frames; 95 % of these are 284."""
    assert ids(make_run(*CELL, *sound, drops=0)) == []
    run = make_run(*CELL, *trap)
    if name == "queue-below-bdp":
        run.qdisc = run.qdisc.with_columns(device=pl.lit("wlan0"))
    assert ids(run) == [name]


def test_the_hops_of_a_cell_are_the_plans(make_run):
    (path,) = LintContext(make_run(*CELL)).flow_paths
    assert [(hop.node, hop.device, hop.medium) for hop in path.hops] == [
        ("client", "wlan0", "air"),
        ("ap", "eth0", "cable"),
    ]
    assert (path.bottleneck, path.rate_bps) == (path.hops[0], 72_222_222)


def test_lints_of_a_run_of_another_version_use_only_its_tables(tmp_path):
    run = hourglass.load(make(tmp_path / "old", Recipe(length=5)))
    assert LintContext(run).scenario is None
    assert ids(run) == ["few-samples"]


def test_the_summary_has_the_findings(make_run):
    (warning,) = make_run("testbed.link.1.gro=false").summary.warnings
    assert warning.id == "offloads-off"
    assert warning.text.startswith("gro off on link 1")
    assert warning.remedy


def test_every_lint_has_a_description():
    assert all(function.__doc__ for function in LINTS)


SAMPLES_S = (0, 10, 20, 30)


def changed(run, *trees, node="router", device="eth1"):
    """Give a device one tree of qdiscs after the other: at 0 that of the set-up, then those of `trees`. A tree is
    {(handle, parent): options}. The options of a class have the kind's second word."""
    qdiscs, changes, last = [], [], {}
    for t_s, tree in zip(SAMPLES_S, ({("0:", "root"): "pfifo_fast"}, *trees), strict=False):
        for (handle, parent), options in tree.items():
            kind = " ".join(options.split()[: 2 if " class" in options else 1])
            qdiscs.append((t_s * S, node, device, kind, handle, parent, 1000 * t_s, 3 if t_s else 0))
            if t_s and last.get((handle, parent)) != options:
                changes.append((t_s * S, node, device, handle, parent, options))
        last = tree
    run.qdisc = pl.DataFrame(
        qdiscs, ["t_ns", "node", "device", "kind", "handle", "parent", "bytes", "drops"], orient="row"
    )
    run.qdisc_changes = pl.DataFrame(changes, ["t_ns", "node", "device", "handle", "parent", "options"], orient="row")
    return run


def findings(run):
    return [(finding.id, finding.text.partition(" holds ")[0]) for finding in lint(run)]


NETEM = {("8001:", "root"): "netem limit 1000 delay 200ms"}
HTB = {
    ("1:", "root"): "htb",
    ("1:1", "root"): "htb class ceil 50mbit",
    ("1:10", "1:1"): "htb class ceil 90mbit",
    ("10:", "1:10"): "pfifo limit 30",
}


@pytest.mark.parametrize(
    ("trees", "expected"),
    [
        ([NETEM] * 3, [("netem-limit", "netem at router:eth1 (8001:)")]),
        ([{("8001:", "root"): "netem limit 102400 delay 200ms"}] * 3, []),
        ([HTB] * 3, [("queue-below-bdp", "the bottleneck's queue at router:eth1 (10:) (pfifo limit 30)")]),
        (
            [{("1:", "root"): "tbf rate 50mbit limit 9000", ("0:", "1:1"): "bfifo limit 9000"}] * 3,
            [("queue-below-bdp", "the bottleneck's queue at router:eth1 (1:) (tbf rate 50mbit limit 9000)")],
        ),
        ([{}, NETEM, NETEM], [("netem-limit", "netem at router:eth1 (8001:)")]),
    ],
    ids=["netem", "long enough", "a tree", "tbf and its inside", "late"],
)
def test_only_qdiscs_that_exist_during_the_test_count(make_run, trees, expected):
    assert findings(changed(make_run("testbed.link.1.rate=90mbit"), *trees)) == expected


def test_each_qdisc_of_a_test_counts(make_run):
    short = {("1:", "root"): "pfifo limit 20"}
    shorter = {("1:", "root"): "pfifo limit 10"}
    names = [text for _, text in findings(changed(make_run("testbed.link.1.rate=90mbit"), short, shorter, shorter))]
    place = "the bottleneck's queue at router:eth1 (1:)"
    assert sorted(names) == [f"{place} (pfifo limit 10)", f"{place} (pfifo limit 20)"]


def test_a_shaper_that_an_event_removes_is_gone(make_run):
    run = make_run("testbed.link.0.rate=90mbit")
    assert ids(run) == ["shaper-above-link"]
    run = changed(run, *[{("5:", "root"): "fq_codel limit 10240"}] * 3, node="client", device="eth0")
    (path,) = LintContext(run).flow_paths
    assert (path.bottleneck.shaper_bps, path.rate_bps, path.bottleneck.handle) == (None, 90 * 10**6, "5:")
    assert ids(run) == []


LAN = """
[test]
name = "tcp_upload"
length = 30
[testbed]
node = [
  { name = "client" }, { name = "server" }, { name = "near", role = "switch" }, { name = "far", role = "switch" },
]
link = [
  { ends = ["client:eth0", "near:p1"] },
  { ends = ["near:up", "far:up"], rate = "20mbit" },
  { ends = ["far:p1", "server:eth0"] },
]
"""


@pytest.fixture
def lan(make_run, tmp_path):
    """Return a function of settings: it makes a run of client - near - far - server, the last two joined slowly."""
    (tmp_path / "lan.toml").write_text(LAN)

    def run_with(*settings):
        run = make_run()
        loaded = scenario.load(tmp_path / "lan.toml", settings)
        (run.path / "scenario.json").write_bytes(loaded.to_json())
        (run.path / "plan.json").write_bytes(build(loaded, Virtual.capabilities).to_json())
        return hourglass.load(run.path)

    return run_with


def test_the_remedies_for_a_switch_are_keys_that_affect_it(lan):
    run = lan("stack.near.qdisc=pfifo limit 20")
    run.tables["qdisc"] = run.tables["qdisc"].with_columns(node=pl.lit("near"), device=pl.lit("up"))
    run.queues = queue(0, 40_000).with_columns(node=pl.lit("near"), device=pl.lit("up"))
    remedies = {finding.id: finding.remedy for finding in lint(run)}
    assert "raise the limit (stack.near.qdisc) to at least 83 packets" in remedies["queue-below-bdp"]
    assert "tso" not in remedies["bql-above-queue"]


def test_a_switch_has_no_nic_of_a_host(lan):
    assert ids(lan("testbed.link.1.tso=false")) == []
    assert ids(lan("testbed.link.2.tso=false")) == ["offloads-off"]
    findings = {
        finding.id: finding.remedy for finding in lint(lan("testbed.link.1.nic=tg3", "testbed.link.1.rate=10gbit"))
    }
    assert findings["nic-below-rate"] == 'remove testbed.link.1.nic, for switch, or set nic = "switch"'
