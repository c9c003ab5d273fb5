# SPDX-License-Identifier: Apache-2.0
"""Programs of a run: how they ended against what was expected, what they wrote, what known tools tell."""

import json
from pathlib import Path
from typing import Any

import pytest

import hourglass
from hourglass.results.apps import stamped
from hourglass.results.recording import Recording
from hourglass.results.sections import sections
from hourglass.results.tools import told
from results.synthetic import Recipe, make

S = 10**9


def start(why: str = "exit", exit: int | None = 0, signal: int | None = None, **more: Any) -> dict[str, Any]:
    row = {"t_ns": S, "app": 0, "run": 0, "pid": 2, "ready_ns": S, "end_ns": 3 * S, "exit": exit, "signal": signal}
    return row | {"why": why, "output_bytes": 6, "error_bytes": 2, "calls": 10} | more


def line(t_ns: int, stream: str, text: str) -> dict[str, Any]:
    return {"t_ns": t_ns, "app": 0, "run": 0, "pipe": stream, "line": text}


def run_of(place: Path, expected: int | str, *starts: dict[str, Any], output: tuple[Any, ...] = ()) -> Recording:
    tables = [{"table": "app", "rows": list(starts)}, {"table": "app_output", "rows": list(output)}]
    recipe = Recipe(expected={"curl": expected}, further=lambda recipe: [one for one in tables if one["rows"]])
    return hourglass.load(make(place / "run", recipe))


@pytest.mark.parametrize(
    ("expected", "ended", "status", "reason"),
    [
        (0, start(), "exit 0", ""),
        (0, start(exit=7), "exit 7", "exit 7 at 3 s; it said: no"),
        (7, start(exit=7), "exit 7", ""),
        (0, start("end", exit=None, signal=15), "running", "it ran until the end of the test: raise test.length"),
        ("running", start("end", exit=None, signal=15), "running", ""),
        ("running", start("stopped", exit=0), "running", ""),
        ("running", start(exit=0), "exit 0", "exit 0 at 3 s; it said: no"),
        ("SIGSEGV", start("signal", exit=None, signal=11), "SIGSEGV", ""),
        ("SIGSEGV", start("signal", exit=None, signal=6), "SIGABRT", "SIGABRT at 3 s; it said: no"),
        ("any", start(exit=7), "exit 7", ""),
        (0, start("spin", exit=None, signal=9), "spinning", "it asked the kernel without end while time stood"),
        (0, None, "not started", "it never started"),
    ],
    ids=str,
)
def test_an_end_is_judged(
    tmp_path: Path, expected: int | str, ended: dict[str, Any] | None, status: str, reason: str
) -> None:
    output = (line(2 * S, "stderr", "no"),) if ended else ()
    summary = run_of(tmp_path, expected, *([ended] if ended else []), output=output).summary
    (found,), (check,) = summary.apps, summary.checks
    assert (found.status, found.expected) == (status, str(expected))
    assert (check.figure, check.ok, check.reason) == ("app.curl", not reason, reason)


def test_the_last_start_counts_and_all_are_counted(tmp_path: Path) -> None:
    again = start(run=1, t_ns=4 * S, end_ns=5 * S, ready_ns=None)
    (found,) = run_of(tmp_path, 0, start(exit=1), again).summary.apps
    assert (found.starts, found.status, found.start_s, found.ready_s, found.end_s) == (2, "exit 0", 4, None, 5)
    assert (found.output_bytes, found.error_bytes, found.calls) == (12, 4, 10)


def test_waits_have_names_and_are_those_of_all_starts_the_longest_first(tmp_path: Path) -> None:
    def wait(run: int, what: str, call: int | None, ns: int) -> dict[str, Any]:
        return {"t_ns": S, "app": 0, "run": run, "what": what, "call": call, "ns": ns}

    waits = [wait(0, "cpu", None, S), wait(0, "call", 441, 2 * S), wait(1, "call", 441, S), wait(1, "call", 999, 1)]
    rows = [{"table": "app", "rows": [start()]}, {"table": "app_wait", "rows": waits}]
    made = make(tmp_path / "run", Recipe(expected={"curl": 0}, further=lambda _: rows))
    info = json.loads((made / "run.json").read_text())
    (made / "run.json").write_text(json.dumps(info | {"apps_cpu_s": {"curl": 0.25}}))
    (found,) = hourglass.load(made).summary.apps
    assert [*found.waits.items()] == [("epoll_pwait2", 3), ("cpu", 1), ("call 999", 1e-9)]
    assert found.cpu_s == 0.25


