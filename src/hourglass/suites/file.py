# SPDX-License-Identifier: Apache-2.0
"""A suite's file → a checked `Suite`. Raises `InputError` for whatever is wrong, before anything runs.

| key | what it is |
|---|---|
| `name`, `description` | default of the name: the file's |
| `about` | what is to be known before the parts |
| `ccs` | the columns: congestion controls; default: all that are known |
| `[[part]]` | a sweep over the columns, and what is told of it |

A part has the keys of a sweep file (`scenario`, `set`, `axes`, `zip`, `exclude`, `repetitions`, `labels`), in whose
`set` `{cc}` stands for the column, and

| key | what it is |
|---|---|
| `id`, `title`, `about` | a word, a line, and what is run and why |
| `ccs` | the columns that it is about, if not all |
| `told` | the axes by which a setting is called; default: all |
| `quick` | axis = the values that `--quick` keeps; it has one seed as well |
| `use` | `SUITE.PART`: the runs, rows and marks of a part of another built-in suite |
| `not_run` | why it cannot be run; it has no sweep then |
| `without` | congestion control = why that one is left out |
| `[[part.row]]` | a figure of each setting, and its marks |

A row is

| key | what it is |
|---|---|
| `figure` | a summary's (`totals.fairness`), or one of `measures.py` |
| `says` | what it is called; default: the figure's own words |
| `better` | `more` or `less`, of a summary's figure; default: neither |
| `with` | what the measure is told |
| `beside` | the part whose run of the same setting it is compared with |
| `victim` | the axis whose value is that run's column; default: the own column |

A mark, `[[part.row.mark]]`; of several the first that is about a cell counts:

| key | what it is |
|---|---|
| `keep` | a bound (`>= 0.9`), or `self`: at most what the victim does to itself |
| `by` | an axis; `keep` is a table then, a bound for each of its values |
| `source` | whose it is; a mark without a source is refused |
| `ccs`, `where` | for which cells: columns; axis = value, or values; default: all |
| `missed` | why it is missed, where that is known |
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hourglass.campaign import file as sweeps
from hourglass.campaign.expand import Assignment
from hourglass.campaign.file import Grid
from hourglass.contract import bounds, names
from hourglass.contract.bounds import Bound
from hourglass.errors import InputError, closest
from hourglass.resources import SCENARIOS
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.scenario.blame import refusal
from hourglass.scenario.source import toml_problem
from hourglass.scenario.vocabulary import NOT_IN_LINUX
from hourglass.suites.measures import MEASURES, Better

FOLDER = SCENARIOS / "suites"
CC = "{cc}"
ANY = "any"
"""A column, where it does not matter which."""
SEED = "seed"
SELF = "self"
SWEEP_KEYS = ("scenario", "set", "axes", "zip", "exclude", "repetitions", "labels")
KEYS = ("name", "description", "about", "ccs", "part")
PART_KEYS = ("id", "title", "about", "ccs", "told", "quick", "use", "not_run", "without", "row", *SWEEP_KEYS)
ROW_KEYS = ("figure", "says", "better", "with", "beside", "victim", "mark")
MARK_KEYS = ("keep", "by", "source", "ccs", "where", "missed")
BETTER = ("more", "less", "")


@dataclass(frozen=True)
class Mark:
    """What a cell has to keep. `bound` is None of `self`. A mark without a source is not read: nobody set it."""

    keep: str
    source: str
    bound: Bound | None
    ccs: tuple[str, ...]
    where: Mapping[str, Any]
    missed: str

    def concerns(self, cc: str, setting: Mapping[str, Any]) -> bool:
        """Whether it is about this cell."""
        agrees = all(
            setting.get(key) in wanted if isinstance(wanted, list) else setting.get(key) == wanted
            for key, wanted in self.where.items()
        )
        return agrees and (not self.ccs or cc in self.ccs)


@dataclass(frozen=True)
class Row:
    """A figure that is told of each setting of its part."""

    figure: str
    says: str
    unit: str
    better: Better
    given: Mapping[str, Any]
    beside: str
    victim: str
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Part:
    """A sweep and its rows. `data`: the sweep's keys; none of what cannot be run. `ccs`: the columns, none: all."""

    id: str
    title: str
    about: str
    ccs: tuple[str, ...]
    told: tuple[str, ...]
    quick: Mapping[str, list[Any]]
    without: Mapping[str, str]
    not_run: str
    rows: tuple[Row, ...]
    data: Mapping[str, Any]
    folder: Path

    def swept(
        self,
        ccs: Sequence[str],
        quick: bool = False,
        seeds: Sequence[int] = (),
        sources: Mapping[str, str] = MappingProxyType({}),
    ) -> "Swept":
        """The sweep of these columns: every key of `set` in which `{cc}` stands goes forward with them. `quick`: the
        values that it keeps, and the first seed. `seeds`: these, in place of the file's, and all of them. `sources`:
        of columns that are a user's own, where they are."""
        words = [sources.get(cc, cc) for cc in ccs]
        fixed = sweeps.flat(dict(self.data.get("set", {})))
        tied = {key: [_put(value, word) for word in words] for key, value in fixed.items() if _put(value, "") != value}
        data = {key: value for key, value in self.data.items() if key not in ("set", "zip")}
        data["set"] = {key: value for key, value in fixed.items() if key not in tied}
        data["zip"] = [*self.data.get("zip", []), *([tied] if tied else [])]
        if seeds:
            data["axes"] = {**data.get("axes", {}), SEED: list(seeds)}
            data.pop("repetitions", None)
        grid = sweeps.grid(data, self.id, self.folder)
        if quick:
            kept = [cell for cell in grid.cells if all(cell[key] in values for key, values in self.quick.items())]
            wanted: list[object] = [*seeds] or [grid.cells[0].get(SEED)]
            grid = replace(grid, cells=tuple(cell for cell in kept if cell.get(SEED) in wanted))
        named = {tuple(str(values[place]) for values in tied.values()): cc for place, cc in enumerate(ccs)}
        return Swept(grid, tuple(tied), named, self.told)


