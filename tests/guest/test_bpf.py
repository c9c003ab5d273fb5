# SPDX-License-Identifier: Apache-2.0
"""Congestion controls in BPF: the guest's kernel compiles them, and they send what the same code in C sends."""

from pathlib import Path

import polars as pl
import pytest

from hourglass.cli.kernel_new import TEMPLATES
from hourglass.errors import GuestError
from hourglass.results.recording import Recording

from .conftest import Simulate

pytestmark = [pytest.mark.guest, pytest.mark.kernels]

KERNEL = "7.3+bpf"
TEMPLATE = TEMPLATES / "aimd.bpf.c"
SHORT = "test.length=10"


def rows(run: Recording) -> pl.DataFrame:
    return run.tcp.filter("sender")


def test_aimd_in_bpf_and_in_c_give_the_same_rows(simulate: Simulate) -> None:
    """Ports and the seeds of hash functions are drawn at random, so addresses and neighbours' timers differ."""
    in_bpf = simulate("L100M", SHORT, f"stack.cc={TEMPLATE}", kernel=KERNEL)
    in_c = simulate("L100M", SHORT, f"stack.cc={TEMPLATES / 'aimd.c'}", kernel="7.3")
    assert {flow.cc for flow in in_bpf.summary.flows} == {"aimd"}
    assert rows(in_bpf).height > 3900
    assert rows(in_bpf).equals(rows(in_c))
    assert (
        in_bpf.summary.digest
        == simulate("L100M", SHORT, f"stack.cc={TEMPLATE}", kernel=KERNEL, fresh=True).summary.digest
    )


def test_the_message_of_the_verifier_is_the_error(simulate: Simulate, tmp_path: Path) -> None:
    file = tmp_path / "wild.bpf.c"
    text = TEMPLATE.read_text()
    file.write_text(text.replace("ca->peak = tp->snd_cwnd;", "*(__u32 *)(long)tp->snd_cwnd = 1;"))
    with pytest.raises(GuestError, match=r"invalid mem access .scalar."):
        simulate("L100M", SHORT, f"stack.cc={file}", kernel=KERNEL)
