# SPDX-License-Identifier: Apache-2.0
"""Checks that a picture shows data: it can be decoded, has the size of a figure, and has coloured marks."""

import re
from pathlib import Path
from xml.etree import ElementTree

from matplotlib.image import imread

LEAST = 300
"""Least pixels or points of the shorter side."""

COLOURFUL = 0.15
"""Least difference of a pixel's strongest and weakest channel, of 1: axes, grid and text are grey."""


def assert_drawn(path: Path) -> None:
    """Check that a PNG has at least one coloured pixel in 2,000, an SVG coloured shapes, and a PDF a sufficient
    size."""
    kinds = {".png": _png, ".svg": _svg, ".pdf": _pdf}
    kinds[path.suffix](path)


def _png(path: Path) -> None:
    pixels = imread(path)[:, :, :3]
    assert min(pixels.shape[:2]) >= LEAST
    assert ((pixels.max(axis=2) - pixels.min(axis=2)) > COLOURFUL).mean() > 1 / 2000


def _svg(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    assert min(float(root.attrib[side].removesuffix("pt")) for side in ("width", "height")) >= LEAST / 2
    colours = set(re.findall(r"(?:fill|stroke): #([0-9a-f]{6})", path.read_text()))
    assert any(len({colour[:2], colour[2:4], colour[4:]}) > 1 for colour in colours)


def _pdf(path: Path) -> None:
    content = path.read_bytes()
    assert content.startswith(b"%PDF-")
    assert content.rstrip().endswith(b"%%EOF")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
    assert box is not None
    assert min(map(float, box.groups())) >= LEAST / 2
