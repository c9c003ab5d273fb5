# SPDX-License-Identifier: Apache-2.0
"""Each kind of device, encapsulation, route, protocol and rule works in a guest. `inside/kinds.sh` makes it, and sends
a ping or a message through it where that is cheap.

The variants `wide` and `openvswitch` have tests here once they are built: `hourglass kernel build 6.1+wide`. They are
not worth their builds in CI."""

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
WIDE = (
    "ah", "dccp", "esp", "esp_cbc", "ipcomp", "ipset", "l2tp", "macsec", "netdevsim", "nft_everything", "psp", "sctp",
    "sctp_packets", "team", "tipc", "xfrm_interface", "xtables_policy",
)  # fmt: skip
VARIANTS = dict.fromkeys(WIDE, "wide") | {"openvswitch": "openvswitch"}
"""Case → the variant that it needs, if it needs one."""

SINCE = {"psp": "7.3", "nft_egress": "6.1"}
UNTIL = {"dccp": "6.12", "udplite": "6.12"}


def label(kernel: str, variant: str | None) -> str:
    """Return the name by which a command takes the kernel."""
    return f"{kernel}+{variant}" if variant else kernel


RUNS = [
    (kernel, variant)
    for kernel in KERNELS
    for variant in (None, "wide", "openvswitch")
    if variant is None or registry.read(label(kernel, variant))
]


def cases(kernel: str, variant: str | None) -> list[str]:
    """Return the names of the cases that need this variant of a kernel, or none."""
    order = list(KERNELS)
    return [
        name
        for name in CASES
        if VARIANTS.get(name) == variant
        and order.index(SINCE.get(name, order[0])) <= order.index(kernel) <= order.index(UNTIL.get(name, order[-1]))
    ]


@functools.cache
def results(kernel: str, variant: str | None) -> dict[str, str]:
    """Return the outcome of each case: "ok", or its output. All cases of a kernel share a guest."""
    command = [
        str(Path(sys.executable).with_name("hourglass")), "box", "--kernel", label(kernel, variant),
        "--root", "debian:12", *(f"--package={name}" for name in ("iptables", "ipset", "nftables", "python3")),
        "--", "sh", f"./{SCRIPT.name}", *cases(kernel, variant),
    ]  # fmt: skip
    run = subprocess.run(command, cwd=SCRIPT.parent, text=True, capture_output=True, check=False)
    lines = [re.fullmatch(r"(not )?ok (\w+)(?:: (.*))?", line) for line in run.stdout.splitlines()]
    outcomes = {match[2]: "ok" if match[1] is None else match[3] for match in lines if match}
    assert outcomes, run.stdout + run.stderr
    return outcomes


@pytest.mark.parametrize(
    ("kernel", "variant", "case"),
    [
        pytest.param(kernel, variant, case, id=f"{label(kernel, variant)}-{case}")
        for kernel, variant in RUNS
        for case in cases(kernel, variant)
    ],
)
def test_each_kind_works(kernel: str, variant: str | None, case: str) -> None:
    assert results(kernel, variant)[case] == "ok"
