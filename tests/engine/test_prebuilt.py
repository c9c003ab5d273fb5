# SPDX-License-Identifier: Apache-2.0
"""Kernels that wheels bring: taken if they go with this package, refused with what helps if not."""

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hourglass import __version__
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.engine import agent, prebuilt, root
from hourglass.engine.kernel import store
from hourglass.engine.kernel.recipe import Recipe
from hourglass.errors import MissingError

NAME = "6.12"


def lay(place: Path, kernel: str, *, version: str = __version__, ingredients: str | None = None) -> None:
    """A prebuilt set whose files are a word each."""
    folder = place / "built/kernels" / kernel
    folder.mkdir(parents=True)
    made_of = ingredients or Recipe(kernel, "", prebuilt.kernel_version(kernel)).ingredients_key()
    about = {"release": f"{kernel}.1-hourglass", "hz": 1000, "tuned": True, "key": "k", "ingredients": made_of}
    (folder / "kernel.json").write_text(json.dumps(about))
    described = {"version": version, "commit": "abc", "kernels": [kernel], "files": {}, "tools": []}
    described["roots"] = {"plain": "p", "wifi": "w"}
    (place / "built/built.json").write_text(json.dumps(described))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """What was found once is forgotten."""
    for found in (prebuilt.of_front, prebuilt.of_kernel):
        found.cache_clear()
    yield
    for found in (prebuilt.of_front, prebuilt.of_kernel):
        found.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty package of a kernel, on the search path."""
    place = tmp_path / "hourglass_kernel_6_12"
    place.mkdir()
    (place / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return place


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A front wheel with 6.1 in place of the checkout. No compiler may be asked."""
    lay(tmp_path / "data", "6.1")
    monkeypatch.setattr(prebuilt.resources, "DATA", tmp_path / "data")
    monkeypatch.setattr("hourglass.engine.kernel.recipe.compiler", lambda: pytest.fail("a compiler was asked"))


def test_a_checkout_brings_nothing() -> None:
    assert (prebuilt.kernel("6.1"), prebuilt.agent(), prebuilt.root(False, "bookworm")) == (None, None, None)


def test_a_run_takes_what_the_wheels_bring(installed: None, package: Path, tmp_path: Path) -> None:
    lay(package, NAME)
    assert store.ensure("6.1").linux == tmp_path / "data/built/kernels/6.1/linux"
    assert store.ensure(NAME).linux == package / f"built/kernels/{NAME}/linux"
    assert (store.ensure(NAME).key, store.ensure(NAME).release, store.ensure(NAME).tuned) == (
        "k",
        f"{NAME}.1-hourglass",
        True,
    )
    assert root.image(wifi=True) == tmp_path / "data/built/root/wifi.cpio"
    assert (root.key(), root.key(wifi=True)) == ("p", "w")
    assert agent.binary() == tmp_path / "data/built/agent"


@pytest.mark.parametrize(
    ("version", "remedy"),
    [("0.1.9", f"hourglass_kernel_6_12-{__version__}-*.whl"),
     ("9.10.0", "hourglass-9.10.0-*.whl")],
)  # fmt: skip
def test_a_kernel_of_another_version_is_refused(installed: None, package: Path, version: str, remedy: str) -> None:
    lay(package, NAME, version=version)
    with pytest.raises(MissingError) as refused:
        store.ensure(NAME)
    assert (
        str(refused.value) == f"hourglass-kernel-6.12 {version} does not go with hourglass {__version__}; "
        f"to fix: {sys.executable} -m pip install {remedy}"
    )


def test_a_kernel_of_other_drivers_is_refused(installed: None, package: Path) -> None:
    lay(package, NAME, ingredients="other")
    with pytest.raises(MissingError, match=r"has a kernel of other drivers or hooks than hourglass .*commit abc"):
        store.ensure(NAME)


def test_a_checkout_builds_what_does_not_fit(package: Path) -> None:
    lay(package, NAME, ingredients="other")
    assert prebuilt.kernel(NAME) is None


def test_a_checkout_takes_what_fits(package: Path) -> None:
    lay(package, NAME)
    assert prebuilt.kernel(NAME) is not None


def test_the_extra_names_the_kernels_wheels_of_this_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    wanted = [f"hourglass-kernel-{name}=={__version__}" for name in KERNELS if name != DEFAULT]
    assert project["optional-dependencies"]["kernels"] == wanted
