# SPDX-License-Identifier: Apache-2.0
"""Executes the pages' pieces in one folder and says what each should look like."""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import hourglass
from hourglass import scenario
from hourglass.campaign import file as sweep_file
from hourglass.cli.errors import guarded
from hourglass.engine import root
from hourglass.engine.kernel import store
from hourglass.errors import InputError

from .figures import cell, figure, written
from .output import agrees, difference, renewed
from .pages import PAGES, ROOT, Piece, pieces

RELEASE = re.compile(r"Linux (\d+\.\d+)(\.\d+-hourglass)")

ERROR = "hourglass: error:"
PROGRESS = re.compile(r"^hourglass: (?!error|internal|warning|interrupted).*\n", re.MULTILINE)
"""What a run says on stderr as it goes, whenever the wall clock has it."""


@dataclass
class Finding:
    """A piece of a page that is not what it should be. `fresh`: what to write there, None where a person must.
    `failed`: it could not even be executed."""

    piece: Piece
    about: str
    group: str = ""
    fresh: str | None = None
    failed: bool = False


@dataclass
class Play:
    """One reading of all pages."""

    folder: Path
    findings: list[Finding] = field(default_factory=list)
    snippets: dict[Path, dict[str, Any]] = field(default_factory=dict)
    printed: str | None = None
    """By the snippet just before."""

    def all(self) -> list[Finding]:
        """Executes first, looks up figures afterwards: a page may name a figure before the command that gives it."""
        with _environment(self.folder):
            everything = [piece for page in PAGES for piece in pieces(page)]
            late = ("figure", "picture")
            for piece in sorted(everything, key=lambda piece: piece.kind in late):
                self.one(piece)
        return self.findings

    def one(self, piece: Piece) -> None:
        todo: dict[str, Callable[[Piece], None]] = {
            "console": self._console,
            "sh": self._commands,
            "python": self._python,
            "text": self._text,
            "toml": self._toml,
            "rows": self._rows,
            "figure": self._figure,
            "picture": self._picture,
            "tools": self._tools,
        }
        try:
            todo[piece.kind](piece)
        except Exception as error:
            self.findings.append(Finding(piece, f"{type(error).__name__}: {error}", failed=True))

    def _console(self, piece: Piece) -> None:
        """A command begins with `$ `; it goes on while a line ends with a backslash, a bar or `do`, or begins `> `."""
        parts = re.split(r"^\$ ((?:.*(?:\\|\||\bdo)\n|.*\n(?=> ))*.*\n)", piece.body, flags=re.MULTILINE)
        fresh = parts[0]
        for command, shown in zip(parts[1::2], parts[2::2], strict=True):
            status, printed = execute(re.sub(r"^> ", "", command, flags=re.MULTILINE).strip())
            if status != (InputError.status if ERROR in shown else 0):
                raise ValueError(f"`{command.strip()}` ended with {status}:\n{printed}")
            fresh += f"$ {command}" + self._compared(piece, shown, printed)
        if fresh != piece.body:
            self._stale(piece, piece.body, fresh, piece.body_group)

    def _compared(self, piece: Piece, shown: str, printed: str) -> str:
        """What the page should show of an output. A command without output on the page prints what it likes."""
        fresh = renewed(shown, printed)
        if shown.strip() and not agrees(fresh, printed):
            self.findings.append(Finding(piece, f"not to be found in the output:\n{difference(fresh, printed)}"))
        gap = shown[len(shown.rstrip("\n")) + 1 :]
        return fresh if fresh == shown else fresh.rstrip("\n") + "\n" + gap

    def _commands(self, piece: Piece) -> None:
        for line in re.sub(r"\\\n", "", piece.body).splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["hourglass"]:
                parse(words[1:])
            elif words[:1] == ["make"] and not re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.M):
                raise ValueError(f"no target {words[1]} in Makefile")

    def _python(self, piece: Piece) -> None:
        out, self.printed = io.StringIO(), None
        if piece.match["file"]:
            Path(piece.match["file"]).write_text(piece.body)
            return
        with contextlib.redirect_stdout(out):
            exec(compile(piece.body, piece.place, "exec"), self.snippets.setdefault(piece.page, {}))
        self.printed = out.getvalue()

    def _text(self, piece: Piece) -> None:
        """A snippet's output, where the fence follows one."""
        if self.printed is None:
            return
        printed, self.printed = self.printed, None
        fresh = self._compared(piece, piece.body, printed)
        if fresh != piece.body:
            self._stale(piece, piece.body, fresh, "body")

    def _toml(self, piece: Piece) -> None:
        if piece.match["file"] is None:
            return
        place = Path(piece.match["file"])
        place.write_text(piece.body)
        (sweep_file.read if "[axes]" in piece.body else scenario.load)(str(place))

    def _rows(self, piece: Piece) -> None:
        """A run for each row below the head; the last cell is made of its figures."""
        head, line, *rows = piece.match["table"].splitlines(keepends=True)
        fresh = head + line
        for number, row in enumerate(rows):
            cells = row.strip().strip("|").split(" | ")
            run = Path(f"runs/{piece.place.replace(':', '-')}-{number}")
            command = piece.match["command"].format(cells[0].strip().strip("`"))
            status, printed = execute(f"{command} --no-picture --out {run}")
            if status:
                raise ValueError(f"`{command}` ended with {status}:\n{printed}")
            cells[-1] = cell(piece.match["cell"], run)
            fresh += f"| {' | '.join(text.strip() for text in cells)} |\n"
        if fresh != piece.match["table"]:
            self._stale(piece, piece.match["table"], fresh, "table")

    def _figure(self, piece: Piece) -> None:
        shown, run, key = (piece.match[group] for group in ("number", "run", "figure"))
        fresh = written(figure(run, key), shown)
        if fresh != shown:
            self.findings.append(Finding(piece, f"{shown} is {fresh} ({run} {key})", "number", fresh))

    def _picture(self, piece: Piece) -> None:
        """Bytes differ from one matplotlib to the next: what can be compared is that both are pictures of a size."""
        from matplotlib.image import imread

        there = piece.page.parent / piece.match["picture"]
        made = imread(piece.match["drawn"])
        if not there.exists() or imread(there).shape != made.shape:
            self.findings.append(Finding(piece, f"{there} is of another size than {piece.match['drawn']}"))

    def _tools(self, piece: Piece) -> None:
        shown, here = piece.match["tools"], root.tools_key(wifi=True)
        if shown != here:
            self.findings.append(Finding(piece, f"made with the tools {shown}, these are {here}", "tools", here))

    def _stale(self, piece: Piece, shown: str, fresh: str, group: str) -> None:
        self.findings.append(Finding(piece, difference(shown, fresh), group, fresh))


