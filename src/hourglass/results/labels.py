# SPDX-License-Identifier: Apache-2.0
"""What to call runs that stand side by side: by the keys of their scenarios that tell them apart."""

from collections.abc import Sequence

from hourglass.results.recording import Recording

MOST_KEYS = 2
"""More differing keys than this make no label; the run's directory does."""

SAID_OTHERWISE = ("name", "description")


def labels(runs: Sequence[Recording]) -> list[str]:
    """One label per run: the scenario's name where the names differ, else the differing keys ("tsq=off")."""
    names = [run.name for run in runs]
    if len(set(names)) == len(runs):
        return names
    tellings = told(runs)
    shared = len(set(names)) == 1
    found = [", ".join(parts if shared else [name, *parts]) for name, parts in zip(names, tellings, strict=True)]
    if len(set(found)) == len(runs) and max(map(len, tellings)) <= MOST_KEYS:
        return found
    return [run.path.resolve().name for run in runs]


def told(runs: Sequence[Recording]) -> list[list[str]]:
    """Of each run the keys of its scenario that are not the same in all, as "key=value" with the key's last word."""
    flat = [{key: str(value) for key, value in run.experiment.settings.items()} for run in runs]
    keys = [key for key in dict.fromkeys(key for one in flat for key in one) if key[0] not in SAID_OTHERWISE]
    differing = [key for key in keys if any(one.get(key) != flat[0].get(key) for one in flat)]
    return [[f"{key[-1]}={one.get(key, '-')}" for key in differing] for one in flat]