def test_output_is_there_by_stream_and_with_its_times(tmp_path: Path) -> None:
    output = (line(2 * S, "stdout", "one"), line(2 * S + 1, "stderr", "no"), line(3 * S, "stdout", ""))
    run = run_of(tmp_path, 0, start(), output=output)
    program = run.apps["curl"]
    assert (program.stdout, program.stderr) == ("one\n\n", "no\n")
    assert stamped(program) == "    2.000000000 | one\n    2.000000001 ! no\n    3.000000000 | \n"
    assert run.summary.apps[0].tail == "one\nno\n"


def test_programs_have_a_section(tmp_path: Path) -> None:
    (section,) = [one for one in sections(run_of(tmp_path, 0, start()).summary) if one.id == "apps"]
    assert section.rows[0][:5] == ("curl", "client", "exit 0", 1, 3)


def test_a_run_without_programs_has_none(tmp_path: Path) -> None:
    run = hourglass.load(make(tmp_path / "run"))
    assert (run.apps, run.summary.apps, run.summary.checks) == ({}, [], [])


IPERF3 = {"start": {}, "end": {"sum_sent": {"bits_per_second": 9.5e6, "retransmits": 3},
                               "sum_received": {"bits_per_second": 9.4e6}}}  # fmt: skip
IPERF3_UDP = {"start": {}, "end": {"sum": {"bits_per_second": 5e6, "jitter_ms": 0.25, "lost_packets": 2}}}
IRTT = {"stats": {"packets_sent": 3, "packets_received": 2, "ipdv_round_trip": {"mean": 5000}},
        "round_trips": [{"lost": "false", "delay": {"rtt": 2_000_000}}, {"lost": "false", "delay": {"rtt": 4_000_000}},
                        {"lost": "true_down", "delay": {}}]}  # fmt: skip
PING = """PING server (10.0.1.2) 56(84) bytes of data.
64 bytes from server (10.0.1.2): icmp_seq=1 ttl=63 time=10.2 ms
64 bytes from server (10.0.1.2): icmp_seq=3 ttl=63 time=10.4 ms

3 packets transmitted, 2 received, 33.3333% packet loss, time 2003ms
"""


def test_known_tools_tell_figures() -> None:
    tcp, udp = told(["iperf3"], json.dumps(IPERF3)), told(["/usr/bin/iperf3"], json.dumps(IPERF3_UDP))
    assert (tcp.goodput_mbps, tcp.sent_mbps, tcp.retransmits) == (9.4, 9.5, 3)
    assert (udp.goodput_mbps, udp.jitter_ms, udp.lost) == (5, 0.25, 2)
    echo = told(["ping"], PING)
    assert (echo.lost, echo.latency_ms.n, echo.latency_ms.min, echo.latency_ms.max) == (1, 2, 10.2, 10.4)
    irtt = told(["irtt"], json.dumps(IRTT))
    assert (irtt.lost, irtt.jitter_ms, irtt.latency_ms.mean) == (1, 0.005, 3)
    words = told(["curl"], "time_total=0.010 x\ntime_total=0.030 x\n")
    assert (words.latency_ms.n, words.latency_ms.mean) == (2, 20)
    form = told(["curl"], '{"time_total": 0.5, "speed_download": 1000000}\n')
    assert (form.latency_ms.mean, form.goodput_mbps) == (500, 8)


@pytest.mark.parametrize(
    ("command", "output"),
    [("iperf3", "iperf3: error"), ("iperf3", "{}"), ("irtt", "{"), ("ping", ""), ("curl", "{"), ("cat", PING)],
)
def test_words_that_are_not_understood_tell_nothing(command: str, output: str) -> None:
    found = told([command], output)
    assert (found.goodput_mbps, found.lost, found.latency_ms.n) == (None, None, 0)
