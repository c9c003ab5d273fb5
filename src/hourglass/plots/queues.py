# SPDX-License-Identifier: Apache-2.0
"""One run's queues and sockets on a shared axis: packets waiting at each device, bytes below TCP against the limit of
TCP Small Queues and the term that gives it, cwnd and RTT of one flow, and BBR's phases as a strip.

Sockets are those of the first flow: four saw teeth over each other show nothing.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from hourglass.errors import InputError
from hourglass.plots import style
from hourglass.results.frames import of
from hourglass.results.phases import PHASES
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, US_PER_MS
from hourglass.results.stats import Floats

TERMS = {"floor": style.ORANGE, "rate": style.GREEN, "cap": style.VERMILION, "bytes": style.PURPLE, "off": style.MUTED}
"""Which term of the limit decides, and its colour."""
PHASE_COLOURS = dict(zip(PHASES, (style.VERMILION, style.ORANGE, style.SKY, style.BLACK), strict=True))
POINTS = 3000
KIB = 1024


def queues(run: Recording, path: Path) -> None:
    """Draws the run into `path` (.png or .svg). Raises `InputError` when it has samples of neither queues nor TCP."""
    sender = _thinned(run.tcp.filter(of(*run.flows[:1]) & pl.col("sender")).sort("t_ns"))
    panels = [_queues] if not run.queues.is_empty() else []
    if not sender.is_empty():
        panels += [_small_queues] if _has(sender, "tsq_limit", "sk_wmem_alloc") else []
        panels += [_cwnd] if _has(sender, "snd_cwnd") else []
    if not panels:
        raise InputError("RUN", str(run.path), "has no samples of queues or sockets: set measure.tcp above 0")
    strip = _has(sender, "bbr_phase") and sender["bbr_phase"].null_count() < sender.height
    heights = [*([0.16] if strip else []), *[1.0] * len(panels)]
    with style.figure(9, 0.8 + 2.1 * sum(heights), path) as figure:
        rows = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        if strip:
            _phases(rows[0], sender)
        for axes, panel in zip(rows[len(heights) - len(panels) :], panels, strict=True):
            panel(axes, run, sender)
        rows[-1].set_xlim(0, run.end_ns / NS_PER_S)
        rows[-1].set_xlabel("test time (s)")
        style.headline(figure, f"{run.name}  ·  Linux {run.info.kernel.release}")
        figure.align_ylabels(list(rows))


def _has(frame: pl.DataFrame, *columns: str) -> bool:
    return all(column in frame.columns and frame[column].null_count() < frame.height for column in columns)


def _thinned(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.gather_every(max(1, frame.height // POINTS))


def _values(frame: pl.DataFrame, column: str, divisor: float = 1) -> Floats:
    return frame[column].cast(pl.Float64).fill_null(float("nan")).to_numpy() / divisor


def _t_s(frame: pl.DataFrame) -> Floats:
    return _values(frame, "t_ns", NS_PER_S)


def _queues(axes: Axes, run: Recording, sender: pl.DataFrame) -> None:
    """Bytes in the qdisc, TXQ and ring of each device that ever held 1 % of the fullest."""
    waiting = run.queues.with_columns(pl.sum_horizontal("qdisc_bytes", "txq_bytes", "ring_bytes").alias("bytes"))
    fullest = waiting.group_by("node", "device", maintain_order=True).agg(pl.col("bytes").max())
    shown = fullest.filter(pl.col("bytes") * 100 >= pl.col("bytes").max())
    for number, (node, device, _) in enumerate(shown.iter_rows()):
        rows = _thinned(waiting.filter((pl.col("node") == node) & (pl.col("device") == device)).sort("t_ns"))
        axes.plot(_t_s(rows), _values(rows, "bytes", KIB), linewidth=1.1, label=f"{node}:{device}",
                  color=style.FLOWS[number % len(style.FLOWS)])  # fmt: skip
    axes.set_ylabel("qdisc, TXQ, ring (KiB)")
    axes.set_ylim(bottom=0)
    _legend(axes)


def _small_queues(axes: Axes, run: Recording, sender: pl.DataFrame) -> None:
    """Truesize below the first flow's socket, and the limit in the colour of its term."""
    t_s = _t_s(sender)
    name = run.flows[0].name
    axes.fill_between(t_s, _values(sender, "sk_wmem_alloc", KIB), color=style.BLUE, alpha=0.35, linewidth=0,
                      label=f"{name} below TCP")  # fmt: skip
    limits = _values(sender, "tsq_limit", KIB)
    terms = sender["tsq_term"].to_numpy() if "tsq_term" in sender.columns else np.full(len(t_s), None)
    top = np.nanmax(_values(sender, "sk_wmem_alloc", KIB), initial=1) * 3
    for term, colour in TERMS.items():
        if (mine := terms == term).any():
            line = np.where(mine & (limits <= top), limits, np.nan)
            axes.plot(t_s, line, color=colour, linewidth=1.6, label=f"limit: {term}")
    axes.set_ylabel("below TCP (KiB)")
    axes.set_ylim(bottom=0)
    _legend(axes)


def _cwnd(axes: Axes, run: Recording, sender: pl.DataFrame) -> None:
    """cwnd in segments left, the sender's smoothed RTT right."""
    axes.plot(_t_s(sender), _values(sender, "snd_cwnd"), color=style.BLUE, linewidth=1.1, label="cwnd")
    axes.set_ylabel("cwnd (segments)", color=style.BLUE)
    axes.set_ylim(bottom=0)
    right = axes.twinx()
    rtt = _values(sender, "rtt", US_PER_MS)
    right.plot(_t_s(sender), np.where(rtt > 0, rtt, np.nan), color=style.GREEN, linewidth=1.1, label="RTT")
    right.set_ylabel("TCP RTT (ms)", color=style.GREEN)
    right.set_ylim(bottom=0)
    right.grid(visible=False)
    right.spines["right"].set_visible(True)


def _phases(axes: Axes, sender: pl.DataFrame) -> None:
    """BBR's phase of the first flow as coloured spans."""
    for phase, start_s, end_s in _spans(sender):
        axes.axvspan(start_s, end_s, color=PHASE_COLOURS[phase], linewidth=0)
    axes.set_yticks([])
    axes.set_ylabel("BBR", rotation=0, ha="right", va="center")
    axes.grid(visible=False)
    axes.tick_params(axis="x", length=0)
    handles = [Patch(facecolor=colour, label=phase) for phase, colour in PHASE_COLOURS.items()]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.1,
                handlelength=1.0, handleheight=0.8)  # fmt: skip


def _spans(sender: pl.DataFrame) -> Iterator[tuple[str, float, float]]:
    """(phase, start, end) of neighbouring samples in one phase, s."""
    rows = sender.select("t_ns", pl.col("bbr_phase").cast(pl.String).alias("phase")).with_columns(
        pl.col("phase").rle_id().alias("span")
    )
    starts = rows.group_by("span", maintain_order=True).agg(pl.col("t_ns").first(), pl.col("phase").first())
    ends = [*starts["t_ns"][1:], rows["t_ns"][-1]]
    for (_, start_ns, phase), end_ns in zip(starts.iter_rows(), ends, strict=True):
        if phase is not None:
            yield phase, start_ns / NS_PER_S, end_ns / NS_PER_S


def _legend(axes: Axes) -> None:
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)
