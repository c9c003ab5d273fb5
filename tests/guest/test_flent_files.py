# SPDX-License-Identifier: Apache-2.0
"""Each test's run as a Flent file: the same figures and the same bytes twice. Stock Flent prints the same means and
draws the file without a warning.

Stock Flent is a separate tool: it is installed into a new environment in the cache.
"""

import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hourglass.flent.write import document, write
from hourglass.results import traffic
from hourglass.results.recording import Recording
from hourglass.results.series import Window, goodput_mbps, ping_ms, whole_run
from hourglass.scenario.testkinds import TESTS
from tests.flent import stock

from .conftest import Simulate

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")


SERVE = """
import json, os, sys
import matplotlib
matplotlib.use("Agg")
import flent.batch, flent.formatters, flent.plotters, flent.settings, matplotlib.pyplot
for line in sys.stdin:
    child = os.fork()
    if not child:
        out, *sys.argv[1:] = json.loads(line)
        sys.argv[0] = "flent"
        for number, name in (1, "stdout"), (2, "stderr"):
            os.dup2(os.open(f"{out}/{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
        sys.exit(flent.run_flent())
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Each line has a folder for the output and Flent's arguments. It starts a new Flent, forked after the imports, since
these take most of its time."""


class Flent:
    """Stock Flent, in a process that serves several calls."""

    def __init__(self, python: Path, out: Path) -> None:
        self.out, pipe = out, subprocess.PIPE
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        self.process = subprocess.Popen([python, "-c", SERVE], stdin=pipe, stdout=pipe, text=True, env=environment)

    def __call__(self, *arguments: str) -> str:
        """Return its output. It must succeed without warnings."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps([str(self.out), *arguments]), file=self.process.stdin, flush=True)
        status = self.process.stdout.readline().strip()
        printed, messages = ((self.out / name).read_text() for name in ("stdout", "stderr"))
        assert status == "0", messages
        assert "warning" not in messages.lower(), messages
        assert "error" not in messages.lower(), messages
        return printed


@pytest.fixture(scope="session")
def flent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flent]:
    """Yield stock Flent. Skips the test if it cannot be installed, unless CI is set."""
    started = Flent(stock.environment() / "bin" / "python", tmp_path_factory.mktemp("flent"))
    yield started
    started.process.communicate()


def source(name: str) -> tuple[str, tuple[str, ...]]:
    """Return the built-in scenario and settings of a test's run."""
    kind = TESTS[name]
    further = {
        "rrul_var": ("test.bidir_streams=2", "test.markings=CS0,EF", "test.labels=plain,voice"),
        "rtt_fair_var_mixed": ("test.data_directions=u,d,ud",),
        "udp_flood": ("test.udp_bandwidth=20mbit",),
    }.get(name, ())
    return "rtt-fair" if kind.hosts else "L100M", (*SHORT[: 2 if kind.loaded else 1], *further)


def means(summary: str) -> dict[str, str]:
    """Return the column "avg" of a printed summary, by series."""
    rows = (line.rsplit(" : ", 1) for line in summary.splitlines() if " : " in line)
    return {name.strip(): figures.split()[0] for name, figures in rows}


def our_means(run: Recording) -> dict[str, float]:
    """Return the same means from the run's series: goodput from start to stop, latency of the complete run."""
    kind = TESTS[run.test.name]
    averages = {
        kind.flow_series(flow.name): goodput_mbps(run, flow, Window(flow.start_ns, flow.stop_ns)) for flow in run.flows
    }
    averages |= {kind.ping_series(ping.name): np.nanmean(ping_ms(run, ping).values) for ping in run.pings}
    for stream in run.datagrams:
        figures = traffic.datagrams(run, stream, whole_run(run))
        if figures.id == "voip":
            averages["VoIP::delay"] = figures.owd_ms.mean
        else:
            averages["UDP upload"] = figures.goodput_mbps * run.end_ns / 1e9 / run.test.length_s
    for client in run.fetches:
        averages["HTTP latency"] = traffic.fetches(run, client, whole_run(run)).done_ms.mean
    return averages


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name, kind in TESTS.items() if kind.in_flent])
def test_stock_flent_prints_the_same_means_and_draws_the_file(
    simulate: Simulate, tmp_path: Path, flent: Flent, name: str
) -> None:
    scenario, settings = source(name)
    run = simulate(scenario, f"test.name={name}", *settings)
    file = write(run, tmp_path)
    first = file.read_bytes()
    assert write(run, tmp_path).read_bytes() == first
    data = json.loads(gzip.decompress(first))
    assert {len(values) for values in data["results"].values()} == {len(data["x_values"])}
    printed, expected = means(flent("-f", "summary", str(file))), our_means(run)
    assert set(expected) <= set(printed)
    for series, mean in expected.items():
        assert float(printed[series]) == pytest.approx(mean, abs=0.0051), series
        assert mean > 0
    picture = tmp_path / "default.png"
    flent("-f", "plot", "-o", str(picture), str(file))
    assert picture.stat().st_size > 5000


PLOTS = {
    "tcp_nup": ("totals", "ping_cdf", "box_totals", "box_combine", "tcp_cwnd", "tcp_rtt_cdf", "tcp_pacing"),
    "rrul": ("all_scaled", "totals", "box_combine"),
    "voip": ("voip_mos_combine",),
}
"""The most popular plots."""


@pytest.mark.parametrize(("name", "plot"), [(name, plot) for name, plots in PLOTS.items() for plot in plots])
def test_the_usual_plots_are_drawn(simulate: Simulate, tmp_path: Path, flent: Flent, name: str, plot: str) -> None:
    scenario, settings = source(name)
    picture = tmp_path / "plot.png"
    file = write(simulate(scenario, f"test.name={name}", *settings), tmp_path)
    flent("-f", "plot", "-p", plot, "-o", str(picture), str(file))
    assert picture.stat().st_size > 5000


def test_the_metadata_are_those_of_the_guest(simulate: Simulate) -> None:
    run = simulate("L100M", "test.name=tcp_upload", *SHORT, "stack.client.sysctl.net.ipv4.tcp_ecn=1")
    meta = document(run).to_data()["metadata"]
    assert meta["SYSCTLS"]["net.ipv4.tcp_ecn"] == 1
    assert meta["SYSCTLS"]["net.ipv4.tcp_pacing_ca_ratio"] == 120
    assert meta["SYSCTLS"]["net.ipv4.tcp_wmem"].split()[0] == "4096"
    egress = meta["EGRESS_INFO"]
    assert (egress["iface"], egress["driver"], egress["nexthop"]) == ("eth0", "wire", "10.0.0.2")
    assert egress["offloads"]["tcp-segmentation-offload"] is True
    assert set(egress["bql"]) == {"tx-0"}
    assert [(qdisc["name"], qdisc["parent"]) for qdisc in egress["qdiscs"]] == [("htb", "root"), ("pfifo_fast", "1:1")]
    flow = meta["SERIES_META"]["TCP upload"]
    assert flow["RUNNER"] == "HourglassFlow"
    assert flow["TCP_MSS"] == flow["TCPI_SND_MSS"] == 1448
    assert flow["BYTES_SENT"] >= flow["BYTES_RECVD"] > 10**6
    assert flow["TCPI_SND_CWND"] > 10
