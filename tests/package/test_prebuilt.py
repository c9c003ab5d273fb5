# SPDX-License-Identifier: Apache-2.0
"""A released wheel: its runs need no network and no tools and have the checkout's bytes."""

import json
import os
import random
import subprocess
import zipfile
from pathlib import Path

import pytest

from hourglass import __version__, runner, scenario
from hourglass.builders import prebuilt, root
from hourglass.contract.kernels import DEFAULT
from hourglass.schema import SCHEMAS
from release import built
from release import wheel as wheels

from .conftest import Installation

pytestmark = [pytest.mark.guest, pytest.mark.slow]

EPOCH = 1_700_000_000
SHORT = ("test.length=1", "test.delay=0.2")
MOST_BYTES = 30_000_000


@pytest.fixture(scope="module")
def built_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the prebuilt set of this checkout, with the cached kernel and without the list of sources."""
    folder = tmp_path_factory.mktemp("set") / "built"
    built.make(folder, DEFAULT, tuned=False, sources=False)
    return folder


@pytest.fixture(scope="module")
def release_wheel(wheel: Path, built_set: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.pack(wheels.front(wheel, built_set), tmp_path_factory.mktemp("dist"), EPOCH)


class BareInstallation(Installation):
    """The released wheel in an empty environment: no program on the search path, a home that is no folder."""

    def __call__(self, program: str, *arguments: str) -> str:
        result = self.attempt(program, *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def attempt(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        nowhere = str(self.folder / "nowhere")
        env = {
            "PATH": nowhere,
            "HOME": str(self.programs / "hourglass"),
            "TMPDIR": str(self.folder),
            "PYTHONPATH": self.env["PYTHONPATH"],
        }
        argv = [self.programs / program, *arguments]
        return subprocess.run(argv, cwd=self.folder, env=env, text=True, capture_output=True, check=False)


@pytest.fixture(scope="module")
def bare(release_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> BareInstallation:
    return BareInstallation(release_wheel, tmp_path_factory.mktemp("bare"))


def test_a_run_needs_nothing_and_has_the_checkouts_bytes(bare: BareInstallation, tmp_path: Path) -> None:
    settings = [option for setting in SHORT for option in ("--set", setting)]
    answer = json.loads(bare("hourglass", "run", "L100M", "--json", "--out", "run", *settings))
    reference = runner.run(scenario.load("L100M", SHORT), tmp_path / "run")
    assert answer["digest"] == reference.summary.digest
    metadata = [json.loads((folder / "run.json").read_text()) for folder in (bare.folder / "run", reference.path)]
    assert metadata[0]["identity"] == metadata[1]["identity"]
    assert metadata[0]["kernel"] == metadata[1]["kernel"]
    assert (bare.folder / "run/run.png").stat().st_size > 0
    cache = bare.folder / f"hourglass-{os.getuid()}"
    needed = {"cpus", "known", "matplotlib"}
    assert needed <= {path.name for path in cache.iterdir()} <= needed | {"report", "uses.lock"}


def test_version_and_doctor_describe_the_package(bare: BareInstallation) -> None:
    lines = bare("hourglass", "--version").splitlines()
    assert lines[0] == f"hourglass {__version__} (commit {prebuilt.commit()})"
    assert [line.split(maxsplit=2)[2] for line in lines if line.startswith(f"{DEFAULT} ")] == ["in this package"]
    report = bare("hourglass", "doctor")
    assert "ok      hourglass-net: " in report
    assert "lacks   kernel build: " in report
    assert "ok      cache: " in report
    assert DEFAULT in bare("hourglass", "kernel", "list")


def test_damaged_files_and_other_kernels_are_refused(bare: BareInstallation, built_set: Path) -> None:
    """Change an installed file, check the errors, and restore the file."""
    (data_folder,) = (bare.programs.parent / "lib").glob("python*/site-packages/hourglass/data/built")
    for name, change, message in [
        ("agent", b"x", "changed since its release: agent"),
        (f"kernels/{DEFAULT}/kernel.json", b"", "has other drivers or hooks than"),
    ]:
        content = (built_set / name).read_bytes()
        changed = content + change if change else content.replace(b'"ingredients": "', b'"ingredients": "0')
        (data_folder / name).write_bytes(changed)
        report = bare.attempt("hourglass", "doctor")
        assert report.returncode == 3
        assert message in report.stdout
        if not change:
            refused = bare.attempt("hourglass", "run", "L100M")
            assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)
            assert message in refused.stderr
        (data_folder / name).write_bytes(content)


def test_the_set_is_complete_and_the_wheel_small(built_set: Path, release_wheel: Path) -> None:
    description = json.loads((built_set / prebuilt.FILE).read_text())
    files = {str(path.relative_to(built_set)) for path in built_set.rglob("*") if path.is_file()}
    assert description["files"].keys() == files - {prebuilt.FILE}
    assert description["roots"] == {"plain": root.key(), "wifi": root.key(wifi=True)}
    licences = "".join(path.read_text() for path in (built_set / "licences").iterdir())
    assert all(
        word in licences for word in ("iproute2", "GNU General Public License", "glibc (statically linked)", "arrow")
    )
    assert release_wheel.stat().st_size < MOST_BYTES


def test_the_wheel_has_the_schemas(release_wheel: Path) -> None:
    with zipfile.ZipFile(release_wheel) as archive:
        schemas = {name: json.loads(archive.read(f"hourglass/schema/{name}")) for name in SCHEMAS}
    assert schemas == {name: make() for name, make in SCHEMAS.items()}


def test_bytes_follow_from_names_and_contents_alone(tmp_path: Path, wheel: Path, built_set: Path) -> None:
    texts = {
        name: content
        for name, content in wheels.front(wheel, built_set).items()
        if not name.endswith((".cpio", "linux"))
    }
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
