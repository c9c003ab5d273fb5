# SPDX-License-Identifier: Apache-2.0
"""Tables in which everything is as the papers say, two seeds of each setting, and ways to make them otherwise."""

from collections.abc import Callable
from typing import Any

from papers import paper_a
from papers.kernel_changes import LINEAR, RMEM, TSO_LOG
from papers.model import AGGREGATES, DOWN, DROPS, PING, SENDER_QUEUE, TCP, TCP_P90, UP
from papers.paper_b import PIE
from papers.paper_b_tsq import SIZES

Row = dict[str, Any]
Table = list[Row]
SEEDS = (1, 2)
WOBBLE = 0.001
"""What the seeds are apart."""


def row(where: Row, up: float = 0.0, ping: float = 1.0, down: float = 0.0, tcp: float = 1.0) -> Table:
    return [
        where
        | {"seed": seed, "run": "none", "status": "done"}
        | {
            name: value * (1 + WOBBLE * seed)
            for name, value in ((UP, up), (DOWN, down), (PING, ping), (TCP, tcp), (TCP_P90, tcp))
        }
        for seed in SEEDS
    ]


def over(key: str, figures: dict[Any, tuple[float, ...]], **fixed: Any) -> Table:
    """(up, ping[, down]) by the values of an axis."""
    return [one for value, found in figures.items() for one in row({key: value, **fixed}, *found)]


