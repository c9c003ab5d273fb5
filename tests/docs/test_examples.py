# SPDX-License-Identifier: Apache-2.0
"""The pages show the product's output. Also tested: the rules of this comparison."""

import warnings
from pathlib import Path

import pytest

from .figures import formatted
from .output import agrees, updated
from .pages import PAGES, ROOT
from .play import Play, machine_differences


@pytest.mark.kernels
@pytest.mark.guest
def test_every_example_and_figure_is_current(tmp_path: Path) -> None:
    """One test in one folder: later commands use runs of earlier ones. With another point release of a kernel or other
    tools, figures may differ, which is a warning; all commands still have to work."""
    findings, differences = Play(tmp_path).all(), machine_differences()
    problems = [
        f"{finding.piece.position}: {finding.about}" for finding in findings if finding.failed or not differences
    ]
    assert not problems, "\n\n".join([*problems, "python -m tests.docs --update rewrites the pages"])
    if differences:
        warnings.warn(f"{differences}; python -m tests.docs --update rewrites them", stacklevel=1)


def test_all_pages_with_outputs_are_played() -> None:
    """`score.md` shows candidates of a reader."""
    guides = {page for folder in ("tutorials", "how-to") for page in (ROOT / "docs" / folder).glob("*.md")}
    with_outputs = {page for page in guides if "```console" in page.read_text()}
    assert with_outputs - set(PAGES) == {ROOT / "docs/how-to/score.md"}


@pytest.mark.parametrize(
    ("page_output", "printed", "expected"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("…\nd\n", "a\nd\n", True),
        ("usage: a …\n", "usage: a | b\n", True),
        ("usage: a …\n", "usage: b\n", False),
        ("time 2 s virtual in 0.10 s (20 x real time)\n", "time 2 s virtual in 3.45 s (0.6 x real time)\n", True),
        (
            "time 2 s virtual in 0.10 s\n",
            "time 2 s virtual in 0.10 s (20 x real time); faster: hourglass kernel tune\n",
            True,
        ),
        ("time 2 s virtual in 0.10 s\n", "time 3 s virtual in 0.10 s\n", False),
        ("run  runs/L100M-0123456789\n", "run  runs/L100M-abcdef0123\n", True),
        ("digest 0123456789ab\n", "digest 0123456789ac\n", False),
    ],
)
def test_an_output_agrees_with_its_excerpt(page_output: str, printed: str, expected: bool) -> None:
    assert agrees(page_output, printed) == expected


def test_an_updated_output_stays_abridged() -> None:
    printed = "head\n\nflow   1.25\nflow   2.50\nall    3.75\nrun  runs/x\n"
    assert updated("head\n…\nall     9.9\n…\n", printed) == "head\n…\nall    3.75\n…\n"
    assert updated("…\nflow   1\nall    2\nlost   3\n…\n", printed) == "…\nflow   1.25\nflow   2.50\nall    3.75\n…\n"
    assert updated("flow   1\n", printed) == printed
    assert updated("…\nrun  ru …\n", printed) == "…\nrun  ru …\n"
    assert updated("", printed) == ""


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [(45.63, "760", "45.6"), (226.4, "46", "226"), (0.08391, "0.084", "0.084"), (9.996, "7.60", "10.0"),
     (21807.6, "1,234", "21,808"), (1230.4, "9.999", "1230"), (0, "12", "0"), (84.87, "84.9", "84.9")],
)  # fmt: skip
def test_a_figure_is_written_in_the_digits_of_the_old_one(value: float, like: str, text: str) -> None:
    assert formatted(value, like) == text
