# SPDX-License-Identifier: Apache-2.0
"""The stamp of a recorded page: when and how its results were made, and a digest of the files that decide them."""

import hashlib
import json
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STUDIES = Path(__file__).parent / "studies"
FILES = {"paper-a": "A-*.toml", "paper-b": "B-*.toml", "kernels": "kernels-*.toml", "beyond": "beyond-*.toml"}
"""By page the studies of its figures."""
SOURCES = ("src", "agent", "kernel", "scenarios", "papers")
"""The folders that decide results: a page is recorded from a commit of these."""
TEXTS = {"description", "about", "title", "source", "missed", "label"}
"""Keys of a study that decide neither runs nor verdicts."""
REASONS = {"not_run", "without"}
"""Keys of a study that decide runs, but not by their texts."""
STAMP = re.compile(
    r"^Recorded at commit (?P<commit>[0-9a-f]{8}) with Linux (?P<releases>[\d., ]+), seeds? (?P<seeds>[\d-]+)"
    r"(?:; inputs (?P<inputs>[0-9a-f]{16}))?\.$",
    re.MULTILINE,
)


def head() -> str | None:
    """Return the commit of the sources; None if they have uncommitted changes."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *SOURCES], check=False).returncode:
        return None
    return subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()


def stamped(text: str, commit: str, releases: Sequence[str], seeds: str, inputs: str | None) -> str:
    """Return a page with the stamp below its title, instead of an older one."""
    stamp = f"Recorded at commit {commit[:8]} with Linux {', '.join(releases)}, seed{'s' if '-' in seeds else ''} "
    stamp += f"{seeds}{f'; inputs {inputs}' if inputs else ''}."
    before, title, remainder = re.split(r"^(# .*\n)", STAMP.sub("", text), maxsplit=1, flags=re.MULTILINE)
    return f"{before}{title}\n{stamp}\n\n{remainder.lstrip()}"


def digest(data: dict[str, Any]) -> str | None:
    """Return the digest of a page's files; None without files."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16] if data else None


def content(studies: Iterable[Path]) -> dict[str, Any]:
    """Return the content of studies and of the files that they name, by file; comments and texts are left out."""
    todo, data = list(studies), dict[str, Any]()
    while todo:
        path = todo.pop()
        if path.name not in data:
            data[path.name] = _without_texts(tomllib.loads(path.read_text()))
            todo += _referenced(path, data[path.name])
    return data


def _without_texts(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            key: (list(value) if isinstance(value, dict) else True) if key in REASONS else _without_texts(value)
            for key, value in data.items()
            if key not in TEXTS
        }
    return [_without_texts(value) for value in data] if isinstance(data, list) else data


def _referenced(path: Path, data: Any) -> Iterator[Path]:
    """Yield the files of scenarios and studies that the data of a file name."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, dict | list):
            yield from _referenced(path, value)
        elif key == "use":
            yield path.with_name(f"{str(value).split('.')[0]}.toml")
        elif isinstance(value, str) and value.endswith(".toml"):
            yield path.parent / value


def of_page(name: str) -> dict[str, Any]:
    """Return the content of the files that decide a page of the papers."""
    return content(sorted(STUDIES.glob(FILES[name])))


def kernels(data: dict[str, Any]) -> set[str]:
    """Return the names of the kernels in a page's files."""
    lists = re.findall(r'"kernel": (?:"([\d.]+)"|\[([^]]*)\])', json.dumps(data))
    return {name for pair in lists for name in re.findall(r"\d+\.\d+", "".join(pair))}


def seeds(data: dict[str, Any]) -> str:
    """Return the seeds of a page's files: "1-3"."""
    numbers = re.findall(r'"seeds": (\d+)', json.dumps(data))
    return f"1-{max(map(int, numbers))}"
