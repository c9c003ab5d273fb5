# SPDX-License-Identifier: Apache-2.0
"""Judge bounds by the figures of a run. A bound on a figure that the run lacks is missed, with the reason."""

from collections.abc import Mapping, Sequence

from hourglass.contract import bounds, names
from hourglass.contract.bounds import Bound
from hourglass.contract.figures import Figure, figures
from hourglass.contract.summary import CheckVerdict, Summary
from hourglass.errors import InputError, closest


def judge(requested: Sequence[Bound], summary: Summary) -> list[CheckVerdict]:
    """Return the verdicts, in the order of the bounds. A bound of several figures has a verdict for each."""
    available = list(figures(summary)) if requested else []
    return [check for bound in requested for check in _judge(bound, available)]


def judge_stored(checks: Mapping[str, str], summary: Summary) -> list[CheckVerdict]:
    """Return the verdicts of a scenario's `[check]`. A bound of an older version that this version cannot read is
    missed."""
    verdicts: list[CheckVerdict] = []
    for name, text in checks.items():
        try:
            verdicts += judge([bounds.parse(name, text)], summary)
        except InputError as error:
            verdicts.append(CheckVerdict(figure=name, bound=text, value=None, unit="", ok=False, reason=error.allowed))
    return verdicts


def _judge(bound: Bound, available: Sequence[Figure]) -> list[CheckVerdict]:
    matches = names.matching(bound.name, available)
    if not matches:
        guess = closest(bound.name, [figure.name for figure in available])
        reason = f"this run lacks this figure. {guess}".strip()
        return [CheckVerdict(figure=bound.name, bound=bound.text, value=None, unit=bound.unit, ok=False, reason=reason)]
    return [
        CheckVerdict(
            figure=figure.name,
            bound=bound.text,
            value=figure.value,
            unit=figure.unit,
            ok=bound.holds(figure.value),
            reason=unknown_reason(figure, available) if figure.value is None else "",
        )
        for figure in matches
    ]


def unknown_reason(figure: Figure, available: Sequence[Figure]) -> str:
    """Return why a figure has no value: for statistics, the number of samples."""
    siblings = {sibling.path[-1]: sibling.value for sibling in available if sibling.path[:-1] == figure.path[:-1]}
    if siblings.get("n") == 0:
        lost = f", {siblings['lost']:g} lost" if siblings.get("lost") else ""
        return f"unknown: no samples{lost}"
    return "not known"