@dataclass(frozen=True)
class Swept:
    """A part's grid. `tied`: the keys that follow the column; `named`: by their values, as text, the column."""

    grid: Grid
    tied: tuple[str, ...]
    named: Mapping[tuple[str, ...], str]
    told: tuple[str, ...]

    def cc(self, cell: Assignment) -> str:
        """The column of a cell."""
        return self.named[tuple(str(cell[key]) for key in self.tied)]

    def setting(self, cell: Assignment) -> dict[str, Any]:
        """The values of all other axes but the seed."""
        return {key: cell[key] for key in self.grid.keys if key not in (*self.tied, SEED)}

    def label(self, setting: Mapping[str, Any]) -> str:
        """What a setting is called."""
        return ", ".join(filter(None, (self.grid.label(key, setting[key]) for key in self.told or setting)))


@dataclass(frozen=True)
class Suite:
    """A suite's file. `source`: what asks for it; `baselines`: the folder of what kernels gave before."""

    source: str
    name: str
    description: str
    about: str
    ccs: tuple[str, ...]
    parts: tuple[Part, ...]
    baselines: Path = field(default=FOLDER / "baselines")


def _put(value: Any, cc: str) -> Any:
    """A value with the column in the place of `{cc}`."""
    if isinstance(value, list):
        return [_put(one, cc) for one in value]
    return value.replace(CC, cc) if isinstance(value, str) else value


