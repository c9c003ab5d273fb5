# SPDX-License-Identifier: Apache-2.0
"""Links from a page to files of the repository that are outside `docs/`, and links of included pages into `docs/`.

A link to an included Markdown page leads to its page on the site. A link to another file leads to a copy. A link to a
folder becomes plain text.
"""

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE_OF_FILE = {
    "ARCHITECTURE.md": "contributing/architecture",
    "ARTIFACT.md": "results/artifact",
    "CHANGELOG.md": "contributing/changes",
    "CODE_OF_CONDUCT.md": "contributing/conduct",
    "CONTRIBUTING.md": "contributing/index",
    "ROADMAP.md": "contributing/roadmap",
    "SECURITY.md": "contributing/security",
}
"""Files at the top of the repository, and the pages that include them."""


def resolve(app: Any, doctree: nodes.document) -> None:
    """Resolve the links of a page that Sphinx cannot."""
    page = app.env.docname
    for node in list(doctree.findall(addnodes.pending_xref)):
        if node["reftype"] == "myst" and not (node["refdomain"] == "doc" and node["reftarget"] in app.env.found_docs):
            target, _, fragment = node["reftarget"].partition("#")
            fragment = node.get("reftargetid") or fragment
            for base in ((DOCS / page).parent, ROOT):
                path = Path(os.path.normpath(base / target))
                if retarget(node, path if path.exists() else path.with_name(f"{path.name}.md"), fragment):
                    break


def retarget(node: nodes.Element, path: Path, fragment: str) -> bool:
    """Point a link at an existing path of the repository; return whether that was possible."""
    docname = PAGE_OF_FILE.get(path.name) if path.parent == ROOT else None
    if path.is_relative_to(DOCS) and path.is_file():
        docname = str(path.relative_to(DOCS).with_suffix(""))
    if docname:
        node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", docname, fragment or None
    elif path.is_dir():
        node.replace_self(nodes.inline("", "", *node.children[0].children))
    elif path.is_file():
        copy = addnodes.download_reference("", "", *node.children, reftarget=f"/../{path.relative_to(ROOT)}")
        node.replace_self(copy)
    else:
        return False
    return True
