# SPDX-License-Identifier: Apache-2.0
"""Known traps of network experiments, named when a run fell into one.

`subject` is what the lints look at: the ways of the flows, hop by hop, and the recording's tables. One function is one
lint, in `queues` (queues, AQMs, NICs), `hosts` (buffers, offloads), `air` (Wi-Fi) or `samples` (what the statistics
rest on). A lint that lacks what it looks at (no such table, no paths, a scenario of another version) finds nothing.

A warning is about the experiment, not about the program: the run is valid, but it may not answer what was asked.
"""

from collections.abc import Callable, Iterator

from hourglass.contract.summary import Warning
from hourglass.results.lint import air, hosts, queues, samples
from hourglass.results.lint.subject import Subject
from hourglass.results.recording import Recording

Lint = Callable[[Subject], Iterator[Warning]]

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
    air.best_effort_starved,
    samples.idle_samples,
    samples.few_samples,
    samples.ping_load,
)


def lint(run: Recording) -> list[Warning]:
    """What all lints find in a run, in the order of `LINTS`."""
    subject = Subject(run)
    return [warning for each in LINTS for warning in each(subject)]


__all__ = ["LINTS", "Subject", "lint"]
