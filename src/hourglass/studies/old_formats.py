# SPDX-License-Identifier: Apache-2.0
"""Read the formats of earlier releases: sweeps, suites, and the cases of `hourglass agree`.

`current` returns the table of a study; `hourglass study FILE --rewrite` prints it as TOML. The next release removes
this module.
"""

from collections.abc import Mapping
from typing import Any

from hourglass.scenario.blame import refusal
from hourglass.scenario.load import parse_override
from hourglass.scenario.toml_text import inline, quoted

GRID = {"repetitions": "seeds", "told": "label_by", "row": "figure", "ccs": "columns"}
FIGURE = {"figure": "name", "says": "label", "beside": "alone", "mark": "criterion"}
CRITERION = {"keep": "bound"}
TABLES = ("set", "axes", "labels", "quick", "without")
LISTS = ("part", "figure", "criterion", "zip", "exclude")
"""Keys that TOML has as tables, and as lists of tables."""


def is_old(data: Mapping[str, Any]) -> bool:
    """Tell if a table has a format of an earlier release."""
    return current(data) != data


def current(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of a study, from the current format or an earlier one."""
    if "case" in data or "tolerance" in data:
        return _of_cases(data)
    study: dict[str, Any] = _renamed(data, {"repetitions": "seeds"})
    if "ccs" in study or any(isinstance(part, Mapping) and GRID.keys() & part for part in _list(study.get("part"))):
        compare = {"axis": "cc"} | ({"values": study.pop("ccs")} if "ccs" in study else {})
        study = {"compare": compare, **study}
    if "part" in study:
        study["part"] = [_part(part) for part in study["part"]] if isinstance(study["part"], list) else study["part"]
    return study


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _renamed(table: Any, names: Mapping[str, str]) -> Any:
    return {names.get(key, key): value for key, value in table.items()} if isinstance(table, Mapping) else table


def _part(part: Any) -> Any:
    renamed = _renamed(part, GRID)
    if isinstance(renamed, dict) and isinstance(renamed.get("figure"), list):
        renamed["figure"] = [_figure(figure) for figure in renamed["figure"]]
    return renamed


def _figure(figure: Any) -> Any:
    if not isinstance(figure, Mapping) or ("name" in figure and "figure" not in figure):
        return figure
    renamed = _renamed(figure, FIGURE)
    if isinstance(renamed.get("criterion"), list):
        renamed["criterion"] = [_criterion(criterion) for criterion in renamed["criterion"]]
    return renamed


def _criterion(criterion: Any) -> Any:
    renamed = _renamed(criterion, CRITERION)
    if isinstance(renamed, dict) and "ccs" in renamed:
        columns = renamed.pop("ccs")
        renamed["where"] = {**renamed.get("where", {}), "cc": columns}
    return renamed


def _of_cases(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the study of a file of cases: each is a part, the engines are compared."""
    tolerances = data.get("tolerance", {})
    if not isinstance(data.get("case"), list) or not isinstance(tolerances, Mapping):
        raise refusal("case", data.get("case"), "must be tables, each written below [[case]]")
    cases = []
    for number, case in enumerate(data["case"]):
        if not isinstance(case, Mapping):
            raise refusal(f"case.{number}", case, "must be a table")
        other = {key: value for key, value in case.items() if key not in ("name", "set")}
        id = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in str(case.get("name", "")))
        cases.append({"id": id, **other, "set": _settings(f"case.{number}.set", case.get("set", []))})
    rest = {key: value for key, value in data.items() if key not in ("set", "tolerance", "case")}
    return {
        **rest,
        "compare": {"axis": "engine", "values": ["virtual", "native"], "reference": "virtual"},
        "seeds": {"range": "1-15", "until": "decided"},
        "set": _settings("set", data.get("set", [])),
        "figure": [{"name": name, "tolerance": f"{value}%"} for name, value in tolerances.items()],
        "part": cases,
    }


def _settings(key: str, entries: Any) -> dict[str, Any]:
    """Return the keys of `["test.length=10", …]`."""
    if not isinstance(entries, list) or not all(isinstance(entry, str) and "=" in entry for entry in entries):
        raise refusal(key, entries, 'must be a list of settings, like ["test.length=10"]')
    return {".".join(path): value for path, value in map(parse_override, entries)}


def written(data: Mapping[str, Any]) -> str:
    """Return a table as TOML. It has no comments."""
    return "\n".join(_lines(data, "")).strip("\n") + "\n"


def _lines(table: Mapping[str, Any], path: str) -> list[str]:
    """Return the values of a table, then its tables."""
    nested = {key: value for key, value in table.items() if key in (*TABLES, *LISTS) and value}
    lines = [f"{quoted(key)} = {inline(value)}" for key, value in table.items() if key not in nested]
    for key, value in nested.items():
        head = ("[[{}]]" if key in LISTS else "[{}]").format(f"{path}{key}")
        for item in value if key in LISTS else [value]:
            rows = [f"{quoted(name)} = {inline(entry)}" for name, entry in item.items()]
            lines += ["", head, *(rows if key in TABLES else _lines(item, f"{path}{key}."))]
    return lines
