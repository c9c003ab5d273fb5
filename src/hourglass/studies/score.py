# SPDX-License-Identifier: Apache-2.0
"""Score a congestion control: the runs of a study, and one number of its figures (`score_formula.py`).

A candidate that cannot be scored has 0, which no other candidate has, with a code and the reason:

    input, module-build    its source registers no congestion control, or does not compile
    guest-…                one of its runs failed: it crashed, hung, or used up the memory
    kernel-complaint       the guest's kernel reported a defect, such as a warning of the stack
    not-repeatable         a repeated run has other records: it reads something outside of the guest
    score-late             the time for its runs is over

The candidate's runs are in a hidden folder of the cache, which is deleted. Only runs of the rivals alone are stored.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

from hourglass import files, scenario
from hourglass.builders.kernel.builder import SourceError
from hourglass.contract.kernels import DEFAULT
from hourglass.engine.kernel_texts import COMPLAINT
from hourglass.errors import HourglassError, InputError
from hourglass.host import directories, hardware
from hourglass.results.run_files import RUN_FILE
from hourglass.scenario.source_files import UserText
from hourglass.studies import pool, runs
from hourglass.studies.cells import GridCell
from hourglass.studies.columns import named
from hourglass.studies.file import EVERY
from hourglass.studies.reader import Study, read
from hourglass.studies.runs import SilentStudy, StudyProgress
from hourglass.studies.score_formula import PartScore, ScoredFigure, combine
from hourglass.studies.study import StudyOptions, StudyRuns

STUDY = "score"
"""The default study."""
LIMIT_S = 600.0
"""The default wall time for a candidate's runs."""
STALL_S = 5.0
"""The CPU time in s that a candidate's guest may use without moving its clock."""
TAIL_LINES = 10
"""Lines of the console that a failure quotes."""
ENVIRONMENT = (
    "interrupted",
    "worker",
    "disk-full",
    "missing",
    "ptrace-forbidden",
    "host-memory",
    "host-limit",
    "host-setting",
    "download",
    "gone",
    "kernel-build",
)
"""Codes of failed runs that are not the candidate's fault: they raise."""
NO_INIT = "No working init found"
"""The kernel's words if it could not read its root, which is the machine's fault."""
AGAIN = "again-"
"""The prefix of the key of a repeated run."""


@dataclass(frozen=True)
class ScoreFailure:
    """The reason for the score 0: a code, a line, the cell, and the end of the console or the compiler's messages."""

    code: str
    reason: str
    cell: str = ""
    log: tuple[str, ...] = ()


@dataclass(frozen=True)
class Score:
    """The score of a candidate, from 0 (`failure` says why) to 100, with its 95 % interval, parts and figures.
    `kernel`: its name; `held_out`: of the settings that are held out; `runs`: the number of its runs."""

    candidate: str
    study: str
    kernel: str
    held_out: bool
    value: float
    interval: tuple[float, float] | None
    parts: Mapping[str, PartScore]
    figures: Sequence[ScoredFigure] = ()
    runs: int = 0
    failure: ScoreFailure | None = None

    @property
    def metrics(self) -> dict[str, float]:
        """The score as `combined_score` from 0 to 1, and the value of each part: the dictionary that OpenEvolve's
        evaluators return."""
        return {"combined_score": self.value / 100} | {name: part.value for name, part in self.parts.items()}

    def data(self) -> dict[str, Any]:
        """Return the object of `--json`."""
        failure = self.failure
        return {
            "schema": 1,
            "candidate": self.candidate,
            "study": self.study,
            "kernel": self.kernel,
            "held_out": self.held_out,
            "score": self.value,
            "interval": self.interval,
            "parts": {
                name: {"value": part.value, "interval": part.interval, "weight": part.weight}
                for name, part in self.parts.items()
            },
            "failure": failure
            and {"code": failure.code, "reason": failure.reason, "cell": failure.cell, "log": list(failure.log)},
            "runs": self.runs,
            "figures": [
                {
                    "part": each.part, "setting": each.setting, "figure": each.figure, "unit": each.unit,
                    "seeds": list(each.values), "utility": each.utility,
                }
                for each in self.figures
            ],
        }  # fmt: skip


class CandidateError(Exception):
    """A candidate that cannot be scored."""

    def __init__(self, code: str, reason: str, cell: str = "", log: Sequence[str] = ()) -> None:
        self.failure = ScoreFailure(code, reason, cell, tuple(log))
        super().__init__(reason)


