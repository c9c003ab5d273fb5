# SPDX-License-Identifier: Apache-2.0
"""Configure Sphinx for the documentation site. `make docs` builds it; `website/` has the parts that are Python."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import hourglass

project = "Hourglass"
author = "Hourglass developers"
release = version = hourglass.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "website"]
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = f"Hourglass {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = ["_templates"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"
"""The notebooks are stored with their outputs; `tests/notebooks` executes them."""

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
default_role = "literal"
python_use_unqualified_type_names = True
toc_object_entries = False
nitpicky = False
