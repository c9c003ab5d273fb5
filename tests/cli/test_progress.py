# SPDX-License-Identifier: Apache-2.0
"""The progress display during a run."""

import io

import pytest
from rich.console import Console
from rich.progress import Progress, TextColumn

from hourglass.cli import progress


@pytest.fixture
def clock(monkeypatch):
    clock_s = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock_s[0])
    return clock_s


def test_pace_counts_from_the_first_report(clock):
    pace = progress.Pace(5)
    assert pace.text(5, 40) == "5.0 of 40.0 s"
    clock[0] += 0.5
    assert pace.text(17, 40) == "17.0 of 40.0 s, 24.0 x real time, 1 s left"


def test_plain_lines_are_rare(clock, capsys):
    plain = progress.Plain()
    for second in range(30):
        plain.kernel(second / 100, "compiling")
        clock[0] += 1
    for second in range(21):
        plain.time(second, 20)
        clock[0] += 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "hourglass: kernel: 0% compiling",
        "hourglass: kernel: 10% compiling",
        "hourglass: kernel: 20% compiling",
        "hourglass: test time: 0.0 of 20.0 s",
        "hourglass: test time: 10.0 of 20.0 s, 1.0 x real time, 10 s left",
        "hourglass: test time: 20.0 of 20.0 s, 1.0 x real time, 0 s left",
    ]


def test_the_live_display_shows_percent_and_pace(clock):
    screen = io.StringIO()
    console = Console(file=screen, width=100)
    columns = (TextColumn("{task.description}"), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, console=console) as bars:
        live = progress.Live(bars)
        live.kernel(0.4, "compiling")
        live.time(0, 40)
        clock[0] += 1
        live.time(20, 40)
    assert "40% compiling" in screen.getvalue()
    assert "test time 20.0 of 40.0 s, 20.0 x real time, 1 s left" in screen.getvalue()


def test_a_sweep_reports_rarely_and_each_failure_at_once(clock, capsys):
    plain = progress.Plain()
    plain.kernel(0, "compiling")
    plain.begin(2, 6, 4)
    for failure in (None, "the guest stopped", None, None):
        clock[0] += 6
        plain.done("seed=1", failure)
    assert capsys.readouterr().err.splitlines() == [
        "hourglass: kernel: 0% compiling",
        "hourglass: study: 2 of 6 runs exist, 4 to make, 4 at a time",
        "hourglass: failed: seed=1: the guest stopped",
        "hourglass: study: 4 of 6 runs, 1 failed, 12 s left",
        "hourglass: study: 6 of 6 runs, 1 failed, 0 s left",
    ]


def test_a_live_sweep_is_one_bar(clock):
    screen = io.StringIO()
    columns = (TextColumn("{task.description}"), TextColumn("{task.fields[detail]}"))
    with Progress(*columns, console=Console(file=screen, width=100)) as bars:
        live = progress.Live(bars)
        live.begin(0, 2, None)
        clock[0] += 3000
        live.done("seed=1", None)
        assert "study 1 of 2 runs, 50 min left" in str(bars.tasks[0].description) + " " + bars.tasks[0].fields["detail"]
        live.done("seed=2", "the guest stopped")
    assert "failed: seed=2: the guest stopped" in screen.getvalue()


def test_without_a_terminal_lines_are_plain(capsys):
    with progress.display() as display:
        assert isinstance(display, progress.Plain)
