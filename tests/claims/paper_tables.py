# SPDX-License-Identifier: Apache-2.0
"""Tables that agree with the papers, with two seeds of each setting, and functions that change these tables."""

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
"""The relative difference between two seeds."""


def seed_rows(where: Row, up: float = 0.0, ping: float = 1.0, down: float = 0.0, tcp: float = 1.0) -> Table:
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
    """Return the rows of an axis. `figures`: value → (up, ping[, down])."""
    return [row for value, numbers in figures.items() for row in seed_rows({key: value, **fixed}, *numbers)]


def ccs(loss: tuple[float, ...], **exceptions: tuple[float, ...]) -> dict[str, tuple[float, ...]]:
    return dict.fromkeys(("cubic", "highspeed", "hybla", "illinois", "reno", "scalable", "westwood"), loss) | exceptions


ONE_FLOW = dict(zip(SIZES, (3.0, 7.0, 12.0, 20.0, 33.0, 50.0, 70.0, 70.01, 70.02), strict=True))
FOUR_FLOWS = dict(zip(SIZES, (8.0, 15.0, 26.0, 50.0, 80.0, 95.0, 100.0, 100.1, 100.2), strict=True))


def fig5() -> dict[str, tuple[float, ...]]:
    fair = dict.fromkeys(("hybla", "westwood"), (48.0, 150.0, 50.0))
    greedy = dict.fromkeys(("highspeed", "illinois", "reno", "scalable"), (80.0, 150.0, 18.0))
    special = {"cubic": (50.0, 200.0, 51.0), "bbr": (30.0, 25.0, 60.0), "nv": (48.0, 40.0, 50.0)}
    return fair | greedy | special | {"yeah": (48.0, 80.0, 51.0)}


def fig14() -> Table:
    default = {cc: (20.0, ms, 80.0) for cc, ms in (("cubic", 30), ("nv", 20), ("reno", 35), ("yeah", 25), ("bbr", 9))}
    fixed = {cc: (50.0, default[cc][1] + 9.5, 52.0) for cc in ("cubic", "nv", "reno", "yeah")}
    fixed["bbr"] = (40.0, 10.0, 60.0)
    return over("stack.cc", default, **{"stack.tsq": "default"}) + over("stack.cc", fixed, **{"stack.tsq": "64KiB"})


def fig12() -> Table:
    default = {"bbr": 1.8, "cubic": 4.0, "nv": 2.2, "reno": 7.0, "yeah": 3.0}
    fixed = {"bbr": 2.5, "cubic": 4.1, "nv": 3.5, "reno": 5.0, "yeah": 4.0}
    return [
        row
        for tsq, times_ms in (("default", default), ("64KiB", fixed))
        for cc, ms in times_ms.items()
        for row in seed_rows({"stack.cc": cc, "stack.tsq": tsq}, 70, ms)
    ]


def qdiscs(fifo: float, pfifo: float, pie: float, smart: float, goodput: tuple[float, float]) -> dict[str, Any]:
    smart_mbps, fifo_mbps = goodput
    figures = {
        "pfifo": (fifo_mbps, fifo),
        "bfifo": (fifo_mbps, fifo),
        "pfifo_fast": (fifo_mbps, pfifo),
        PIE: (fifo_mbps, pie),
    }
    return figures | {
        "codel": (smart_mbps, smart),
        "sfq": (smart_mbps, smart),
        "fq_codel": (smart_mbps, smart),
        "fq": (fifo_mbps, smart),
    }


def downloads(figures: dict[str, Any]) -> Table:
    return [row for q, (rate, ms) in figures.items() for row in seed_rows({"stack.qdisc": q}, 0, ms, rate)]


def size_rows(
    standard: tuple[float, ...], limits: dict[str, float], rate: Callable[[str], tuple[float, float]]
) -> Table:
    up, down = zip(*(rate(size) for size in SIZES), strict=True)
    figures = {size: (up[index], limits[size], down[index]) for index, size in enumerate(SIZES)}
    return over("stack.tsq", {"default": standard} | figures)


def uploads_8(figures: Callable[[int, Any], tuple[float, float]], key: str, values: tuple[Any, ...]) -> Table:
    return [
        row
        for n in range(1, 9)
        for value in values
        for row in seed_rows({"stack.tsq": f"{n}ms", key: value}, *figures(n, value))
    ]


def fig8a(n: int, ca: int) -> tuple[float, float]:
    steps = (ca - 120) / 20
    return 80 + 4 * min(n, 4) + (2 * steps if n <= 4 else 0), 5 + 2 * n + steps


def fig8b(n: int, delay: str) -> tuple[float, float]:
    loss = {"1ms": 0.5, "10ms": 5.0, "100ms": 15.0}[delay]
    return 80 + 4 * min(n, 4) - loss, 5 + 2 * n + float(delay.removesuffix("ms"))


def wired(figures: dict[tuple[str, str], float], **fixed: Any) -> Table:
    return [
        row | {DROPS: 5, SENDER_QUEUE: 0.9 if s[0] == "L" else 0.1}
        for (s, t), ms in figures.items()
        for row in seed_rows({"scenario": s, "stack.tsq": t, **fixed}, 95.6, ms, tcp=ms)
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
        row
        for kernel, setting, figures in kernels
        for row in seed_rows(where | {"kernel": f"{kernel}.1", "stack.sysctl": setting}, **figures)
    ]


