# SPDX-License-Identifier: Apache-2.0
"""Execute the pages' pieces in one folder and report stale ones."""

import contextlib
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import hourglass
from hourglass import scenario
from hourglass.builders import root
from hourglass.builders.kernel import registry
from hourglass.cli.exit_status import guarded
from hourglass.errors import InputError
from hourglass.studies import reader as study_reader

from .figures import cell, figure, formatted
from .output import agrees, difference, updated
from .pages import PAGES, ROOT, Piece, pieces, tools

RELEASE = re.compile(r"Linux (\d+\.\d+)(\.\d+-hourglass)")

ERROR = "hourglass: error:"
PROGRESS = re.compile(r"^hourglass: (?!error|internal|warning|interrupted).*\n", re.MULTILINE)
"""Lines of a run's progress on stderr; they depend on the wall clock."""


@dataclass
class Finding:
    """A piece of a page that is wrong. `fresh`: the right text, None where a person must write it.
    `failed`: the piece could not be executed."""

    piece: Piece
    about: str
    fresh: str | None = None
    failed: bool = False


def has_target(name: str) -> bool:
    """Return whether the Makefile has a target."""
    return re.search(rf"^(?:[\w-]+ )*{name}\b[^=\n]*:", (ROOT / "Makefile").read_text(), re.M) is not None


