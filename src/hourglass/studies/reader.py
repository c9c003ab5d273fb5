# SPDX-License-Identifier: Apache-2.0
"""Read and check a study. Raises `InputError` for every mistake, before anything runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hourglass.contract import names
from hourglass.engine import engines
from hourglass.errors import InputError, closest
from hourglass.resources import SCENARIOS
from hourglass.results.intervals import MIN_BLOCKS
from hourglass.scenario import CONGESTION_CONTROLS
from hourglass.scenario.blame import Abridged, dotted, refusal, together
from hourglass.scenario.load import listed_overrides
from hourglass.scenario.load import parse_override as parse_setting
from hourglass.scenario.source_files import read_toml, with_marks
from hourglass.scenario.vocabulary import NOT_IN_LINUX
from hourglass.studies import old_formats
from hourglass.studies.columns import ANY_COLUMN, ColumnGrid, column_grid
from hourglass.studies.file import (
    EVERY,
    SELF,
    ComparedAxis,
    Criterion,
    GridTable,
    PartTable,
    ScoreScale,
    Seeds,
    StudyFigure,
    StudyFile,
    StudyTable,
)
from hourglass.studies.grid import ENGINE
from hourglass.studies.measures import MEASURES

FOLDER = SCENARIOS / "studies"
"""The folder of the built-in studies."""


@dataclass(frozen=True)
class StudyPart:
    """A grid of a study. `table`: its keys, those of the whole study included. `folder`: of the files that it names."""

    table: PartTable
    folder: Path

    @property
    def id(self) -> str:
        """The id; empty for the only part of a study without `[[part]]`."""
        return self.table.id

    @property
    def figures(self) -> list[StudyFigure]:
        """The figures that are reported."""
        return self.table.figure


@dataclass(frozen=True)
class Study:
    """A checked study. `columns`: the values of the compared `axis`; one without a name if nothing is compared.
    `reference`: the column that the others are compared with. `source`: the words that name the study. `wire`: guests
    have modelled NICs where engines are compared. `command`: the words that make a study without a file.
    `weights`: those of the parts of a score."""

    name: str
    description: str = ""
    about: str = ""
    axis: str = ""
    columns: tuple[str, ...] = ("",)
    reference: str = ""
    parts: tuple[StudyPart, ...] = ()
    folder: Path = field(default=FOLDER)
    source: str = ""
    wire: bool = False
    command: str = ""
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def baselines(self) -> Path:
        """The folder of the baselines."""
        return self.folder / "baselines"

    def column_grid(self, part: StudyPart, columns: tuple[str, ...], quick: bool = False,
                    seeds: tuple[int, ...] = (), sources: Mapping[str, str] | None = None) -> ColumnGrid:  # fmt: skip
        """Return the grid of a part for these columns."""
        return column_grid(self.name, part.table, part.folder, self.axis, columns, quick, seeds, sources or {})


def built_in() -> list[str]:
    """Return the names of the built-in studies."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def read(source: str | Path | Mapping[str, Any] | Study) -> Study:
    """Read and check a built-in study, a file, or a table of the same keys."""
    if isinstance(source, Study):
        return source
    if isinstance(source, Mapping):
        return parse(with_marks(source), "study", Path())
    if source in built_in():
        return parse(read_toml("FILE", FOLDER / f"{source}.toml")[0], str(source), FOLDER, str(source))
    path = Path(source)
    if path.suffix != ".toml" or not path.is_file():
        allowed = f"no such study. {closest(str(source), built_in())}Built in: {', '.join(built_in())}; or a file"
        raise InputError("FILE", str(source), allowed)
    return parse(read_toml("FILE", path)[0], path.stem, path.parent, str(path))


def parse(data: dict[str, Any], name: str, folder: Path, source: str = "") -> Study:
    """Check the table of a study. `folder`: of the files that it names."""
    if "testbed" in data and "scenario" not in data:
        raise refusal("study", name, 'this is a scenario, not a study. A study names it: scenario = "FILE.toml"')
    try:
        file = StudyFile.model_validate(old_formats.current(data))
    except ValidationError as error:
        raise together([_mistake(problem) for problem in error.errors(include_url=False)]) from None
    compare = file.compare or ComparedAxis.model_construct(axis="", values=[""], reference="")
    values = compare.values or list(CONGESTION_CONTROLS if compare.axis == "cc" else ())
    if not values:
        raise refusal("compare.values", compare.values, "must be a list of values")
    options = (*CONGESTION_CONTROLS, *NOT_IN_LINUX)
    if compare.axis == "cc" and (unknown := [value for value in values if value not in options]):
        allowed = f"no congestion control of Linux; give a file with --cc. {closest(unknown[0], options)}".strip()
        raise refusal("compare.values", unknown[0], allowed)
    if compare.reference and compare.reference not in values:
        raise refusal("compare.reference", compare.reference, f"must be one of {', '.join(values)}")
    if repeated := next((value for value in values if values.count(value) > 1), None):
        raise refusal("compare.values", repeated, "occurs twice")
    if compare.axis == ENGINE:
        _check_engines(compare, values)
    study = Study(
        file.name or name, file.description, file.about, compare.axis, tuple(values), compare.reference,
        tuple(_parts(file, folder, name)), folder, source, compare.wire,
        weights=file.weights,
    )  # fmt: skip
    ids = [part.id for part in study.parts]
    for part in study.parts:
        listed = part.table.seeds.range if part.table.seeds else ()
        if any(figure.name == EVERY for figure in part.figures) and len(listed) < MIN_BLOCKS:
            raise refusal("seeds", len(listed), f"must be at least {MIN_BLOCKS}: fewer say nothing about the spread")
    for number, part in enumerate(study.parts):
        path = f"part.{number}." if file.part else ""
        if ids.count(part.id) > 1:
            raise refusal(f"{path}id", part.id, "must occur once")
        _check_part(study, part, path)
    scored = {figure.score.part for part in study.parts for figure in part.figures if figure.score}
    if unscored := next((word for word in study.weights if word not in scored), None):
        raise refusal(f"weights.{unscored}", study.weights[unscored], "is the part of no figure: set score.part")
    return study


