# SPDX-License-Identifier: Apache-2.0
"""Write a finding: its scenario as TOML, and a page with its figures, its explanation and the state of the control."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from hourglass import files
from hourglass.contract.plan import FlowStream
from hourglass.results.explain import explanation_of
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, goodput_mbps, loaded_window, payload_at
from hourglass.results.stats import short
from hourglass.studies.findings import Finding, Judgement, SearchResult

INSTANTS = 8
"""The rows of a flow's state."""
CA_STATES = ("open", "disorder", "CWR", "recovery", "loss")
LICENCE = "# SPDX-License-Identifier: Apache-2.0\n"


def write(result: SearchResult, finding: Finding, run: Recording) -> None:
    """Write the scenario and the page of a finding into the folder of the search."""
    with files.writing(result.out, "the finding"):
        files.write(finding.path(result.out, ".toml"), (LICENCE + finding.toml).encode())
        files.write(finding.path(result.out, ".md"), page(result, finding, run).encode())


def page(result: SearchResult, finding: Finding, run: Recording) -> str:
    """Return the page in Markdown."""
    first, file = finding.judgements[0], finding.path(result.out, ".toml").name
    judged, rival = result.control, first.rival
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        f"# {judged}: `{result.expression}` is {text(first.value)}; {rival} has {text(first.best)}",
        "",
        f"Linux {run.info.kernel.release}, virtual time. `hourglass search` tried {finding.attempt} conditions of"
        f" `{result.name}` with {finding.runs} runs, then shrank the worst.",
        "The finding stands." if finding.stands else "The finding depends on the seed.",
        f"Of {len(finding.judgements) - 1} other seeds, {finding.held} show it.",
        "",
        *_table(["seed", judged, *first.rivals, "times worse"], map(_row, finding.judgements)),
        "",
        "## Scenario",
        "",
        "```toml",
        finding.toml.rstrip("\n"),
        "```",
        "",
        "```sh",
        f"hourglass run {file}",
        f"hourglass compare {file} --vary {result.key}={judged},{rival}",
        "```",
        "",
        "## Explanation",
        "",
        *(f"* {sentence.text}." for sentence in explanation_of(run).sentences),
        "",
    ]
    for flow in _flows(run):
        lines += [f"## State of {flow.name} ({flow.cc})", "", *_table(*_state(run, flow)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def text(value: float | None) -> str:
    """Return a value of a trial as text."""
    return "none" if value is None else "a crash" if value == float("-inf") else short(value)


def _row(judgement: Judgement) -> list[str]:
    values = [judgement.value, *judgement.rivals.values()]
    return [str(judgement.seed), *map(text, values), short(judgement.shortfall)]


def _table(head: list[str], rows: Any) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _flows(run: Recording) -> list[FlowStream]:
    """Return the slowest flow, and the fastest one if it is another."""
    ordered = sorted(run.flows, key=lambda flow: goodput_mbps(run, flow))
    return [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered


def _state(run: Recording, flow: FlowStream) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a flow's state: at instants of the load, the goodput since the one before."""
    window = loaded_window(run)
    edges_ns = np.linspace(window.start_ns, window.end_ns, INSTANTS + 1)
    rates = np.diff(payload_at(run, flow, edges_ns)) * 8 / 1e6 / np.diff(edges_ns) * NS_PER_S
    samples = run.tcp.filter((pl.col("stream") == flow.name) & pl.col("sender")).sort("t_ns")
    exported = run.table("cc").filter((pl.col("stream") == flow.name) & pl.col("sender"))
    head = ["s", "Mbit/s", "window", "ssthresh", "in flight", "RTT ms", "pacing Mbit/s", "state", "phase", "resent"]
    rows = []
    for edge_ns, rate in zip(edges_ns[1:], rates, strict=True):
        last = samples.filter(pl.col("t_ns") <= edge_ns).tail(1).to_dicts()
        if not last:
            continue
        rows.append([short((edge_ns - window.start_ns) / NS_PER_S), short(rate), *_of_socket(last[0])])
        rows[-1] += [str(row["value"]) for row in _fields(exported, last[0]["t_ns"])]
    head += [row["name"] for row in _fields(exported, samples["t_ns"].max() if len(samples) else 0)] if rows else []
    return head, rows


def _fields(exported: pl.DataFrame, t_ns: Any) -> list[dict[str, Any]]:
    """Return the fields that a custom congestion control exports at an instant."""
    return exported.filter(pl.col("t_ns") == t_ns).to_dicts()


def _of_socket(sample: dict[str, Any]) -> list[str]:
    threshold, state = sample["snd_ssthresh"], sample["ca_state"]
    return [
        _cell(sample["snd_cwnd"]),
        "none" if threshold is not None and threshold >= 0x7FFFFFFF else _cell(threshold),
        _cell(sample["unacked"]),
        "-" if sample["rtt"] is None else short(sample["rtt"] / 1000),
        "-" if sample["pacing_rate"] is None else short(sample["pacing_rate"] * 8 / 1e6),
        "-" if state is None else CA_STATES[state],
        sample["bbr_phase"] or "-",
        _cell(sample["total_retrans"]),
    ]


def _cell(value: int | None) -> str:
    return "-" if value is None else str(value)
