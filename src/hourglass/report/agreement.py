# SPDX-License-Identifier: Apache-2.0
"""`hourglass agree --page`: the table, and of each case both sides' goodput and TCP RTT over time on one axis. One
file, no script."""

import html
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from hourglass.errors import InputError
from hourglass.results.agree import Result
from hourglass.results.recording import Recording
from hourglass.results.series import Series, Window, goodput_total, loaded_window, tcp_rtt_ms

WIDTH, HEIGHT = 520, 190
LEFT, RIGHT, TOP, BOTTOM = 52, 8, 22, 24
SIDES = (("lab", "#1f5fa8", 1.6), ("real", "#d1660a", 0.8))
STEP_S = 0.1
"""Samples are drawn as medians of so long."""

STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; } th, td { padding: .15rem .8rem .15rem 0; text-align: right; white-space: nowrap; }
th:nth-child(-n+2), td:nth-child(-n+2), td:last-child, th:last-child { text-align: left; }
th { border-bottom: 1px solid #888; } .agrees { color: #17692b; } .differs { color: #b01616; font-weight: 600; }
.undecided { color: #8a5a00; } svg { margin-right: 1rem; } h2 { margin-top: 2rem; } .lab { color: #1f5fa8; }
.real { color: #d1660a; } text { font: 11px system-ui, sans-serif; fill: #333; }
"""


def write(title: str, results: Sequence[Result], about: Mapping[str, object], path: Path) -> None:
    """Writes the page. Raises `InputError` when it cannot be written."""
    try:
        path.write_text(page(title, results, about), "utf-8")
    except OSError as error:
        raise InputError("--page", str(path), f"the page cannot be written: {error.strerror}") from error


def page(title: str, results: Sequence[Result], about: Mapping[str, object]) -> str:
    """The page."""
    lead = (f"<span class=lab>Lab</span>: Linux {about['lab']} in virtual time. <span class=real>Real</span>: engine "
            f"{about['engine']}, Linux {about['release']}, {about['machine']}. {about['made']}.")  # fmt: skip
    parts = [f"<h1>{html.escape(title)}</h1><p>{lead}</p>", _table(results)]
    for one in results:
        parts.append(f"<h2>{html.escape(one.name)}</h2>")
        parts += [_chart(one, "goodput of all flows, Mbit/s", _goodput), _chart(one, "TCP RTT, ms", _rtt)]
        if one.causes:
            items = "".join(f"<li>{html.escape(cause)}</li>" for cause in one.causes)
            parts.append(f"<p>What differs beside the figures:</p><ul>{items}</ul>")
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
    return f"{head}<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"


def _table(results: Sequence[Result]) -> str:
    names = ("case", "figure", "lab", "real", "gap, %", "95 % interval", "runs", "verdict")
    lines = ["<tr>" + "".join(f"<th>{name}</th>" for name in names) + "</tr>"]
    for one in results:
        for row in one.rows:
            span = "-" if row.interval is None else f"{row.interval[0]:+.2f} to {row.interval[1]:+.2f}"
            cells = [html.escape(row.case), html.escape(f"{row.figure}, {row.unit}"), f"{row.lab:.5g}",
                     f"{row.real:.5g}", f"{row.gap:+.2f}", span, str(row.runs)]  # fmt: skip
            told = f'<td class="{row.verdict}">{row.verdict} (±{row.tolerance:g} %)</td>'
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + told + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def _goodput(run: Recording) -> Series:
    whole = Window(0, run.end_ns)
    return goodput_total(run, list(run.flows), whole)


def _rtt(run: Recording) -> Series:
    return tcp_rtt_ms(run).within(loaded_window(run))


def _chart(one: Result, title: str, series: Callable[[Recording], Series]) -> str:
    """Both sides' runs as lines; nothing where no run has samples."""
    drawn = [
        (colour, width, *_steps(series(run)))
        for (side, colour, width), runs in zip(SIDES, (one.lab, one.real), strict=True)
        for run in runs
        if run.flows
    ]
    values = np.concatenate([values for *_, values in drawn]) if drawn else np.empty(0)
    if values.size == 0:
        return ""
    end_s, top = max(float(times.max()) for _, _, times, _ in drawn if times.size), _round_up(float(values.max()))
    wide, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    lines = []
    for colour, width, times, values in sorted(drawn, key=lambda line: line[1]):
        points = " ".join(
            f"{LEFT + wide * t / end_s:.1f},{TOP + high * (1 - v / top):.1f}"
            for t, v in zip(times, values, strict=True)
        )
        lines.append(f'<polyline fill="none" stroke="{colour}" stroke-width="{width}" points="{points}"/>')
    axis = f'<path d="M{LEFT} {TOP}V{TOP + high}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>'
    marks = "".join(
        f'<text x="{LEFT - 5}" y="{TOP + high * (1 - part) + 4:.0f}" text-anchor="end">{top * part:g}</text>'
        for part in (0, 0.5, 1)
    )
    marks += f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{end_s:.3g} s</text>'
    marks += f'<text x="{LEFT}" y="14">{html.escape(title)}</text>'
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{html.escape(title)}">{axis}{marks}{"".join(lines)}</svg>'


def _steps(series: Series) -> tuple[np.ndarray, np.ndarray]:
    """Times and medians of spans of `STEP_S`."""
    there = ~np.isnan(series.values)
    times, values = series.t_s[there], series.values[there]
    places = np.floor(times / STEP_S).astype(int)
    spans = np.unique(places)
    medians = np.array([np.median(values[places == place]) for place in spans])
    return (spans + 0.5) * STEP_S, medians


def _round_up(most: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return 1.0
    power = 10.0 ** np.floor(np.log10(most))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= most))
