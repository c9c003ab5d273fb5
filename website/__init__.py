# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site (`make docs`).

| module | purpose |
|---|---|
| `__main__` | `python -m website`: makes the gallery's runs and calls Sphinx |
| `commands` | the reference of the command line, from the typer app |
| `docstrings` | the examples in docstrings |
| `fences` | the names of files above listings |
| `gallery` | the runs that `docs/gallery/gallery.toml` declares, their reports and pictures |
| `links` | links from a page to files outside `docs/` |

The package is a Sphinx extension. It adds the directives `commands` and `gallery`.
"""

from typing import Any

from website import commands, docstrings, fences, gallery, links


def setup(app: Any) -> dict[str, bool]:
    """Add the directives and the treatment of links to Sphinx."""
    app.add_config_value("gallery", None, "html", types=[str, type(None)])
    app.add_directive("commands", commands.Commands)
    app.add_directive("gallery", gallery.Gallery)
    app.connect("source-read", fences.add_captions)
    app.connect("doctree-read", links.resolve)
    app.connect("autodoc-process-docstring", docstrings.mark_examples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
