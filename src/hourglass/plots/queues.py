# SPDX-License-Identifier: Apache-2.0
"""Draw one run's queues and sockets on a shared axis: the queue of each device; the data below TCP with the limit of
TCP Small Queues and its deciding term; cwnd and RTT of each flow; BBR's phases as strips.

The data below TCP and its limit are those of the first flow, which the panel names. Several overlaid flows would be
unreadable.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from hourglass import series_style
from hourglass.errors import InputError
from hourglass.plots import event_marks, style
from hourglass.results import stream_styles
from hourglass.results.frames import belongs_to
from hourglass.results.phases import PHASES
from hourglass.results.recording import Recording
from hourglass.results.series import NS_PER_S, US_PER_MS
from hourglass.results.stats import Floats
from hourglass.results.stream_styles import FlowStyle

TERMS = {
    "floor": series_style.ORANGE,
    "rate": series_style.GREEN,
    "cap": series_style.VERMILION,
    "bytes": series_style.PURPLE,
    "off": style.MUTED,
}
"""The deciding terms of the limit, and their colours."""
PHASE_COLOURS = dict(
    zip(PHASES, (series_style.VERMILION, series_style.ORANGE, series_style.SKY, series_style.BLACK), strict=True)
)
POINTS = 3000
KIB = 1024
STRIPS_MAX = 4
"""The most flows whose BBR phases are drawn."""
IDLE_SHARE_MIN = 0.9
"""If at least this share of the samples has no data below TCP, a note says so."""

Senders = list[tuple[FlowStyle, pl.DataFrame]]
"""Each flow that has samples, with its sender's samples."""


