# SPDX-License-Identifier: Apache-2.0
"""The same scenario, seed and kernel give the same bytes under any load. A knob at its default changes no packet."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hourglass import runner, scenario
from hourglass.builders.kernel import builder
from hourglass.builders.kernel import registry as kernels
from hourglass.contract.kernel_module import KernelModule
from tests.kernels import WITHOUT

from .conftest import KERNELS, Simulate, digests, records

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=1")


@pytest.fixture
def busy() -> Iterator[None]:
    """Two loops that keep two CPUs busy."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize("cc", ["cubic", "bbr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_same_bytes_on_a_busy_machine(simulate: Simulate, busy: None, kernel: str, cc: str) -> None:
    first = simulate("L100M", *SHORT, f"stack.cc={cc}", kernel=kernel)
    second = simulate("L100M", *SHORT, f"stack.cc={cc}", kernel=kernel, fresh=True)
    assert records(first).read_bytes() == records(second).read_bytes()
    assert first.summary.digest == second.summary.digest


@pytest.mark.parametrize("kernel", KERNELS)
def test_another_seed_is_another_run(simulate: Simulate, kernel: str) -> None:
    first = simulate("L100M", *SHORT, kernel=kernel)
    other = simulate("L100M", *SHORT, kernel=kernel, seed=2)
    assert first.summary.digest != other.summary.digest
    assert not set(digests(first).values()) & set(digests(other).values())


@pytest.mark.kernels
@pytest.mark.parametrize("kernel", KERNELS)
def test_tsq_knob_at_its_default_changes_no_packet(simulate: Simulate, kernel: str, monkeypatch, tmp_path) -> None:
    """A kernel with the original TCP output sends the same frames at the same ns, for both positions of the
    bottleneck."""
    bare = builder.build(kernel, without=WITHOUT)
    for name in ("L100M", "LR1000M"):
        with_hook = simulate(name, *SHORT, kernel=kernel)
        with monkeypatch.context() as patch:
            patch.setattr(kernels, "ensure", lambda *_, **__: bare)
            without = runner.run(scenario.load(name, SHORT, kernel=kernel), tmp_path / name)
        assert without.info.kernel.key != with_hook.info.kernel.key
        assert digests(without) == digests(with_hook)


@pytest.mark.kernels
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_part_that_draws_changes_no_packet(simulate: Simulate, kernel: str, monkeypatch, tmp_path) -> None:
    """A part of the kernel that draws random numbers, and that a scenario does not use, leaves all its records as they
    are."""
    module = KernelModule("draws", (("draws.c", (Path(__file__).parent / "inside/draws.c").read_text()),))
    plain = simulate("L100M", *SHORT, kernel=kernel)
    drawing_kernel = builder.build(kernel, modules=[module])
    monkeypatch.setattr(kernels, "ensure", lambda *_, **__: drawing_kernel)
    drawing = runner.run(scenario.load("L100M", SHORT, kernel=kernel), tmp_path / "drawing")
    assert drawing.info.kernel.key != plain.info.kernel.key
    assert records(drawing).read_bytes() == records(plain).read_bytes()


@pytest.mark.parametrize("loss", [(), ("testbed.link.1.loss=0.5%",)])  # losses: ACKs that wait in timers with slack
def test_measuring_less_changes_no_packet(simulate: Simulate, loss: tuple[str, ...]) -> None:
    full = simulate("L100M", *SHORT, *loss)
    reduced = simulate("L100M", *SHORT, *loss, "measure.tcp=0", "measure.devices=0")
    assert digests(full) == digests(reduced)
