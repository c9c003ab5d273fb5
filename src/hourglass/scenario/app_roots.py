# SPDX-License-Identifier: Apache-2.0
"""The root file systems of a scenario's programs, as a plan names them."""

from hourglass.contract.plan.apps import Root
from hourglass.scenario.app_values import DEBIAN_ROOT, HOST_ROOT
from hourglass.scenario.apps import App
from hourglass.scenario.scenario_model import Scenario

ARCHIVES = (".tar", ".tar.gz", ".tgz")
"""The suffix of an image archive; any other path is a folder."""


def root_name(scenario: Scenario, app: App) -> str:
    """A program's root, as the scenario has it."""
    return app.root or scenario.apps.root


def root_names(scenario: Scenario) -> list[str]:
    """Return each root once, in the order of the programs."""
    return list(dict.fromkeys(root_name(scenario, app) for app in scenario.app))


def mounted_folders(scenario: Scenario) -> list[str]:
    """Return each folder that is mounted once, in the order of the programs."""
    return list(dict.fromkeys(folder for app in scenario.app for folder in app.mounts.values()))


def roots(scenario: Scenario) -> list[Root]:
    """Return the roots, in the order of `root_names`, and then the folders that are mounted."""
    folders = [Root(kind="mount", place=name, packages=[]) for name in mounted_folders(scenario)]
    return [*(_root(scenario, name) for name in root_names(scenario)), *folders]


def _root(scenario: Scenario, name: str) -> Root:
    """Of the host's root, `packages` are the programs that run from it."""
    if name.startswith(DEBIAN_ROOT):
        return Root(kind="debian", place=name.removeprefix(DEBIAN_ROOT), packages=list(scenario.apps.packages))
    if name == HOST_ROOT:
        programs = sorted({app.command[0] for app in scenario.app if root_name(scenario, app) == name})
        return Root(kind="host", place=name, packages=programs)
    return Root(kind="archive" if name.endswith(ARCHIVES) else "folder", place=name, packages=[])
