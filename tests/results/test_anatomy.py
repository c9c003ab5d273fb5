# SPDX-License-Identifier: Apache-2.0
"""Per-layer tables and figures of synthetic runs, compared with figures computed by hand."""

import polars as pl
import pytest

import hourglass
from hourglass import scenario
from hourglass.contract.probe import LAYER_COLUMNS, LAYERS
from hourglass.contract.record_tables import SCHEMAS
from hourglass.engine.virtual import Virtual
from hourglass.plan import build
from hourglass.results import phases
from hourglass.results.anatomy import window_sums
from hourglass.results.frames import long_form, path_order
from hourglass.results.series import loaded_window
from results.synthetic import MS, Flow, Recipe, S, make
from results.synthetic_probe import BBR, US, Anatomy, recipe
from tests.clocks import limited_cpu


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return hourglass.load(make(tmp_path_factory.mktemp("runs") / "run", recipe()))


def test_the_layers_of_a_packet_add_up_to_its_time(run):
    packets = run.packets.group_by("stream", "way", "packet").agg(
        pl.sum_horizontal(LAYER_COLUMNS).sum().alias("sum"), pl.col("t_ns", "end_ns").first()
    )
    assert packets.height == 1000 + 2 * 70
    assert (packets["sum"] == packets["end_ns"] - packets["t_ns"]).all()
    long = run.layers.group_by("stream", "way", "packet").agg(pl.col("ns").sum(), pl.col("t_ns", "end_ns").first())
    assert (long["ns"] == long["end_ns"] - long["t_ns"]).all()


def test_the_long_form_has_one_row_a_layer_in_path_order(run):
    packet = run.layers.filter((pl.col("stream") == "upload::1") & (pl.col("packet") == 3))
    assert packet.select("node", "layer", "ns").rows() == [
        ("client", "qdisc", 20 * MS), ("client", "ring", 5 * US), ("client", "wire", 12_304),
        ("client", "propagation", 1_000), ("router", "rx", 20 * US), ("router", "wire", 12_304),
        ("router", "propagation", 1_000), ("server", "rx", 20 * US),
    ]  # fmt: skip
    assert run.layers.columns == ["t_ns", "end_ns", "stream", "way", "packet", "data", "visit", "node", "layer", "ns"]


