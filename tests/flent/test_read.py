# SPDX-License-Identifier: Apache-2.0
"""Flent files as runs: exported runs have the same figures, files that Flent wrote are read, others are refused."""

import gzip
import json

import pytest
from results.synthetic import MS, Flow, Probe, Recipe, make

import hourglass
from hourglass.errors import InputError
from hourglass.flent.write import write
from hourglass.report.command import command
from hourglass.report.html_page import page
from hourglass.results.compare import compare
from hourglass.results.tidy import figures


@pytest.fixture
def our_run(tmp_path):
    """Return one of our runs, with a complete scenario."""
    from hourglass import scenario

    recipe = Recipe(
        flows=[Flow("upload::1", bytes_at=lambda t: int(t * 1e6), retrans_at=lambda t: int(t)), Flow("upload::2")],
        probes=[Probe("icmp", lambda seq: None if seq % 10 == 3 else (10 + seq % 7) * MS), Probe("udp")],
        length=10,
        delay=2,
    )
    folder = make(tmp_path / "own", recipe)
    loaded = scenario.load("L100M", ["test.length=10", "test.delay=2", "test.upload_streams=2"])
    (folder / "scenario.json").write_bytes(loaded.to_json())
    return hourglass.load(folder)


def values(run, kinds):
    """Return the figures of these kinds, without samples of sockets: a Flent file has fewer of them."""
    rows = figures(run).filter(figures(run)["kind"].is_in(kinds))
    return {
        tuple(row[:3]): row[4] for row in rows.iter_rows() if "tcp_rtt" not in row[2] and "retransmits" not in row[2]
    }


def test_our_own_file_comes_back_with_its_figures(our_run, tmp_path):
    read = hourglass.load(write(our_run, tmp_path))
    kinds = ["totals", "flow", "ping"]
    before, after = values(our_run, kinds), values(read, kinds)
    assert set(before) == set(after)
    for key, value in before.items():
        assert after[key] == (None if value is None else pytest.approx(value, rel=1e-5)), key
    assert sum(row.cells[1].change_percent == 0 for row in compare([our_run, read])) >= 8


NETPERF = {
    "version": 4,
    "x_values": [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5],
    "results": {"TCP upload BE": [None, None, 8.0, 8.0, 16.0, 16.0, None, None], "TCP upload avg": [1.0] * 8,
                "Ping (ms) ICMP": [1.0] * 8, "TCP upload BE::tcp_rtt": [5.0] * 8},
    "raw_values": {
        "Ping (ms) ICMP": [{"t": 1000.0 + i / 2, "val": 10.0 + i, "seq": i} for i in (0, 1, 2, 5, 6)],
        "Ping (ms) UDP BE": [{"t": 1000.5, "val": 3.0, "seq": 0, "owd_up": 1.0, "owd_down": 2.0},
                             {"t": 1001.5, "seq": 1, "lost": True, "val": None}],
        "VoIP": [{"t": 1001.0, "seq": 0, "val": 40.0, "owd_up": 20.0}, {"t": 1001.02, "seq": 1, "lost": True}],
        "HTTP latency": [{"t": 1001.5, "val": 250.0}],
    },
    "metadata": {
        "NAME": "rrul", "TITLE": "at home", "HOST": "far.example", "HOSTS": ["far.example"], "LOCAL_HOST": "laptop",
        "T0": "1970-01-01T00:16:40.000000Z", "LENGTH": 2, "TOTAL_LENGTH": 4, "STEP_SIZE": 0.5,
        "KERNEL_RELEASE": "6.9.1", "TEST_PARAMETERS": {"cc": "x y"},
        "SERIES_META": {"TCP upload BE": {"CONG_CONTROL": "bbr", "TCP_RETRANSMIT": "7"},
                        "TCP upload avg": {"COMPUTED_LATE": True}},
    },
}  # fmt: skip


@pytest.fixture
def foreign(tmp_path):
    path = tmp_path / "home.flent.gz"
    path.write_bytes(gzip.compress(json.dumps(NETPERF).encode()))
    return hourglass.load(path)