def _check_engines(compare: ComparedAxis, values: list[str]) -> None:
    """Refuse engines other than a guest's and those in real time."""
    virtual = [value for value in values if engines.get(value).capabilities.virtual_time]
    if len(virtual) != 1 or len(values) < 2 or compare.reference not in ("", *virtual):
        allowed = "must be virtual, the reference, and an engine in real time: native or ssh"
        raise refusal("compare.values", values, allowed)


def with_settings(study: Study, overrides: Mapping[str, Any] | Sequence[str | tuple[str, Any]]) -> Study:
    """Return the study with keys of the scenario set in all its parts, as `--set` and Python give them."""
    changes = {".".join(path): with_marks(value) for path, value in map(parse_setting, listed_overrides(overrides))}
    if not changes:
        return study
    parts = [
        replace(part, table=part.table.model_copy(update={"fixed": part.table.fixed | changes})) for part in study.parts
    ]
    return replace(study, parts=tuple(parts))


def _parts(file: StudyFile, folder: Path, name: str) -> list[StudyPart]:
    """Return the parts with the grid's keys that hold for the whole study."""
    if not file.part:
        keys = {key: getattr(file, key) for key in GridTable.model_fields}
        return [StudyPart(PartTable.model_construct(**keys, id=""), folder)]
    parts = []
    for number, table in enumerate(file.part):
        if table.use:
            parts.append(_used(f"part.{number}", table, name))
            continue
        merged = {
            "title": table.title or table.id,
            "scenario": file.scenario if table.scenario is None and "scenario" not in table.axes else table.scenario,
            "fixed": file.fixed | table.fixed,
            "axes": file.axes | table.axes,
            "labels": {key: label for key, label in file.labels.items() if key in file.axes} | table.labels,
            "seeds": table.seeds or file.seeds,
            "figure": table.figure or file.figure,
        }
        parts.append(StudyPart(table.model_copy(update=merged), folder))
    return parts


def _used(path: str, table: PartTable, name: str) -> StudyPart:
    """Return a part of another built-in study under the id, title and text of this one."""
    other, _, id = table.use.partition(".")
    if other not in built_in() or other == name:
        raise refusal(f"{path}.use", table.use, f"must be STUDY.PART. {closest(other, built_in())}")
    parts = {part.id: part for part in read(other).parts}
    if id not in parts:
        raise refusal(f"{path}.use", table.use, f"has no such part. {closest(id, parts)}")
    if wrong := sorted(table.model_fields_set - {"id", "title", "about", "use", "quick", "columns"}):
        key = PartTable.model_fields[wrong[0]].alias or wrong[0]
        raise refusal(f"{path}.{key}", getattr(table, wrong[0]), "belongs to the used part; remove it")
    used = parts[id].table
    changes: dict[str, Any] = {"id": table.id, "title": table.title or used.title}
    changes["about"] = " ".join(filter(None, (table.about, used.about)))
    changes |= {key: getattr(table, key) for key in ("quick", "columns") if getattr(table, key)}
    return replace(parts[id], table=used.model_copy(update=changes))


def _check_part(study: Study, part: StudyPart, path: str) -> None:
    table = part.table
    if table.not_run:
        return
    if table.id and not table.figure:
        raise refusal(f"{path}figure", None, "is missing: the figures of the runs, or not_run, the reason for none")
    columns = tuple(table.columns) or (study.columns if not study.axis else (ANY_COLUMN,))
    grid = study.column_grid(part, columns)
    for key in (*table.label_by, *table.quick):
        if key not in grid.grid.keys:
            raise refusal(f"{path}{key}", key, f"is not an axis. {closest(key, grid.grid.keys)}")
    settings: dict[str, Mapping[str, Any]] = {}
    for setting in map(grid.setting, grid.grid.cells):
        if settings.setdefault(grid.label(setting), setting) != setting:
            allowed = "is the label of two settings: `label_by` and `labels` must distinguish them"
            raise refusal(f"{path}labels: a label", grid.label(setting), allowed)
    for key, values in table.quick.items():
        if not any(cell[key] in values for cell in grid.grid.cells):
            raise refusal(f"{path}quick.{key}", values, "must be a list of values of this axis")
    for number, figure in enumerate(table.figure):
        _check_figure(study, figure, f"{path}figure.{number}", (*grid.grid.keys, study.axis))


