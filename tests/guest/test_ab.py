# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel ab` with two versions of a file: what a changed line moves, and what a changed comment does not."""

from pathlib import Path
from typing import Any

import pytest

from hourglass.campaign.ab import Comparison, ab
from hourglass.cli.kernel_new import new
from hourglass.errors import InputError

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=0.1")


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a scenario, and a congestion control and a qdisc in two folders."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        new(tmp_path / name / "mine.c", "aimd", None)
        new(tmp_path / name / "fifo.c", "sojourn", None)
    return tmp_path


def changed(path: Path, old: str, by: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, by))


def compared(first: str, second: str, *more: str, **options: Any) -> Comparison:
    return ab(first, second, ["R10M"], overrides=[*SHORT, *more], kernel="6.12", **options)


def test_a_comment_moves_no_byte_and_a_line_moves_figures(versions: Path) -> None:
    changed(versions / "b/mine.c", "/* Each loss", "/* With each loss")
    queue = "stack.router.qdisc=pfifo limit 30"
    same = compared("a/mine.c", "b/mine.c", queue)
    keys = {side.kernel.key for side in same.sides}
    assert [side.name for side in same.sides] == ["a/mine.c", "b/mine.c"]
    assert len(keys) == 2, "they are two kernels"
    assert (same.moved, same.scenarios[0].same, len(same.scenarios[0].pairs)) == (False, 5, 5)
    changed(versions / "b/mine.c", "share __read_mostly = 512", "share __read_mostly = 960")
    found = compared("a/mine.c", "b/mine.c", queue)
    (one,) = found.scenarios
    assert (found.moved, one.same) == (True, 0)
    assert "TCP RTT p50" in {row.figure for row in one.moved}
    assert one.first is not None
    assert one.first.packet is not None


def test_a_qdisc_goes_where_it_is_told(versions: Path) -> None:
    changed(versions / "b/fifo.c", "limit __read_mostly = 1000", "limit __read_mostly = 20")
    for at, kinds in ((None, {"client", "router", "server"}), ("stack.router.qdisc", {"router"})):
        found = compared("a/fifo.c", "b/fifo.c", at=at)
        run = found.scenarios[0].pairs[0][1]
        assert (found.scenarios[0].same, found.moved) == (0, True)
        assert set(run.qdisc.filter(run.qdisc["kind"] == "fifo")["node"]) == kinds


@pytest.mark.parametrize(
    ("first", "second", "options", "said"),
    [
        ("a/mine.c", "b/fifo.c", {}, "B = 'b/fifo.c': is a qdisc, and A is a congestion control"),
        ("a/mine.c", "6.1", {}, "B = '6.1': is a kernel, and A is a congestion control"),
        ("6.1", "6.12", {"at": "stack.cc"}, "--at = 'stack.cc': goes with two files; A and B are kernels"),
        ("6.1", "6.12", {"kernel": "6.1"}, "--kernel = '6.1': goes with two files"),
        ("a/mine.c", "b/none.c", {}, "FILE = 'b/none.c': no such file"),
        ("a/mine.c", "scenario.c", {}, "FILE = 'scenario.c': registers nothing"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    versions: Path, first: str, second: str, options: dict[str, str], said: str
) -> None:
    (versions / "scenario.c").write_text("int x;\n")
    with pytest.raises(InputError, match=said.replace("/", "[/]")):
        ab(first, second, **options)  # type: ignore[arg-type]
