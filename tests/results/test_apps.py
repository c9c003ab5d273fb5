# SPDX-License-Identifier: Apache-2.0
"""Programs of a run: actual and expected ends, output, figures of known tools."""

import json
from pathlib import Path
from typing import Any

import pytest

import hourglass
from hourglass.results.apps import stamped_output
from hourglass.results.recording import Recording
from hourglass.results.sections import sections
from hourglass.results.tool_output import tool_figures
from results.synthetic import Recipe, make

S = 10**9


def start(why: str = "exit", exit: int | None = 0, signal: int | None = None, **columns: Any) -> dict[str, Any]:
    row = {"t_ns": S, "app": 0, "run": 0, "pid": 2, "ready_ns": S, "end_ns": 3 * S, "exit": exit, "signal": signal}
    return row | {"why": why, "output_bytes": 6, "error_bytes": 2, "calls": 10} | columns


def line(t_ns: int, stream: str, text: str) -> dict[str, Any]:
    return {"t_ns": t_ns, "app": 0, "run": 0, "pipe": stream, "line": text}


def run_of(folder: Path, expected: int | str, *starts: dict[str, Any], output: tuple[Any, ...] = ()) -> Recording:
    tables = [{"table": "app", "rows": list(starts)}, {"table": "app_output", "rows": list(output)}]
    recipe = Recipe(expected={"curl": expected}, further=lambda recipe: [table for table in tables if table["rows"]])
    return hourglass.load(make(folder / "run", recipe))


@pytest.mark.parametrize(
    ("expected", "last_start", "status", "reason"),
    [
        (0, start(), "exit 0", ""),
        (0, start(exit=7), "exit 7", "exit 7 at 3 s; last output: no"),
        (7, start(exit=7), "exit 7", ""),
        (0, start("end", exit=None, signal=15), "running", "it ran until the end of the test; raise test.length"),
        ("running", start("end", exit=None, signal=15), "running", ""),
        (
            "running",
            start("grace", exit=None, signal=9),
            "SIGKILL",
            "it got SIGTERM at the end of the test and did not end within its grace of 0 s, so it was killed",
        ),
        ("running", start("stopped", exit=0), "running", ""),
        ("running", start(exit=0), "exit 0", "exit 0 at 3 s; last output: no"),
        ("SIGSEGV", start("signal", exit=None, signal=11), "SIGSEGV", ""),
        ("SIGSEGV", start("signal", exit=None, signal=6), "SIGABRT", "SIGABRT at 3 s; last output: no"),
        ("any", start(exit=7), "exit 7", ""),
        (0, start("spin", exit=None, signal=9), "spinning", "it called the kernel endlessly while time stood still"),
        (0, None, "not started", "the program never started"),
    ],
    ids=str,
)
def test_an_end_has_a_verdict(
    tmp_path: Path, expected: int | str, last_start: dict[str, Any] | None, status: str, reason: str
) -> None:
    output = (line(2 * S, "stderr", "no"),) if last_start else ()
    summary = run_of(tmp_path, expected, *([last_start] if last_start else []), output=output).summary
    (figures,), (check,) = summary.apps, summary.checks
    assert (figures.status, figures.expected) == (status, str(expected))
    assert (check.figure, check.ok, check.reason) == ("app.curl", not reason, reason)


def test_the_last_start_counts_and_all_are_counted(tmp_path: Path) -> None:
    second = start(run=1, t_ns=4 * S, end_ns=5 * S, ready_ns=None)
    (figures,) = run_of(tmp_path, 0, start(exit=1), second).summary.apps
    assert (figures.starts, figures.status, figures.start_s, figures.ready_s, figures.end_s) == (
        2,
        "exit 0",
        4,
        None,
        5,
    )
    assert (figures.output_bytes, figures.error_bytes, figures.calls) == (12, 4, 10)


