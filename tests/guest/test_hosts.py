# SPDX-License-Identifier: Apache-2.0
"""CPUs that need more room for registers than this one: AMX, and what comes after it. `amx_host.c` gives the guest's
kernel a host that judges its calls as the kernel of such a machine does, so these tests fail anywhere."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench import programs
from hourglass import runner, scenario
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine import virtual
from hourglass.errors import GuestError
from hourglass.host import sandbox

from .conftest import Simulate, records

pytestmark = pytest.mark.guest

SHORT = ("test.length=1", "test.delay=0.2")
LARGEST, TOO_LARGE = 65_536, 65_537
"""Bytes of the register area: the most that kernel/hooks/xsave_area.c has room for (AMX: 11,008), and more."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("amx") / "amx_host"
    source = Path(__file__).with_name("amx_host.c")
    subprocess.run(["gcc", "-static", "-O1", "-Wall", "-Werror", "-o", built, source], check=True)
    return built


@pytest.fixture
def host(program: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return `host(size)`: later guests run on a host whose CPU needs so many bytes. Without the sandbox, which allows
    neither the program nor its filter."""
    plain = virtual.command

    def simulated(size: int) -> None:
        monkeypatch.setattr(virtual, "command", lambda *arguments: [str(program), str(size), *plain(*arguments)])
        monkeypatch.setattr(sandbox, "ENABLED", set[str]())

    return simulated


@pytest.mark.parametrize("kernel", KERNELS)
def test_records_do_not_depend_on_the_size_of_the_cpus_registers(
    simulate: Simulate, host: Any, tmp_path: Path, kernel: str
) -> None:
    plain = simulate("L100M", *SHORT, kernel=kernel)
    host(LARGEST)
    run = runner.run(scenario.load("L100M", SHORT, kernel=kernel), tmp_path / "run")
    assert records(run).read_bytes() == records(plain).read_bytes()


def test_a_host_that_needs_more_stops_the_guest(host: Any, tmp_path: Path) -> None:
    """Show that the tests above can fail."""
    host(TOO_LARGE)
    with pytest.raises(GuestError) as failed:
        runner.run(scenario.load("L100M", SHORT, kernel=DEFAULT), tmp_path / "run")
    assert "ptrace set fp regs failed, errno = 14" in failed.value.log.read_text()


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_program_that_claims_registers_beyond_the_guests_goes_on(kernel: str, tmp_path: Path) -> None:
    """A handler sets the bits of AMX, and of what comes after it, in the frame of its signal. A host without these
    registers, or whose program did not ask for them, refuses such bits (EINVAL)."""
    folder = programs.root(tmp_path)
    run = runner.run(programs.repeated(folder, "claims", 3, kernel), tmp_path / "run")
    assert run.apps["programs"].status == "exit 0"