def built_in() -> list[str]:
    """The names of the suites that are there."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read(source: str) -> Suite:
    """A built-in suite by its name, or one from a file."""
    path = FOLDER / f"{source}.toml" if source in built_in() else Path(source)
    if path.suffix != ".toml" or not path.is_file():
        raise InputError(
            "NAME", source, f"no such suite. {closest(source, built_in())}Suites: {', '.join(built_in())}; or a file"
        )
    try:
        content = path.read_text("utf-8")
        data = tomllib.loads(content)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("NAME", str(path), f"cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError("NAME", str(path), f"is no TOML: {toml_problem(content, error)}") from None
    return suite(data, path)


def suite(data: dict[str, Any], path: Path) -> Suite:
    """The suite of a table. `path`: of its file, beside which scenarios and baselines are."""
    _known(data, KEYS, "")
    parts = data.get("part")
    if not isinstance(parts, list) or not parts or not all(isinstance(one, dict) for one in parts):
        raise refusal("part", parts, "tables, each written below [[part]]")
    ccs = _words(data, "ccs", "") or tuple(CONGESTION_CONTROLS)
    known = (*CONGESTION_CONTROLS, *NOT_IN_LINUX)
    if strange := [cc for cc in ccs if cc not in known]:
        raise refusal(
            "ccs", strange[0], f"no congestion control of Linux; a file goes with --cc. {closest(strange[0], known)}"
        )
    found = tuple(_part(f"part.{place}", one, path) for place, one in enumerate(parts))
    ids = [one.id for one in found]
    if twice := [one for one in ids if ids.count(one) > 1]:
        raise refusal("part.id", twice[0], "is there twice")
    for part in found:
        for row in part.rows:
            if row.beside and row.beside not in ids:
                raise refusal(f"{part.id}: beside", row.beside, f"is no part. {closest(row.beside, ids)}")
    name = _text(data, "name", "", path.stem)
    if not name or "/" in name or name.startswith("."):
        raise refusal("name", name, "text that can name a file")
    about = _text(data, "description", ""), _text(data, "about", "")
    source = path.stem if path.parent == FOLDER else str(path)
    return Suite(source, name, *about, ccs, found, path.parent / "baselines")


def _part(where: str, data: dict[str, Any], path: Path) -> Part:
    _known(data, PART_KEYS, f"{where}.")
    id = _text(data, "id", where)
    if not id.isascii() or not id.replace("-", "").isalnum():
        raise refusal(f"{where}.id", data.get("id"), "a word of letters, digits and -, which names the part")
    if "use" in data:
        return _used(where, id, data, path)
    not_run = _text(data, "not_run", where)
    own = Part(
        id, _text(data, "title", where, id), _text(data, "about", where),
        _words(data, "ccs", where), _words(data, "told", where),
        _table(data, "quick", where), _table(data, "without", where), not_run,
        tuple(_row(f"{where}.row.{place}", one) for place, one in enumerate(_list(data, "row", where))),
        {key: data[key] for key in SWEEP_KEYS if key in data}, path.parent,
    )  # fmt: skip
    if not_run:
        return own
    if not own.rows:
        raise refusal(f"{where}.row", None, "is missing: what is told of the runs, or not_run, why there are none")
    swept = own.swept(own.ccs or (ANY,))
    if not swept.tied:
        raise refusal(f"{where}.set", data.get("set"), f'no key has {CC} in it, like "stack.client.cc" = "{CC}"')
    grid = swept.grid
    for key in (*own.told, *own.quick):
        if key not in grid.keys:
            raise refusal(f"{where}: {key}", key, f"is no axis. {closest(key, grid.keys)}")
    settings = [swept.setting(cell) for cell in grid.cells]
    called: dict[str, dict[str, Any]] = {}
    for setting in settings:
        if called.setdefault(swept.label(setting), setting) != setting:
            told = "is what two settings are called: `told` and `labels` have to tell them apart"
            raise refusal(f"{where}: a label", swept.label(setting), told)
    for key in own.quick:
        if not isinstance(own.quick[key], list) or not any(cell[key] in own.quick[key] for cell in grid.cells):
            raise refusal(f"{where}.quick.{key}", own.quick[key], "a list of values of this axis")
    for row in own.rows:
        for key in (row.victim, *(key for mark in row.marks for key in mark.where)):
            if key and key not in grid.keys:
                raise refusal(f"{where}.row: {key}", key, f"is no axis. {closest(key, grid.keys)}")
    return own


def _used(where: str, id: str, data: dict[str, Any], path: Path) -> Part:
    """A part of another suite under this one's id and words."""
    name, _, part = _text(data, "use", where).partition(".")
    if name not in built_in() or FOLDER / f"{name}.toml" == path:
        raise refusal(f"{where}.use", data["use"], f"SUITE.PART. {closest(name, built_in())}")
    parts = {one.id: one for one in read(name).parts}
    if part not in parts:
        raise refusal(f"{where}.use", data["use"], f"has no such part. {closest(part, parts)}")
    if wrong := [key for key in data if key not in ("id", "title", "about", "use", "quick", "ccs")]:
        raise refusal(f"{where}.{wrong[0]}", data[wrong[0]], "is the used part's")
    used = parts[part]
    title = _text(data, "title", where, used.title)
    about = " ".join(filter(None, (_text(data, "about", where), used.about)))
    return replace(
        used, id=id, title=title, about=about, ccs=_words(data, "ccs", where) or used.ccs,
        quick=data.get("quick", used.quick),
    )  # fmt: skip