def ccs(loss: tuple[float, ...], **others: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    return dict.fromkeys(("cubic", "highspeed", "hybla", "illinois", "reno", "scalable", "westwood"), loss) | others


LIMITS = dict(zip(SIZES, (3.0, 7.0, 12.0, 20.0, 33.0, 50.0, 70.0, 70.01, 70.02), strict=True))
MANY = dict(zip(SIZES, (8.0, 15.0, 26.0, 50.0, 80.0, 95.0, 100.0, 100.1, 100.2), strict=True))


def fig5() -> dict[str, tuple[float, ...]]:
    fair = dict.fromkeys(("hybla", "westwood"), (48.0, 150.0, 50.0))
    greedy = dict.fromkeys(("highspeed", "illinois", "reno", "scalable"), (80.0, 150.0, 18.0))
    named = {"cubic": (50.0, 200.0, 51.0), "bbr": (30.0, 25.0, 60.0), "nv": (48.0, 40.0, 50.0)}
    return fair | greedy | named | {"yeah": (48.0, 80.0, 51.0)}


def fig14() -> Table:
    default = {cc: (20.0, ms, 80.0) for cc, ms in (("cubic", 30), ("nv", 20), ("reno", 35), ("yeah", 25), ("bbr", 9))}
    fixed = {cc: (50.0, default[cc][1] + 9.5, 52.0) for cc in ("cubic", "nv", "reno", "yeah")}
    fixed["bbr"] = (40.0, 10.0, 60.0)
    return over("stack.cc", default, **{"stack.tsq": "default"}) + over("stack.cc", fixed, **{"stack.tsq": "64KiB"})


def fig12() -> Table:
    default = {"bbr": 1.8, "cubic": 4.0, "nv": 2.2, "reno": 7.0, "yeah": 3.0}
    fixed = {"bbr": 2.5, "cubic": 4.1, "nv": 3.5, "reno": 5.0, "yeah": 4.0}
    return [
        one
        for tsq, found in (("default", default), ("64KiB", fixed))
        for cc, ms in found.items()
        for one in row({"stack.cc": cc, "stack.tsq": tsq}, 70, ms)
    ]


def qdiscs(fifo: float, pfifo: float, pie: float, smart: float, goodput: tuple[float, float]) -> dict[str, Any]:
    best, rest = goodput
    found = {"pfifo": (rest, fifo), "bfifo": (rest, fifo), "pfifo_fast": (rest, pfifo), PIE: (rest, pie)}
    return found | {"codel": (best, smart), "sfq": (best, smart), "fq_codel": (best, smart), "fq": (rest, smart)}


def downloads(found: dict[str, Any]) -> Table:
    return [one for q, (rate, ms) in found.items() for one in row({"stack.qdisc": q}, 0, ms, rate)]


def size_rows(
    standard: tuple[float, ...], limits: dict[str, float], rate: Callable[[str], tuple[float, float]]
) -> Table:
    up, down = zip(*(rate(size) for size in SIZES), strict=True)
    found = {size: (up[at], limits[size], down[at]) for at, size in enumerate(SIZES)}
    return over("stack.tsq", {"default": standard} | found)


def uploads_8(figures: Callable[[int, Any], tuple[float, float]], key: str, values: tuple[Any, ...]) -> Table:
    return [
        one
        for n in range(1, 9)
        for value in values
        for one in row({"stack.tsq": f"{n}ms", key: value}, *figures(n, value))
    ]


def fig8a(n: int, ca: int) -> tuple[float, float]:
    more = (ca - 120) / 20
    return 80 + 4 * min(n, 4) + (2 * more if n <= 4 else 0), 5 + 2 * n + more


def fig8b(n: int, delay: str) -> tuple[float, float]:
    loss = {"1ms": 0.5, "10ms": 5.0, "100ms": 15.0}[delay]
    return 80 + 4 * min(n, 4) - loss, 5 + 2 * n + float(delay.removesuffix("ms"))


def wired(figures: dict[tuple[str, str], float], **fixed: Any) -> Table:
    return [
        one | {DROPS: 5, SENDER_QUEUE: 0.9 if s[0] == "L" else 0.1}
        for (s, t), ms in figures.items()
        for one in row({"scenario": s, "stack.tsq": t, **fixed}, 95.6, ms, tcp=ms)
    ]


FIVE_A = {
    ("L10M", "off"): 1700, ("L10M", "default"): 20, ("R10M", "off"): 1500, ("R10M", "default"): 1500,
    ("L100M", "off"): 250, ("L100M", "default"): 3, ("R100M", "off"): 180, ("R100M", "default"): 180,
    ("LR1000M", "off"): 99, ("LR1000M", "default"): 9,
}  # fmt: skip
FIVE_B = FIVE_A | {
    ("L10M", "off"): 22, ("L10M", "default"): 11, ("R10M", "off"): 25, ("R10M", "default"): 25,
    ("L100M", "off"): 6, ("L100M", "default"): 3, ("R100M", "off"): 9, ("R100M", "default"): 9,
    ("LR1000M", "off"): 4, ("LR1000M", "default"): 2,
}  # fmt: skip
FIVE_C = FIVE_B | {("R10M", "off"): 10, ("R10M", "default"): 10, ("L10M", "off"): 14}
FOUR = {key: ms for key, ms in FIVE_A.items() if key[0] in ("L100M", "R100M")}


def undone(
    older: str, newer: str, sysctl: str, before: dict[str, float], after: dict[str, float], **where: Any
) -> Table:
    """Return the cells of an older kernel, a newer kernel, and the newer one with a sysctl."""
    kernels = ((older, "", before), (newer, "", after), (newer, sysctl, before))
    return [
        one
        for kernel, told, found in kernels
        for one in row(where | {"kernel": f"{kernel}.1", "stack.sysctl": told}, **found)
    ]


AS_THE_PAPERS_SAY: dict[str, Table] = {
    "kernels-tso": [
        one
        for name in ("L10M", "L100M", "LR1000M", "R10M")
        for cc in ("cubic", "bbr")
        for one in undone(
            "5.10", "6.1", TSO_LOG, {"tcp": 9.0}, {"tcp": 4.0 if name == "R10M" else 40.0},
            **{"scenario": name, "stack.cc": cc},
        )
    ],
    "kernels-sndbuf": [
        one
        for name in ("L10M", "L100M")
        for one in undone("5.10", "6.1", TSO_LOG, {"tcp": 200.0}, {"tcp": 700.0}, scenario=name)
    ],
    "kernels-rmem": undone("6.12", "7.3", RMEM, {"up": 300.0}, {"up": 800.0}),
    "kernels-syn": undone("6.1", "6.12", LINEAR, {"up": 40.0}, {"up": 60.0}),
    "A-4": wired(FOUR),
    "A-5a": wired(FIVE_A),
    "A-5b": wired(FIVE_B),
    "A-5c": [one for cc in ("bbr", "cubic") for one in wired(FIVE_C, **{"stack.cc": cc})],
    "A-7-loss-based": [
        one
        for tsq, ms in (("default", 3.0), ("off", 200.0))
        for one in over("stack.cc", dict.fromkeys(("cubic", *paper_a.LOSS_BASED), (95.0, ms)), **{"stack.tsq": tsq})
    ],
    "A-contrasts": [
        one
        for tsq, mbps in (("off", 940.0), ("default", 940.0), ("4KiB", 500.0))
        for cc, ms in (("cubic", 90.0), ("bbr", 4.0))
        for one in row({"scenario": "LR1000M", "stack.tsq": tsq, "stack.cc": cc}, mbps, ms, tcp=ms)
    ],
    "A-8a": [
        one | {AGGREGATES: min(31.0, 7.0 * float(one["stack.tsq"][0])) * (one["stack.pacing.ca"] + 1200) / 1320}
        for one in uploads_8(fig8a, "stack.pacing.ca", (120, 130, 140))
    ],
    "A-8b": uploads_8(fig8b, "testbed.netem.0.delay", ("1ms", "10ms", "100ms")),
    "A-8-halved": [
        one
        for n in (1, 2, 4, 8)
        for delay, ca in (("10ms", 120), ("20ms", 240))
        for one in row({"stack.tsq": f"{n}ms", "testbed.netem.0.delay": delay, "stack.pacing.ca": ca}, 80 + n, 10)
    ],
    "B-3": over("stack.cc", ccs((99.0, 75.0), yeah=(99.0, 25.0), bbr=(50.0, 5.0), nv=(70.0, 4.0))),
    "B-4": over("stack.cc", ccs(
        (99.0, 110.0), westwood=(99.0, 80.0), yeah=(99.0, 60.0), bbr=(75.0, 5.0), nv=(99.0, 10.0)
    )),
    "B-5": over("stack.cc", fig5()),
    "B-6": downloads(qdiscs(70, 90, 70, 25, (99, 99))),
    "B-7": downloads(qdiscs(70, 120, 110, 26, (102, 99))),
    "B-8": over("stack.qdisc", {
        q: (99.0, {"fq": 20.0, "fq_codel": 24.0}.get(q, ms)) for q, (_, ms) in qdiscs(70, 70, 70, 25, (99, 99)).items()
    }),
    "B-9": size_rows((65, 5), LIMITS, lambda size: (80, 0) if size == "64KiB" else (100, 0)),
    "B-10": size_rows((75, 5), MANY, lambda size: (100, 0)),
    "B-11": size_rows((15, 25, 85), {size: ms + 22 for size, ms in MANY.items()}, lambda size: (50, 52)),
    "B-12": fig12(),
    "B-13": over("stack.cc", {
        "yeah": (60.0, 3.0), "cubic": (70.0, 4.0), "reno": (99.0, 7.0), "bbr": (38.0, 1.8), "nv": (48.0, 2.0)
    }),
    "B-14": fig14(),
}  # fmt: skip
"""By the names of the sweeps."""


NAMES = {"up": (UP,), "down": (DOWN,), "ping": (PING,), "tcp": (TCP, TCP_P90), "other": (AGGREGATES, SENDER_QUEUE)}
FIGURES = [name for names in NAMES.values() for name in names]


def scaled(table: Table, **factors: float) -> Table:
    return [
        one | {name: one[name] * factor for word, factor in factors.items() for name in NAMES[word] if name in one}
        for one in table
    ]


def mirrored(table: Table) -> Table:
    """The settings have each other's figures, the first those of the last."""
    figures = [{name: one[name] for name in FIGURES if name in one} for one in table]
    return [one | other for one, other in zip(table, reversed(figures), strict=True)]


def turned(table: Table) -> Table:
    """Return the table with high and low exchanged: each figure at the other end of its range."""
    found = [dict(one) for one in table]
    for name in (name for name in FIGURES if name in found[0]):
        low, high = (end(one[name] for one in table) for end in (min, max))
        for one in found:
            one[name] = low + high - one[name]
    return found


def level(table: Table) -> Table:
    """All settings are alike but for the seeds."""
    first = table[0]
    return [one | {name: first[name] * (1 + WOBBLE * one["seed"]) for name in FIGURES if name in one} for one in table]


def swapped(table: Table) -> Table:
    """Uploads have what downloads had."""
    return [one | {UP: one[DOWN], DOWN: one[UP]} for one in table]


def every(step: int) -> Callable[[Table], Table]:
    """One of so many settings has twice what it had."""

    def change(table: Table) -> Table:
        return [
            one | {name: one[name] * (2 if at // len(SEEDS) % step == 1 else 1) for name in FIGURES if name in one}
            for at, one in enumerate(table)
        ]

    return change


def scattered(table: Table) -> Table:
    """The seeds are further apart than the settings are."""
    return [
        one | {name: one[name] * (0.2 if one["seed"] == 1 else 5) for name in FIGURES if name in one} for one in table
    ]


OTHERWISE: dict[str, Callable[[Table], Table]] = {
    "ten times slower": lambda table: scaled(table, up=0.1, down=0.1),
    "higher latency": lambda table: scaled(table, ping=5, tcp=5),
    "lower latency": lambda table: scaled(table, ping=0.1, tcp=0.1),
    "smaller aggregates and queues": lambda table: scaled(table, other=0.1),
    "no drops": lambda table: [one | {DROPS: 0} for one in table],
    "mirrored": mirrored,
    "turned": turned,
    "level": level,
    "swapped": swapped,
    "every second": every(2),
    "every third": every(3),
    "scattered": scattered,
}
