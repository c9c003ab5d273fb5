# SPDX-License-Identifier: Apache-2.0
"""Executes the notebooks of `docs/notebooks/`. `python -m tests.notebooks` stores their outputs."""

import contextlib
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "docs" / "notebooks"
PICTURE = "image/png"


def execute(path: Path, folder: Path) -> Any:
    """Execute a notebook in a folder and return it with its outputs. Its kernel listens on sockets in the folder."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    notebook = nbformat.read(path, as_version=4)
    local = Config({"KernelManager": {"transport": "ipc"}})
    with contextlib.chdir(folder):
        NotebookClient(notebook, config=local, timeout=600, startup_timeout=300, record_timing=False).execute()
    return notebook


def outputs(notebook: Any) -> list[list[dict[str, str]]]:
    """Return the outputs of each code cell by MIME type. A picture is "": its bytes depend on the fonts."""
    return [[_texts(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def _texts(output: Any) -> dict[str, str]:
    data = {"text/plain": output.text} if output.output_type == "stream" else dict(output.data)
    return {kind: "" if kind == PICTURE else text for kind, text in data.items()}
