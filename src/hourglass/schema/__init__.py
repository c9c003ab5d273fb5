# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas of scenario and study files, for editors, and of `--json`, for programs that read it.

An editor completes and checks a TOML file with a line `#:schema PATH` or `#:schema URL`. The schemas are next to this
file: a release's wheel has them, and `make setup` writes them in a checkout (`python -m hourglass.schema`).
"""

import json
from collections.abc import Callable

from hourglass.contract.summary import summary_schema
from hourglass.scenario.schema import scenario_schema
from hourglass.scenario.value_kinds import Schema
from hourglass.studies.schema import study_schema

SCHEMAS: dict[str, Callable[[], Schema]] = {
    "scenario.schema.json": scenario_schema,
    "study.schema.json": study_schema,
    "summary.schema.json": summary_schema,
}


def schema_texts() -> dict[str, str]:
    """Return the content of each file."""
    return {name: json.dumps(make(), indent=1, ensure_ascii=False) + "\n" for name, make in SCHEMAS.items()}
