# SPDX-License-Identifier: Apache-2.0
"""The summary object of synthetic runs, compared with closed forms."""

import json

import polars as pl
import pytest
from jsonschema import Draft202012Validator

import hourglass
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.contract.summary import LinkFigures, Summary, summary_schema
from hourglass.errors import HourglassError, InputError
from hourglass.results.compare import compare
from hourglass.results.emodel import mos
from hourglass.results.summarize import summarize
from results import synthetic_probe, synthetic_wifi, test_cpus
from results.synthetic import MS, Flow, Probe, Recipe, make, write_summary


def run_of(tmp_path, **recipe):
    return hourglass.load(make(tmp_path / "run", Recipe(**recipe)))


def test_constant_rates_give_exact_goodput_totals_and_fairness(tmp_path):
    flows = [
        Flow("upload::1", bytes_at=lambda t: int(t * 1_000_000)),
        Flow("upload::2", bytes_at=lambda t: int(t * 3_000_000)),
        Flow("download::1", upload=False, bytes_at=lambda t: int(t * 2_000_000)),
    ]
    summary = run_of(tmp_path, flows=flows).summary
    assert [(f.id, f.goodput_mbps) for f in summary.flows] == [
        ("upload::1", 8), ("upload::2", 24), ("download::1", 16)
    ]  # fmt: skip
    fairness = pytest.approx(48**2 / 3 / (8**2 + 24**2 + 16**2), 1e-5)
    assert summary.totals.model_dump() == {"upload_mbps": 32, "download_mbps": 16} | {
        "fairness": fairness, "upload_fairness": 0.8, "download_fairness": 1
    }  # fmt: skip


def test_without_receiver_samples_acked_bytes_count(tmp_path):
    assert run_of(tmp_path, receiver=False).summary.totals.upload_mbps == 8


def test_bytes_before_the_first_sample_count(tmp_path):
    """If the first sample of a flow has bytes, they were delivered after its start."""
    run = run_of(tmp_path, flows=[Flow(bytes_at=lambda t: 0 if t == 0 else 1_000_000)])
    run.tcp = run.tcp.filter(run.tcp["t_ns"] > 2_000 * MS)
    assert run.summary.totals.upload_mbps == 0.8


def test_rtt_statistics_take_sender_samples_of_the_window_only(tmp_path):
    """RTT rises by 1 µs per sample from 1000 µs to 2000 µs; the receiver's 77 µs and a 0 do not count."""
    summary = run_of(tmp_path, flows=[Flow(rtt_us=lambda t: 1000 + round(t * 100))]).summary
    ramp = {"n": 1001, "min": 1, "p10": 1.1, "p50": 1.5, "p90": 1.9, "p99": 1.99, "max": 2, "mean": 1.5}
    assert summary.tcp_rtt_ms.model_dump() == ramp
    assert summary.flows[0].tcp_rtt_ms.model_dump() == ramp


def test_unmeasured_rtt_is_left_out(tmp_path):
    rtt = run_of(tmp_path, flows=[Flow(rtt_us=lambda t: 0 if t < 5 else 4000)]).summary.tcp_rtt_ms
    assert (rtt.n, rtt.min) == (501, 4)


def test_retransmits_are_a_difference_within_the_window(tmp_path):
    assert run_of(tmp_path, flows=[Flow(retrans_at=lambda t: int(t) * 3)]).summary.flows[0].retransmits == 30


def test_pings_count_by_the_time_of_sending(tmp_path):
    """200 ms apart: seq 10…60 are sent in [2 s, 12 s]; 1 ms outside the window, 5 ms inside, every tenth lost."""
    inside = lambda seq: 10 <= seq <= 60  # noqa: E731
    probe = Probe("icmp", lambda seq: None if seq % 10 == 0 else 5 * MS if inside(seq) else 1 * MS)
    icmp = run_of(tmp_path, probes=[probe]).summary.ping_ms["icmp"]
    assert (icmp.lost, icmp.n, icmp.min, icmp.max) == (6, 45, 5, 5)


def test_without_load_the_window_is_the_whole_run(tmp_path):
    summary = run_of(tmp_path, flows=[], probes=[Probe("icmp"), Probe("udp", lambda seq: None)]).summary
    assert summary.flows == []
    assert summary.totals.model_dump() == {"upload_mbps": 0, "download_mbps": 0} | {
        "fairness": None, "upload_fairness": None, "download_fairness": None
    }  # fmt: skip
    assert summary.tcp_rtt_ms.n == 0
    assert summary.ping_ms["icmp"].n == 70
    assert (summary.ping_ms["udp"].lost, summary.ping_ms["udp"].p50) == (70, None)


