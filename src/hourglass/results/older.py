# SPDX-License-Identifier: Apache-2.0
"""Run directories of other versions: read as today's, or refused with the reason.

| plan | versions | |
|---|---|---|
| 1 | before 0.2.0, up to 21 November 2026 | refused: its records name streams otherwise |
| 2 | before 0.2.0, after that | read: streams had no rates, no phases and no bursts, devices no `ingress` |
| 3 | before 0.2.0, up to 22 November 2026 | read: there were no events and no programs |
| 4 | before 0.2.0, up to 22 November 2026, later | read: nothing but TCP wrote into the ECN field |
| 5 | before 0.2.0, up to 23 November 2026 | read: TCP senders always had something to send |
| 6 | 0.2.0 | today's |

Tables and columns that an older version did not record are empty; `frames.complete` adds them. A bound or a figure of a
version's own is judged and named as today.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hourglass import __version__
from hourglass.contract import plan, run
from hourglass.errors import InputError
from hourglass.results.files import SCENARIO_FILE

Written = dict[str, Any]


def _of_2(written: Written) -> Written:
    """A plan of version 2 as one of version 3."""
    streams = [_stream_of_2(one) for one in written["streams"]]
    paths = [{**one, **{way: [{**hop, "ingress": None} for hop in one[way]] for way in ("there", "back")}}
             for one in written["paths"]]  # fmt: skip
    return {**written, "version": 3, "streams": streams, "paths": paths}


def _stream_of_2(stream: Written) -> Written:
    if stream["kind"] == "flow":
        return {**stream, "pace_bps": None}
    if stream["kind"] == "datagrams":
        phase = {key: stream[key] for key in ("start_ns", "stop_ns", "interval_ns")}
        return {**{key: one for key, one in stream.items() if key != "interval_ns"}, "burst": 1, "phases": [phase]}
    return stream


def _of_3(written: Written) -> Written:
    """A plan of version 3 as one of version 4."""
    return {**written, "version": 4, "events": [], "roots": [], "rooms": [], "apps": [], "apps_end": False}


def _of_4(written: Written) -> Written:
    """A plan of version 4 as one of version 5."""
    streams = [{**one, "ecn": "not_ect"} if one["kind"] in ("ping", "datagrams") else one for one in written["streams"]]
    return {**written, "version": 5, "streams": streams}


def _of_5(written: Written) -> Written:
    """A plan of version 5 as one of version 6."""
    streams = [{**one, "writes": None} if one["kind"] == "flow" else one for one in written["streams"]]
    return {**written, "version": 6, "streams": streams}


STEPS: Final[dict[int, Callable[[Written], Written]]] = {2: _of_2, 3: _of_3, 4: _of_4, 5: _of_5}
"""From each version of the plan that is read to the next."""
OLDEST: Final = min(STEPS, default=plan.VERSION)


def check(path: Path, info: Written, planned: Written) -> None:
    """Raises `InputError` when the run directory is of a version that cannot be read; names both versions."""
    schema, version = (one if isinstance(one, int) else 0 for one in (info.get("schema"), planned.get("version")))
    if schema == run.SCHEMA and OLDEST <= version <= plan.VERSION:
        return
    newer = schema > run.SCHEMA or version > plan.VERSION
    maker = f"{'a newer' if newer else 'an older'} Hourglass ({info.get('version') or 'of unknown version'}"
    reads = f"plan {OLDEST} to {plan.VERSION}" if plan.VERSION > OLDEST else f"plan {plan.VERSION}"
    remedy = "upgrade Hourglass" if newer else f"run it again: hourglass run {path / SCENARIO_FILE}"
    raise InputError(
        "run",
        str(path),
        f"was made by {maker}: run directory {schema}, plan {version}); this is {__version__}, which reads run"
        f" directory {run.SCHEMA}, {reads}; {remedy}",
    )


def current(planned: Written) -> Written:
    """A plan that `check` let pass, as one of today. Raises KeyError and TypeError for what is no plan."""
    while planned["version"] < plan.VERSION:
        planned = STEPS[planned["version"]](planned)
    return planned
