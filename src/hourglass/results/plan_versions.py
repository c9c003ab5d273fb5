# SPDX-License-Identifier: Apache-2.0
"""Run directories of other versions: read as today's, or refused with the reason.

| plan | versions | |
|---|---|---|
| 1 | before 0.2.0, up to 21 November 2026 | refused: its records name streams otherwise |
| 2 to 5 | before 0.2.0, after that | refused: no release had them |
| 6 | 0.2.0 and 0.2.1 | read: no folders were mounted, `ip` and `tc` steps were lines |
| 7 | 0.3.0 | read: a NIC had one queue |
| 8 | since 0.4.0 | today's |

Tables and columns that an older version did not record are empty; `frames.complete` adds them. A bound or a figure of a
version's own is judged and named as today.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from hourglass import __version__
from hourglass.contract import plan, run_json
from hourglass.errors import InputError
from hourglass.results.run_files import SCENARIO_FILE

PlanDocument = dict[str, Any]


def _upgrade_6(document: PlanDocument) -> PlanDocument:
    """Return a plan of version 6 as one of version 7."""
    return {**document, "version": 7, "rooms": [{**room, "mounts": []} for room in document["rooms"]]}


def _upgrade_7(document: PlanDocument) -> PlanDocument:
    """Return a plan of version 7 as one of version 8."""

    def upgraded(steps: list[PlanDocument]) -> list[PlanDocument]:
        return [{**step, "queues": None} if step["do"] == "device" else step for step in steps]

    events = [{**event, "steps": upgraded(event["steps"])} for event in document["events"]]
    return {**document, "version": 8, "setup": upgraded(document["setup"]), "events": events}


STEPS: Final[dict[int, Callable[[PlanDocument], PlanDocument]]] = {6: _upgrade_6, 7: _upgrade_7}
"""From each readable version of the plan to the next."""
OLDEST: Final = min(STEPS, default=plan.VERSION)


def check(path: Path, info: PlanDocument, plan_document: PlanDocument) -> None:
    """Refuse a run directory of a version that cannot be read; name both versions. Raises `InputError`."""
    schema, version = (
        number if isinstance(number, int) else 0 for number in (info.get("schema"), plan_document.get("version"))
    )
    if schema == run_json.SCHEMA and OLDEST <= version <= plan.VERSION:
        return
    newer = schema > run_json.SCHEMA or version > plan.VERSION
    maker = f"{'a newer' if newer else 'an older'} Hourglass ({info.get('version') or 'of unknown version'}"
    reads = f"plan {OLDEST} to {plan.VERSION}" if plan.VERSION > OLDEST else f"plan {plan.VERSION}"
    remedy = "upgrade Hourglass" if newer else f"rerun it: hourglass run {path / SCENARIO_FILE}"
    raise InputError(
        "run",
        str(path),
        f"was made by {maker}: run directory {schema}, plan {version}); this is {__version__}, which reads run"
        f" directory {run_json.SCHEMA}, {reads}; {remedy}",
    )


def upgrade(plan_document: PlanDocument) -> PlanDocument:
    """Return a plan that `check` accepted, as one of today. Raises KeyError and TypeError for an invalid plan."""
    while plan_document["version"] < plan.VERSION:
        plan_document = STEPS[plan_document["version"]](plan_document)
    return plan_document