def test_drops_are_differences_counted_at_the_roots(tmp_path):
    """The qdisc drops 7 skbs of two packets each; without the probe the number of packets is unknown."""
    counted = {"qdisc_skbs": 7, "nic": 3, "cable": 0, "stack": 0}
    probed, plain = (run_of(tmp_path / str(probed), probed=probed).summary for probed in (True, False))
    assert probed.data()["drops"] == {"client": {"eth0": {"qdisc": 14} | counted}}
    assert plain.data()["drops"] == {"client": {"eth0": {"qdisc": None} | counted}}
    assert probed.drops_by_reason == {"client": {"eth0": {"qdisc": {"QDISC_DROP": 14}}}}


def test_the_object_has_the_keys_of_the_contract_in_order(tmp_path):
    summary = run_of(tmp_path).summary
    assert list(summary.data()) == [
        "schema", "scenario", "engine", "kernel", "seed", "virtual_s", "wall_s", "digest", "totals", "flows",
        "tcp_rtt_ms", "ping_ms", "datagrams", "fetches", "transactions", "wifi", "drops",
        "drops_by_reason", "qdiscs", "links", "layers_ms", "ping_layers_ms", "transaction_layers_ms", "apps",
        "warnings",
    ]  # fmt: skip
    assert (summary.schema_, summary.scenario, summary.kernel) == (1, "synthetic", "6.1.192")
    assert json.loads(summary.to_json()) == summary.data()


OPENED = {"t_ns": 1000 * MS, "end_ns": 3000 * MS, "connections": 1, "protocol": "tcp", "mptcp": False, "node": "client",
          "stream": None, "app": None, "to_app": None, "program": "curl", "address": "10.0.0.1", "port": 40000,
          "to_node": "server", "to_address": "fd00::2",
          "to_port": 443, "bytes_up": 1_000_000, "bytes_down": 500_000}  # fmt: skip


def rich_runs(tmp_path):
    """Yield runs that together have every part of a summary."""
    yield run_of(tmp_path / "plain")
    yield hourglass.load(make(tmp_path / "idle", Recipe(flows=[], probes=[Probe("udp", lambda seq: None)])))
    yield hourglass.load(make(tmp_path / "layers", synthetic_probe.recipe()))
    yield hourglass.load(make(tmp_path / "radios", synthetic_wifi.recipe()))
    yield hourglass.load(make(tmp_path / "cpus", Recipe(further=test_cpus.samples)))
    voice = [{"t_ns": t * 20 * MS, "stream": 2, "seq": t, "owd_ns": None if t % 9 == 0 else 5 * MS, "refused": False}
             for t in range(700)]  # fmt: skip
    pages = [{"t_ns": t * 200 * MS, "stream": 3, "seq": t, "bytes": 1000, "first_ns": MS, "done_ns": 2 * MS}
             for t in range(70)]  # fmt: skip
    transactions = [
        {"t_ns": t * 100 * MS, "stream": 4, "seq": t, "done_ns": None if t == 139 else 99 * MS + t % 2 * 2 * MS}
        for t in range(140)
    ]
    counters = [{"t_ns": 0, "node": "client", "device": "eth0", "handle": "10:", "kind": "fq", "name": "throttled",
                 "value": 3}]  # fmt: skip
    dropped = [{"t_ns": 0, "node": "isp", "device": "line", "name": f"tx_{name}", "value": value}
               for name, value in (("policed", 7), ("marked", 0), ("frames", 99))]  # fmt: skip
    events = [{"t_ns": 5000 * MS, "node": "client", "name": "link down eth0", "done_ns": 5000 * MS, "said": ""}]
    connections = [
        OPENED | {"stream": 5, "app": 0},
        OPENED | {"stream": 6, "to_app": 0, "bytes_up": 0, "bytes_down": 9000},
        OPENED | {"stream": None, "connections": 3},
    ]
    layer_times = dict.fromkeys(LAYER_COLUMNS, 0) | {"tsq_ns": 30 * MS, "qdisc_ns": 10 * MS}
    layers = [
        {"t_ns": 200 * MS, "stream": stream, "way": way, "data": True, "node": "client", "packets": 10, **layer_times}
        for stream, way in ((5, "up"), (6, "up"), (6, "down"))
    ]
    fields = {"t_ns": 0, "stream": 2, "way": "up"}
    marked = [fields | {"packet": 3, "bytes": 172, "data": True, "node": "isp", "device": "line", "place": "wire",
                     "was": "ect1", "ecn": "ce"}]  # fmt: skip
    zeros = dict.fromkeys(("duplicated", "dropped", "in_flight"), 0)
    sent = [fields | zeros | {"ecn": "ect1", "sent": 10, "became": -1, "delivered": 9},
            fields | zeros | {"ecn": "ce", "sent": 0, "became": 1, "delivered": 1}]  # fmt: skip
    tables = [{"table": name, "rows": rows} for name, rows in
              (("mark", marked), ("codepoint", sent), ("ethtool", dropped), ("socket", connections), ("layer", layers),
               ("datagram", voice), ("fetch", pages), ("transaction", transactions),
               ("qdisc_stat", counters), ("event", events))]  # fmt: skip
    yield run_of(tmp_path / "traffic", datagrams=172, sizes=[1000], requests=1, further=lambda recipe: tables,
                 checks={"ping.p99": "< 2ms"}, expected={"curl": 0})  # fmt: skip