def queues(run: Recording, path: Path) -> None:
    """Draw the run into `path` (.png or .svg). Raises `InputError` if it has samples of neither queues nor TCP."""
    senders = list(_senders(run))
    panels: list[Callable[[Axes, Recording, Senders], None]] = []
    panels += [_queues] if not run.queues.is_empty() else []
    if senders:
        first = senders[0][1]
        panels += [_small_queues] if _has(first, "tsq_limit", "sk_wmem_alloc") else []
        panels += [_cwnd, _rtt] if _has(first, "snd_cwnd") else []
    if not panels:
        raise InputError("RUN", str(run.path), "has no samples of queues or sockets: set measure.tcp above 0")
    strips = [pair for pair in senders if _has(pair[1], "bbr_phase")]
    shown_senders = strips[:STRIPS_MAX]
    heights = [*[0.13] * len(shown_senders), *[1.0] * len(panels)]
    with style.figure(10, 0.9 + 2.1 * sum(heights), path) as figure:
        rows = figure.subplots(len(heights), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for index, (axes, (flow, sender)) in enumerate(zip(rows, shown_senders, strict=False)):
            left_out = f" (and {len(strips) - STRIPS_MAX} more)" if len(strips) > STRIPS_MAX else ""
            _phases(axes, flow.flow.name, sender, f"BBR's phases{left_out}" if index == 0 else "")
        for axes, panel in zip(rows[len(shown_senders) :], panels, strict=True):
            panel(axes, run, senders)
        style.show_whole_run(rows[-1], run)
        rows[-1].set_xlabel("test time (s)")
        event_marks.mark(list(rows), run, numbered=False)
        style.headline(figure, f"{run.name}  ·  {run.test.name}  ·  Linux {run.info.kernel.release}")
        figure.align_ylabels(list(rows[len(shown_senders) :]))


def _senders(run: Recording) -> Iterator[tuple[FlowStyle, pl.DataFrame]]:
    samples = run.tcp.filter(belongs_to(*run.flows) & pl.col("sender")).sort("t_ns")
    parts = {part["stream"][0]: part for part in samples.partition_by("stream")}
    for drawn_flow in stream_styles.flow_styles(run):
        if drawn_flow.flow.name in parts:
            yield drawn_flow, _thinned(parts[drawn_flow.flow.name])


def _has(frame: pl.DataFrame, *columns: str) -> bool:
    return all(column in frame.columns and frame[column].null_count() < frame.height for column in columns)


def _thinned(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.gather_every(max(1, frame.height // POINTS))


def _values(frame: pl.DataFrame, column: str, divisor: float = 1) -> Floats:
    return frame[column].cast(pl.Float64).fill_null(float("nan")).to_numpy() / divisor


def _t_s(frame: pl.DataFrame) -> Floats:
    return _values(frame, "t_ns", NS_PER_S)


def _queues(axes: Axes, run: Recording, _: Senders) -> None:
    """Draw the bytes in qdisc, TXQ and ring of each device whose peak is at least 1 % of the largest peak."""
    waiting = run.queues.with_columns(pl.sum_horizontal("qdisc_bytes", "txq_bytes", "ring_bytes").alias("bytes"))
    fullest = waiting.group_by("node", "device", maintain_order=True).agg(pl.col("bytes").max())
    devices = fullest.filter(pl.col("bytes") * 100 >= pl.col("bytes").max())
    for (node, device, _bytes), look in zip(devices.iter_rows(), series_style.styles(devices.height), strict=True):
        rows = _thinned(waiting.filter((pl.col("node") == node) & (pl.col("device") == device)).sort("t_ns"))
        axes.plot(_t_s(rows), _values(rows, "bytes", KIB), linewidth=1.1, label=f"{node}:{device}", **style.line(look))
    axes.set_title("Waiting at devices: qdisc, TXQ and ring", fontsize=9)
    axes.set_ylabel("queue (KiB)")
    axes.set_ylim(bottom=0)
    style.legend_right(axes, 8)


def _small_queues(axes: Axes, run: Recording, senders: Senders) -> None:
    """Draw the truesize below the first flow's socket, and the limit in the colour of its term."""
    first, sender = senders[0]
    below, limits = _values(sender, "sk_wmem_alloc", KIB), _values(sender, "tsq_limit", KIB)
    axes.fill_between(_t_s(sender), below, color=series_style.TOTAL, alpha=0.35, linewidth=0, label="below TCP")
    usual = float(np.nanpercentile(limits, 10)) if np.isfinite(limits).any() else 0.0
    top = max(3 * float(np.nanmax(below, initial=1)), 2 * usual)
    terms = sender["tsq_term"].to_numpy() if "tsq_term" in sender.columns else np.full(sender.height, None)
    for term, colour in TERMS.items():
        drawn_limits = np.where((terms == term) & (limits <= top), limits, np.nan)
        if np.isfinite(drawn_limits).any():
            axes.plot(_t_s(sender), drawn_limits, color=colour, linewidth=1.6, label=f"limit: {term}")
    flow_label = f"{first.flow.name}, the first of {len(run.flows)} flows" if len(run.flows) > 1 else first.flow.name
    axes.set_title(f"Data below TCP, and the limit of TCP Small Queues: {flow_label}", fontsize=9)
    idle = float((below == 0).mean())
    if idle >= IDLE_SHARE_MIN:
        note = f"{idle:.0%} of the samples have no data below TCP: packets wait at another node"
        axes.text(0.01, 0.95, note, transform=axes.transAxes, va="top", fontsize=8, color=style.MUTED)
    axes.set_ylabel("queue (KiB)")
    axes.set_ylim(0, axes.get_ylim()[1] * (1.15 if idle >= IDLE_SHARE_MIN else 1))
    style.legend_right(axes)


def _plot(axes: Axes, drawn_flow: FlowStyle, sender: pl.DataFrame, values: Floats) -> None:
    axes.plot(_t_s(sender), values, label=drawn_flow.label or "_", linewidth=1.1 if drawn_flow.named else 0.6,
              **style.line(drawn_flow.look))  # fmt: skip


def _cwnd(axes: Axes, run: Recording, senders: Senders) -> None:
    for drawn_flow, sender in senders:
        _plot(axes, drawn_flow, sender, _values(sender, "snd_cwnd"))
    axes.set_ylabel("cwnd (segments)")
    axes.set_ylim(bottom=0)
    style.legend_right(axes)


def _rtt(axes: Axes, run: Recording, senders: Senders) -> None:
    """Draw the senders' smoothed RTT."""
    for drawn_flow, sender in senders:
        rtt = _values(sender, "rtt", US_PER_MS)
        _plot(axes, drawn_flow, sender, np.where(rtt > 0, rtt, np.nan))
    axes.set_ylabel("TCP RTT (ms)")
    axes.set_ylim(bottom=0)


def _phases(axes: Axes, name: str, sender: pl.DataFrame, title: str) -> None:
    """Draw the BBR phases of a flow as coloured spans."""
    for phase, start_s, end_s in _spans(sender):
        axes.axvspan(start_s, end_s, color=PHASE_COLOURS[phase], linewidth=0)
    axes.set_yticks([])
    axes.set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    axes.grid(visible=False)
    axes.tick_params(axis="x", length=0)
    if title:
        axes.set_title(title, fontsize=9)
        handles = [Patch(facecolor=colour, label=phase) for phase, colour in PHASE_COLOURS.items()]
        axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, borderaxespad=0.1,
                    handlelength=1.0, handleheight=0.8)  # fmt: skip


def _spans(sender: pl.DataFrame) -> Iterator[tuple[str, float, float]]:
    """Yield (phase, start, end) of consecutive samples in one phase, s."""
    rows = sender.select("t_ns", pl.col("bbr_phase").cast(pl.String).alias("phase")).with_columns(
        pl.col("phase").rle_id().alias("span")
    )
    starts = rows.group_by("span", maintain_order=True).agg(pl.col("t_ns").first(), pl.col("phase").first())
    ends = [*starts["t_ns"][1:], rows["t_ns"][-1]]
    for (_, start_ns, phase), end_ns in zip(starts.iter_rows(), ends, strict=True):
        if phase is not None:
            yield phase, start_ns / NS_PER_S, end_ns / NS_PER_S
