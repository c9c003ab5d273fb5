# SPDX-License-Identifier: Apache-2.0
"""Floods, VoIP, web fetches and dense pings on real guests, compared with exact formulas where they exist."""

import csv
import gzip
import json
import re
from pathlib import Path

import polars as pl
import pytest

from hourglass.cli import tables
from hourglass.cli.export import TABLES, export
from hourglass.errors import InputError
from hourglass.flent.write import stem
from hourglass.report.html_page import page
from hourglass.results import emodel
from hourglass.results.stats import short

from .conftest import Simulate, line, records

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")


def test_a_telephone_on_an_idle_cable_has_the_cables_delay(simulate: Simulate) -> None:
    """172 B of payload are a frame of 214 B, and 24 B of preamble, FCS and gap. Each of two cables takes 1.904 us for
    it."""
    base = line(rate="1gbit", delay="20ms")
    base["test"] = {"name": "voip", "length": 2}
    (voice,) = simulate(base, "test.voip_marking=EF").summary.datagrams
    assert (voice.lost, voice.refused) == (0, 0)
    assert voice.sent == 98, "two were on their way at the end"
    wire_ms = 2 * (214 + 20) * 8 / 1e6  # the gap follows the frame
    moderated_ms = 2 * 0.020
    assert 40 + wire_ms <= voice.owd_ms.min <= voice.owd_ms.max <= 40 + wire_ms + moderated_ms + 0.005
    assert voice.mos == pytest.approx(emodel.mos(voice.owd_ms.mean + 2 * voice.jitter_ms, 0), rel=1e-5)
    assert voice.mos > 4.35


def test_a_flood_above_the_rate_fills_the_link_and_loses_the_rest(simulate: Simulate) -> None:
    """HTB counts 1512 B for a packet of 1470 B, so 97.22 of 100 Mbit/s are payload. The excess is refused or
    dropped."""
    run = simulate("L100M", "test.name=udp_flood", *SHORT, "test.udp_bandwidth=120mbit")
    (flood,) = run.summary.datagrams
    assert flood.goodput_mbps == pytest.approx(100 * 1470 / 1512, rel=5e-3)
    assert flood.sent == pytest.approx(2 * 120e6 / 8 / 1470, abs=2)
    assert flood.lost >= flood.refused > 1000
    accepted = run.datagram_rows.filter(~pl.col("refused"))
    (up,) = run.balance.filter((pl.col("stream") == "udp upload") & (pl.col("way") == "up")).iter_rows(named=True)
    assert up["sent"] == accepted.height == up["delivered"] + up["dropped"] + up["in_flight"]


