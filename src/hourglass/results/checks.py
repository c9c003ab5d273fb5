# SPDX-License-Identifier: Apache-2.0
"""Bounds judged by the figures of a run. What a run cannot tell is a bound missed, with the reason, never one kept."""

from collections.abc import Mapping, Sequence

from hourglass.contract import bounds, names
from hourglass.contract.bounds import Bound
from hourglass.contract.figures import Figure, figures
from hourglass.contract.summary import Check, Summary
from hourglass.errors import InputError, closest


def judge(wanted: Sequence[Bound], summary: Summary) -> list[Check]:
    """The verdicts, in the order of the bounds; a bound without keys has one for each figure that it stands for."""
    known = list(figures(summary)) if wanted else []
    return [check for bound in wanted for check in _judge(bound, known)]


def judge_stored(checks: Mapping[str, str], summary: Summary) -> list[Check]:
    """The same of a scenario's `[check]`. A bound that this version cannot read, of an older one's run, is missed."""
    found: list[Check] = []
    for name, text in checks.items():
        try:
            found += judge([bounds.parse(name, text)], summary)
        except InputError as error:
            found.append(Check(figure=name, bound=text, value=None, unit="", ok=False, reason=error.allowed))
    return found


def _judge(bound: Bound, known: Sequence[Figure]) -> list[Check]:
    found = names.matching(bound.name, known)
    if not found:
        guess = closest(bound.name, [one.name for one in known])
        reason = f"this run has no such figure. {guess}".strip()
        return [Check(figure=bound.name, bound=bound.text, value=None, unit=bound.unit, ok=False, reason=reason)]
    return [
        Check(
            figure=one.name,
            bound=bound.text,
            value=one.value,
            unit=one.unit,
            ok=bound.holds(one.value),
            reason=why_unknown(one, known) if one.value is None else "",
        )
        for one in found
    ]


def why_unknown(figure: Figure, known: Sequence[Figure]) -> str:
    """Why a figure has no value: of statistics, how few there were to make it of."""
    beside = {one.path[-1]: one.value for one in known if one.path[:-1] == figure.path[:-1]}
    if beside.get("n") == 0:
        lost = f", {beside['lost']:g} lost" if beside.get("lost") else ""
        return f"not known: no samples{lost}"
    return "not known"