def elsewhere() -> str | None:
    """How the machine's kernels and tools differ from those the pages were made with, so that its records are others;
    None when they do not."""
    text = "".join(page.read_text() for page in PAGES)
    shown = {version: version + patch for version, patch in RELEASE.findall(text)}
    here = {version: store.ensure(version).release for version in shown}
    differ = [f"Linux {release} (here {here[v]})" for v, release in sorted(shown.items()) if here[v] != release]
    tools = [one.match["tools"] for page in PAGES for one in pieces(page) if one.kind == "tools"]
    differ += [f"tools {one}" for one in tools if one != root.tools_key(wifi=True)]
    return f"the pages were made with {', '.join(differ)}" if differ else None


def execute(command: str) -> tuple[int, str]:
    """Runs a command line: its exit status and what it prints, on stdout alone when it ends well.

    Hourglass runs in this process, which saves its start; what is more than one such command goes to the shell."""
    if command.startswith("hourglass ") and not re.search(r"[|;<>&*$\n]", re.sub(r"'[^']*'|\"[^\"]*\"", "", command)):
        out, errors = io.StringIO(), io.StringIO()
        before = signal.getsignal(signal.SIGTERM)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = guarded(shlex.split(command)[1:])
        signal.signal(signal.SIGTERM, before)
        printed, said = out.getvalue(), errors.getvalue()
    else:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
        status, printed, said = done.returncode, done.stdout, done.stderr
    return status, printed if status == 0 else printed + PROGRESS.sub("", said)


def parse(words: list[str]) -> None:
    """Whether the command line knows this command, its options and arguments. Raises click's errors."""
    from typer.main import get_command

    from hourglass.cli.app import app

    command: Any = get_command(app)
    while hasattr(command, "commands"):
        name, *words = words
        command = command.commands[name]
    command.make_context(name, words)


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """As a reader at a terminal of 80 columns: `hourglass` is on the search path, the current folder is empty."""
    before = dict(os.environ)
    package = Path(hourglass.__file__).parents[1]
    os.environ |= {
        "COLUMNS": "80",
        "POLARS_TABLE_WIDTH": "100",
        "PATH": f"{Path(sys.executable).parent}:{before['PATH']}",
        "PYTHONPATH": str(package),
        "PYTEST_PLUGINS": "" if entry_points(group="pytest11", name="hourglass") else "hourglass.testing.plugin",
    }
    os.environ.pop("HOURGLASS_DEBUG", None)
    try:
        with contextlib.chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ |= before