@dataclass
class Play:
    """One reading of pages, in one folder."""

    folder: Path
    pages: Sequence[Path] = tuple(PAGES)
    findings: list[Finding] = field(default_factory=list)
    snippets: dict[Path, dict[str, Any]] = field(default_factory=dict)
    printed: str | None = None
    """The output of the snippet just before."""

    def all(self) -> list[Finding]:
        """Execute first and compare figures afterwards: a page may name a figure before the command that gives it."""
        with _environment(self.folder):
            all_pieces = [tools(), *(piece for page in self.pages for piece in pieces(page))]
            late = ("figure", "picture")
            for piece in sorted(all_pieces, key=lambda piece: piece.kind in late):
                self.play(piece)
        return self.findings

    def play(self, piece: Piece) -> None:
        """Check one piece and add what is wrong to `findings`."""
        actions: dict[str, Callable[[Piece], None]] = {
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
        if piece.kind not in actions:
            return
        try:
            actions[piece.kind](piece)
        except Exception as error:
            self.findings.append(Finding(piece, f"{type(error).__name__}: {error}", failed=True))

    def _console(self, piece: Piece) -> None:
        """Execute the commands. One begins with `$ ` and continues after a line that ends with a backslash, a bar or
        `do`, and on lines that begin with `> `."""
        parts = re.split(r"^\$ ((?:.*(?:\\|\||\bdo)\n|.*\n(?=> ))*.*\n)", piece.text, flags=re.MULTILINE)
        fresh = parts[0]
        for command, page_output in zip(parts[1::2], parts[2::2], strict=True):
            status, printed = execute(re.sub(r"^> ", "", command, flags=re.MULTILINE).strip())
            if status != (InputError.status if ERROR in page_output else 0):
                raise ValueError(f"`{command.strip()}` ended with {status}:\n{printed}")
            fresh += f"$ {command}" + self._compared(piece, page_output, printed)
        self._compare(piece, fresh)

    def _compared(self, piece: Piece, page_output: str, printed: str) -> str:
        """Return the output that the page should show. A command without output on the page prints what it likes."""
        fresh = updated(page_output, printed)
        if page_output.strip() and not agrees(fresh, printed):
            self.findings.append(Finding(piece, f"not to be found in the output:\n{difference(fresh, printed)}"))
        gap = page_output[len(page_output.rstrip("\n")) + 1 :]
        return fresh if fresh == page_output else fresh.rstrip("\n") + "\n" + gap

    def _commands(self, piece: Piece) -> None:
        if "file" in piece.details:
            Path(piece.details["file"]).write_text(piece.text)
            return
        for line in re.sub(r"\\\n", "", piece.text).splitlines():
            arguments = shlex.split(line, comments=True)
            if arguments[:1] == ["hourglass"]:
                parse(arguments[1:])
            elif arguments[:1] == ["make"] and not has_target(arguments[1]):
                raise ValueError(f"no target {arguments[1]} in Makefile")

    def _python(self, piece: Piece) -> None:
        out, self.printed = io.StringIO(), None
        if "file" in piece.details:
            Path(piece.details["file"]).write_text(piece.text)
            return
        with contextlib.redirect_stdout(out):
            exec(compile(piece.text, piece.position, "exec"), self.snippets.setdefault(piece.page, {}))
        self.printed = out.getvalue()

    def _text(self, piece: Piece) -> None:
        """Compare a snippet's output, where the fence follows a snippet."""
        if self.printed is None:
            return
        printed, self.printed = self.printed, None
        self._compare(piece, self._compared(piece, piece.text, printed))

    def _toml(self, piece: Piece) -> None:
        if "file" not in piece.details:
            return
        path = Path(piece.details["file"])
        path.write_text(piece.text)
        (study_reader.read if "[axes]" in piece.text or "[[part]]" in piece.text else scenario.load)(str(path))

    def _rows(self, piece: Piece) -> None:
        """Make a run for each row below the head; the last cell has its figures."""
        line, *rows = piece.text.splitlines(keepends=True)
        fresh = line
        for number, row in enumerate(rows):
            cells = row.strip().strip("|").split(" | ")
            run = Path(f"runs/{piece.page.stem}-{piece.line}-{number}")
            command = piece.details["command"].format(cells[0].strip().strip("`"))
            status, printed = execute(f"{command} --no-picture --out {run}")
            if status:
                raise ValueError(f"`{command}` ended with {status}:\n{printed}")
            cells[-1] = cell(piece.details["cell"], run)
            fresh += f"| {' | '.join(text.strip() for text in cells)} |\n"
        self._compare(piece, fresh)

    def _figure(self, piece: Piece) -> None:
        run, key = piece.details["run"], piece.details["key"]
        fresh = formatted(figure(run, key), piece.text)
        if fresh != piece.text:
            self.findings.append(Finding(piece, f"{piece.text} is {fresh} ({run} {key})", fresh))

    def _picture(self, piece: Piece) -> None:
        """Compare the sizes of two pictures: bytes differ from one matplotlib to the next."""
        from matplotlib.image import imread

        stored, drawn = piece.page.parent / piece.details["file"], imread(piece.details["from"])
        if not stored.exists() or imread(stored).shape != drawn.shape:
            self.findings.append(Finding(piece, f"{stored} is of another size than {piece.details['from']}"))

    def _tools(self, piece: Piece) -> None:
        key = root.tools_key(wifi=True)
        if piece.text != key:
            self.findings.append(Finding(piece, f"made with the tools {piece.text}, these are {key}", key))

    def _compare(self, piece: Piece, fresh: str) -> None:
        if fresh != piece.text:
            self.findings.append(Finding(piece, difference(piece.text, fresh), fresh))


def machine_differences() -> str | None:
    """Return how the machine's kernels and tools differ from those that made the pages, so that its records differ.
    Return None if they are the same."""
    text = "".join(page.read_text() for page in PAGES)
    releases = {version: version + patch for version, patch in RELEASE.findall(text)}
    installed = {version: registry.ensure(version).release for version in releases}
    differences = [
        f"Linux {release} (here {installed[v]})" for v, release in sorted(releases.items()) if installed[v] != release
    ]
    differences += [f"tools {tools().text}"] if tools().text != root.tools_key(wifi=True) else []
    return f"the pages were made with {', '.join(differences)}" if differences else None


def execute(command: str) -> tuple[int, str]:
    """Run a command line. Return its exit status and output; only after a failure the output includes stderr.

    Hourglass runs in this process, which saves its start. A pipeline or list of commands runs in the shell."""
    if command.startswith("hourglass ") and not re.search(r"[|;<>&*$\n]", re.sub(r"'[^']*'|\"[^\"$]*\"", "", command)):
        out, errors = captured(), captured()
        before = signal.getsignal(signal.SIGTERM)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            status = guarded(shlex.split(command)[1:])
        signal.signal(signal.SIGTERM, before)
        printed, messages = captured_text(out), captured_text(errors)
    else:
        result = subprocess.run(["bash", "-euo", "pipefail", "-c", command], capture_output=True, text=True)
        status, printed, messages = result.returncode, result.stdout, result.stderr
    return status, printed if status == 0 else printed + PROGRESS.sub("", messages)


def captured() -> io.TextIOWrapper:
    """Return a stream that stores its text as bytes, as a terminal's does: some commands write to its `buffer`."""
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)


def captured_text(stream: io.TextIOWrapper) -> str:
    """Return the text that was written to a stream of `captured`."""
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


def parse(arguments: list[str]) -> None:
    """Check the command, its options and arguments. Raises click's errors."""
    from typer.main import get_command

    from hourglass.cli.commands import app

    command: Any = get_command(app)
    while hasattr(command, "get_command"):
        name, *arguments = arguments
        command = command.get_command(None, name)
    command.make_context(name, arguments)


@contextlib.contextmanager
def _environment(folder: Path) -> Iterator[None]:
    """Set up a reader's environment: 80 columns, `hourglass` on the search path, an empty current folder."""
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