def test_datagrams_over_time_are_as_many_as_their_phases_say(simulate: Simulate) -> None:
    """The phases are 1 s of 1 Mbit/s, a pause of 1 s, and 2 s of 4 Mbit/s in packets of 1000 B. A second stream sends
    nine packets each 40 ms for 2 s, a third for 50 ms of each second. A paced flow and one that ends early run next to
    them."""
    base = line(rate="100mbit", delay="5ms")
    base["test"] = {
        "name": "tcp_nup", "upload_streams": 2, "length": 4, "delay": 1,
        "stream_rates": ["8mbit", 0], "stream_stops": [4, 2],
        "datagrams": [
            {"name": "steps", "rate": [[0, "1mbit"], [1, 0], [2, "4mbit"]], "size": 1000},
            {"name": "camera", "interval": "40ms", "burst": 9, "sender": "server", "receiver": "client",
             "start": 1, "stop": 3},
            {"name": "on and off", "rate": [[0, "8mbit"], [0.05, 0]], "repeat": 1, "size": 1000},
        ],
    }  # fmt: skip
    run = simulate(base)
    sent = {stream.id: stream.sent for stream in run.summary.datagrams}
    assert sent == {"steps": 125 + 0 + 2 * 500, "camera": 2 * 25 * 9, "on and off": 4 * 50}
    assert sum(stream.lost + stream.refused for stream in run.summary.datagrams) == 0
    rows = {stream.name: run.rows(stream) for stream in run.datagrams}
    seconds = {
        name: dict(samples.group_by(pl.col("t_ns") // 10**9).len().iter_rows()) for name, samples in rows.items()
    }
    assert seconds == {
        "steps": {1: 125, 3: 500, 4: 500}, "camera": {2: 225, 3: 225}, "on and off": dict.fromkeys((1, 2, 3, 4), 50),
    }  # fmt: skip
    instants = rows["camera"].group_by("t_ns").len()
    assert set(instants["len"]) == {9}, "a burst leaves at one instant"
    assert set(instants["t_ns"].sort().diff().drop_nulls()) == {40_000_000}
    paced, stopped = run.summary.flows
    assert paced.goodput_mbps == pytest.approx(8, rel=0.015)
    events = run.flow_events.filter(pl.col("event") == "stopped")
    assert [round(t_ns / 1e9, 3) for t_ns in events["t_ns"].sort()] == [3, 5]
    assert stopped.goodput_mbps > 30


def test_a_fetch_takes_the_time_of_its_bytes(simulate: Simulate) -> None:
    """On a cable of 10 Mbit/s with 10 ms in each direction, the least time is two round trips and the time of the
    bytes."""
    base = line(rate="10mbit", delay="5ms")
    base["test"] = {"name": "http", "length": 4, "http_sizes": ["1KB", "100KB"], "http_interval": 0.1}
    run = simulate(base)
    (web,) = run.summary.fetches
    rtt_ms = 20
    assert web.first_byte_ms.min >= 2 * rtt_ms
    assert web.by_bytes["1000"].max < 2 * rtt_ms + 8
    assert web.by_bytes["100000"].min > 2 * rtt_ms + 100_000 * 8 / 1e7 * 1e3
    starts = run.fetch_rows["t_ns"].to_numpy()
    ends = (run.fetch_rows["t_ns"] + run.fetch_rows["done_ns"]).drop_nulls().to_numpy()
    gaps = starts[1:] - starts[:-1]
    assert gaps.min() > 0.099e9, "no sooner than its interval"
    assert (starts[1:] >= ends[: starts.size - 1]).all(), "no sooner than the last is done"


def test_transactions_wait_in_the_queue_that_an_upload_fills(simulate: Simulate, tmp_path: Path) -> None:
    """The layers of request and reply add up to the transaction, of which one is outstanding. A second run has the same
    bytes. Flent has no such test."""
    settings = ("test.name=tcp_rr-1up", "test.length=2", "test.delay=0.2", "test.rr_streams=2", "measure.packets=1")
    run, second = (simulate("L100M", *settings, fresh=fresh) for fresh in (False, True))
    assert records(run).read_bytes() == records(second).read_bytes()
    for client, figures in zip(run.transactions, run.summary.transactions, strict=True):
        rows = run.rows(client)
        completed = rows.filter(pl.col("done_ns").is_not_null())
        assert figures.unfinished <= 1
        assert rows.height - completed.height == 1, "the last"
        assert (rows["t_ns"].diff()[1:] == completed["done_ns"]).all(), "one outstanding, without a pause"
        layers = run.summary.transaction_layers_ms[client.name]
        sum_ms = sum(layer.mean for node in layers.values() for layer in node.values())
        assert sum_ms == pytest.approx(figures.done_ms.mean, rel=0.02)
        assert layers["client"]["qdisc"].share > 0.5
    with pytest.raises(InputError, match="Flent has no test tcp_rr-1up"):
        export([run.path], tmp_path, "flent")


def test_responsiveness_is_that_of_pings_in_the_same_queue(simulate: Simulate) -> None:
    """Half of a probe on a new connection is a ping's round trip through the FIFO, and the flows' RTT is the same."""
    run = simulate("L10M", "test.name=rpm_up", "test.rpm_interval=1", "test.length=12", "test.delay=1")
    figures = run.summary.responsiveness
    assert figures is not None
    assert (figures.confidence, figures.saturated_s) == ("high", 7)
    assert figures.flows == figures.stable_s
    end_s = 1 + figures.stable_s
    pings = run.ping_rows.filter(pl.col("t_ns").is_between((end_s - 4) * 1e9, end_s * 1e9))["rtt_ns"].mean() / 1e6
    assert figures.foreign_ms == pytest.approx(pings, rel=0.12)
    assert figures.loaded_ms == pytest.approx(pings, rel=0.15)
    assert figures.rpm == pytest.approx(60_000 / pings, rel=0.15)
    assert figures.idle_rpm > 100 * figures.rpm


def test_a_run_with_everything_is_the_same_twice(simulate: Simulate) -> None:
    settings = ("test.name=http-rrul", *SHORT, "test.http_workers=3")
    first, second = (simulate("L100M", *settings, fresh=fresh) for fresh in (False, True))
    assert records(first).read_bytes() == records(second).read_bytes()


def test_servers_farther_away_answer_later(simulate: Simulate) -> None:
    run = simulate("rtt-fair", "test.name=rtt_fair6be", *SHORT)
    early = run.ping_rows.filter((pl.col("t_ns") < 10**9) & (pl.col("seq") > 0))
    idle = early.group_by("stream").agg(pl.col("rtt_ns").min())
    fastest = {name: rtt / 1e6 for name, rtt in idle.with_columns(pl.col("stream").cast(pl.String)).iter_rows()}
    hosts = {"near": 10, "city": 20, "country": 40, "continent": 80, "ocean": 120, "far": 160}
    for number, (host, rtt_ms) in enumerate(hosts.items()):
        assert rtt_ms < fastest[f"ICMP{number + 1} {host}"] < rtt_ms + 1
        assert rtt_ms < fastest[f"udp {host}"] < rtt_ms + 1
    assert all(flow.goodput_mbps > 0 for flow in run.summary.flows)


@pytest.mark.parametrize("interval_ms", [1, 20])
def test_dense_pings_show_a_queue_that_sparse_pings_miss(simulate: Simulate, interval_ms: int) -> None:
    run = simulate("L100M", *SHORT, f"test.udp_interval={interval_ms}ms")
    rows = run.ping_rows.filter(pl.col("stream") == "udp")
    assert rows.height == 4000 // interval_ms
    answered = rows.drop_nulls("rtt_ns")
    assert (answered["owd_up_ns"] + answered["owd_down_ns"] == answered["rtt_ns"]).all()


def test_the_numbers_of_one_run_agree_in_all_formats(simulate: Simulate, tmp_path: Path) -> None:
    """Compare terminal, JSON, Flent file, CSV, Parquet and report."""
    run = simulate("L100M", "test.name=voip-1up", *SHORT)
    summary = run.summary
    data_of_summary = json.loads(summary.to_json())
    goodput, ping, voice = (
        data_of_summary["flows"][0]["goodput_mbps"],
        data_of_summary["ping_ms"]["icmp"],
        data_of_summary["datagrams"][0],
    )

    from rich.console import Console

    console = Console(width=200, record=True, file=(tmp_path / "console").open("w"))
    console.print(tables.figures(summary, "voip-1up"))
    lines = {columns[0]: columns for sample in console.export_text().splitlines() if (columns := sample.split())}
    assert lines["upload::1"][2] == short(goodput)
    assert lines["icmp"][1:6] == [short(ping[key]) for key in ("p10", "p50", "p90", "p99", "max")]
    owd = [voice["owd_ms"][p] for p in ("p10", "p50", "p90", "p99")]
    assert lines["voip"][1:7] == [short(sample) for sample in (voice["goodput_mbps"], *owd, voice["jitter_ms"])]
    assert lines["voip"][-1] == short(voice["mos"])

    for kind in ("flent", *TABLES):
        export([run.path], tmp_path, kind)
    figures, series = (pl.read_parquet(tmp_path / f"{stem(run)}.{name}.parquet") for name in ("figures", "series"))
    value = {(kind, name, figure): number for kind, name, figure, _, number in figures.iter_rows()}
    assert value["flow", "upload::1", "goodput_mbps"] == goodput
    assert value["ping", "icmp", "rtt_ms.p50"] == ping["p50"]
    assert value["datagram", "voip", "mos"] == voice["mos"]
    with (tmp_path / f"{stem(run)}.figures.csv").open() as file:
        rows = {(row["kind"], row["name"], row["figure"]): row["value"] for row in csv.DictReader(file)}
    assert {key: float(text) if text else None for key, text in rows.items()} == value

    loaded = pl.col("t_s").is_between(1, 3)
    icmp = series.filter((pl.col("kind") == "ping") & (pl.col("name") == "icmp") & loaded)["value"]
    assert float(f"{icmp.median():.6g}") == ping["p50"]
    steps = series.filter((pl.col("kind") == "goodput") & pl.col("t_s").is_between(1.01, 3.01))["value"]
    assert steps.mean() == pytest.approx(goodput, rel=1e-5)

    (flent_file,) = tmp_path.glob("*.flent.gz")
    data = json.loads(gzip.decompress(flent_file.read_bytes()))
    meta = data["metadata"]["SERIES_META"]
    assert meta["TCP upload"]["MEAN_VALUE"] == pytest.approx(goodput, rel=1e-5)
    answers = [sample["val"] for sample in data["raw_values"]["Ping (ms) ICMP"] if 1 <= sample["t"] <= 3]
    assert sum(answers) / len(answers) == pytest.approx(ping["mean"], rel=1e-5)
    late = [sample["owd_up"] for sample in data["raw_values"]["VoIP"] if 1 <= sample["t"] <= 3]
    assert sum(late) / len(late) == pytest.approx(voice["owd_ms"]["mean"], rel=1e-5)

    text = page([run])
    cells = set(re.findall(r'data-value="([^"]+)"', text))
    assert {str(goodput), str(ping["p50"]), str(voice["mos"]), str(voice["owd_ms"]["p99"])} <= cells
