# SPDX-License-Identifier: Apache-2.0
"""Each rule of `explain` on a run where it is true and on one where it is not: runs by formula, without a guest.

`python -m tests.explain_draw` compares the named bottlenecks of random scenarios with reruns.
"""

from dataclasses import replace

import polars as pl
import pytest

import hourglass
from hourglass import scenario
from hourglass.contract.plan import FlowStream
from hourglass.contract.probe import LAYERS
from hourglass.contract.record_tables import SCHEMAS
from hourglass.contract.summary import DropFigures
from hourglass.engine.virtual import Virtual
from hourglass.flent.write import write
from hourglass.plan import build
from hourglass.results.explain import explanation_of
from hourglass.results.explain.latency import latency_parts
from hourglass.results.explain.loads import Loads
from hourglass.studies.knobs import knobs
from results import synthetic_wifi
from results.synthetic import MS, Flow, Probe, Recipe, S, make

LENGTH = 10
US = 1000


@pytest.fixture
def run_with(tmp_path):
    """Return a function that makes a run of client - router - server. Shares are of the loaded window."""
    count = iter(range(99))

    def run_with(*settings, preset="L100M", blocked=None, hops=None, waits=None, lost=0, limits=None, columns=None):
        """`hops`: {"client:eth0": (share of 100 Mbit/s, share of samples with a queue)}. `blocked`: {"tsq": share}.
        `waits`: {("client", "qdisc"): ms} of pings and data on their way up. `lost`: frames on the router's cable.
        `limits`: {"rwnd_limited": share}."""
        folder = make(tmp_path / str(next(count)), _recipe())
        loaded = scenario.load(
            preset, [f"test.length={LENGTH}", "test.delay=2", *(settings or ["test.upload_streams=1"])]
        )
        plan = build(loaded, Virtual.capabilities)
        (folder / "scenario.json").write_bytes(loaded.to_json())
        (folder / "plan.json").write_bytes(plan.to_json())
        run = hourglass.load(folder)
        run.devices = devices(hops or {})
        run.queues = queues(hops or {}, **(columns or {}))
        busy = {"busy_time": 1.0} | (limits or {})
        since = pl.col("t_ns") - 2 * S
        holds = {f"hold_{name}_ns": share for name, share in (blocked or {"cwnd": 1.0}).items()}
        run.tcp = run.tcp.with_columns(
            *((since * share).cast(pl.UInt64).alias(name) for name, share in holds.items()),
            *((since * share / US).cast(pl.UInt64).alias(name) for name, share in busy.items()),
            tsq_term=pl.lit("floor"), tsq_limit=pl.lit(100_000, pl.UInt64),
            sk_wmem_alloc=pl.lit(90_000, pl.UInt32), gso_bytes=pl.lit(60_000, pl.UInt32),
        )  # fmt: skip
        run.layer_totals = layer_totals(run, waits or {("client", "qdisc"): 5})
        if lost:
            run.ethtool = pl.DataFrame(
                [{"t_ns": 0, "node": "router", "device": "eth1", "name": "tx_lost", "value": lost}]
            )
        return run

    return run_with


def _recipe():
    probes = [Probe("icmp", lambda seq: 5 * MS), Probe("udp", lambda seq: 5 * MS)]
    return Recipe(flows=[Flow()], probes=probes, length=LENGTH, qdisc_drops=0, nic_drops=0)