PAPER_TABLES: dict[str, Table] = {
    "kernels-tso": [
        row
        for name in ("L10M", "L100M", "LR1000M", "R10M")
        for cc in ("cubic", "bbr")
        for row in undone(
            "5.10", "6.1", TSO_LOG, {"tcp": 9.0}, {"tcp": 4.0 if name == "R10M" else 40.0},
            **{"scenario": name, "stack.cc": cc},
        )
    ],
    "kernels-sndbuf": [
        row
        for name in ("L10M", "L100M")
        for row in undone("5.10", "6.1", TSO_LOG, {"tcp": 200.0}, {"tcp": 700.0}, scenario=name)
    ],
    "kernels-rmem": undone("6.12", "7.3", RMEM, {"up": 300.0}, {"up": 800.0}),
    "kernels-syn": undone("6.1", "6.12", LINEAR, {"up": 40.0}, {"up": 60.0}),
    "A-4": wired(FOUR),
    "A-5a": wired(FIVE_A),
    "A-5b": wired(FIVE_B),
    "A-5c": [row for cc in ("bbr", "cubic") for row in wired(FIVE_C, **{"stack.cc": cc})],
    "A-7-loss-based": [
        row
        for tsq, ms in (("default", 3.0), ("off", 200.0))
        for row in over("stack.cc", dict.fromkeys(("cubic", *paper_a.LOSS_BASED), (95.0, ms)), **{"stack.tsq": tsq})
    ],
    "A-contrasts": [
        row
        for tsq, mbps in (("off", 940.0), ("default", 940.0), ("4KiB", 500.0))
        for cc, ms in (("cubic", 90.0), ("bbr", 4.0))
        for row in seed_rows({"scenario": "LR1000M", "stack.tsq": tsq, "stack.cc": cc}, mbps, ms, tcp=ms)
    ],
    "A-8a": [
        row | {AGGREGATES: min(31.0, 7.0 * float(row["stack.tsq"][0])) * (row["stack.pacing.ca"] + 1200) / 1320}
        for row in uploads_8(fig8a, "stack.pacing.ca", (120, 130, 140))
    ],
    "A-8b": uploads_8(fig8b, "testbed.netem.0.delay", ("1ms", "10ms", "100ms")),
    "A-8-halved": [
        row
        for n in (1, 2, 4, 8)
        for delay, ca in (("10ms", 120), ("20ms", 240))
        for row in seed_rows({"stack.tsq": f"{n}ms", "testbed.netem.0.delay": delay, "stack.pacing.ca": ca}, 80 + n, 10)
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
    "B-9": size_rows((65, 5), ONE_FLOW, lambda size: (80, 0) if size == "64KiB" else (100, 0)),
    "B-10": size_rows((75, 5), FOUR_FLOWS, lambda size: (100, 0)),
    "B-11": size_rows((15, 25, 85), {size: ms + 22 for size, ms in FOUR_FLOWS.items()}, lambda size: (50, 52)),
    "B-12": fig12(),
    "B-13": over("stack.cc", {
        "yeah": (60.0, 3.0), "cubic": (70.0, 4.0), "reno": (99.0, 7.0), "bbr": (38.0, 1.8), "nv": (48.0, 2.0)
    }),
    "B-14": fig14(),
}  # fmt: skip
"""Name of the sweep → its table."""


NAMES = {"up": (UP,), "down": (DOWN,), "ping": (PING,), "tcp": (TCP, TCP_P90), "other": (AGGREGATES, SENDER_QUEUE)}
FIGURES = [name for names in NAMES.values() for name in names]


def scaled(table: Table, **factors: float) -> Table:
    return [
        row | {name: row[name] * factor for word, factor in factors.items() for name in NAMES[word] if name in row}
        for row in table
    ]


def mirrored(table: Table) -> Table:
    """Return the table with the figures in reverse order: the first setting has those of the last."""
    figures = [{name: row[name] for name in FIGURES if name in row} for row in table]
    return [row | opposite for row, opposite in zip(table, reversed(figures), strict=True)]


def turned(table: Table) -> Table:
    """Return the table with high and low exchanged: each figure at the other end of its range."""
    rows = [dict(row) for row in table]
    for name in (name for name in FIGURES if name in rows[0]):
        low, high = (extreme(row[name] for row in table) for extreme in (min, max))
        for row in rows:
            row[name] = low + high - row[name]
    return rows


def level(table: Table) -> Table:
    """Return the table with the same figures at all settings; only the seeds differ."""
    first = table[0]
    return [row | {name: first[name] * (1 + WOBBLE * row["seed"]) for name in FIGURES if name in row} for row in table]


def swapped(table: Table) -> Table:
    """Return the table with the rates of uploads and downloads exchanged."""
    return [row | {UP: row[DOWN], DOWN: row[UP]} for row in table]


def doubled_every(step: int) -> Callable[[Table], Table]:
    """Return a function that doubles the figures of each `step`-th setting."""

    def change(table: Table) -> Table:
        return [
            row | {name: row[name] * (2 if index // len(SEEDS) % step == 1 else 1) for name in FIGURES if name in row}
            for index, row in enumerate(table)
        ]

    return change


def scattered(table: Table) -> Table:
    """Return the table with seeds that differ more than the settings."""
    return [
        row | {name: row[name] * (0.2 if row["seed"] == 1 else 5) for name in FIGURES if name in row} for row in table
    ]


CHANGES: dict[str, Callable[[Table], Table]] = {
    "ten times slower": lambda table: scaled(table, up=0.1, down=0.1),
    "higher latency": lambda table: scaled(table, ping=5, tcp=5),
    "lower latency": lambda table: scaled(table, ping=0.1, tcp=0.1),
    "smaller aggregates and queues": lambda table: scaled(table, other=0.1),
    "no drops": lambda table: [row | {DROPS: 0} for row in table],
    "mirrored": mirrored,
    "turned": turned,
    "level": level,
    "swapped": swapped,
    "every second": doubled_every(2),
    "every third": doubled_every(3),
    "scattered": scattered,
}