def test_waits_are_named_summed_over_all_starts_and_sorted(tmp_path: Path) -> None:
    def wait(run: int, kind: str, call: int | None, ns: int) -> dict[str, Any]:
        return {"t_ns": S, "app": 0, "run": run, "what": kind, "call": call, "ns": ns}

    waits = [wait(0, "cpu", None, S), wait(0, "call", 441, 2 * S), wait(1, "call", 441, S), wait(1, "call", 999, 1)]
    rows = [{"table": "app", "rows": [start()]}, {"table": "app_wait", "rows": waits}]
    folder = make(tmp_path / "run", Recipe(expected={"curl": 0}, further=lambda _: rows))
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"apps_cpu_s": {"curl": 0.25}}))
    (figures,) = hourglass.load(folder).summary.apps
    assert [*figures.waits.items()] == [("epoll_pwait2", 3), ("cpu", 1), ("call 999", 1e-9)]
    assert figures.cpu_s == 0.25


def test_output_is_available_by_stream_and_with_its_times(tmp_path: Path) -> None:
    output = (line(2 * S, "stdout", "one"), line(2 * S + 1, "stderr", "no"), line(3 * S, "stdout", ""))
    run = run_of(tmp_path, 0, start(), output=output)
    program = run.apps["curl"]
    assert (program.stdout, program.stderr) == ("one\n\n", "no\n")
    assert stamped_output(program) == "    2.000000000 | one\n    2.000000001 ! no\n    3.000000000 | \n"
    assert run.summary.apps[0].tail == "one\nno\n"


def test_programs_have_a_section(tmp_path: Path) -> None:
    (section,) = [section_ for section_ in sections(run_of(tmp_path, 0, start()).summary) if section_.id == "apps"]
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


def test_known_tools_have_figures() -> None:
    tcp, udp = tool_figures(["iperf3"], json.dumps(IPERF3)), tool_figures(["/usr/bin/iperf3"], json.dumps(IPERF3_UDP))
    assert (tcp.goodput_mbps, tcp.sent_mbps, tcp.retransmits) == (9.4, 9.5, 3)
    assert (udp.goodput_mbps, udp.jitter_ms, udp.lost) == (5, 0.25, 2)
    echo = tool_figures(["ping"], PING)
    assert (echo.lost, echo.latency_ms.n, echo.latency_ms.min, echo.latency_ms.max) == (1, 2, 10.2, 10.4)
    irtt = tool_figures(["irtt"], json.dumps(IRTT))
    assert (irtt.lost, irtt.jitter_ms, irtt.latency_ms.mean) == (1, 0.005, 3)
    text = tool_figures(["curl"], "time_total=0.010 x\ntime_total=0.030 x\n")
    assert (text.latency_ms.n, text.latency_ms.mean) == (2, 20)
    form = tool_figures(["curl"], '{"time_total": 0.5, "speed_download": 1000000}\n')
    assert (form.latency_ms.mean, form.goodput_mbps) == (500, 8)


NO_ECHO = """PING server (10.0.1.2) 56(84) bytes of data.

3 packets transmitted, 0 received, 100% packet loss, time 2030ms
"""
NO_TCP = {"start": {}, "end": {"sum_sent": {"bits_per_second": 9e3}, "sum_received": {"bits_per_second": 0}}}
NO_UDP = {"start": {}, "end": {"sum": {"bits_per_second": 5e6, "jitter_ms": 0, "packets": 40, "lost_packets": 40}}}
NO_UDP_REPORT = {"start": {}, "end": {"sum": {"bits_per_second": 1e6, "jitter_ms": 0, "packets": 91, "lost_packets": 0},
                                      "sum_received": {"bits_per_second": 0, "bytes": 0, "packets": 0}}}  # fmt: skip
NO_IRTT = IRTT | {"stats": {"packets_sent": 3, "packets_received": 0}, "round_trips": []}
LOST = {
    ("ping", NO_ECHO): "all 3 packets that it sent were lost",
    ("ping", NO_ECHO.replace("0 received", "0 packets received")): "all 3 packets that it sent were lost",
    ("iperf3", json.dumps(NO_TCP)): "none of the data that it sent arrived",
    ("iperf3", json.dumps(NO_UDP)): "all 40 packets that it sent were lost",
    ("iperf3", json.dumps(NO_UDP_REPORT)): "all 91 packets that it sent were lost",
    ("irtt", json.dumps(NO_IRTT)): "all 3 packets that it sent were lost",
    ("irtt", "   packets sent/received: 60/0 (100.00% loss)\n"): "all 60 packets that it sent were lost",
    ("irtt", "   packets sent/received: 1/0 (100.00% loss)\n"): "its only packet was lost",
}