def score(
    candidate: str | Path,
    study: str | Path | Mapping[str, Any] = STUDY,
    *,
    held_out: bool = False,
    kernel: str | None = None,
    seeds: Sequence[int] = (),
    jobs: int | None = None,
    limit_s: float = LIMIT_S,
    keep: Path | None = None,
    progress: StudyProgress | None = None,
) -> Score:
    """Score a congestion control: a C file, a folder of them, or the name of a built-in one.

    `study`: a study with `weights`. `held_out`: the settings that the study holds out, not those for training. `seeds`
    replace the study's. `jobs`: local processes, default one per CPU. `limit_s`: the wall time for the runs. `keep`: a
    folder for the candidate's runs, which are deleted without one.

    A candidate that fails does not raise, but has the score 0. Raises `InputError` for a file that does not exist or a
    study without weights, and `HourglassError` if this machine cannot make the runs.
    """
    chosen = scored_parts(read(study), held_out)
    names, sources = named([str(candidate)], chosen.axis)
    path = Path(candidate)
    if sources and not path.exists():
        raise InputError("CANDIDATE", str(candidate), "no such file")
    options = StudyOptions(names, sources, kernel, seeds=tuple(seeds))
    display = progress or SilentStudy()
    at_once = jobs or hardware.cpus()
    with _folder(keep) as folder, pool.WorkerPool(pool.Limits(inf, STALL_S)) as workers:
        try:
            check_source(path if sources else None)
            workers.start(at_once)  # they load what runs need, while the kernel is linked
            planned = _planned(chosen, folder, options, jobs, display)
            number = make(planned, names[0], workers, at_once, limit_s, display)
            figures, total = combine(planned.make(None), names[0], chosen.weights)
        except CandidateError as error:
            parts = {name: PartScore(0.0, None, weight) for name, weight in chosen.weights.items()}
            return Score(
                names[0], chosen.name, kernel or DEFAULT, held_out, 0.0, None, parts, failure=error.failure
            )  # fmt: skip
    return Score(
        names[0], chosen.name, planned.kernel, held_out, total.value, total.interval, total.parts, figures, number
    )


def evaluate(program_path: str) -> dict[str, float]:
    """Return the metrics of a C file by the default study: the evaluator that OpenEvolve and similar tools call. A file
    that fails has the metrics 0."""
    return score(program_path).metrics


def scored_parts(study: Study, held_out: bool) -> Study:
    """Return a study with the parts that are scored, and those that they compare with. Raises `InputError`."""
    if not study.weights:
        raise InputError("--study", study.source or study.name, "has no weights, so it gives no score")
    if study.axis != "cc":
        raise InputError("--study", study.source or study.name, "must compare the axis cc")
    parts = [
        part for part in study.parts
        if part.table.held_out == held_out and not part.table.not_run and part.figures
        and all(figure.name != EVERY for figure in part.figures)
    ]  # fmt: skip
    scored = {figure.score.part for part in parts for figure in part.figures if figure.score}
    if missing := next((word for word in study.weights if word not in scored), None):
        which = "held out" if held_out else "for training"
        raise InputError("--study", study.source or study.name, f"has no setting {which} with a figure of {missing}")
    return replace(study, parts=tuple(parts))


def check_source(path: Path | None) -> None:
    """Refuse a source that registers no congestion control, before any kernel is built. Raises `CandidateError`."""
    if path is None:
        return
    try:
        slash = "/" if path.is_dir() else ""
        scenario.load("L100M", [("stack.cc", UserText(f"{path.absolute()}{slash}"))])
    except InputError as error:
        raise CandidateError("input", error.allowed) from None


def _planned(study: Study, folder: Path, options: StudyOptions, jobs: int | None, progress: StudyProgress) -> StudyRuns:
    """Plan the runs. This builds the kernel with the candidate. Raises `CandidateError`."""
    try:
        return StudyRuns(study, folder, options, jobs=jobs, progress=progress)
    except SourceError as error:
        heading, *messages = str(error).splitlines()
        raise CandidateError("module-build", heading, log=messages[:-1]) from None
    except InputError as error:
        if error.key != "name":  # the kernel has a module of this name
            raise
        raise CandidateError("input", error.allowed) from None


