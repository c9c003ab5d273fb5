# SPDX-License-Identifier: Apache-2.0
"""Kernels of wheels: used if they fit this package, otherwise refused with a remedy."""

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from hourglass import __version__
from hourglass.builders import agent, prebuilt, root
from hourglass.builders.kernel import registry
from hourglass.builders.kernel.recipe import Recipe
from hourglass.contract.kernels import DEFAULT, KERNELS
from hourglass.errors import MissingError

NAME = "6.12"


def write_set(package: Path, kernel: str, *, version: str = __version__, ingredients: str | None = None) -> None:
    """Write a prebuilt set with files of one word."""
    folder = package / "built/kernels" / kernel
    folder.mkdir(parents=True)
    key = ingredients or Recipe(kernel, "", prebuilt.kernel_version(kernel)).ingredients_key()
    description = {"release": f"{kernel}.1-hourglass", "hz": 1000, "tuned": True, "key": "k", "ingredients": key}
    (folder / "kernel.json").write_text(json.dumps(description))
    manifest = {"version": version, "commit": "abc", "kernels": [kernel], "files": {}, "tools": []}
    manifest["roots"] = {"plain": "p", "wifi": "w"}
    (package / "built/built.json").write_text(json.dumps(manifest))


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Forget cached results."""
    for cached_function in (prebuilt.of_front, prebuilt.of_kernel):
        cached_function.cache_clear()
    yield
    for cached_function in (prebuilt.of_front, prebuilt.of_kernel):
        cached_function.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the empty package of a kernel, on the search path."""
    folder = tmp_path / "hourglass_kernel_6_12"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return folder


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the checkout with a front wheel for 6.1. No compiler may be called."""
    write_set(tmp_path / "data", "6.1")
    monkeypatch.setattr(prebuilt.resources, "DATA", tmp_path / "data")
    monkeypatch.setattr("hourglass.builders.kernel.recipe.compiler", lambda: pytest.fail("a compiler was asked"))


def test_a_checkout_has_no_prebuilt_kernels() -> None:
    assert (prebuilt.kernel("6.1"), prebuilt.agent(), prebuilt.root(False, "bookworm")) == (None, None, None)


def test_a_run_uses_the_kernels_of_wheels(installed: None, package: Path, tmp_path: Path) -> None:
    write_set(package, NAME)
    assert registry.ensure("6.1").linux == tmp_path / "data/built/kernels/6.1/linux"
    assert registry.ensure(NAME).linux == package / f"built/kernels/{NAME}/linux"
    assert (registry.ensure(NAME).key, registry.ensure(NAME).release, registry.ensure(NAME).tuned) == (
        "k",
        f"{NAME}.1-hourglass",
        True,
    )
    assert root.image(wifi=True) == tmp_path / "data/built/root/wifi.cpio"
    assert (root.key(), root.key(wifi=True)) == ("p", "w")
    assert agent.binary() == tmp_path / "data/built/agent"


@pytest.mark.parametrize(
    ("version", "remedy"),
    [("0.1.9", f"hourglass_net_kernel_6_12-{__version__}-*.whl"),
     ("9.10.0", "hourglass_net-9.10.0-*.whl")],
)  # fmt: skip
def test_a_kernel_of_another_version_is_refused(installed: None, package: Path, version: str, remedy: str) -> None:
    write_set(package, NAME, version=version)
    with pytest.raises(MissingError) as refused:
        registry.ensure(NAME)
    assert (
        str(refused.value) == f"hourglass-net-kernel-6.12 {version} does not match hourglass-net {__version__}; "
        f"to fix: {sys.executable} -m pip install {remedy}"
    )


def test_a_kernel_of_other_drivers_is_refused(installed: None, package: Path) -> None:
    write_set(package, NAME, ingredients="other")
    with pytest.raises(MissingError, match=r"has other drivers or hooks than hourglass-net .*commit abc"):
        registry.ensure(NAME)


def test_a_checkout_builds_kernels_that_do_not_fit(package: Path) -> None:
    write_set(package, NAME, ingredients="other")
    assert prebuilt.kernel(NAME) is None


def test_a_checkout_uses_kernels_that_fit(package: Path) -> None:
    write_set(package, NAME)
    assert prebuilt.kernel(NAME) is not None


def test_the_extra_names_the_kernels_wheels_of_this_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    requirements = [f"hourglass-net-kernel-{name}=={__version__}" for name in KERNELS if name != DEFAULT]
    assert project["optional-dependencies"]["kernels"] == requirements
