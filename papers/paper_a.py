# SPDX-License-Identifier: Apache-2.0
"""Paper A: Grazia, Klapez, Casoni, "The New TCP Modules on the Block" (IEEE Access 2021), kernel 5.10.

Its figures survive as sentences only, so the tolerances are those of the words: an order of magnitude is the nearest
one on a logarithmic scale; "about N ms" is within a factor of 2. Wired; its Wi-Fi is in paper_a_wifi.py, its two
algorithms in rules.py.
"""

from math import log10
from statistics import median

import numpy as np

from hourglass.results.series import loaded_window, tcp_rtt_ms
from papers import samples
from papers.candles import samples_of
from papers.model import (
    DROPS,
    PING,
    RETRANSMITS,
    SENDER_QUEUE,
    TCP,
    TCP_P90,
    UP,
    Claim,
    Evidence,
    Finding,
    Form,
    Layout,
    PaperFigure,
    Setting,
    Unknown,
    View,
    ratio,
)

LINE = 0.01
"""A smaller change of throughput is invisible in a chart of its height."""
MARGINAL = 1.25
"""A change of latency below this factor is "marginal" or "nothing": seeds alone move R100M by 10 %."""


def _local(e: Evidence) -> Finding:
    off, on = _off_on(e, PING, scenario="L100M")
    how = samples.below_tcp(e.runs(scenario="L100M", tsq="default")[0])
    return Finding(off / on >= 10, f"ping {ratio(off, on)}", how)


def _remote(e: Evidence) -> Finding:
    off, on = _off_on(e, PING, scenario="R100M")
    return Finding(_same(off, on), f"ping {ratio(off, on)}")


def _off_on(e: Evidence, column: str, **where: object) -> tuple[float, float]:
    """Return a figure without TSQ and with it."""
    return e.value(column, tsq="off", **where), e.value(column, tsq="default", **where)


def _same(off: float, on: float) -> bool:
    return 1 / MARGINAL <= off / on <= MARGINAL


def _mechanism(e: Evidence, scenario: str) -> str:
    """Return facts from the records of a run without TSQ and of one with it."""
    runs = [e.runs(scenario=scenario, tsq=tsq)[0] for tsq in ("off", "default")]
    off, on = (f"{samples.below_tcp(run)}; {samples.window(run)}" for run in runs)
    return f"without TSQ {off}; with it {on}"


def _sender_queues(e: Evidence) -> Finding:
    """Judge the share of the client's queues, qdisc and NIC, in the time of a segment from the socket to the server."""
    share = e.value(SENDER_QUEUE, scenario="L100M", tsq="off")
    return Finding(share > 0.5, f"the client's qdisc has {share:.0%} of a segment's time")


def _throughput(e: Evidence) -> Finding:
    pairs = [(s, *_off_on(e, UP, scenario=s)) for s in e.values("scenario")]
    text = ", ".join(f"{s} {off:.4g}/{on:.4g}" for s, off, on in pairs)
    return Finding(all(abs(on - off) <= LINE * off for _, off, on in pairs), f"NoTSQ/TSQ: {text} Mbit/s")


def _observable(e: Evidence) -> Finding:
    """Judge that TSQ lowers the RTT of each local bottleneck in every seed."""
    pairs = [
        (s, e.each(TCP, cc="bbr", scenario=s, tsq="off"), e.each(TCP, cc="bbr", scenario=s, tsq="default"))
        for s in ("L10M", "L100M", "LR1000M")
    ]
    text = ", ".join(f"{s} {median(off):.3g}/{median(on):.3g}" for s, off, on in pairs)
    return Finding(all(min(off) > max(on) for _, off, on in pairs), f"NoTSQ/TSQ: {text} ms")


def _codel_drops(e: Evidence) -> Finding:
    """Judge that packets are dropped where they wait for longer than CoDel's target."""
    rtt_ms, drops = (e.value(column, cc="bbr", scenario="R10M", tsq="off") for column in (TCP, DROPS))
    text = f"BBR on R10M: {rtt_ms:.3g} ms of TCP RTT, {drops:.0f} packets dropped"
    return Finding(rtt_ms > 5 and drops > 0, text, "the path without a queue takes 0.1 ms")