def test_means_shares_and_percentiles_are_exact(run):
    """Packet n of 1000 leaves at 2 s + 10 ms · n. It waits in the client's qdisc for 10 ms (n even) or 20 ms. The
    window is (2 s, 12 s]. Packets 998 and 999 end after 12 s."""
    rest_ns = 5 * US + 2 * 13_304 + 40 * US
    counted = [n for n in range(1000) if n * 10 * MS + 10 * MS * (1 + n % 2) + rest_ns <= 10 * S]
    waits = [10 * MS * (1 + n % 2) for n in counted]
    mean_ns = sum(waits) / len(waits)
    qdisc = run.summary.layers_ms["client"]["qdisc"]
    assert qdisc.n == len(counted)
    assert qdisc.mean == pytest.approx(mean_ns / MS, 1e-5)
    assert qdisc.share == pytest.approx(mean_ns / (mean_ns + rest_ns), 1e-5)
    assert (qdisc.p50, qdisc.p99) == (sorted(waits)[len(waits) // 2] / MS, 20)
    layers = run.summary.layers_ms
    assert {node: list(figures) for node, figures in layers.items()} == {
        "client": ["qdisc", "ring", "wire", "propagation"], "router": ["rx", "wire", "propagation"], "server": ["rx"],
    }  # fmt: skip
    assert sum(figures.share for node in layers.values() for figures in node.values()) == pytest.approx(1, 1e-5)


def test_percentiles_come_from_the_rows_and_sums_from_all(tmp_path):
    """Only odd packets have rows, and they waited 20 ms. The mean over all packets does not change."""
    odd = Anatomy(keep=lambda number: number % 2 == 1)
    qdisc = hourglass.load(make(tmp_path / "run", recipe(odd))).summary.layers_ms["client"]["qdisc"]
    assert (qdisc.p50, qdisc.p99) == (20, 20)
    assert qdisc.mean == pytest.approx(15, 1e-2)
    none = Anatomy(keep=lambda number: False)
    summary = hourglass.load(make(tmp_path / "none", recipe(none))).summary
    assert (summary.layers_ms["client"]["qdisc"].p50, list(summary.layers_ms)) == (
        None, ["client", "router", "server"]
    )  # fmt: skip


def test_a_pings_layers_are_summed_over_both_ways(run):
    """A ping passes the router twice: 2 · 20 us of interrupt moderation, 2 · 976 ns of transmission."""
    icmp = run.summary.ping_layers_ms["icmp"]
    assert icmp["client"]["qdisc"].p50 == icmp["client"]["qdisc"].mean == 10
    assert icmp["router"]["rx"].model_dump() | {"share": 0} == {
        "n": 50,
        "p50": 0.04,
        "p99": 0.04,
        "mean": 0.04,
        "share": 0,
    }
    assert icmp["router"]["wire"].mean == 0.001952
    assert icmp["client"]["rx"].mean == 0.02
    assert icmp["server"]["wire"].p99 == 0.000976
    whole_ns = 10 * MS + 4 * 976 + 4 * 20 * US
    assert icmp["client"]["qdisc"].share == pytest.approx(10 * MS / whole_ns, 1e-5)


def test_directions_without_common_packets_have_no_percentiles(tmp_path):
    """Rows of even requests and odd answers have no common number; rows of requests alone are enough."""
    lone = hourglass.load(make(tmp_path / "run", recipe()))
    lone.packets = lone.packets.filter((pl.col("way") == "up") | (pl.col("stream") == "upload::1"))
    assert lone.summary.ping_layers_ms["icmp"]["client"]["qdisc"].p50 is None
    assert lone.summary.ping_layers_ms["icmp"]["client"]["qdisc"].mean == 10


def test_pings_that_arrive_together_are_distinguished(tmp_path):
    """Two requests end and two answers begin in the same ns, as in one aggregate of a radio."""
    run = hourglass.load(make(tmp_path / "run", recipe()))
    both = pl.when(pl.col("stream") == "icmp").then(pl.col("packet") // 2 * 400 * MS + 40 * MS)
    run.packets = run.packets.with_columns(
        end_ns=pl.when(pl.col("way") == "up").then(both).otherwise(None).fill_null(pl.col("end_ns")),
        t_ns=pl.when(pl.col("way") == "down").then(both).otherwise(None).fill_null(pl.col("t_ns")),
    )
    qdisc = run.summary.ping_layers_ms["icmp"]["client"]["qdisc"]
    assert (qdisc.p50, qdisc.p99, qdisc.mean) == (10, 10, 10)


def test_packets_to_a_closed_socket_are_no_drops_of_the_network(tmp_path):
    """The flow stops at 12 s. Earlier drops of the stack count, and drops of a tc filter are the qdisc's."""
    ends = {"stream": 0, "way": "up", "node": "server", "device": None, "packets": 3, "bytes": 4344}
    drop = [
        ends | {"t_ns": t_ns, "place": layer, "reason": reason}
        for t_ns, layer, reason in (
            (12 * S - 1, "socket", "SOCKET_RCVBUFF"), (12 * S, "socket", "TCP_CLOSE"), (5 * S, "stack", "TC_INGRESS"),
        )
    ]  # fmt: skip
    summary = hourglass.load(
        make(tmp_path / "run", Recipe(further=lambda _: [{"table": "drop", "rows": drop}]))
    ).summary
    assert summary.drops_by_reason == {
        "server": {"-": {"closed": {"TCP_CLOSE": 3}, "qdisc": {"TC_INGRESS": 3}, "socket": {"SOCKET_RCVBUFF": 3}}}
    }
    drops = summary.drops["server"]["-"]
    assert (drops.qdisc, drops.stack, drops.nic, drops.cable) == (3, 3, 0, 0)


def test_sums_of_a_window_are_differences(run):
    sums = window_sums(run, loaded_window(run)).filter(pl.col("way") == "down")
    assert sums.filter(pl.col("node") == "server").select("packets", "wire_ns").rows() == [(50, 50 * 976)]


def test_drops_by_reason(run):
    assert run.summary.drops_by_reason == {
        "router": {"eth1": {"qdisc": {"QDISC_DROP": 3}}},
        "server": {"-": {"socket": {"NO_SOCKET": 1}}},
    }
    assert run.drops["stream"].to_list() == ["upload::1", "upload::1", None]


def test_streams_have_names(run):
    assert set(run.packets["stream"]) == {"upload::1", "icmp"}
    assert set(run.tcp["stream"]) == {"upload::1"}
    assert set(run.ping_rows["stream"]) == {"icmp"}
    assert run.path_order == ["client", "router", "server"]


def test_a_switch_is_where_packets_first_pass_it(tmp_path):
    """A router between the VLANs of a switch: packets pass the switch before and after it."""
    (tmp_path / "vlans.toml").write_text("""
        [test]
        name = "ping"
        [testbed]
        node = [
          { name = "a", role = "router" }, { name = "client" }, { name = "server" }, { name = "z", role = "switch" },
        ]
        link = [
          { ends = ["client:eth0", "z:p1"], vlan = 10 }, { ends = ["server:eth0", "z:p2"], vlan = 20 },
          { ends = ["z:p3", "a:eth0"], vlan = [10, 20] },
        ]
        """)
    plan = build(scenario.load(tmp_path / "vlans.toml"), Virtual.capabilities)
    assert path_order(plan.nodes, plan.streams, plan.paths) == ["client", "z", "a", "server"]


def test_a_run_without_the_probe_has_empty_tables_with_columns(tmp_path):
    run = hourglass.load(make(tmp_path / "run", Recipe(probed=False)))
    for frame, name in ((run.packets, "packet"), (run.layer_totals, "layer"), (run.queues, "queue"),
                        (run.drops, "drop"), (run.balance, "balance"), (run.qdisc_stats, "qdisc_stat")):  # fmt: skip
        assert frame.is_empty()
        assert frame.columns == list(SCHEMAS[name])
    assert run.layers.is_empty()
    assert "ns" in run.layers.columns
    assert (run.summary.layers_ms, run.summary.ping_layers_ms) == ({}, {"icmp": {}})
    assert run.summary.drops_by_reason == {}
    assert run.path_order == ["client", "server"]


def test_bbrs_phases_follow_from_its_gains(tmp_path):
    bbr = recipe(flows=[Flow(cc="bbr"), Flow("upload::2")])
    tcp = hourglass.load(make(tmp_path / "run", bbr)).tcp
    second = ((pl.col("t_ns") - 2 * S) // S % 4).alias("second")
    observed = tcp.filter(pl.col("stream") == "upload::1").select(second, "bbr_phase").unique().sort("second")
    assert observed["bbr_phase"].to_list() == list(BBR)
    assert tcp.filter(pl.col("stream") == "upload::2")["bbr_phase"].null_count() == 2 * 1001


@pytest.mark.parametrize(
    ("pacing", "cwnd", "phase"),
    [
        (709, 512, "STARTUP"), (128, 512, "DRAIN"), (230, 512, "PROBE_BW"), (256, 512, "PROBE_BW"),
        (320, 576, "PROBE_BW"), (256, 128, "PROBE_RTT"), (0, 0, None), (None, None, None),
    ],
)  # fmt: skip
def test_bbr3s_phases_follow_from_its_gains(pacing, cwnd, phase):
    samples = phases.with_phase(pl.DataFrame({"bbr_pacing_gain": [pacing], "bbr_cwnd_gain": [cwnd]}))
    assert samples["bbr_phase"].to_list() == [phase]


def test_the_end_of_hystart(tmp_path):
    """ssthresh is finite from 1 s on: by HyStart, unless something was retransmitted or it is not CUBIC."""
    flows = [Flow(), Flow("upload::2", retrans_at=lambda t: 1), Flow("upload::3", cc="bbr")]
    flow_figures = hourglass.load(make(tmp_path / "run", recipe(flows=flows))).summary.flows
    assert [flow.hystart_exit_s for flow in flow_figures] == [1, None, None]


def test_a_million_rows_are_quick(tmp_path):
    """Limit time and memory of the long form of a million rows with six layers each: enumerations, not text."""
    run = hourglass.load(make(tmp_path / "run", recipe()))
    rows = run.packets.filter(pl.col("stream") == "upload::1")
    packets = pl.concat([rows] * (1_000_000 // rows.height + 1)).head(1_000_000)
    with limited_cpu(20):
        table = long_form(packets)
    assert table.height > 2 * 10**6
    assert table.estimated_size() / table.height < 64


def test_every_layer_can_be_long(tmp_path):
    """Each layer has a different time."""

    def all_layers(number):
        return [("client", {layer: number + 1 for number, layer in enumerate(LAYERS)})]

    run = hourglass.load(make(tmp_path / "run", recipe(Anatomy(data=all_layers), probes=[])))
    packet = run.layers.filter(pl.col("packet") == 0)
    assert packet["layer"].to_list() == list(LAYERS)
    assert packet["ns"].to_list() == list(range(1, 1 + len(LAYERS)))
