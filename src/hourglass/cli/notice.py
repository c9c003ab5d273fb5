# SPDX-License-Identifier: Apache-2.0
"""List the code in a scenario: programs, C files for the guest's kernel, machines that ssh reaches. Report doubts about
files of other tools.

`run`, `exec` and `check` print it in one line before they run a scenario from outside the user's work. Such a file is
not in the current repository or, without a repository, not below the current folder. A home folder is never the user's
work. `show` lists it.
"""

import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hourglass import scenario as scenarios
from hourglass.scenario import Scenario
from hourglass.scenario.app_roots import root_name
from hourglass.scenario.app_values import DEBIAN_ROOT, HOST_ROOT
from hourglass.visible import visible

if TYPE_CHECKING:
    from hourglass.results.recording import Recording

NAMED = 3
"""Names in the line, before the others are counted."""
COMMAND_MAX = 200


def warn(source: str, scenario: Scenario) -> None:
    """Print the line if the scenario needs one."""
    if _is_foreign(Path(source)) and (parts := list(_parts(scenario))):
        _print(f"{source} is not from this folder: {'; '.join(parts)} (see hourglass show)")


def warn_all(sources: Iterable[str], settings: list[str]) -> None:
    """Print the line for each scenario file that needs one."""
    for source in sources:
        if source.endswith(".toml") and _is_foreign(Path(source)):
            warn(source, scenarios.load(source, settings))


def report_doubts(runs: Iterable["Recording"]) -> None:
    """Print a line for each contradiction in a file that another tool wrote."""
    for run in runs:
        for text in run.info.warnings if run.info.elsewhere else ():
            _print(f"{run.path}: {text}")


def _print(text: str) -> None:
    print(visible(f"hourglass: {text}").replace("\n", " "), file=sys.stderr, flush=True)


def lines(scenario: Scenario) -> Iterator[str]:
    """Yield a line for each program, C file and machine."""
    for app in scenario.app:
        command = shlex.join(app.command).replace("\n", "\\n")
        excerpt = command[:COMMAND_MAX] + (f"… ({len(command)} characters)" if len(command) > COMMAND_MAX else "")
        yield f"{app.node}: program {app.name} as {app.user}, in {_root(root_name(scenario, app))}: {excerpt}"
    for module in scenario.module:
        yield f"kernel: compiles {module.name} from {', '.join(module.files)}"
    for node in scenario.testbed.node:
        if node.host:
            yield f"{node.name}: ssh reaches {node.host}, and sets it up as root"


def _parts(scenario: Scenario) -> Iterator[str]:
    if scenario.app:
        users = Counter(app.user for app in scenario.app)
        roots = dict.fromkeys(_root(root_name(scenario, app)) for app in scenario.app)
        count = f"{len(scenario.app)} program{'s' if len(scenario.app) > 1 else ''}"
        yield f"it runs {count} ({_named(app.name for app in scenario.app)}) as {_named(users)}, in {_named(roots)}"
    if scenario.module:
        yield f"compiles {_named(module.name for module in scenario.module)} into the guest's kernel"
    if hosts := [node.host for node in scenario.testbed.node if node.host]:
        yield f"reaches {_named(hosts)} by ssh, and sets them up as root"


def _root(name: str) -> str:
    if name == HOST_ROOT:
        return "this machine's own files, read-only"
    return name if name.startswith(DEBIAN_ROOT) else f"the root {name}"


def _named(names: Iterator[str] | Counter[str] | dict[str, None] | list[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return f"{', '.join(listed[:NAMED])}{more}"


def _is_foreign(path: Path) -> bool:
    """Return whether a scenario is a file from outside the user's work. Built-in scenarios are not."""
    if not path.is_file():
        return False
    current = Path.cwd().resolve()
    work = next((folder for folder in (current, *current.parents) if (folder / ".git").exists()), current)
    if work == Path.home().resolve() or work == Path(work.root):
        return True
    return not path.resolve().is_relative_to(work)
