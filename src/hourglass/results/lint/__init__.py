# SPDX-License-Identifier: Apache-2.0
"""Known pitfalls of network experiments, reported for a run that contains them.

A lint is one function in `queue_lints` (queues, AQMs, NICs), `host_lints` (buffers, offloads), `air_lints` (Wi-Fi),
`path_lints` (impossible figures) or `sample_lints` (the samples behind the statistics, programs). All read `context`:
the flows' paths, hop by hop, and the tables. A lint whose input is missing (no such table, no paths, a scenario of
another version) finds nothing.

A warning is about the experiment, not about the program: the run is valid, but it may not answer your question.
"""

from collections.abc import Callable, Iterator

from hourglass.contract.summary import RunWarning
from hourglass.results.lint import air_lints, host_lints, path_lints, queue_lints, sample_lints
from hourglass.results.lint.context import LintContext
from hourglass.results.recording import Recording

Lint = Callable[[LintContext], Iterator[RunWarning]]

LINTS: tuple[Lint, ...] = (
    queue_lints.queue_below_bdp,
    queue_lints.netem_limit,
    queue_lints.netem_own_egress,
    queue_lints.bql_above_queue,
    queue_lints.ring_hides_aqm,
    queue_lints.shaper_above_link,
    host_lints.nic_below_rate,
    host_lints.offloads_off,
    host_lints.buffer_below_bdp,
    host_lints.sndbuf_limited,
    host_lints.rwnd_limited,
    air_lints.best_effort_starved,
    path_lints.faster_than_path,
    sample_lints.idle_samples,
    sample_lints.few_samples,
    sample_lints.ping_load,
    sample_lints.program_total_loss,
    sample_lints.program_calls,
)


def lint(run: Recording) -> list[RunWarning]:
    """Return the findings of all lints in the order of `LINTS`."""
    context = LintContext(run)
    return [warning for each in LINTS for warning in each(context)]


__all__ = ["LINTS", "LintContext", "lint"]