def _check_figure(study: Study, figure: StudyFigure, path: str, axes: tuple[str, ...]) -> None:
    measure = MEASURES.get(figure.name)
    if figure.name == EVERY:
        if not study.reference:
            raise refusal(f"{path}.name", EVERY, "needs compare.reference")
        for key in ("tolerance", "criterion", "parameters", "alone"):
            if getattr(figure, key):
                raise refusal(f"{path}.{key}", getattr(figure, key), 'cannot be combined with "*"')
    elif measure is not None:
        measure.check(f"{path}.with", figure.parameters)
        if measure.compares != bool(figure.alone):
            allowed = "is missing: the part that it compares with" if measure.compares else "compares with no other run"
            raise refusal(f"{path}.alone", figure.alone or None, allowed)
    else:
        try:
            names.unit(figure.name)
        except InputError as error:
            options = f"Measures: {', '.join(MEASURES)}; or a figure of a run: {error.allowed}"
            raise refusal(f"{path}.name", figure.name, f"{closest(figure.name, MEASURES)}{options}") from None
        if figure.parameters or figure.alone:
            raise refusal(f"{path}.{'with' if figure.parameters else 'alone'}", figure.parameters or figure.alone,
                          "needs a measure")  # fmt: skip
    if figure.alone and figure.alone not in [part.id for part in study.parts]:
        raise refusal(
            f"{path}.alone", figure.alone, f"is not a part. {closest(figure.alone, [p.id for p in study.parts])}"
        )
    if figure.score and figure.score.part not in study.weights:
        hint = closest(figure.score.part, study.weights)
        raise refusal(f"{path}.score.part", figure.score.part, f"is not a key of weights. {hint}".strip())
    if figure.score and figure.score.worst == figure.score.best:
        raise refusal(f"{path}.score.best", figure.score.best, "must differ from `worst`")
    figure.check_tolerance(f"{path}.tolerance")
    if figure.tolerance and not study.reference:
        raise refusal(f"{path}.tolerance", figure.tolerance, "needs compare.reference")
    if figure.tolerance and figure.criterion:
        raise refusal(
            f"{path}.tolerance", figure.tolerance, "cannot be combined with a criterion; list the figure twice"
        )
    if figure.victim and figure.victim not in axes:
        raise refusal(f"{path}.victim", figure.victim, f"is not an axis. {closest(figure.victim, axes)}")
    for number, criterion in enumerate(figure.criterion):
        _check_criterion(figure, criterion, f"{path}.criterion.{number}", axes)


def _check_criterion(figure: StudyFigure, criterion: Criterion, path: str, axes: tuple[str, ...]) -> None:
    if not criterion.source:
        raise refusal(f"{path}.source", criterion.source, "is missing: the source of the bound")
    if isinstance(criterion.bound, dict) != bool(criterion.by):
        raise refusal(f"{path}.bound", criterion.bound, "must be a table with `by`, else one bound")
    for single in criterion.expanded():
        if single.bound == SELF and not figure.victim:
            raise refusal(
                f"{path}.bound", single.bound, "needs `victim`: the axis of the flow whose harm to itself counts"
            )
        figure.bound_of(single)
        for key in single.where:
            if key not in axes:
                raise refusal(f"{path}.where.{key}", single.where[key], f"is not an axis. {closest(key, axes)}")


def _mistake(problem: Any) -> InputError:
    """Return a mistake that pydantic found: the key, the value, the remedy."""
    kind, location = problem["type"], problem["loc"]
    key = dotted(location) or "study"
    if kind == "extra_forbidden":
        options = _keys_of(location[:-1])
        hint = f"unknown key. {closest(location[-1], options)}Keys: {', '.join(options)}"
        return refusal(key, problem["input"], hint)
    if kind == "missing":
        return refusal(key, Abridged("none"), "is missing")
    allowed = str(problem["ctx"]["error"]) if kind == "value_error" else problem["msg"].replace("Input should", "must")
    return refusal(key, problem["input"], allowed)


def _keys_of(location: tuple[Any, ...]) -> list[str]:
    """Return the keys of the table at a location."""
    tables: dict[str, type[StudyTable]] = {
        "part": PartTable, "figure": StudyFigure, "criterion": Criterion, "compare": ComparedAxis, "seeds": Seeds,
        "score": ScoreScale,
    }  # fmt: skip
    table = next((tables[word] for word in reversed(location) if word in tables), StudyFile)
    return [field.alias or name for name, field in table.model_fields.items()]