@pytest.mark.parametrize(("command", "output"), LOST)
def test_a_tool_that_lost_everything_is_recognised(command: str, output: str) -> None:
    assert tool_figures([command], output).total_loss == LOST[command, output]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("ping", PING),
        ("ping", "0 packets transmitted, 0 received"),
        ("iperf3", json.dumps(IPERF3)),
        ("iperf3", json.dumps(IPERF3_UDP)),
        ("iperf3", json.dumps({"start": {}, "end": {}})),
        ("irtt", json.dumps(IRTT)),
        ("irtt", "packets sent/received: 60/1 (98.33% loss)"),
        ("cat", NO_ECHO),
    ],
)
def test_a_partial_loss_is_no_total_loss(command: str, output: str) -> None:
    assert tool_figures([command], output).total_loss == ""


@pytest.mark.parametrize(
    ("expected", "bounds", "ok"),
    [(0, {}, False), (0, {"apps.ping.lost": ">= 3"}, True), (0, {"apps.lost": "> 2"}, True), ("any", {}, True)],
)
def test_a_total_loss_is_a_missed_check_and_a_warning(
    tmp_path: Path, expected: int | str, bounds: dict[str, str], ok: bool
) -> None:
    rows = [line(2 * S, "stdout", text) for text in NO_ECHO.splitlines()]
    tables = [{"table": "app", "rows": [start()]}, {"table": "app_output", "rows": rows}]
    folder = make(tmp_path / "run", Recipe(expected={"ping": expected}, further=lambda _: tables))
    stored = json.loads((folder / "scenario.json").read_text())
    (folder / "scenario.json").write_text(json.dumps(stored | {"check": bounds}))
    summary = hourglass.load(folder).summary
    assert (summary.checks[0].figure, summary.checks[0].ok) == ("app.ping", ok)
    assert all(check.ok for check in summary.checks[1:])
    warned = [warning.text for warning in summary.warnings if warning.id == "program-total-loss"]
    assert warned == ([] if ok else ["ping: all 3 packets that it sent were lost"])


@pytest.mark.parametrize(
    ("starts", "text"),
    [
        ([start(calls=2_500_000)], "curl: 2,500,000 system calls, 1,250 per virtual ms"),
        ([start(calls=1_200_000), start(run=1, end_ns=S, calls=900_000)], "curl: 2,100,000 system calls, 1,050"),
        ([start(end_ns=S, calls=1_000_000)], "curl: 1,000,000 system calls:"),
        ([start(calls=2_000_000)], ""),  # as many as a CPU makes
        ([start(end_ns=S + 1, calls=999_999)], ""),  # too few to cost much
        ([start("end", exit=None, end_ns=None, calls=2_500_000)], ""),  # it lived until the end of the test
        ([start(calls=None)], ""),
    ],
    ids=str,
)
def test_more_calls_than_a_cpu_makes_are_a_warning(tmp_path: Path, starts: list[dict[str, Any]], text: str) -> None:
    warned = [warning for warning in run_of(tmp_path, 0, *starts).summary.warnings if warning.id == "program-calls"]
    assert [warning.text.startswith(text) for warning in warned] == [True] * bool(text)
    assert all('give client a CPU: `cpu = { syscall = "1us" }`' in warning.remedy for warning in warned)


@pytest.mark.parametrize(
    ("command", "output"),
    [("iperf3", "iperf3: error"), ("iperf3", "{}"), ("irtt", "{"), ("ping", ""), ("curl", "{"), ("cat", PING)],
)
def test_unknown_output_has_no_figures(command: str, output: str) -> None:
    figures = tool_figures([command], output)
    assert (figures.goodput_mbps, figures.lost, figures.latency_ms.n) == (None, None, 0)
