# SPDX-License-Identifier: Apache-2.0
"""List the code in a scenario: programs, C files for the guest's kernel, machines that ssh reaches. Report doubts about
files of other tools.

Each command prints it in one line before it runs a scenario from outside the user's work: a scenario file, a study or
a run directory. Such a file is not in the current repository or, without a repository, not below the current folder. A
home folder is never the user's work. `show` lists the code.
"""

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hourglass import scenario as scenarios
from hourglass.resources import SCENARIOS
from hourglass.results.run_files import SCENARIO_FILE
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
    for text in announcements([(source, scenario)]):
        _print(text)


def warn_all(sources: Iterable[str], settings: list[str]) -> None:
    """Print the line for each scenario file that needs one. Other sources are runs."""
    from hourglass.flent.read import is_flent

    for source in sources:
        if Path(source).is_file() and not is_flent(Path(source)) and _is_foreign(source):
            warn(source, scenarios.load(source, settings))


def announcements(named: Iterable[tuple[str, Scenario]], reason: str = "") -> list[str]:
    """Return a line about the code of each foreign file's scenarios. Each scenario has its file. `reason`: a file or
    run directory that leads to all of them."""
    common = reason if _is_foreign(reason) else ""
    groups: dict[str, list[Scenario]] = {}
    for source, scenario in named:
        groups.setdefault(common or source, []).append(scenario)
    texts = {source: "; ".join(_parts(group)) for source, group in groups.items() if _is_foreign(source)}
    return [
        _plain(f"{source} is not from this folder: {parts} (see hourglass show)")
        for source, parts in texts.items()
        if parts
    ]


def report_doubts(runs: Iterable["Recording"]) -> None:
    """Print a line for each contradiction in a file that another tool wrote."""
    for run in runs:
        for text in run.info.warnings if run.info.elsewhere else ():
            _print(f"{run.path}: {text}")


def _print(text: str) -> None:
    print(f"hourglass: {_plain(text)}", file=sys.stderr, flush=True)


def _plain(text: str) -> str:
    return visible(text).replace("\n", " ")


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


def _parts(scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Yield a clause for each kind of code. Code that several scenarios have counts once."""
    programs = dict.fromkeys(
        (app.name, app.user, _root(root_name(scenario, app)), tuple(app.command))
        for scenario in scenarios for app in scenario.app
    )  # fmt: skip
    if programs:
        names, users, roots, _ = zip(*programs, strict=True)
        count = f"{len(programs)} program{'s' if len(programs) > 1 else ''}"
        yield f"it runs {count} ({_named(names)}) as {_named(users)}, in {_named(roots)}"
    if modules := [module.name for scenario in scenarios for module in scenario.module]:
        yield f"compiles {_named(modules)} into the guest's kernel"
    if hosts := [node.host for scenario in scenarios for node in scenario.testbed.node if node.host]:
        yield f"reaches {_named(hosts)} by ssh, and sets them up as root"


def _root(name: str) -> str:
    if name == HOST_ROOT:
        return "this machine's own files, read-only"
    return name if name.startswith(DEBIAN_ROOT) else f"the root {name}"


def _named(names: Iterable[str]) -> str:
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return f"{', '.join(listed[:NAMED])}{more}"


def _is_foreign(source: str) -> bool:
    """Return whether a file or a run directory is from outside the user's work. Built-in scenarios are not."""
    path = Path(source)
    if not source or not (path.is_file() or (path / SCENARIO_FILE).is_file()):
        return False
    resolved, current = path.resolve(), Path.cwd().resolve()
    if resolved.is_relative_to(SCENARIOS.resolve()):
        return False
    work = next((folder for folder in (current, *current.parents) if (folder / ".git").exists()), current)
    if work == Path.home().resolve() or work == Path(work.root):
        return True
    return not resolved.is_relative_to(work)