def test_a_file_of_netperf_and_ping_is_a_run(foreign):
    summary = foreign.summary
    (flow,) = summary.flows
    assert (flow.id, flow.cc, flow.retransmits) == ("upload::BE", "bbr", 7)
    assert flow.goodput_mbps == 12.0  # 8, 8, 16, 16 in the half seconds before 1.0 to 2.5 s
    assert summary.ping_ms["icmp"].lost == 2  # the numbers 3 and 4
    assert summary.ping_ms["udp BE"].lost == 1
    assert summary.datagrams[0].owd_ms.mean == 20.0
    assert summary.datagrams[0].lost == 1
    assert summary.fetches[0].done_ms.mean == 250.0
    assert (summary.engine, summary.seed, summary.kernel) == ("flent", None, "6.9.1")
    assert not summary.warnings or all(warning.id != "console" for warning in summary.warnings)


def test_missing_data_of_a_file_is_null_or_absent(tmp_path):
    path = tmp_path / "bare.flent"
    meta = {"NAME": None, "HOSTS": None, "SERIES_META": {"Ping (ms) ICMP": None}}
    results = {"Ping (ms) ICMP": [5, None], "TCP download": None}
    content = {"version": 4, "x_values": [0, 1], "results": results, "raw_values": None, "metadata": meta}
    path.write_text(json.dumps(content))
    run = hourglass.load(path)
    assert (run.test.name, run.test.hosts, run.test.length_s, run.test.step_s) == ("unknown", ("server",), 1, 0.2)
    assert [stream.name for stream in run.streams] == ["icmp"]
    assert run.ping_rows["rtt_ns"].to_list() == [5 * MS]
    assert (run.paths, run.scenario) == ((), None)


def test_a_flent_file_is_next_to_our_runs_in_the_report(foreign, our_run):
    text = page([our_run, foreign])
    assert "1 run of the real Linux network stack in virtual time and 1 run measured by Flent." in text
    assert command(foreign) == "flent rrul -H far.example -l 2 -s 0.5 -t 'at home' --te 'cc=x y'"
    assert "Measured by Flent; a similar measurement:" in text


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"no gzip", "not a Flent file"),
        (gzip.compress(b"[]", mtime=0), "it has no metadata"),
        (
            gzip.compress(b'{"version": 5, "metadata": {}}', mtime=0),
            "format version 5 is not supported; the versions are 1 to 4",
        ),
        (
            gzip.compress(b'{"version": 4, "metadata": {"LENGTH": "long"}}', mtime=0),
            r"not a Flent file: metadata\.LENGTH: Input should be a valid number",
        ),
    ],
)
def test_a_file_of_another_format_is_refused_in_one_line(tmp_path, content, complaint):
    path = tmp_path / "bad.flent.gz"
    path.write_bytes(content)
    with pytest.raises(InputError, match=complaint):
        hourglass.load(path)
    with pytest.raises(InputError, match="no such file"):
        hourglass.load(tmp_path / "none.flent.gz")


def test_a_flent_file_is_not_exported_as_ours(foreign, tmp_path):
    with pytest.raises(InputError, match="not a run of Hourglass"):
        write(foreign, tmp_path)


def changed(tmp_path, **keys):
    """Return the file of netperf and ping, with other top-level keys."""
    path = tmp_path / "changed.flent"
    path.write_text(json.dumps(NETPERF | keys))
    return hourglass.load(path)


def texts(run):
    return [warning.text for warning in run.summary.warnings if warning.id == "file"]


def flow(start_s, count, mbps=8.0):
    return [{"t": 1000 + start_s + (i + 1) / 2, "val": mbps, "dur": 0.5} for i in range(count)]


def test_a_flow_has_its_own_time(tmp_path):
    run = changed(tmp_path, results={}, raw_values={"TCP upload BE": flow(0, 2), "TCP upload BK": flow(2, 4, 4.0)})
    assert [figures.goodput_mbps for figures in run.summary.flows] == [8.0, 4.0]
    assert run.summary.totals.upload_mbps == 12.0
    assert texts(run) == [
        "all flows run at once for 0 s of the 4 s under load: each flow's goodput covers its own time, and totals add"
        " these"
    ]


def test_the_mean_of_netperf_is_the_goodput(tmp_path):
    meta = NETPERF["metadata"] | {"SERIES_META": {"TCP upload BE": {"MEAN_VALUE": 7.25}}}
    assert changed(tmp_path, metadata=meta).summary.flows[0].goodput_mbps == 7.25


