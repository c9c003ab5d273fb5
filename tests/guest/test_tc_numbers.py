# SPDX-License-Identifier: Apache-2.0
"""Lines of tc are read as tc reads them: the kernel has the same options after generated lines."""

import random

import pytest

from guest.conftest import KERNELS
from hourglass import runner, scenario
from hourglass.qdisc_line import QdiscLine

pytestmark = pytest.mark.guest

COUNT = 400
STEP_S = 0.02
LINE_BPS = 10**9
NUMBERS = ("0x40", "0X1f", "1e3", "2.5e2", ".75", "3.", "010", "1E1", "0x1p4", "+7", "-1", "1_0", "x", "1e", "5e-1")
SIZES = ("", "b", "k", "K", "kb", "m", "Mb", "g", "kbit", "mbit", "Mbit", "gbit", "kib", "bps", "e")
RATES = ("", "bit", "kbit", "Kbit", "mbit", "Gbit", "tbit", "kibit", "mibit", "gibit", "bps", "kbps", "MBps", "kibps",
         "gibps", "%", "mb", "Mibps")  # fmt: skip
TIMES = ("", "us", "usec", "usecs", "ms", "MS", "msec", "msecs", "ns", "m")
LONG_TIMES = ("s", "sec", "Secs", "SEC")
STABS = (
    "",
    "stab overhead {} ",
    "stab mpu 64 ",
    "stab linklayer atm overhead {} ",
    "stab linklayer adsl mpu 0x50 ",
    "stab linklayer ethernet mpu 84 overhead {} ",
    "stab mtu 9000 tsize 128 linklayer atm overhead {} ",
)
CAKES = ("", "overhead 10 atm", "conservative", "ethernet ether-vlan", "docsis", "raw", "pppoe-ptm", "ethernet raw",
         "overhead -4 noatm", "ptm overhead 18", "bridged-vcmux mpu 60", "overhead 5 conservative",
         "ipoa-llcsnap mpu 96")  # fmt: skip
NETEMS = ("limit {} delay 3ms", "lim {} del 3ms", "l {} lat 3ms")


def number(generator: random.Random) -> str:
    forms = (str(generator.randint(1, 3000)), f"{generator.uniform(0.1, 300):.4g}", generator.choice(NUMBERS))
    return generator.choices(forms, (5, 4, 2))[0]


def make_lines() -> list[str]:
    generator = random.Random(9)

    def word(units: tuple[str, ...]) -> str:
        return number(generator) + generator.choice(units)

    def line() -> str:
        size, rate, time, long = word(SIZES), word(RATES).removeprefix("-"), word(TIMES), word(LONG_TIMES)
        stab = generator.choice(STABS).format(generator.randint(-20, 60))
        count = number(generator)
        return generator.choice(
            (
                f"{stab}pfifo limit {size}",
                f"{stab}bfifo limit {size}",
                "netem " + generator.choice(NETEMS).format(size),
                f"netem delay {generator.choice((time, long))} limit 20 limit 30",
                f"netem rate {rate}",
                f"{stab}tbf rate {rate} burst 20kb limit {size}",
                f"{stab}tbf rate {rate} burst 3000/8 lat {time}",
                f"tbf rate 8mbit overhead {generator.randint(0, 50)} {generator.choice(('', 'mpu 99 '))}linklayer"
                f" {generator.choice(('atm', 'ethernet', 'adsl'))} buffer 5k latency 20ms",
                f"codel limit {count} target {time}",
                f"fq_codel target {time} limit {count}",
                f"pie limit {count} target {time}",
                f"fq_pie limit {count} target {time}",
                f"fq maxrate {rate} limit {count}",
                f"{stab}cake bandwidth {rate} {generator.choice(CAKES)}".strip(),
            )
        )

    return [line() for _ in range(COUNT)]


LINES = {f"{index + 1:x}": line for index, line in enumerate(make_lines())}
"""The lines by the handle that each qdisc gets."""


def script() -> str:
    """Return a program that tries each line at its own sampling instant, and prints the numbers of those refused."""
    attempt = (
        "t() { n=$1; shift; tc qdisc replace dev eth0 root handle $n: $@ 2>/dev/null || echo $n;"
        f" sleep {STEP_S}; tc qdisc del dev eth0 root 2>/dev/null; }}"
    )
    return "\n".join([attempt, *(f"t {handle} {line}" for handle, line in LINES.items())])


@pytest.mark.parametrize("kernel", KERNELS)
def test_options_are_those_that_tc_sets(kernel, tmp_path):
    app = {"name": "tc", "node": "client", "user": "root", "command": ["sh", "/lines"], "expect": "any",
           "files": {"/lines": {"text": script()}}}  # fmt: skip
    setting = {
        "name": "numbers",
        "kernel": kernel,
        "testbed": {"preset": "LR1000M"},
        "test": {"name": "ping", "length": COUNT * STEP_S + 1, "delay": 0},
        "measure": {"devices": f"{STEP_S * 500:g}ms"},
        "app": [app],
    }
    run = runner.run(scenario.load(setting), tmp_path / "run")
    refused = set(run.apps["tc"].stdout.split())
    accepted = {f"{handle}:": line for handle, line in LINES.items() if handle not in refused}
    changes = run.qdisc_changes.filter(run.qdisc_changes["parent"] == "root")
    options = dict(changes.select("handle", "options").iter_rows())
    assert len(accepted) > COUNT / 3
    assert set(accepted) <= set(options)
    pairs = {
        line: (rounded_figures(QdiscLine(line, LINE_BPS)), QdiscLine(options[handle]))
        for handle, line in accepted.items()
    }
    assert {line: actual for line, (expected, actual) in pairs.items() if expected != figures(actual)} == {}


def figures(qdisc: QdiscLine) -> dict[str, object]:
    return {
        "kind": qdisc.kind,
        "limit": qdisc.limit and qdisc.limit._replace(size=qdisc.limit.size % 2**32),  # as C cuts it off
        "rate_bps": qdisc.rate_bps,
        "delay_us": qdisc.delay_us,
        "target_us": qdisc.target_us,
        "counted": [*map(qdisc.counted_bytes, (60, 590, 1514, 9014))],
    }


def rounded_figures(qdisc: QdiscLine) -> dict[str, object]:
    """Return the figures in the units of the kernel's times: 64 ns, or 1,024 ns for CoDel."""
    values = figures(qdisc)
    bits = 10 if qdisc.kind in ("codel", "fq_codel") else 6
    for name in ("delay_us", "target_us"):
        if values[name] is not None and qdisc.kind != "cake":
            values[name] = (values[name] * 1000 >> bits << bits) // 1000
    return values
