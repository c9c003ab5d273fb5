# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.notebooks`: executes the notebooks and stores their outputs. Read the difference."""

import tempfile
from pathlib import Path

from .execute import FOLDER, execute


def main() -> None:
    """Execute each notebook in an empty folder and write it back."""
    import nbformat

    for path in sorted(FOLDER.glob("*.ipynb")):
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        for cell in notebook.cells:
            cell.metadata = {}
        nbformat.write(notebook, path)
        print(path.name)


if __name__ == "__main__":
    main()