def test_a_series_without_data_is_left_out(tmp_path):
    raw_values = {"TCP upload BE": flow(1, 4), "TCP upload BK": []}
    run = changed(tmp_path, results={"TCP upload BK": [None] * 8}, raw_values=raw_values)
    assert [figures.id for figures in run.summary.flows] == ["upload::BE"]
    assert run.summary.totals.upload_fairness == 1.0
    assert texts(run) == ["no data of TCP upload BK: left out"]


def test_a_direction_without_data_has_no_total(tmp_path):
    raw_values = {"TCP upload BE": [], "TCP download BE": flow(1, 4), "TCP download BK": []}
    run = changed(tmp_path, results={}, raw_values=raw_values)
    totals = run.summary.totals
    assert (totals.upload_mbps, totals.download_mbps, totals.mbps) == (None, 8.0, 8.0)
    assert texts(run) == ["no data of TCP download BK, TCP upload BE: left out"]
    empty = changed(tmp_path, results={}, raw_values={"TCP upload BE": [], "Ping (ms) ICMP": pings()}).summary
    assert (empty.totals.upload_mbps, empty.totals.download_mbps) == (None, 0.0)


@pytest.mark.parametrize("shift_s", [-7200, 7200, 1e8])
def test_points_outside_the_test_are_a_warning_and_count(tmp_path, shift_s):
    pings = [{"t": 1000.0 + shift_s + i / 2, "val": 10.0, "seq": i} for i in range(8)]
    run = changed(tmp_path, results={}, raw_values={"Ping (ms) ICMP": pings})
    assert (run.summary.ping_ms["icmp"].n, run.summary.ping_ms["icmp"].p50) == (8, 10.0)
    (text,) = texts(run)
    assert text.startswith("points of Ping (ms) ICMP lie outside the test, which lasts 4 s from T0")


def test_points_that_differ_from_the_steps_are_a_warning(tmp_path):
    pings = [{"t": 1000.0 + i / 2, "val": 10.0, "seq": i} for i in range(8)]
    run = changed(tmp_path, results={"Ping (ms) ICMP": [100.0] * 8}, raw_values={"Ping (ms) ICMP": pings})
    assert texts(run) == [
        "points (raw_values) and steps (results) of Ping (ms) ICMP differ: figures are those of the points"
    ]


def test_pings_of_netperf_have_unknown_losses(tmp_path):
    pings = [{"t": 1000.0 + i / 2, "val": 10.0, "dur": 0.5} for i in range(8)]
    ping = changed(tmp_path, results={}, raw_values={"Ping (ms) UDP BE": pings}).summary.ping_ms["udp BE"]
    assert (ping.n, ping.lost) == (8, None)


def test_points_over_years_are_refused(tmp_path):
    pings = [{"t": 1000.0 + t_s, "val": 10.0} for t_s in (0.0, 1e9)]
    with pytest.raises(InputError, match="more than 1000000 steps"):
        changed(tmp_path, results={}, raw_values={"Ping (ms) ICMP": pings})


def test_a_flow_of_another_clock_has_its_time(tmp_path):
    pings = [{"t": 1000.0 + i / 2, "val": 10.0, "seq": i} for i in range(8)]
    run = changed(tmp_path, results={}, raw_values={"TCP upload BE": flow(-60, 4), "Ping (ms) ICMP": pings})
    assert run.summary.flows[0].goodput_mbps == 8.0
    assert (run.end_ns, run.flows[0].start_ns, run.flows[0].stop_ns) == (64e9, 0, 2e9)
    assert [text.partition(" lie outside")[0] for text in texts(run)] == ["points of TCP upload BE"]


def pings(count=12, ms=10.0, start_s=0.0, **keys):
    return [{"t": 1000.0 + start_s + i / 5, "val": ms, "seq": i} | keys for i in range(count)]


@pytest.mark.parametrize("name", ["Ping (ms) TCP BE1", "Ping (ms) SCTP CS0"])
def test_transactions_per_second_are_no_round_trips(tmp_path, name):
    (text,) = texts(changed(tmp_path, results={}, raw_values={name: pings(dur=0.2), "Ping (ms) ICMP": pings(ms=130.0)}))
    assert text == f"values of {name} are netperf's transactions per second, which Flent's test labels as ms"


def test_round_trips_take_time(tmp_path):
    raw_values = {"Ping (ms) UDP BE": pings(3) + pings(1, 0.0, 1.0), "Ping (ms) ICMP": pings()}
    assert texts(changed(tmp_path, results={}, raw_values=raw_values)) == [
        "round trips of Ping (ms) UDP BE take no time"
    ]