def devices(hops):
    """Return the counters of devices that carry a share of 100 Mbit/s in full frames."""
    rows = []
    for name, (share, _) in hops.items():
        node, device = name.split(":")
        for t in range(LENGTH + 5):
            count = int(share * 100e6 / 8 * t)
            rows.append({"t_ns": t * S, "node": node, "device": device, "tx_bytes": count, "tx_packets": count // 1514})
    return pl.DataFrame(rows, {**SCHEMAS["device"]}, orient="row") if rows else pl.DataFrame(schema=SCHEMAS["device"])


def queues(hops, **columns):
    """Return samples of devices. A share of them has ten skbs of 1,514 B in the qdisc."""
    rows = []
    for name, (_, share) in hops.items():
        node, device = name.split(":")
        for tick in range(1000):
            full = (tick % 10) < 10 * share
            zero = dict.fromkeys(
                ("ring_skbs", "ring_bytes", "txq_packets", "txq_bytes", "bql_limit", "bql_inflight"), 0
            )
            rows.append({**zero, "t_ns": 2 * S + tick * 10 * MS, "node": node, "device": device,
                         "qdisc_packets": 10 * full, "qdisc_bytes": 15_140 * full, **columns})  # fmt: skip
    return pl.DataFrame(rows, {**SCHEMAS["queue"]}, orient="row") if rows else pl.DataFrame(schema=SCHEMAS["queue"])


def layer_totals(run, waits):
    """Return the sums of 100 packets per stream, sent up, with these times in ms by node and layer."""
    nodes = {node for node, _ in waits}
    rows = []
    for stream in run.streams:
        for node in nodes:
            spent = {f"{layer}_ns": int(waits.get((node, layer), 0) * MS * 100) for layer in LAYERS}
            data = isinstance(stream, FlowStream)
            rows.append({"t_ns": (LENGTH + 1) * S, "stream": stream.name, "way": "up", "data": data, "node": node,
                         "packets": 100, **spent})  # fmt: skip
    return pl.DataFrame(rows)


FULL = {"client:eth0": (1.0, 1.0), "router:eth1": (0.1, 0.1)}
IDLE = {"client:eth0": (0.5, 0.2), "router:eth1": (0.05, 0.1)}


def named(run):
    explanation = explanation_of(run)
    return explanation.bottleneck.kind, explanation.bottleneck.where


@pytest.mark.parametrize(
    ("kind", "true", "false"),
    [
        ("link", {"hops": FULL}, {"hops": IDLE}),
        ("link", {"hops": {"client:eth0": (0.9, 0.3)}, "waits": {("client", "qdisc"): 5}},
         {"hops": {"client:eth0": (0.9, 0.3)}, "waits": {("client", "qdisc"): 0.1}}),
        ("receive window", {"hops": IDLE, "limits": {"rwnd_limited": 0.6}, "blocked": {"cwnd": 0.1}},
         {"hops": IDLE, "limits": {"rwnd_limited": 0.2}, "blocked": {"cwnd": 0.1}}),
        ("receive window",
         {"hops": {"client:eth0": (0.9, 1.0)}, "limits": {"rwnd_limited": 0.9}, "blocked": {"cwnd": 0.1}},
         {"hops": FULL, "limits": {"rwnd_limited": 0.9}, "blocked": {"cwnd": 0.1}}),
        ("send buffer", {"hops": IDLE, "limits": {"sndbuf_limited": 0.6}, "blocked": {"cwnd": 0.1}},
         {"hops": IDLE, "limits": {"sndbuf_limited": 0.4}, "blocked": {"cwnd": 0.6}}),
        ("application", {"hops": IDLE, "limits": {"busy_time": 0.5}, "blocked": {"cwnd": 0.1}},
         {"hops": IDLE, "limits": {"busy_time": 0.99}, "blocked": {"cwnd": 0.1}}),
        ("small queues", {"hops": IDLE, "blocked": {"tsq": 0.95}}, {"hops": IDLE, "blocked": {"tsq": 0.5}}),
        ("loss", {"hops": IDLE, "lost": 50}, {"hops": IDLE, "lost": 0}),
        ("congestion control", {"hops": IDLE}, {"hops": FULL}),
    ],
)  # fmt: skip
def test_the_bottleneck_is_named(run_with, kind, true, false):
    assert named(run_with(**true))[0] == kind
    assert named(run_with(**false))[0] != kind


@pytest.mark.parametrize(
    ("kind", "key"), [("pacing", "test.stream_rates"), ("application", "test.stream_writes")]
)  # the synthetic flow receives 8 Mbit/s
def test_a_rate_of_the_scenario_is_named(run_with, kind, key):
    assert named(run_with(f"{key}=['8mbit']", "test.upload_streams=1", hops=IDLE, blocked={"cwnd": 0.2}))[0] == kind
    assert (
        named(run_with(f"{key}=['80mbit']", "test.upload_streams=1", hops=IDLE, blocked={"cwnd": 0.2}))[0]
        == "congestion control"
    )


def test_the_full_hop_with_the_queue_is_named(run_with):
    hops = {"client:eth0": (1.0, 1.0), "router:eth1": (9.9, 1.0)}
    assert named(run_with(hops=hops, waits={("client", "qdisc"): 1, ("router", "qdisc"): 9})) == ("link", "router:eth1")
    assert named(run_with(hops=hops, waits={("client", "qdisc"): 9, ("router", "qdisc"): 1})) == ("link", "client:eth0")


def test_a_queue_that_overflows_now_and_then_is_no_full_hop_beside_one(run_with):
    hops = {"client:eth0": (0.5, 0.2), "router:eth1": (9.9, 1.0)}
    few = DropFigures(qdisc=3, qdisc_skbs=3, nic=0, cable=0, stack=0)
    for name, place in (("router:eth1", hops), ("client:eth0", {"client:eth0": hops["client:eth0"]})):
        run = run_with(hops=place, waits={("client", "qdisc"): 9, ("router", "qdisc"): 1})
        run.summary = run.summary.model_copy(update={"drops": {"client": {"eth0": few}}})
        assert named(run) == ("link", name)


def test_late_acknowledgements_wait_where_another_load_fills(run_with):
    def both_ways(*settings, **options):
        run = run_with("test.name=tcp_bidirectional", **options)
        return [cause.kind for cause in (explanation_of(run).bottleneck, *explanation_of(run).others)]

    hops = FULL | {"server:eth0": (0.1, 0.1), "router:eth0": (0.1, 0.1)}
    assert both_ways(hops=hops) == ["link", "late acknowledgements"]
    assert both_ways(hops=hops | IDLE) == ["congestion control"] * 2


def with_channel(run, busy):
    """Give a run's client a channel that is busy for a share of the time."""
    cell = hourglass.load(make(run.path.parent / f"cell{busy}", synthetic_wifi.recipe()))
    radio = cell.summary.wifi["client"]["wlan0"].model_copy(update={"busy_percent": 100 * busy})
    run.summary = run.summary.model_copy(update={"wifi": {"client": {"wlan0": radio}}})
    return run


@pytest.mark.parametrize(
    ("busy", "waiting", "wait_ms", "kind"),
    [(0.85, 0.3, 5, "radio"), (0.4, 0.3, 25, "congestion control"), (0.4, 0.6, 5, "congestion control"),
     (0.4, 0.6, 25, "radio")],
)  # fmt: skip
def test_a_busy_channel_or_a_standing_queue_is_the_bottleneck(run_with, busy, waiting, wait_ms, kind):
    run = run_with(preset="wifi-ath9k", hops={"client:wlan0": (0.1, waiting), "ap:eth0": (0.1, 0.1)},
                   waits={("client", "txq"): wait_ms})  # fmt: skip
    assert named(with_channel(run, busy))[0] == kind


def with_cpu(run, node, share, work="received"):
    """Give a node a CPU that work of one kind occupies for a share of the time."""
    zero = dict.fromkeys(("received_ns", "sent_ns", "calls_ns", "pending_ns"), 0)
    rows = [zero | {"t_ns": t * S, "node": node, f"{work}_ns": int(share * t * S)} for t in range(LENGTH + 5)]
    run.cpu = pl.DataFrame(rows, {**SCHEMAS["cpu"]}, orient="row")
    return run


@pytest.mark.parametrize("node", ["client", "router", "server"])
@pytest.mark.parametrize(
    ("share", "work", "kind"),
    [(0.9, "received", "cpu"), (0.9, "sent", "cpu"), (0.7, "received", "congestion control"),
     (0.9, "calls", "congestion control")],
)  # fmt: skip
def test_a_busy_cpu_is_the_bottleneck(run_with, node, share, work, kind):
    """Calls of other programs do not delay flows, which are no programs."""
    run = with_cpu(run_with(hops=IDLE), node, share, work)
    assert named(run) == (kind, node if kind == "cpu" else "client")


@pytest.mark.parametrize(("before", "above", "kind"), [(9, 1, "cpu"), (1, 9, "link")])
def test_of_a_busy_cpu_and_a_full_cable_the_longer_wait_is_named(run_with, before, above, kind):
    waits = {("router", "rx"): before, ("client", "qdisc"): above}
    assert named(with_cpu(run_with(hops=FULL, waits=waits), "router", 0.97))[0] == kind


def test_the_queue_of_a_busy_cpu_is_no_full_cable(run_with):
    """A qdisc waits for its CPU: its samples have a queue, but the cable is half empty."""
    hops = {"client:eth0": (0.6, 1.0), "router:eth1": (0.1, 0.1)}
    assert named(run_with(hops=hops))[0] == "link"
    assert named(with_cpu(run_with(hops=hops), "client", 0.97, "sent")) == ("cpu", "client")


@pytest.mark.parametrize(("busy", "kind"), [(0.9, "radio"), (0.4, "cpu")])
def test_a_busy_channel_is_the_limit_beside_a_busy_cpu(run_with, busy, kind):
    run = run_with(preset="wifi-ath9k", hops={"client:wlan0": (0.1, 1.0), "ap:eth0": (0.1, 0.1)},
                   waits={("client", "ring"): 5})  # fmt: skip
    assert named(with_cpu(with_channel(run, busy), "client", 0.9, "sent"))[0] == kind


@pytest.mark.parametrize(
    ("layer", "work", "words"),
    [("rx", "received", "packets wait 9.00 ms for it, most of it before the stack"),
     ("qdisc", "sent", "packets wait 9.00 ms for it"), ("rx", "sent", "skbs to send 97.0 %)")],
)  # fmt: skip
def test_the_wait_for_a_cpu_is_that_of_its_work(run_with, layer, work, words):
    run = run_with(hops=IDLE, waits={("router", layer): 9})
    first, *_ = explanation_of(with_cpu(run, "router", 0.97, work)).sentences
    assert words in first.text
    assert ("wait" in first.text) == ("wait" in words)
    assert ("before the stack" in first.text) == ("stack" in words)


def test_nothing_limits_a_run_without_load(run_with):
    assert named(run_with("test.name=ping", "test.delay=0", hops=IDLE))[0] == "nothing"


def rule(run):
    size_rule = explanation_of(run).rule
    return size_rule.rule if size_rule else None


@pytest.mark.parametrize(
    ("name", "true", "false"),
    [
        ("tsq", {"blocked": {"tsq": 0.9, "cwnd": 0.1}}, {"blocked": {"tsq": 0.1, "cwnd": 0.9}}),
        ("cwnd", {"blocked": {"cwnd": 0.9}}, {"blocked": {"tsq": 0.9}}),
        ("receive window", {"blocked": {"rwnd": 0.9, "cwnd": 0.1}}, {"blocked": {"cwnd": 0.9}}),
        ("send buffer", {"blocked": {"cwnd": 0.1}, "limits": {"sndbuf_limited": 0.8}}, {"blocked": {"cwnd": 0.9}}),
        ("pacing", {"blocked": {"pacing": 0.9, "cwnd": 0.1}}, {"blocked": {"cwnd": 0.9}}),
    ],
)
def test_without_drops_the_senders_decide_the_size(run_with, name, true, false):
    assert rule(run_with(hops=FULL, **true)) == name
    assert rule(run_with(hops=FULL, **false)) != name


def test_tcp_small_queues_decide_only_on_the_senders_own_host(run_with):
    blocked = {"tsq": 0.6, "cwnd": 0.7}
    assert rule(run_with(hops=FULL, blocked=blocked)) == "tsq"
    remote = {"client:eth0": (0.1, 0.1), "router:eth1": (9.9, 1.0)}
    assert rule(run_with(hops=remote, blocked=blocked, waits={("router", "qdisc"): 5})) == "cwnd"


@pytest.mark.parametrize(
    ("qdisc", "drops", "name"), [("pfifo", 9, "qdisc limit"), ("pfifo", 0, "cwnd"), ("fq_codel", 9, "aqm"),
                                 ("fq_codel", 0, "cwnd")]
)  # fmt: skip
def test_a_queue_that_drops_decides_its_own_size(run_with, qdisc, drops, name):
    run = run_with(f"stack.qdisc={qdisc}", "test.upload_streams=1", hops=FULL)
    summary = run.summary
    figures = summary.drops["client"]["eth0"].model_copy(update={"qdisc": drops})
    run.summary = summary.model_copy(update={"drops": {"client": {"eth0": figures}}})
    assert rule(run) == name


@pytest.mark.parametrize(("limit", "name"), [(40_000, "bql"), (0, "ring")])
def test_bql_decides_the_ring(run_with, limit, name):
    waits = {("client", "ring"): 5}
    assert rule(run_with(hops=FULL, waits=waits, columns={"bql_limit": limit, "bql_inflight": 30_000})) == name


@pytest.mark.parametrize(
    ("layer", "name"),
    [("ring", "hardware queue"), ("contention", "airtime"), ("retry", "airtime"), ("txq", "cwnd"), ("air", None)],
)
def test_each_layer_of_a_radio_has_its_rule(run_with, layer, name):
    run = run_with(preset="wifi-ath9k", hops={"client:wlan0": (0.5, 1.0)}, waits={("client", layer): 5})
    radio = hourglass.load(make(run.path.parent / layer, synthetic_wifi.recipe())).summary.wifi["client"]["wlan0"]
    run.summary = run.summary.model_copy(update={"wifi": {"client": {"wlan0": radio}}})
    assert rule(run) == name


@pytest.mark.parametrize(("test", "name"), [("udp_flood", "application"), ("tcp_1up", "cwnd")])
def test_the_queue_of_loads_without_congestion_control_is_the_applications(run_with, test, name):
    run = run_with(f"test.name={test}", hops=FULL)
    run.summary = run_with(hops=FULL).summary  # the recipe has no datagrams
    assert rule(run) == name


@pytest.mark.parametrize(("node", "name"), [("server", "unknown"), ("client", "cwnd")])
def test_the_rule_of_a_queue_off_the_paths_of_the_loads_is_unknown(run_with, node, name):
    assert rule(run_with(hops=FULL, waits={(node, "qdisc"): 5})) == name


@pytest.mark.parametrize(("is_known", "name"), [(False, "unknown"), (True, "cwnd")])
def test_the_rule_of_senders_without_an_account_is_unknown(run_with, is_known, name):
    """An engine without the probe and without `tcp_info`'s times knows the queue, but not what holds the senders."""
    run = run_with(hops=FULL)
    if not is_known:
        accounts = [
            name for name in run.tcp.columns if name.startswith("hold_") or name.endswith(("_limited", "_time"))
        ]
        run.tcp = run.tcp.with_columns(pl.lit(None, run.tcp.schema[name]).alias(name) for name in accounts)
    assert rule(run) == name


@pytest.mark.parametrize(("has_paths", "kind"), [(False, "unknown"), (True, "congestion control")])
def test_the_bottleneck_of_a_run_without_paths_and_accounts_is_unknown(run_with, has_paths, kind):
    run = without_probe(run_with(hops=IDLE), tc_backlog(0))
    if not has_paths:
        run._traffic = replace(run._traffic, paths=())
        run.tcp = run.tcp.clear()
    assert named(run)[0] == kind


def test_a_shaper_in_the_link_decides(run_with):
    shaped = ['testbed.link.1.shaper={rate="50mbit", limit="100KB"}', "test.upload_streams=1"]
    hops = {"client:eth0": (0.1, 0.1), "router:eth1": (0.5, 0.1)}
    assert rule(run_with(*shaped, hops=hops, waits={("router", "shaper"): 5})) == "shaper limit"


def test_propagation_has_no_rule(run_with):
    run = run_with(hops=FULL, waits={("client", "propagation"): 50, ("client", "qdisc"): 1})
    explanation = explanation_of(run)
    assert (explanation.rule, explanation.parts[0].layer) == (None, "propagation")


def test_neighbouring_layers_have_their_shares_and_devices(run_with):
    parts = latency_parts(Loads(run_with(hops=FULL, waits={("client", "qdisc"): 3, ("router", "ring"): 1})), ["icmp"])
    assert [(part.place, part.layer, part.ms, part.share) for part in parts] == [
        ("client:eth0", "qdisc", 3.0, 0.75), ("router:eth1", "ring", 1.0, 0.25),
    ]  # fmt: skip


def test_a_link_shaper_without_a_wait_decides_nothing(run_with):
    shaped = ['testbed.link.1.shaper={rate="50mbit", limit="100KB"}', "test.upload_streams=1"]
    hops = {"client:eth0": (0.1, 0.1), "router:eth1": (0.5, 0.1)}
    assert rule(run_with(*shaped, hops=hops, waits={("router", "qdisc"): 5})) != "shaper limit"


def knob_names(run):
    return [knob.name for knob in knobs(explanation_of(run), run.scenario)]


BQL = "stack.client.device.eth0.bql_max=12500B"
"""The data of 1 ms at 100 Mbit/s."""


@pytest.mark.parametrize(("limit", "layer", "expected"), [(40_000, "ring", True), (0, "ring", False),
                                                          (40_000, "qdisc", False)])  # fmt: skip
def test_a_ring_of_bql_has_a_knob(run_with, limit, layer, expected):
    waits = {("client", layer): 5}
    run = run_with(hops=FULL, waits=waits, columns={"bql_limit": limit, "bql_inflight": 30_000})
    assert (BQL in knob_names(run)) == expected


@pytest.mark.parametrize(
    ("preset", "expected"),
    [("wifi-ath9k", ["testbed.wifi.0.aql=True"]), ("wifi-ax", ["testbed.wifi.0.aql=False"]), ("wifi-ath9k-htc", []),
     ("L100M", [])],
)  # fmt: skip
def test_a_busy_radio_with_queues_in_mac80211_has_a_knob_of_airtime_limits(run_with, preset, expected):
    hops = FULL if preset == "L100M" else {"client:wlan0": (0.5, 1.0)}
    names = knob_names(run_with(preset=preset, hops=hops))
    assert [name for name in names if "aql" in name] == expected


def without_probe(run, engine_tables):
    """Return the run with the records of an engine without the packet probe: tc and tcp_info."""
    run.layer_totals, run.queues, run.packets = (frame.clear() for frame in (run.layer_totals, run.queues, run.packets))
    holds = [column for column in run.tcp.columns if column.startswith(("hold_", "tsq_"))]
    run.tcp = run.tcp.with_columns(pl.lit(None).alias(column) for column in holds)
    run.qdisc = engine_tables
    return run


def tc_backlog(packets):
    """Return tc's samples of the client's device."""
    rows = [{"t_ns": 2 * S + tick * 200 * MS, "node": "client", "device": "eth0", "kind": "htb", "handle": "1:",
             "parent": "root", "backlog": 1514 * packets, "qlen": packets} for tick in range(50)]  # fmt: skip
    return pl.DataFrame(rows, {**SCHEMAS["qdisc"]}, orient="row")


@pytest.mark.parametrize(("packets", "share", "kind"), [(10, 1.0, "link"), (0, 0.5, "congestion control")])
def test_native_and_ssh_runs_have_the_bottleneck_and_say_what_is_missing(run_with, packets, share, kind):
    """Their records are those of tc and tcp_info."""
    run = without_probe(run_with(hops={"client:eth0": (share, 1.0)}), tc_backlog(packets))
    explanation = explanation_of(run)
    assert explanation.bottleneck.kind == kind
    assert (explanation.parts, explanation.rule) == ((), None)
    assert [gap.partition(":")[0] for gap in explanation.missing] == ["no packet probe", "no account of held data"]
    assert ("queue" in [sentence.id for sentence in explanation.sentences]) == bool(packets)


def test_netem_is_distance_and_no_queue(run_with):
    settings = ["testbed.netem=[{at='router:eth1', delay='4ms'}]", "test.upload_streams=1"]
    run = run_with(*settings, hops=FULL, waits={("router", "qdisc"): 5})
    kinds = pl.DataFrame([{"t_ns": 0, "node": "router", "device": "eth1", "kind": "netem"}])
    run.qdisc = pl.concat([run.qdisc.clear(), kinds.cast({"t_ns": pl.Int64})], how="diagonal")
    shares = {part.layer: part.ms for part in explanation_of(run).parts}
    assert shares == {"propagation": 4.0, "qdisc": 1.0}


def test_the_sentences_name_figures_and_sources(run_with):
    sentences = {
        sentence.id: sentence for sentence in explanation_of(run_with(hops=FULL, blocked={"tsq": 0.99})).sentences
    }
    assert sentences["bottleneck"].text.startswith("The bottleneck is client:eth0, HTB at 100 Mbit/s: it carries 100%")
    assert sentences["latency"].values == {"p50": 5.0, "p99": 5.0, "idle": 5.0}
    assert sentences["latency"].sources == ("ping.icmp.p50", "ping.icmp.p99")
    assert sentences["rule"].values["limit_bytes"] == 100_000
    assert "two skbs (the floor of the rule), and it has 90 KB below TCP" in sentences["rule"].text
    assert sentences["queue"].text == "In the median, 15.1 KB wait at client:eth0 (10 skbs, 1.21 ms at 100 Mbit/s)"


def test_a_flent_file_has_what_it_measured_and_says_what_is_missing(tmp_path):
    folder = make(tmp_path / "run", _recipe())
    (folder / "scenario.json").write_bytes(scenario.load("L100M", [f"test.length={LENGTH}"]).to_json())
    explanation = explanation_of(hourglass.load(write(hourglass.load(folder), tmp_path)))
    assert explanation.bottleneck.kind == "unknown"
    assert {"latency", "goodput"} <= {sentence.id for sentence in explanation.sentences}
    assert [gap.partition(":")[0] for gap in explanation.missing][:2] == ["no packet probe", "no paths"]


def test_shares_count_while_a_flow_is_connected(run_with):
    """A flow that connects after half of the window is busy all of its time."""
    run = run_with(hops=IDLE)
    run.tcp = run.tcp.filter(pl.col("t_ns") > 7 * S)
    bottleneck = explanation_of(run).bottleneck
    assert bottleneck.kind == "congestion control"
    assert bottleneck.shares == replace(bottleneck.shares, busy=pytest.approx(1.0, abs=0.01))