def test_summaries_match_the_published_schema(tmp_path):
    document = summary_schema()
    Draft202012Validator.check_schema(document)
    schema = Draft202012Validator(document)
    keys = set()
    for run in rich_runs(tmp_path):
        data = json.loads(run.summary.to_json())
        assert list(schema.iter_errors(data)) == []
        assert list(schema.iter_errors(data | {"totals": {"upload_mbps": "fast"}}))
        reloaded = Summary.model_validate_json(run.summary.to_json())
        assert (reloaded, reloaded.to_json()) == (run.summary, run.summary.to_json())
        keys |= {key for key, value in data.items() if value}
    assert keys == set(document["properties"]) - {"responsiveness"}, "test_responsiveness.py has a test of its kind"


def test_datagrams_and_fetches_have_their_figures(tmp_path):
    *_, run = rich_runs(tmp_path)
    (voice,), (pages,) = run.summary.datagrams, run.summary.fetches
    assert (voice.sent, voice.lost, voice.owd_ms.p50, voice.jitter_ms) == (501, 55, 5, 0)
    assert voice.mos == pytest.approx(mos(5, 55 / 501), 1e-5)
    assert (pages.begun, pages.unfinished, pages.first_byte_ms.p50, pages.by_bytes["1000"].n) == (51, 0, 1, 51)
    (transactions,) = run.summary.transactions
    assert (transactions.begun, transactions.unfinished, transactions.rate_per_s) == (101, 0, 10.1)
    assert (transactions.done_ms.min, transactions.done_ms.p50, transactions.done_ms.max) == (99, 99, 101)
    assert run.summary.qdiscs == {"client": {"eth0": {"fq 10:": {"throttled": 3}}}}
    assert run.summary.links == {"isp": {"line": LinkFigures(policed=7, shaper_full=0, marked=0)}}


def test_connections_of_programs_have_their_figures(tmp_path):
    *_, run = rich_runs(tmp_path)
    first, second = run.summary.connections
    assert (first.id, first.app, first.to_app, first.peer) == ("curl#1", "curl", "", "[fd00::2]:443")
    assert (first.start_s, first.end_s, first.up_mbps, first.down_mbps) == (1, 3, 4, 2)
    assert (second.id, second.app, second.to_app, second.retransmits, second.tcp_rtt_ms.n) == (
        "curl#2",
        "curl",
        "curl",
        None,
        0,
    )
    layers = run.summary.connection_layers_ms
    assert [*layers] == ["curl#1", "curl#2"]
    assert layers["curl#2"] == layers["curl#1"]
    assert {
        layer: (figures.n, figures.mean, figures.share) for layer, figures in layers["curl#1"]["client"].items()
    } == {
        "tsq": (10, 3, 0.75),
        "qdisc": (10, 1, 0.25),
    }
    rows = {row.figure: row.cells[0].value for row in compare([run])}
    assert rows["curl#1 up"] == 4
    assert "curl#2 down" not in rows
    assert run.table("layer")["stream"].cast(pl.String).unique().sort().to_list() == ["curl#1", "curl#2"]


def test_a_run_of_another_plan_version_is_refused_in_one_line(tmp_path):
    path = make(tmp_path / "run")
    (path / "plan.json").write_text(json.dumps(json.loads((path / "plan.json").read_text()) | {"version": 1}))
    with pytest.raises(InputError, match=r"made by an older Hourglass .* plan 1"):
        hourglass.load(path)


def test_a_missing_directory_and_a_foreign_one_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        hourglass.load(tmp_path / "none")
    with pytest.raises(InputError, match="not a run directory"):
        hourglass.load(tmp_path)


def test_a_failed_run_is_refused_with_its_reason(tmp_path):
    path = make(tmp_path / "run")
    (path / "run.json").write_text('{"status": "failed", "error": "the guest stopped"}')
    with pytest.raises(InputError, match="the guest stopped"):
        hourglass.load(path)


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_broken_json_is_one_clear_line(tmp_path, content):
    path = make(tmp_path / "run")
    (path / "plan.json").unlink() if content is None else (path / "plan.json").write_text(content)
    with pytest.raises(HourglassError, match=r"plan\.json") as caught:
        _ = hourglass.load(path).summary
    assert "\n" not in str(caught.value)


def test_a_summary_comes_from_its_file_if_the_same_code_wrote_it(tmp_path, monkeypatch):
    folder = write_summary(make(tmp_path / "run"))
    summary = hourglass.load(folder).summary
    assert summary == summarize(hourglass.load(folder))
    (folder / "summary.json").write_text(json.dumps(summary.data() | {"seed": 77}))
    assert hourglass.load(folder).summary.seed == 77
    monkeypatch.setattr("hourglass.results.run_directory.code_version", lambda: "another")
    run = hourglass.load(folder)
    assert run.summary == summary
    assert not any(run.tables.is_loaded(name) for name in run.tables)
