# SPDX-License-Identifier: Apache-2.0
"""The examples of scenarios/apps/: what each is said to show is there, and a second run has the same bytes."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.resources import SCENARIOS
from hourglass.results.recording import Recording

from .conftest import records

pytestmark = pytest.mark.guest

NEW = tuple(kernel for kernel in KERNELS if kernel != "5.10")
"""MPTCP's path manager of 5.10 knows no announced addresses that are accepted."""


def numbers(text: str, pattern: str) -> list[float]:
    return [float(one) for one in re.findall(pattern, text)]


def web(made: Recording) -> None:
    (latency,) = [one.latency_ms for one in made.summary.apps if one.id == "curl"]
    assert latency is not None
    assert latency.n == 40
    assert latency.p50 == pytest.approx(92.9, abs=1)
    assert latency.max > 400, "the line stands for half a second"


def nat(made: Recording) -> None:
    assert made.apps["client"].stdout.splitlines() == [
        "after 20 s: still there?",
        "after 60 s: no answer within 10 s",
    ]


def echo(made: Recording) -> None:
    """Ten bytes behind 66 of headers and 24 of the line at 100 Mbit/s, and 2.5 ms each way; a thousand alike."""
    least, most = numbers(made.apps["client"].stdout, r"(\d+) ns")
    assert least == most or most < 1.1 * least
    assert least == pytest.approx(5_000_000 + 2 * 8 * (66 + 10 + 24) * 10, abs=40_000)


def eyeballs(made: Recording) -> None:
    """curl waits 200 ms for IPv6 before it tries IPv4 as well, which is 40 ms away; who waits for its end, 3 s."""
    (name, connected) = numbers(made.apps["happy"].stdout, r"(\d+\.\d{6})")
    assert name == pytest.approx(0.020, abs=0.001), "a question to the router and back"
    assert connected - name == pytest.approx(0.200 + 0.040, abs=0.002)
    (alone,) = numbers(made.apps["unhappy"].stdout, r"connected (\d+\.\d+)")
    assert alone == pytest.approx(0.020 + 3 + 0.040, abs=0.005)


def wireguard(made: Recording) -> None:
    lines = made.apps["client"].stdout.splitlines()
    assert lines[0] == "MTU 1420"
    assert lines[1].startswith("/nothing: 335 bytes")
    assert lines[2] == "/large: 0 bytes, then nothing for 5 s"
    assert lines[3] == "MTU 1320"
    assert lines[5].startswith("/large: 300000 bytes")


def redis(made: Recording) -> None:
    """A write costs nothing; to be sure of the replica a round trip of 100 ms and its eleven frames' bits."""
    waits = numbers(made.apps["client"].stdout, r"after (\d+\.\d+) ms")
    assert len(waits) == 10
    cut = [wait for wait in waits[1:] if wait != pytest.approx(100.06, abs=0.05)]
    assert len(cut) == 1, "the one that was written without a cable"
    assert 1000 < cut[0] < 5000
    assert made.apps["client"].stdout.count("written 0.000 ms") == 10


def mptcp(made: Recording) -> None:
    """Both paths, then Wi-Fi alone, then both again; what has to be sent anew makes a gap."""
    rates = numbers(made.apps["server"].stdout, r"(\d+\.\d) Mbit/s")
    assert len(rates) >= 15, "the last quarter of a second may be a part of one"
    both, alone, again = (sum(part) / len(part) for part in (rates[2:4], rates[9:12], rates[12:]))
    assert min(rates[4:6]) < 20, "what was under way on the cable is missed"
    assert 60 < alone < 105 < both, "Wi-Fi carries some 100 Mbit/s, the cable 18.5"
    assert again > alone + 10


def quic(made: Recording) -> None:
    """All three finish, and none has had less than a third of its share."""
    told = {name: numbers(made.apps[name].stdout, r" (\d+\.\d+) Mbit/s") for name in ("aioquic", "tcp")}
    took_s, size, version = numbers(made.apps["curl"].stdout, r"=([\d.]+)")
    assert (size, version) == (2_000_000, 3)
    rates = [told["aioquic"][0], told["tcp"][0], 8e-6 * size / took_s]
    assert min(rates) > 20 / 3 / 3
    assert max(8 * 2 / rate for rate in rates) > 3 * 8 * 2 / 20, "three objects need that much of the line"


EXAMPLES: dict[str, tuple[tuple[str, ...], Callable[[Recording], None]]] = {
    "web": ((DEFAULT,), web),
    "nat": ((DEFAULT,), nat),
    "echo": ((DEFAULT,), echo),
    "eyeballs": ((DEFAULT,), eyeballs),
    "wireguard": (("5.10", DEFAULT), wireguard),
    "redis": (("5.10", DEFAULT), redis),
    "mptcp": (NEW, mptcp),
    "quic": ((DEFAULT,), quic),
}


def played(name: str, place: Path, **settings: Any) -> Recording:
    return runner.run(scenario.load(SCENARIOS / "apps" / f"{name}.toml", **settings), place)


@pytest.mark.parametrize(("name", "kernel"), [(name, kernel) for name, (on, _) in EXAMPLES.items() for kernel in on])
def test_what_an_example_is_said_to_show_is_there(name: str, kernel: str, tmp_path: Path) -> None:
    made = played(name, tmp_path / "run", kernel=kernel)
    assert all(check.ok for check in made.summary.checks), made.summary.checks
    EXAMPLES[name][1](made)


@pytest.mark.parametrize("name", ["eyeballs", "redis"])
def test_an_example_has_the_same_bytes_twice(name: str, tmp_path: Path) -> None:
    first, again = (played(name, tmp_path / place) for place in ("one", "two"))
    assert records(first).read_bytes() == records(again).read_bytes()


def test_every_example_is_played() -> None:
    """But iperf3, which has bounds, and browser, whose root of 1 GB is for `make repeat`."""
    assert {path.stem for path in (SCENARIOS / "apps").glob("*.toml")} == {*EXAMPLES, "iperf3", "browser"}