def make(
    planned: StudyRuns,
    candidate: str,
    workers: pool.WorkerPool,
    jobs: int,
    limit_s: float,
    progress: StudyProgress,
) -> int:
    """Make all runs of a candidate and those that they are compared with. Return their number. Raises
    `CandidateError`, and `HourglassError` for a failure of the machine."""
    store = planned.store
    candidate_cells = list(own_cells(planned, candidate))
    cells = {cell.key: cell for cell in candidate_cells} | {
        cell.key: cell for part in planned.parts.values() for cell in part.planned
    }
    own_keys = {cell.key for cell in candidate_cells}
    _link_stored([key for key in cells if key not in own_keys], store.runs)
    tasks = [runs.task(cell, store) for key, cell in cells.items() if not store.done(key)]
    repeated = {cell.key: cell for cell in (candidate_cells[0], candidate_cells[-1])}
    tasks += [_repeated(runs.task(cell, store)) for cell in repeated.values()]
    at_once = min(jobs, len(tasks))
    progress.begin(0, len(tasks), at_once)
    failures: dict[str, str] = {}

    def finished(key: str, failure: str | None) -> None:
        if failure is not None:
            failures[key] = failure
        progress.done(cells[key.removeprefix(AGAIN)].name, failure)

    workers.limits = pool.Limits(time.monotonic() + limit_s, STALL_S)
    in_time = workers.run(tasks, at_once, finished)
    _store_new([key for key in cells if key not in own_keys and store.done(key)], store.runs)
    for key in [key for key in cells if key in failures] + [key for key in failures if key not in cells]:
        _raise(planned, cells[key.removeprefix(AGAIN)], key, failures[key], key.removeprefix(AGAIN) in own_keys)
    if not in_time:
        raise CandidateError("score-late", f"its runs take longer than {limit_s:g} s")
    for cell in candidate_cells:
        if complaints := list(filter(COMPLAINT.search, _about(store.directory(cell.key))["warnings"])):
            raise CandidateError("kernel-complaint", f"the kernel reports: {complaints[0]}", cell.name, complaints)
    for cell in repeated.values():
        if _about(store.directory(cell.key))["digest"] != _about(store.directory(AGAIN + cell.key))["digest"]:
            reason = "a repeated run has other records: it reads something outside of the guest"
            raise CandidateError("not-repeatable", reason, cell.name)
    return len(own_keys)


def own_cells(planned: StudyRuns, candidate: str) -> Iterator[GridCell]:
    """Yield the runs with the candidate, in the study's order."""
    for part in planned.parts.values():
        for cell in part.planned:
            if part.grid.column(cell.assignment) == candidate:
                yield cell


def _repeated(task: pool.Task) -> pool.Task:
    place = Path(task["place"])
    return task | {"key": AGAIN + task["key"], "place": str(place.with_name(AGAIN + place.name))}


def _raise(planned: StudyRuns, cell: GridCell, key: str, reason: str, is_own: bool) -> None:
    """Raise the error for a failed run."""
    code, log = planned.store.failure_code(key), planned.store.log(key)
    text = log.read_text(errors="replace") if log.is_file() else ""
    if not is_own or not code or code in ENVIRONMENT or NO_INIT in text:
        raise HourglassError(f"{cell.name}: {reason}")
    raise CandidateError(code, reason, cell.name, text.splitlines()[-TAIL_LINES:])


def _about(directory: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((directory / RUN_FILE).read_text("utf-8"))
    return data


def _stored() -> Path:
    """Return the folder of the rivals' runs."""
    return directories.cache() / "score"


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder of the runs. Without `keep` it is a hidden one, deleted afterwards."""
    if keep is not None:
        (keep / "runs").mkdir(parents=True, exist_ok=True)
        yield keep
        return
    _stored().mkdir(parents=True, exist_ok=True)
    for folder in _stored().glob(".*-*"):  # of processes that were killed
        if not Path("/proc", folder.name[1:].partition("-")[0]).exists():
            files.delete(folder)
    with tempfile.TemporaryDirectory(prefix=f".{os.getpid()}-", dir=_stored(), ignore_cleanup_errors=True) as name:
        (Path(name) / "runs").mkdir()
        yield Path(name)


def _link_stored(keys: Sequence[str], folder: Path) -> None:
    """Link stored runs of rivals into the folder of runs."""
    for key in keys:
        if (stored := _stored() / key).is_dir() and not (folder / key).exists():
            (folder / key).symlink_to(stored)


def _store_new(keys: Sequence[str], folder: Path) -> None:
    """Store new runs of rivals. Another process may store the same run at the same time: its bytes are equal."""
    for key in keys:
        if (folder / key).is_symlink() or (_stored() / key).exists():
            continue
        with tempfile.TemporaryDirectory(prefix=f".{os.getpid()}-", dir=_stored()) as name:
            shutil.copytree(folder / key, Path(name) / key)
            try:
                (Path(name) / key).rename(_stored() / key)
            except OSError:  # stored just now by another process
                continue
