# SPDX-License-Identifier: Apache-2.0
"""The pages are what the product does; and the rules by which that is found out."""

import warnings
from pathlib import Path

import pytest

from .figures import written
from .output import agrees, renewed
from .play import Play, elsewhere


@pytest.mark.guest
def test_every_example_and_figure_is_of_today(tmp_path: Path) -> None:
    """One test, in one folder: later commands use earlier ones' runs. With another point release of a kernel or other
    tools figures may differ, which is a warning; everything still has to work."""
    findings, differ = Play(tmp_path).all(), elsewhere()
    wrong = [f"{one.piece.place}: {one.about}" for one in findings if one.failed or not differ]
    assert not wrong, "\n\n".join([*wrong, "python -m tests.docs --update writes the pages anew"])
    if differ:
        warnings.warn(f"{differ}; python -m tests.docs --update writes them anew", stacklevel=1)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
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
def test_what_agrees(shown: str, printed: str, same: bool) -> None:
    assert agrees(shown, printed) == same


def test_an_output_is_renewed_as_it_is_abridged() -> None:
    printed = "head\n\nflow   1.25\nflow   2.50\nall    3.75\nrun  runs/x\n"
    assert renewed("head\n…\nall     9.9\n…\n", printed) == "head\n…\nall    3.75\n…\n"
    assert renewed("…\nflow   1\nall    2\nlost   3\n…\n", printed) == "…\nflow   1.25\nflow   2.50\nall    3.75\n…\n"
    assert renewed("flow   1\n", printed) == printed
    assert renewed("…\nrun  ru …\n", printed) == "…\nrun  ru …\n"
    assert renewed("", printed) == ""


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [(45.63, "760", "45.6"), (226.4, "46", "226"), (0.08391, "0.084", "0.084"), (9.996, "7.60", "10.0"),
     (21807.6, "1,234", "21,808"), (1230.4, "9.999", "1230"), (0, "12", "0"), (84.87, "84.9", "84.9")],
)  # fmt: skip
def test_a_figure_is_written_in_the_digits_of_the_old_one(value: float, like: str, text: str) -> None:
    assert written(value, like) == text
