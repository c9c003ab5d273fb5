# SPDX-License-Identifier: Apache-2.0
"""Renders templates as pages that need no other file, and data for their scripts."""

import base64
import gzip
import json
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hourglass.report.comparison_cells import NO_VALUE
from hourglass.results.sections import value_text


def render(template: str, scripts: Sequence[str] = (), **values: Any) -> str:
    """Return the text of a template, a page with the style and these scripts."""
    ready = {"style": Markup(_file("report.css")), "scripts": [Markup(_file(name)) for name in scripts]}
    return _environment().get_template(template).render(values | ready)


def json_text(value: Any) -> Markup:
    """Return JSON that is safe in a script element: no text in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def packed(value: Any) -> str:
    """Return JSON as base64 of gzip."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hourglass", "report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["shown"] = lambda value, kind: value_text(value, kind, NO_VALUE)
    return environment


def _file(name: str) -> str:
    return resources.files("hourglass.report").joinpath(name).read_text("utf-8")
