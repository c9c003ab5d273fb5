# SPDX-License-Identifier: Apache-2.0
"""The trace of a run, read with Perfetto's messages, has the times and samples of the records."""

import sys
from collections import defaultdict
from itertools import pairwise

import polars as pl
import pytest
from results import synthetic_probe, synthetic_wifi
from results.synthetic import make

import hourglass
from hourglass.contract.probe import LAYER_COLUMNS
from hourglass.errors import MissingError
from hourglass.results.frames import long_form

protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    run = hourglass.load(make(folder / "run", synthetic_probe.recipe()))
    return run, written(run, folder)


def written(run, folder):
    """Return the packets of the run's trace."""
    from hourglass.exports import perfetto

    trace = protos.Trace()
    trace.ParseFromString(perfetto.write(run, folder / "run.pftrace").read_bytes())
    return trace.packet


def tracks(packets):
    """Return {number: (process, name)} of all tracks."""
    descriptors = {p.track_descriptor.uuid: p.track_descriptor for p in packets if p.HasField("track_descriptor")}
    processes = [descriptor.process for descriptor in descriptors.values() if descriptor.HasField("process")]
    assert len({process.pid for process in processes}) == len(processes)
    return {n: (getattr(descriptors.get(d.parent_uuid), "name", ""), d.name) for n, d in descriptors.items()}


def slices(packets):
    """Return (track, start, end, event) of each slice. A slice ends before the next one on its track begins."""
    open_slices, closed = defaultdict(list), []
    for packet in packets:
        event, track = packet.track_event, packet.track_event.track_uuid
        if event.type == BEGIN:
            open_slices[track].append((packet.timestamp, event))
        elif event.type == END:
            start, start_row = open_slices[track].pop()
            assert start <= packet.timestamp
            closed.append((track, start, packet.timestamp, start_row))
    assert not any(open_slices.values())
    return closed


def test_the_slices_of_a_layer_are_the_times_of_the_records(run):
    run, packets = run
    names, times, last = tracks(packets), defaultdict(list), defaultdict(int)
    for track, start, end, event in slices(packets):
        if event.flow_ids:
            assert last[track] <= start
            last[track] = end
            times[names[track]].append(end - start)
    rows = long_form(run.packets).group_by("node", "layer").agg("ns")
    assert len(times) == rows.height == 10
    for node, layer, values in rows.iter_rows():
        assert sorted(times[node, layer]) == sorted(values)


def test_arrows_lead_a_packet_through_its_layers_without_gaps(run):
    run, packets = run
    flows = defaultdict(list)
    for track, start, end, event in slices(packets):
        for flow in event.flow_ids:
            flows[flow].append((start, end, tracks(packets)[track] if flow == 1 else track))
    first = run.packets.filter(pl.col("visit") == 0)
    assert len(flows) == first.height == 1140
    journeys = [sorted(parts) for _, parts in sorted(flows.items())]
    assert all(a[1] == b[0] for parts in journeys for a, b in pairwise(parts))
    assert [(p[0][0], p[-1][1]) for p in journeys] == first.select("t_ns", "end_ns").rows()
    assert [track for *_, track in journeys[0]] == [
        ("client", "qdisc"), ("client", "ring"), ("client", "wire"), ("client", "propagation"), ("router", "rx"),
        ("router", "wire"), ("router", "propagation"), ("server", "rx"),
    ]  # fmt: skip


def test_every_packet_is_listed_at_every_node_that_it_passed(run):
    run, packets = run
    names = tracks(packets)
    visits = sorted((start, end) for track, start, end, _ in slices(packets) if names[track][1] == "packets")
    spent = [sum(row) for row in run.packets.select(LAYER_COLUMNS).iter_rows()]
    assert len(visits) == run.packets.height
    assert sum(end - start for start, end in visits) == sum(spent)


def samples(packets, process, name):
    names = tracks(packets)
    return [
        (p.timestamp, p.track_event.counter_value or p.track_event.double_counter_value)
        for p in packets
        if p.track_event.type == COUNTER and names[p.track_event.track_uuid] == (process, name)
    ]


@pytest.mark.parametrize(
    ("name", "table", "value"),
    [("upload::1 cwnd", "tcp", "snd_cwnd"), ("upload::1 data below TCP", "tcp", "sk_wmem_alloc"),
     ("eth0 qdisc backlog", "queues", "qdisc_bytes"), ("eth0 BQL inflight", "queues", "bql_inflight")],
)  # fmt: skip
def test_a_counter_has_the_samples_of_its_table(run, name, table, value):
    run, packets = run
    rows = getattr(run, table).sort("t_ns")
    rows = rows.filter(pl.col("sender")) if table == "tcp" else rows.filter(node="client", device="eth0")
    changes = rows.filter(pl.col(value).ne_missing(pl.col(value).shift()))
    assert samples(packets, "client", name) == changes.select("t_ns", value).rows()


def test_a_radios_air_is_a_share_of_the_time(tmp_path):
    run = hourglass.load(make(tmp_path / "run", synthetic_wifi.recipe()))
    packets = written(run, tmp_path)
    rows = run.radio_counters.filter(node="client", name="tx_ns").sort("t_ns")
    (t_ns, share), *_ = samples(packets, "client", f"{rows['device'][0]} on the air")
    assert t_ns == rows["t_ns"][1]
    assert share == 100 * (rows["value"][1] - rows["value"][0]) / (rows["t_ns"][1] - rows["t_ns"][0])


def test_drops_before_the_test_are_left_out(tmp_path):
    """Hosts drop what a switch sends to all during set-up, and a trace has no negative times."""
    run = hourglass.load(make(tmp_path / "run", synthetic_probe.recipe()))
    in_test = run.drops.height
    assert in_test > 0
    run.drops = pl.concat([run.drops, run.drops.with_columns(t_ns=pl.lit(-72_000_000, dtype=pl.Int64))])
    assert sum(packet.track_event.type == INSTANT for packet in written(run, tmp_path)) == in_test


def test_the_command_writes_a_trace_or_says_which_package_is_missing(tmp_path, monkeypatch, capsys):
    from hourglass.cli.exit_status import guarded

    make(tmp_path / "run", synthetic_probe.recipe())
    arguments = ["export", str(tmp_path / "run"), "--format", "perfetto", "--out", str(tmp_path / "out")]
    assert guarded(arguments) == 0
    (trace,) = (tmp_path / "out").iterdir()
    assert capsys.readouterr().out == f"perfetto  {trace}\n"
    assert trace.suffix == ".pftrace"
    for name in ("hourglass.exports.perfetto", "hourglass.exports.trace_file"):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    monkeypatch.delattr(hourglass.exports, "perfetto")
    with pytest.raises(MissingError, match=r"package perfetto; to fix: .*hourglass-net\[perfetto\]"):
        from hourglass.exports import perfetto  # noqa: F401
    assert guarded(arguments) == 3
