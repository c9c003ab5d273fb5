# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the files people write, for editors: a TOML file with a line `#:schema PATH` or `#:schema URL` is
completed and checked while it is written. And of `--json`, for programs that read it.

What is generated from the scenario's models, these and the reference, `python -m hourglass.contract` writes.
"""

import json
from collections.abc import Callable

from hourglass.campaign.schema import sweep_schema
from hourglass.contract.summary import summary_schema
from hourglass.scenario.kinds import Schema
from hourglass.scenario.reference import reference
from hourglass.scenario.schema import scenario_schema


def _json(make: Callable[[], Schema]) -> Callable[[], str]:
    return lambda: json.dumps(make(), indent=1, ensure_ascii=False) + "\n"


GENERATED: dict[str, Callable[[], str]] = {
    "src/hourglass/schema/scenario.schema.json": _json(scenario_schema),
    "src/hourglass/schema/sweep.schema.json": _json(sweep_schema),
    "src/hourglass/schema/summary.schema.json": _json(summary_schema),
    "docs/scenario.md": reference,
}
"""Files of a checkout, and how they are made."""
