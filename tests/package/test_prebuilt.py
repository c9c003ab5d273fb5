# SPDX-License-Identifier: Apache-2.0
"""A released wheel: a run of it asks nobody for anything and gives the checkout's bytes."""

import json
import os
import random
import subprocess
import zipfile
from pathlib import Path

import pytest

from hourglass import __version__, runner, scenario
from hourglass.contract.kernels import DEFAULT
from hourglass.engine import prebuilt, root
from release import built
from release import wheel as wheels

from .conftest import Installed

pytestmark = pytest.mark.guest

EPOCH = 1_700_000_000
SHORT = ("test.length=1", "test.delay=0.2")
MOST_BYTES = 30_000_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prebuilt set of this checkout, with the kernel that is there, and without the list of sources."""
    folder = tmp_path_factory.mktemp("set") / "built"
    built.make(folder, DEFAULT, tuned=False, sources=False)
    return folder


@pytest.fixture(scope="module")
def released(wheel: Path, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.pack(wheels.front(wheel, made), tmp_path_factory.mktemp("dist"), EPOCH)


class Bare(Installed):
    """The released wheel where nothing else is: no program on the search path, a home that is no folder."""

    def __call__(self, program: str, *words: str) -> str:
        done = self.attempt(program, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def attempt(self, program: str, *words: str) -> subprocess.CompletedProcess[str]:
        nowhere = str(self.here / "nowhere")
        env = {
            "PATH": nowhere,
            "HOME": str(self.programs / "hourglass"),
            "TMPDIR": str(self.here),
            "PYTHONPATH": self.env["PYTHONPATH"],
        }
        argv = [self.programs / program, *words]
        return subprocess.run(argv, cwd=self.here, env=env, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def bare(released: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    return Bare(released, tmp_path_factory.mktemp("bare"))


def test_a_run_needs_nothing_and_gives_the_checkouts_bytes(bare: Bare, tmp_path: Path) -> None:
    settings = [word for one in SHORT for word in ("--set", one)]
    told = json.loads(bare("hourglass", "run", "L100M", "--json", "--out", "run", *settings))
    ours = runner.run(scenario.load("L100M", SHORT), tmp_path / "run")
    assert told["digest"] == ours.summary.digest
    described = [json.loads((place / "run.json").read_text()) for place in (bare.here / "run", ours.path)]
    assert described[0]["identity"] == described[1]["identity"]
    assert described[0]["kernel"] == described[1]["kernel"]
    assert (bare.here / "run/run.png").stat().st_size > 0
    cache = bare.here / f"hourglass-{os.getuid()}"
    needed = {"cpus", "known", "matplotlib"}
    assert needed <= {path.name for path in cache.iterdir()} <= needed | {"report"}


def test_it_says_what_it_is(bare: Bare) -> None:
    lines = bare("hourglass", "--version").splitlines()
    assert lines[0] == f"hourglass {__version__} (commit {prebuilt.commit()})"
    assert [line.split(maxsplit=2)[2] for line in lines if line.startswith(f"{DEFAULT} ")] == ["in this package"]
    told = bare("hourglass", "doctor")
    assert "ok      hourglass: " in told
    assert "lacks   kernel build: " in told
    assert "ok      cache: " in told
    assert DEFAULT in bare("hourglass", "kernel", "list")


def test_a_damaged_file_is_found_and_another_kernel_refused(bare: Bare, made: Path) -> None:
    """What was installed is changed and put right again."""
    (place,) = (bare.programs.parent / "lib").glob("python*/site-packages/hourglass/data/built")
    for name, change, said in [
        ("agent", b"x", "not as it was released: agent"),
        (f"kernels/{DEFAULT}/kernel.json", b"", "has a kernel of other drivers or hooks"),
    ]:
        content = (made / name).read_bytes()
        changed = content + change if change else content.replace(b'"ingredients": "', b'"ingredients": "0')
        (place / name).write_bytes(changed)
        told = bare.attempt("hourglass", "doctor")
        assert told.returncode == 3
        assert said in told.stdout
        if not change:
            refused = bare.attempt("hourglass", "run", "L100M")
            assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)
            assert said in refused.stderr
        (place / name).write_bytes(content)


def test_the_set_is_complete_and_the_wheel_small(made: Path, released: Path) -> None:
    described = json.loads((made / prebuilt.FILE).read_text())
    there = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    assert described["files"].keys() == there - {prebuilt.FILE}
    assert described["roots"] == {"plain": root.key(), "wifi": root.key(wifi=True)}
    licences = "".join(path.read_text() for path in (made / "licences").iterdir())
    assert all(
        word in licences for word in ("iproute2", "GNU General Public License", "glibc (statically linked)", "arrow")
    )
    assert released.stat().st_size < MOST_BYTES


def test_bytes_follow_from_names_and_contents_alone(tmp_path: Path, wheel: Path, made: Path) -> None:
    texts = {name: one for name, one in wheels.front(wheel, made).items() if not name.endswith((".cpio", "linux"))}
    packed = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        items = list(texts.items())
        random.Random(number).shuffle(items)
        packed.append(wheels.pack(dict(items), tmp_path / str(number), EPOCH))
    assert packed[0].read_bytes() == packed[1].read_bytes()
    with zipfile.ZipFile(packed[0]) as archive:
        modes = {member.filename: member.external_attr >> 16 & 0o777 for member in archive.infolist()}
        record = archive.read(next(name for name in modes if name.endswith("/RECORD"))).decode()
    assert modes["hourglass/data/built/agent"] == 0o755
    assert {line.rsplit(",", 2)[0] for line in record.splitlines()} == modes.keys()
