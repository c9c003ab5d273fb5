# SPDX-License-Identifier: Apache-2.0
"""The notebooks give the outputs that are stored in them, byte for byte."""

import warnings
from pathlib import Path

import pytest
from docs.play import machine_differences

from .execute import FOLDER, PICTURE, execute, outputs

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_three_notebooks_exist() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-run", "queues", "sweep"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_stored_notebook_has_outputs_and_a_picture(path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    stored = outputs(nbformat.read(path, as_version=4))
    assert any(PICTURE in output for cell in stored for output in cell)


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_gives_its_outputs_again(path: Path, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    fresh, stored = outputs(execute(path, tmp_path)), outputs(nbformat.read(path, as_version=4))
    if fresh != stored and (reason := machine_differences()):
        warnings.warn(f"{reason}; python -m tests.notebooks stores today's outputs", stacklevel=1)
    else:
        assert fresh == stored
