# SPDX-License-Identifier: Apache-2.0
"""`python -m hourglass.schema [FOLDER]` writes the JSON Schemas, to this package's folder unless you name another."""

import sys
from pathlib import Path

from hourglass.schema import schema_texts

PACKAGE = Path(__file__).parent


def main(arguments: list[str]) -> None:
    folder = Path(arguments[0]) if arguments else PACKAGE
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in schema_texts().items():
        (folder / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
