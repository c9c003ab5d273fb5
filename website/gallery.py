# SPDX-License-Identifier: Apache-2.0
"""The gallery: runs that `docs/gallery/gallery.toml` declares, a report and a picture of each entry."""

import shlex
import tomllib
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from pydantic import BaseModel, ConfigDict, Field

import hourglass
from hourglass import runner, scenario
from hourglass.plots import KINDS

FILE = Path(__file__).parents[1] / "docs" / "gallery" / "gallery.toml"


class Run(BaseModel):
    """A run of an entry: a built-in scenario, its settings, and a kernel other than the scenario's."""

    model_config = ConfigDict(extra="forbid")

    scenario: str
    set: list[str] = []
    kernel: str | None = None

    @property
    def command(self) -> str:
        """The command that makes the same run."""
        settings = [word for setting in self.set for word in ("--set", setting)]
        kernel = ["--kernel", self.kernel] if self.kernel else []
        return shlex.join(["hourglass", "run", self.scenario, *kernel, *settings])


class Entry(BaseModel):
    """An entry of the gallery. `plot`: the kind of its picture."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(pattern="^[a-z-]+$")
    title: str
    about: str
    plot: str
    runs: list[Run] = Field(min_length=1)


def entries() -> list[Entry]:
    """Return the entries of the gallery, in order."""
    return [Entry.model_validate(entry) for entry in tomllib.loads(FILE.read_text())["entry"]]


def build(store: Path, out: Path) -> None:
    """Write NAME.html and NAME.png of each entry to the folder `out`. `store` keeps the runs for the next build."""
    out.mkdir(parents=True, exist_ok=True)
    for entry in entries():
        print(f"gallery: {entry.name}", flush=True)
        scenarios = [scenario.load(run.scenario, run.set, kernel=run.kernel) for run in entry.runs]
        runs = [runner.run_once(each, store) for each in scenarios]
        hourglass.write_report(runs, out / f"{entry.name}.html")
        hourglass.plot(entry.plot, runs, out=out / f"{entry.name}.png")


class Gallery(Directive):  # type: ignore[misc]  # docutils has no types
    """`{gallery}`: a section for each entry. The pictures and links are absent in a build without runs."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        reports = self.state.document.settings.env.config.gallery is not None
        return [section(entry, reports) for entry in entries()]


def section(entry: Entry, reports: bool) -> nodes.section:
    """Return an entry as a section: picture, text and commands."""
    result = nodes.section(ids=[nodes.make_id(entry.name)])
    result += nodes.title(text=entry.title)
    result += nodes.paragraph(text=entry.about)
    if reports:
        result += nodes.raw("", picture(entry), format="html")
    commands = "\n".join(run.command for run in entry.runs)
    result += nodes.literal_block(commands, commands, language="sh")
    return result


def picture(entry: Entry) -> str:
    """Return the HTML of the picture that leads to the report."""
    alternative = escape(f"{entry.title}: {KINDS[entry.plot].description}. Opens the report.")
    image = f'<img src="{entry.name}.png" alt="{alternative}" loading="lazy">'
    return f'<p class="gallery"><a href="{entry.name}.html">{image}</a></p>'
