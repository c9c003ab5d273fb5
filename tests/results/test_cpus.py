# SPDX-License-Identifier: Apache-2.0
"""The figures of nodes' CPUs from synthetic samples, compared with closed forms."""

from typing import Any

import hourglass
from hourglass.results.recording import Recording
from hourglass.results.sections import sections
from results.synthetic import MS, Recipe, make

STEP = 200 * MS


def samples(recipe: Recipe) -> list[dict[str, Any]]:
    """Return the samples of two CPUs. The client's is busy only under load, from 2 s to 12 s: it accepts half of the
    time in frames, and from 4 s on a quarter in calls. In each sample from then on, 1 ms of work is not complete."""
    rows = []
    for tick in range(round(recipe.end_s * 5) + 1):
        loaded, calling = (min(max(tick - begin, 0), 60 - begin) for begin in (10, 20))
        rows.append({
            "t_ns": tick * STEP, "node": "client", "received_ns": 100 * MS * loaded, "sent_ns": 0,
            "calls_ns": 50 * MS * calling, "pending_ns": 1 * MS if calling else 0,
        })  # fmt: skip
    rows.append(dict.fromkeys(("received_ns", "sent_ns", "calls_ns", "pending_ns"), 9) | {"t_ns": 0, "node": "server"})
    return [{"table": "cpu", "rows": rows}]


def test_figures_are_the_growth_within_the_window(tmp_path) -> None:
    """The load lasts 10 s. A CPU with one sample has no figures."""
    run = hourglass.load(make(tmp_path / "run", Recipe(further=samples)))
    received, calls, pending = 10 * 0.5, 8 * 0.25, 0.001
    assert {node: cpu.model_dump() for node, cpu in run.summary.cpu.items()} == {
        "client": {
            "busy_percent": 10 * (received + calls - pending), "received_percent": 10 * received,
            "sent_percent": 0, "calls_percent": 10 * calls,
        }
    }  # fmt: skip
    (table,) = [section for section in sections(run.summary) if section.id == "cpus"]
    assert table.rows == (("client", 69.99, 50, 0, 20),)


def test_a_run_without_cpus_has_no_figures(tmp_path) -> None:
    run: Recording = hourglass.load(make(tmp_path / "run", Recipe()))
    assert "cpu" not in run.summary.data()
    assert all(section.id != "cpus" for section in sections(run.summary))