DIFFER = "idle round trips of one path differ: Ping (ms) UDP BE has 10 ms, Ping (ms) ICMP has 130 ms"


@pytest.mark.parametrize(
    ("other", "other_pings", "keys", "is_named"),
    [
        ("Ping (ms) ICMP", pings(ms=130.0), {}, True),
        ("Ping (ms) ICMP", pings(ms=30.0), {}, False),  # not more than three times as long
        ("Ping (ms) ICMP", pings(ms=130.0, start_s=1.0), {}, False),  # only under load
        ("Ping (ms) ICMP", pings(ms=130.0) + pings(ms=12.0, start_s=0.1), {}, False),
        ("Ping (ms) ICMP near (extra)", pings(ms=130.0), {}, False),
        ("Ping (ms) ICMP6", pings(ms=130.0), {}, False),
        ("Ping (ms) UDP6 BK", pings(ms=130.0), {}, False),
        ("Ping (ms) UDP 6BE", pings(ms=130.0), {}, False),
        ("Ping (ms) ICMP", pings(ms=130.0), {"HOSTS": ["far", "near"]}, False),
        ("Ping (ms) ICMP", pings(ms=130.0), {"HOSTS": []}, False),
        ("Ping (ms) ICMP", pings(ms=130.0), {"SERIES_META": {"Ping (ms) ICMP": {"REMOTE_HOST": "near"}}}, False),
    ],
)
def test_idle_round_trips_of_one_path_agree(tmp_path, other, other_pings, keys, is_named):
    raw_values = {"TCP upload BE": flow(1, 6), "Ping (ms) UDP BE": pings(), other: other_pings}
    run = changed(tmp_path, results={}, raw_values=raw_values, metadata=NETPERF["metadata"] | keys)
    assert texts(run) == ([DIFFER] if is_named else [])


NETPERF_UPLOADS = {f"TCP upload {number}": {"COMMAND": "netperf -t TCP_STREAM -H far"} for number in (1, 2)}


def shaped(qdisc, **params):
    return {"EGRESS_INFO": {"iface": "eth0", "qdiscs": [{"name": qdisc, "parent": "root", "params": params}]}}


def sent(command):
    return shaped("tbf", rate="20Mbit") | {"SERIES_META": NETPERF_UPLOADS | {"TCP upload 1": {"COMMAND": command}}}


@pytest.mark.parametrize(
    ("keys", "is_named"),
    [
        (shaped("tbf", rate="20Mbit"), True),
        (shaped("cake", refcnt="2", bandwidth="20Mbit", besteffort="triple-isolate"), True),
        (shaped("netem", limit="1000", rate="20Mbit"), True),
        (shaped("tbf", rate="35Mbit"), False),  # 60 MB in 12 s, of which 8 MiB may still be in the sockets
        (shaped("tbf", rate="20Mbit", burst="30Mb"), False),
        (shaped("tbf", rate="0x1p99999bit"), False),
        (shaped("cake", bandwidth="20Mbit", diffserv3="autorate-ingress"), False),
        (shaped("cake", bandwidth="unlimited"), False),
        (shaped("fq_codel", limit="10240p"), False),
        ({"EGRESS_INFO": {"qdiscs": "none"}}, False),
        (shaped("tbf", rate="20Mbit") | {"HOSTS": ["far", "near"]}, False),
        (shaped("tbf", rate="20Mbit") | {"HOURGLASS": {"seed": 1}}, False),
        (sent("netperf -t TCP_STREAM"), True),
        (sent("netperf -t TCP_MAERTS"), False),
        (sent("ssh near netperf -t TCP_STREAM"), False),
        (sent(""), False),
    ],
)
def test_uploads_are_not_faster_than_their_shaper(tmp_path, keys, is_named):
    meta = NETPERF["metadata"] | {"LENGTH": 12, "TOTAL_LENGTH": 12, "SERIES_META": NETPERF_UPLOADS} | keys
    raw_values = {f"TCP upload {number}": flow(0, 24, 20.0) for number in (1, 2)}
    run = changed(tmp_path, results={}, raw_values=raw_values, metadata=meta)
    begins, ends = "the uploads have 40 Mbit/s, but ", " at the client let 20 Mbit/s pass before the test (EGRESS_INFO)"
    assert [text.startswith(begins) and text.endswith(ends) for text in texts(run)] == ([True] if is_named else [])
