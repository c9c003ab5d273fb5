# SPDX-License-Identifier: Apache-2.0
"""`hourglass compare --vary` with two versions of a file: a changed line changes figures, a comment does not."""

import json
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from hourglass.cli.exit_status import guarded
from hourglass.cli.kernel_new import new
from hourglass.errors import InputError
from hourglass.results.run_directory import open_run
from hourglass.studies import StudyResult, study
from hourglass.studies.comparison import comparison
from hourglass.studies.lines import RECORDS

pytestmark = pytest.mark.guest

SHORT = ("test.length=2", "test.delay=0.1")
QUEUE = "stack.router.qdisc=pfifo limit 30"


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with two folders with a congestion control and a qdisc each."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        new(tmp_path / name / "mine.c", "aimd", None)
        new(tmp_path / name / "fifo.c", "sojourn", None)
    return tmp_path


def replace_in(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def compare_files(key: str, first: str, second: str, *overrides: str) -> StudyResult:
    """Return the comparison of two files at a key of R10M."""
    compared = comparison(["R10M"], key, [first, second])
    return study(compared, overrides=[*SHORT, *overrides], kernel="6.12")


def same(result: StudyResult) -> float | None:
    """Return the number of seeds with the same records."""
    return next(line.cells[result.columns[1]].value for line in result.lines if line.figure is RECORDS)


@pytest.mark.kernels
def test_a_comment_changes_no_byte_and_a_line_changes_figures(
    versions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace_in(versions / "b/mine.c", " *\teach loss event", " *\tat each loss event")
    unchanged = compare_files("stack.cc", "a/mine.c", "b/mine.c", QUEUE)
    assert unchanged.columns == ("a/mine.c", "b/mine.c")
    assert len({kernel.key for kernel in unchanged.kernels.values()}) == 2, "they are two kernels"
    assert (unchanged.missed, same(unchanged), len(unchanged.lines)) == (False, 5, 1)
    replace_in(versions / "b/mine.c", "share __read_mostly = 512", "share __read_mostly = 960")
    changed = compare_files("stack.cc", "a/mine.c", "b/mine.c", QUEUE)
    moved = {verdict.line.figure.title for verdict in changed.verdicts if verdict.counts}
    assert (changed.missed, same(changed), changed.cached) == (True, 0, 5)
    assert "TCP RTT p50" in moved
    assert "first difference with seed 1 at " in changed.matrix[0][1].reason

    words = ["R10M", "--vary", "stack.cc=a/mine.c,b/mine.c", "--kernel", "6.12", "--junit", "moved.xml", "--json"]
    settings = [word for setting in (*SHORT, QUEUE) for word in ("--set", setting)]
    assert guarded(["compare", *words, *settings]) == 1
    answer = json.loads(capsys.readouterr().out)
    cells = {line["setting"] + line["id"]: line["cells"]["b/mine.c"] for line in answer["lines"]}
    assert {cell["verdict"] for cell in cells.values()} == {"", "ok", "missed"}
    suites = xml.parse(versions / "moved.xml").getroot()
    assert int(suites.attrib["failures"]) == sum(cell["counts"] for cell in cells.values()) == len(moved)


@pytest.mark.kernels
def test_a_qdisc_is_used_at_the_given_key(versions: Path) -> None:
    replace_in(versions / "b/fifo.c", "limit __read_mostly = 1000", "limit __read_mostly = 20")
    for key, nodes in (("stack.qdisc", {"client", "router", "server"}), ("stack.router.qdisc", {"router"})):
        result = compare_files(key, "a/fifo.c", "b/fifo.c")
        run = open_run(result.runs / result.cells[1].key)
        assert (same(result), result.missed) == (0, True)
        assert set(run.qdisc.filter(run.qdisc["kind"] == "fifo")["node"]) == nodes


@pytest.mark.parametrize(
    ("key", "second", "message"),
    [
        ("stack.cc", "b/fifo.c", "stack.cc.* = .*: registers a qdisc, not a congestion control"),
        ("kernel", "6.x", "kernel = '6.x'"),
        ("stack.cc", "b/none.c", "b/none.c': no such file"),
        ("stack.cc", "scenario.c", "scenario.c'.*: registers nothing"),
    ],
)
def test_an_invalid_comparison_is_one_line(versions: Path, key: str, second: str, message: str) -> None:
    (versions / "scenario.c").write_text("int x;\n")
    first = "6.1" if key == "kernel" else "a/mine.c"
    with pytest.raises(InputError, match=message):
        compare_files(key, first, second)


@pytest.mark.parametrize(
    ("words", "replacement"),
    [
        ("kernel ab a/mine.c b/mine.c --at stack.client.cc", "compare --vary stack.client.cc=a/mine.c,b/mine.c"),
        ("kernel ab a/fifo.c b/fifo.c L10M", "compare L10M --vary stack.qdisc=a/fifo.c,b/fifo.c"),
        ("kernel ab 6.1 6.12 --seeds 6", "compare --vary kernel=6.1,6.12 --seeds 1-6"),
        ("agree L100M --within tcp_rtt.p50=9", "compare L100M --vary engine=virtual,native --tolerance tcp_rtt.p50=9"),
    ],
)
def test_earlier_commands_print_and_run_the_new_ones(
    versions: Path, words: str, replacement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[object]] = []
    monkeypatch.setattr("hourglass.cli.earlier.call", calls.append)
    guarded(words.split())
    (call,) = calls
    assert " ".join(map(str, call)).startswith(replacement)