def _orders(scenario: str, orders: int) -> Claim:
    def judge(e: Evidence) -> Finding:
        off, on = _off_on(e, TCP, scenario=scenario)
        return Finding(round(log10(off / on)) == orders, f"TCP RTT {ratio(off, on)}", _mechanism(e, scenario))

    word = {1: "one order", 2: "two orders"}[orders]
    return Claim(
        f"A-5a {scenario}", f"{scenario}: TSQ reduces the TCP RTT by {word} of magnitude", "to the nearest order", judge
    )


def _less(figure: str, scenario: str, about_ms: float) -> Claim:
    def judge(e: Evidence) -> Finding:
        off, on = _off_on(e, TCP, scenario=scenario)
        measured = f"{off:.3g} - {on:.3g} = {off - on:.3g} ms less"
        return Finding(about_ms / 2 <= off - on <= about_ms * 2, measured, _mechanism(e, scenario))

    return Claim(
        f"{figure} {scenario}",
        f"BBR on {scenario}: TSQ lowers the RTT by about {about_ms:g} ms",
        f"{about_ms / 2:g} to {about_ms * 2:g} ms",
        judge,
    )


def _ten_ms(scenario: str, tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        rtt_ms = e.value(TCP_P90, cc="bbr", scenario=scenario, tsq=tsq)
        run = e.runs(cc="bbr", scenario=scenario, tsq=tsq)[0]
        how = f"{samples.window(run)}; a full frame takes 1.23 ms at 10 Mbit/s"
        return Finding(5 <= rtt_ms <= 20, f"90th percentile {rtt_ms:.3g} ms", how)

    label = f"{scenario}{' without TSQ' if tsq == 'off' else ''}"
    return Claim(f"A-5c {label}", f"fq_codel limits BBR on {label} to 10 ms at most", "p90 of 5 to 20 ms", judge)


NOTES = (
    "The paper's kernel is 5.10, and so is this one. Its wired figures are made with one upload of 30 s: of Figure 4",
    'the text says "a simple TCP Cubic stream", and Figures 5 to 7 are "the same tests". Section IV says "four TCP',
    'uploads"; the column *four flows* of the joint table has these. NICs, HTB and qdiscs have their defaults. Not',
    "tried: a kernel with HZ 300, a router whose qdisc is another than the client's, shaping in one direction only.",
)
"""The introduction of the paper's page, in lines."""

REMOTE = ("R10M", "R100M")
SIMILAR = 1.5
"""The factor between what is "very similar": a half, as of two candles that overlap."""


def _remote_same(figure: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        pairs = [_off_on(e, TCP, scenario=scenario) for scenario in REMOTE]
        text = "; ".join(f"{s}: {ratio(*pair)}" for s, pair in zip(REMOTE, pairs, strict=True))
        return Finding(all(_same(*pair) for pair in pairs), f"TCP RTT {text}")

    return Claim(f"{figure} remote", "TSQ has no effect on R10M and R100M", f"less than a factor of {MARGINAL}", judge)


def _differ(pairs: list[tuple[str, float, float]], factor: float) -> Finding:
    """Judge that pairs are alike within a factor; a miss names those that are not."""
    far = [pair for pair in pairs if not 1 / factor <= pair[1] / pair[2] <= factor]
    text = "; ".join(f"{label}: {ratio(a, b)}" for label, a, b in far or pairs)
    return Finding(not far, f"TCP RTT {text}", f"{len(pairs) - len(far)} of {len(pairs)} pairs are within it")


def _settings(e: Evidence) -> list[Setting]:
    return [{"scenario": s, "tsq": t} for s in e.values("scenario") for t in e.values("tsq")]


def _cubic_alike(e: Evidence) -> Finding:
    pairs = [
        (e.label(**setting), e.value(TCP, cc="cubic", **setting), e.value(TCP, cc="bbr", **setting))
        for setting in _settings(e)
    ]
    return _differ(pairs, SIMILAR)


def _elsewhere(e: Evidence) -> Finding:
    """Compare Fig. 5c with 5b, without the exceptions that the paper names: R10M, and L10M without TSQ."""
    fifo = e.other("A-5b")
    settings = [
        setting
        for setting in _settings(e)
        if setting["scenario"] != "R10M" and setting != {"scenario": "L10M", "tsq": "off"}
    ]
    return _differ(
        [(e.label(**setting), e.value(TCP, cc="bbr", **setting), fifo.value(TCP, **setting)) for setting in settings],
        SIMILAR,
    )


def _rtt(e: Evidence, cc: str, tsq: str) -> float:
    return e.value(TCP, cc=cc, tsq=tsq)


def _sawtooth(figure: str, tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        run = e.runs(cc="cubic", tsq=tsq)[0]
        rtt = tcp_rtt_ms(run, run.flows[0]).within(loaded_window(run)).values
        late = rtt[len(rtt) // 3 :]
        low, high = np.percentile(late, [2, 98])
        drops = e.value(DROPS, cc="cubic", tsq=tsq)
        measured = f"RTT between {low:.3g} and {high:.3g} ms after the first third, {drops:.0f} packets dropped"
        how = f"retransmitted segments: {e.value(RETRANSMITS, cc='cubic', tsq=tsq):.0f}"
        return Finding(high / low >= 1.2 and drops > 0, measured, how)

    name = "TSQ" if tsq == "default" else "NoTSQ"
    sentence = f"CUBIC ({name}): the RTT is a saw-tooth up to the full queue"
    return Claim(f"{figure} saw-tooth {name}", sentence, "the swing is 20 % or more, and the queue drops", judge)


def _drains(figure: str, tsq: str) -> Claim:
    def judge(e: Evidence) -> Finding:
        low, high = _rtt(e, "bbr", tsq), _rtt(e, "cubic", tsq)
        gaps = [float(gap) for run in e.runs(cc="bbr", tsq=tsq) for gap in np.diff(samples.drain_times_s(run))]
        gap = median(gaps) if gaps else float("nan")
        measured = f"TCP RTT {low:.3g} ms (CUBIC {high:.3g}); {len(gaps)} gaps between drains, median {gap:.3g} s"
        return Finding(low < high / 3 and 9 <= gap <= 12, measured, "drains: snd_cwnd down to 4, BBR's ProbeRTT")

    name = "TSQ" if tsq == "default" else "NoTSQ"
    sentence = f"BBR ({name}): low RTT, with a drain about every 10 s"
    return Claim(f"{figure} drains {name}", sentence, "RTT below a third of CUBIC's; gaps of 9 to 12 s", judge)


def _as_remote(e: Evidence) -> Finding:
    """Judge that the candles of Fig. 7a and 6a, p10 to p90 of all TCP RTT samples, overlap."""
    texts, good = [], True
    for cc in ("cubic", "bbr"):
        local, remote = (
            [float(end) for end in np.percentile(samples_of(data.runs(cc=cc, tsq="off"), "tcp"), [10, 90])]
            for data in (e, e.other("A-6"))
        )
        good &= local[0] <= remote[1] and remote[0] <= local[1]
        texts.append(f"{cc.upper()} {local[0]:.3g} to {local[1]:.3g} ms, in 6a {remote[0]:.3g} to {remote[1]:.3g}")
    return Finding(good, "; ".join(texts), "a local qdisc of 1,000 skbs holds more bytes, because they are not yet cut")


MINIMAL = 2
"""The RTT of a minimal queue, as a multiple of BBR's."""
LOSS_BASED = ("reno", "bic", "highspeed", "hybla", "htcp", "scalable", "westwood", "illinois", "veno", "yeah")


def _any_loss_based(e: Evidence) -> Finding:
    """Judge that TSQ rules: no queue ever drops, and the RTT is at most twice BBR's."""
    sweep = e.other("A-7-loss-based")
    bbr = _rtt(e, "bbr", "default")
    times = {cc: sweep.value(TCP, cc=cc, tsq="default") for cc in ("cubic", *LOSS_BASED)}
    drops = sum(sweep.value(DROPS, cc=cc, tsq="default") for cc in times)
    text = ", ".join(f"{cc} {ms:.3g}" for cc, ms in times.items())
    how = "without a loss they stay in slow start, with twice the pacing rate, unless they have an exit like HyStart"
    good = max(times.values()) <= MINIMAL * bbr and not drops
    return Finding(good, f"TCP RTT {text} ms, BBR {bbr:.3g}; {drops:.0f} packets dropped", how)


def _minimal(e: Evidence) -> Finding:
    cubic, bbr = _rtt(e, "cubic", "default"), _rtt(e, "bbr", "default")
    how = samples.below_tcp(e.runs(cc="cubic", tsq="default")[0])
    return Finding(cubic <= MINIMAL * bbr, f"TCP RTT of CUBIC / BBR: {ratio(cubic, bbr)}", how)


ONE_FLOW, FOUR_FLOWS = View({"upload_streams": 1}), View({"upload_streams": 4})
FLOWS = Unknown(
    "the number of flows of Figures 4 to 7. Judged with one; section IV says four uploads",
    "four flows",
    FOUR_FLOWS,
)


CANDLES = Layout()


def wired(id: str, title: str, form: Form, *claims: Claim, layout: Layout = CANDLES, needs: tuple[str, ...] = (),
          note: str = "") -> PaperFigure:  # fmt: skip
    """Return a figure of one flow, which is also judged with four."""
    return PaperFigure(id, title, form, claims, layout, needs, ONE_FLOW, (FLOWS,), note)


FIGURES = (
    wired(
        "A-4",
        "Throughput and latency on different wired bottlenecks: TSQ vs. NoTSQ",
        "candles",
        Claim("A-4 local", "local bottleneck: latency drops by a lot with TSQ", "to a tenth or less", _local),
        Claim("A-4 remote", "remote bottleneck: the difference is marginal", f"a factor below {MARGINAL}", _remote),
        Claim(
            "A-4 queues",
            "local bottleneck: the sender's queues are the dominant part of the latency",
            "more than half",
            _sender_queues,
        ),
        layout=Layout(quantities=("goodput", "ping")),
    ),
    wired(
        "A-5a",
        "TCP RTT: CUBIC, pfifo_fast",
        "candles",
        _orders("L10M", 2),
        _orders("L100M", 2),
        _orders("LR1000M", 1),
        _remote_same("A-5a"),
        Claim("A-5a throughput", "TSQ does not change the throughput", "within 1 % on each bottleneck", _throughput),
        needs=("A-contrasts",),
    ),
    wired(
        "A-5b",
        "TCP RTT: BBR, pfifo_fast",
        "candles",
        _less("A-5b", "L10M", 10),
        _less("A-5b", "L100M", 3),
        _less("A-5b", "LR1000M", 2),
        _remote_same("A-5b"),
    ),
    wired(
        "A-5c",
        "TCP RTT: BBR, fq_codel",
        "candles",
        _ten_ms("R10M", "off"),
        _ten_ms("R10M", "default"),
        _ten_ms("L10M", "off"),
        _remote_same("A-5c"),
        Claim("A-5c elsewhere", "elsewhere it is as in Figure 5b", f"within a factor of {SIMILAR}", _elsewhere),
        Claim(
            "A-5c CUBIC",
            "CUBIC with fq_codel is very similar to BBR with it",
            f"each of the ten within a factor of {SIMILAR}",
            _cubic_alike,
        ),
        Claim("A-5c observable", "the effect of TSQ is still observable", "on each local bottleneck, in every seed",
              _observable),
        Claim(
            "D-9",
            "CoDel drops packets whose sojourn time is above 5 ms",
            "a drop where the TCP RTT is above 5 ms",
            _codel_drops,
            excluded="`codel_should_drop` waits until the sojourn time was above target for an interval, 100 ms",
        ),
        layout=Layout(where=(("cc", "bbr"),)),
        needs=("A-5b", "A-contrasts"),
    ),
    wired(
        "A-6",
        "CUBIC and BBR on a remote bottleneck",
        "series",
        _sawtooth("A-6", "off"),
        _sawtooth("A-6", "default"),
        _drains("A-6", "off"),
        note="A step of goodput above 100 Mbit/s is no error: data behind a lost segment reach the application at once"
        " when its retransmission arrives.",
    ),
    wired(
        "A-7",
        "CUBIC and BBR on a local bottleneck",
        "series",
        _sawtooth("A-7", "off"),
        _drains("A-7", "off"),
        Claim("A-7 as remote", "without TSQ it is as on the remote bottleneck (6a)", "the candles overlap", _as_remote),
        Claim(
            "A-7 minimal queue",
            "with TSQ CUBIC keeps a minimal queue, like BBR",
            "RTT at most twice BBR's",
            _minimal,
        ),
        Claim(
            "A-7 loss-based",
            "TSQ limits any loss-based variant as it limits CUBIC",
            "RTT at most twice BBR's, and no drop",
            _any_loss_based,
        ),
        needs=("A-6", "A-7-loss-based"),
    ),
)  # fmt: skip
