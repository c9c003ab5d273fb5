# SPDX-License-Identifier: Apache-2.0
"""Each kind of device, encapsulation, route, protocol and rule works in a guest: `inside/kinds.sh` makes it, and sends
a ping or a message through it where that is cheap.

The variant `wide` has tests here once it is built: `hourglass kernel build 6.1+wide`. It is not
worth its build in CI."""

import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hourglass.builders.kernel import registry
from hourglass.contract.kernels import KERNELS

pytestmark = pytest.mark.guest

SCRIPT = Path(__file__).parent / "inside" / "kinds.sh"
CASES = re.findall(r"^case_(\w+)\(\)", SCRIPT.read_text(), re.MULTILINE)
WIDE = {
    "ah", "dccp", "esp", "esp_cbc", "ipcomp", "ipset", "ipvlan", "ipvtap", "l2tp", "macsec", "netdevsim",
    "nft_egress", "nft_everything", "openvswitch", "psp", "sctp", "sctp_packets", "tc_ct", "team", "tipc",
    "xfrm_interface", "xtables",
}  # fmt: skip
"""The cases that need the variant `wide`, with multipath routes since 6.12, and with FOU on 5.10."""

SINCE = {"psp": "7.3", "nft_egress": "6.1"}
UNTIL = {"dccp": "6.12"}
RUNS = [
    *((kernel, False) for kernel in KERNELS),
    *((kernel, True) for kernel in KERNELS if registry.read(f"{kernel}+wide")),
]


def cases(kernel: str, wide: bool) -> list[str]:
    """Return the names of the cases of a kernel: those that need `wide`, or the others."""
    order = list(KERNELS)
    in_wide = WIDE | {"5.10": {"fou"}, "6.1": set()}.get(kernel, {"multipath"})
    return [
        name
        for name in CASES
        if (name in in_wide) == wide
        and order.index(SINCE.get(name, order[0])) <= order.index(kernel) <= order.index(UNTIL.get(name, order[-1]))
    ]


@functools.cache
def results(kernel: str, wide: bool) -> dict[str, str]:
    """Return the outcome of each case: "ok", or its output. All cases of a kernel share a guest."""
    command = [
        str(Path(sys.executable).with_name("hourglass")), "box", "--kernel", f"{kernel}+wide" if wide else kernel,
        "--root", "debian:12", *(f"--package={name}" for name in ("iptables", "ipset", "nftables", "python3")),
        "--", "sh", f"./{SCRIPT.name}", *cases(kernel, wide),
    ]  # fmt: skip
    run = subprocess.run(command, cwd=SCRIPT.parent, text=True, capture_output=True, check=False)
    lines = [re.fullmatch(r"(not )?ok (\w+)(?:: (.*))?", line) for line in run.stdout.splitlines()]
    outcomes = {match[2]: "ok" if match[1] is None else match[3] for match in lines if match}
    assert outcomes, run.stdout + run.stderr
    return outcomes


@pytest.mark.parametrize(
    ("kernel", "wide", "case"),
    [
        pytest.param(kernel, wide, case, id=f"{kernel}{'+wide' if wide else ''}-{case}")
        for kernel, wide in RUNS
        for case in cases(kernel, wide)
    ],
)
def test_it_works(kernel: str, wide: bool, case: str) -> None:
    assert results(kernel, wide)[case] == "ok"
