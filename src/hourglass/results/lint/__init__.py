# SPDX-License-Identifier: Apache-2.0
"""Known traps of network experiments, named when a run fell into one.

`evidence` is what the lints look at: the scenario's path and rates, the run's tables. One function is one lint, in
`queues` (queues, AQMs, NICs), `hosts` (buffers, offloads) or `samples` (what the statistics rest on). A lint that lacks
its evidence (no such table, a scenario of another version) finds nothing.

A finding is about the experiment, not about the program: the run is valid, but it may not answer what was asked.
"""

from collections.abc import Callable, Iterator

from hourglass.results.lint import hosts, queues, samples
from hourglass.results.lint.evidence import Evidence, Finding
from hourglass.results.recording import Recording

Lint = Callable[[Evidence], Iterator[Finding]]

LINTS: tuple[Lint, ...] = (
    queues.queue_below_bdp,
    queues.netem_limit,
    queues.netem_own_egress,
    queues.bql_above_queue,
    queues.ring_hides_aqm,
    queues.shaper_above_link,
    hosts.offloads_off,
    hosts.buffer_below_bdp,
    hosts.sndbuf_limited,
    hosts.rwnd_limited,
    samples.idle_samples,
    samples.few_samples,
    samples.probe_load,
)


def lint(run: Recording) -> list[Finding]:
    """What all lints find in a run, in the order of `LINTS`."""
    evidence = Evidence(run)
    return [finding for each in LINTS for finding in each(evidence)]


__all__ = ["LINTS", "Evidence", "Finding", "lint"]