def _row(where: str, data: Any) -> Row:
    _known(data, ROW_KEYS, f"{where}.")
    figure, given = _text(data, "figure", where), _table(data, "with", where)
    better, beside = data.get("better", ""), _text(data, "beside", where)
    if figure in MEASURES:
        measure = MEASURES[figure]
        unit, says, better = measure.unit, measure.says, measure.better
        measure.check(f"{where}.with", given)
        if measure.compares != bool(beside):
            told = "is missing: the part it is compared with" if measure.compares else "is not compared with another"
            raise refusal(f"{where}.beside", data.get("beside"), told)
    else:
        try:
            unit, says = names.unit(figure), figure
        except InputError as error:
            own = f"{closest(figure, MEASURES)}Measures: {', '.join(MEASURES)}; or a figure of a run: {error.allowed}"
            raise refusal(f"{where}.figure", figure, own) from None
        if given or beside:
            raise refusal(f"{where}.{'with' if given else 'beside'}", given or beside, "goes with a measure only")
    if better not in BETTER:
        raise refusal(f"{where}.better", better, 'one of "more" and "less"')
    victim = _text(data, "victim", where)
    marks = tuple(
        mark
        for n, one in enumerate(_list(data, "mark", where))
        for mark in _marks(f"{where}.mark.{n}", one, figure, unit, victim)
    )
    return Row(figure, _text(data, "says", where, says), unit, better, given, beside, victim, marks)


def _marks(where: str, data: Any, figure: str, unit: str, victim: str) -> list[Mark]:
    """A mark; with `by`, one for each value of that axis."""
    _known(data, MARK_KEYS, f"{where}.")
    if "by" not in data:
        return [_mark(where, data, figure, unit, victim)]
    axis, keeps = _text(data, "by", where), _table(data, "keep", where)
    rest = {key: value for key, value in data.items() if key != "by"}
    given = _table(data, "where", where)
    every = [rest | {"keep": keep, "where": {**given, axis: value}} for value, keep in keeps.items()]
    return [_mark(where, one, figure, unit, victim) for one in every]


def _mark(where: str, data: Any, figure: str, unit: str, victim: str) -> Mark:
    keep, source = _text(data, "keep", where), _text(data, "source", where)
    if not source:
        raise refusal(f"{where}.source", source, "is missing: whose mark it is; what nobody set is told, not judged")
    if keep == SELF and not victim:
        raise refusal(f"{where}.keep", keep, "needs `victim`: the axis that names whose own harm is the measure")
    bound = None if keep == SELF else bounds.of_unit(figure, keep, unit)
    setting = _table(data, "where", where)
    return Mark(keep, source, bound, _words(data, "ccs", where), setting, _text(data, "missed", where))


def _known(table: Any, known: tuple[str, ...], where: str) -> None:
    if not isinstance(table, dict):
        raise refusal(where.rstrip("."), table, "a table")
    for key in table:
        if key not in known:
            raise refusal(f"{where}{key}", table[key], f"unknown key. {closest(key, known)}Keys: {', '.join(known)}")


def _text(table: Mapping[str, Any], key: str, where: str, default: str = "") -> str:
    found = table.get(key, default)
    if not isinstance(found, str):
        raise refusal(f"{where}.{key}".lstrip("."), found, "text")
    return " ".join(found.split())


def _table(table: Mapping[str, Any], key: str, where: str) -> dict[str, Any]:
    found = table.get(key, {})
    if not isinstance(found, dict):
        raise refusal(f"{where}.{key}", found, "a table")
    return found


def _list(table: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = table.get(key, [])
    if not isinstance(found, list):
        raise refusal(f"{where}.{key}", found, f"tables, each written below [[part.{key}]]")
    return found


def _words(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    found = table.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise refusal(f"{where}.{key}".lstrip("."), found, "a list of names")
    return tuple(found)
