# SPDX-License-Identifier: Apache-2.0
"""The roots that a scenario's programs are taken from, as a plan names them."""

from hourglass.contract.plan_apps import Root
from hourglass.scenario.app import App
from hourglass.scenario.app_values import DEBIAN_ROOT, HOST_ROOT
from hourglass.scenario.model import Scenario

ARCHIVES = (".tar", ".tar.gz", ".tgz")
"""How the name of an image archive ends; everything else is a folder."""


def root_name(scenario: Scenario, app: App) -> str:
    """A program's root, as the scenario writes it."""
    return app.root or scenario.apps.root


def root_names(scenario: Scenario) -> list[str]:
    """Each root once, in the order of the programs."""
    return list(dict.fromkeys(root_name(scenario, one) for one in scenario.app))


def roots(scenario: Scenario) -> list[Root]:
    """The roots, in the order of their names."""
    return [_root(scenario, name) for name in root_names(scenario)]


def _root(scenario: Scenario, name: str) -> Root:
    """Of the host's own, `packages` are the programs that are run."""
    if name.startswith(DEBIAN_ROOT):
        return Root(kind="debian", place=name.removeprefix(DEBIAN_ROOT), packages=list(scenario.apps.packages))
    if name == HOST_ROOT:
        run = sorted({one.command[0] for one in scenario.app if root_name(scenario, one) == name})
        return Root(kind="host", place=name, packages=run)
    return Root(kind="archive" if name.endswith(ARCHIVES) else "folder", place=name, packages=[])
