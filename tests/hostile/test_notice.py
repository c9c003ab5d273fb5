# SPDX-License-Identifier: Apache-2.0
"""A notice names the code of a scenario before it runs, if the scenario is not one of the user's files."""

import os
from pathlib import Path

import pytest

from hourglass.cli import notice
from hourglass.cli.exit_status import guarded
from hourglass.cli.progress import display
from hourglass.resources import SCENARIOS
from hourglass.scenario import load
from tests.engine.test_ssh_split import LINKS, NODES

APPS = """
testbed.preset = "L100M"
[apps]
root = "/"
[[app]]
node = "client"
command = ["sh", "-c", "echo \\u001b[2J\\nhourglass: harmless"]
user = "root"
[[app]]
node = "server"
name = "second"
command = ["true"]
root = "debian:12"
user = "1000"
"""


TEST = "test.name=tcp_upload"


@pytest.fixture
def foreign_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work/sub").mkdir(parents=True)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/s.toml").write_text(APPS)
    (tmp_path / "work/s.toml").write_text(APPS)
    (tmp_path / "work/plain.toml").write_text('testbed.preset = "L100M"\n')
    (tmp_path / "work/link.toml").symlink_to(tmp_path / "theirs/s.toml")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "theirs/s.toml"


def notice_of(capsys: pytest.CaptureFixture[str], source: str | Path) -> str:
    notice.warn(str(source), load(source))
    return capsys.readouterr().err


def test_a_foreign_file_has_a_notice_of_one_line(foreign_scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = notice_of(capsys, foreign_scenario)
    assert line.count("\n") == 1
    for word in (
        "2 programs (sh, second)",
        "root, 1000",
        "this machine's own files, read-only",
        "debian:12",
        "hourglass show",
    ):
        assert word in line
    assert notice_of(capsys, Path("link.toml")) == line.replace(str(foreign_scenario), "link.toml")


def test_the_user_s_files_and_built_ins_have_no_notice(
    foreign_scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert notice_of(capsys, Path("s.toml")) == ""
    assert notice_of(capsys, "L100M") == ""
    monkeypatch.chdir("sub")
    assert notice_of(capsys, Path("../s.toml")) != ""
    (foreign_scenario.parents[1] / "work/.git").mkdir()
    assert notice_of(capsys, Path("../s.toml")) == ""  # below the repository
    assert notice_of(capsys, foreign_scenario) != ""
    assert notice_of(capsys, Path("../plain.toml")) == ""


def test_a_home_folder_is_no_project(
    foreign_scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Downloads are usually below the home folder."""
    monkeypatch.setenv("HOME", str(foreign_scenario.parents[1]))
    monkeypatch.chdir(foreign_scenario.parents[1])
    assert notice_of(capsys, foreign_scenario) != ""
    monkeypatch.chdir("/")
    assert notice_of(capsys, foreign_scenario) != ""


def test_a_run_directory_is_a_source(foreign_scenario: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`explain` runs the scenario in it, with changes."""
    loaded = load(foreign_scenario)
    (foreign_scenario.parent / "run").mkdir()
    (foreign_scenario.parent / "run/scenario.json").write_bytes(loaded.to_json())
    with display(str(foreign_scenario.parent / "run")) as progress:
        for _ in range(2):
            progress.plan([("", loaded), ("", loaded)])
    assert capsys.readouterr().err.count("run is not from this folder: it runs 2 programs") == 1
    (foreign_scenario.parent / "run").rename("run")
    with display("run") as progress:
        progress.plan([("", loaded)])
    assert not capsys.readouterr().err


def test_each_foreign_file_has_its_own_code(foreign_scenario: Path) -> None:
    plain = foreign_scenario.with_name("plain.toml")
    plain.write_text('testbed.preset = "L100M"\n')
    mine, theirs, empty = load("s.toml"), load(foreign_scenario), load(plain)
    named = [("s.toml", mine), (str(plain), empty), (str(foreign_scenario), theirs), (str(foreign_scenario), theirs)]
    (text,) = notice.announcements(named)
    assert text.startswith(f"{foreign_scenario} is not from this folder: it runs 2 programs (sh, second) as root, 1000")
    assert not notice.announcements(named[:2])


def test_built_in_studies_are_no_stranger_s(foreign_scenario: Path) -> None:
    """They name scenarios next to them, in the package."""
    testbeds = sorted((SCENARIOS / "studies/testbeds").glob("*.toml"))
    assert testbeds
    code = load(foreign_scenario)
    assert not notice.announcements([(str(path), code) for path in testbeds], "bbr")
    Path("bbr").symlink_to(foreign_scenario.parent)
    assert not notice.announcements([("L100M", code)], "bbr")


def test_machines_and_c_files_are_listed(tmp_path: Path) -> None:
    loaded = load({"testbed": {"node": NODES, "link": LINKS}, "test": {"name": "ping"}})
    assert "client: ssh reaches root@c, and sets it up as root" in list(notice.lines(loaded))
    template = next(Path(__file__).parents[2].glob("kernel/templates/aimd.c"))
    (tmp_path / "mine.c").write_text(template.read_text())
    loaded = load("L100M", [f"stack.cc={tmp_path / 'mine.c'}"])
    assert [line for line in notice.lines(loaded) if line.startswith("kernel: compiles ")]


def test_every_command_that_runs_prints_the_notice_and_show_and_dry_run_list_the_code(
    foreign_scenario: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hourglass.runner.run", stopped)
    monkeypatch.setattr("hourglass.check", stopped)
    monkeypatch.setattr("hourglass.cli.execute.run", stopped)
    monkeypatch.setattr("hourglass.runner.prepare", stopped)
    monkeypatch.setattr("hourglass.studies.runs.grid_cells.cells", stopped)
    file, study = str(foreign_scenario), foreign_scenario.with_name("study.toml")
    study.write_text('scenario = "s.toml"\naxes = {"stack.tsq" = ["off", "default"]}\n')
    Path("study.toml").write_text('scenario = "../theirs/s.toml"\naxes = {seed = [1, 2]}\n')
    for words in (
        ["run", file], ["check", file], ["exec", "-it", file], ["study", str(study)], ["study", "study.toml"],
        ["search", file, "--worst", "goodput", "--over", "stack.tsq=off,default", "--set", TEST],
        ["tune", file, "--maximise", "goodput", "--over", "stack.tsq", "--set", TEST],
        ["compare", file, "--vary", "stack.tsq=off,default"],
        ["kernel", "bisect", ".", "a", "b", "--scenario", file],
    ):  # fmt: skip
        guarded(words)
        assert capsys.readouterr().err.count("it runs 2 programs") == 1, words
    guarded(["exec", str(foreign_scenario), "client", "--", "true"])
    assert "it runs 2 programs" in capsys.readouterr().err
    guarded(["show", str(foreign_scenario)])
    show_output = capsys.readouterr()
    assert "client: program sh as root, in this machine's own files, read-only: sh -c " in show_output.err
    assert show_output.out.startswith("{")
    guarded(["run", str(foreign_scenario), "--dry-run"])
    dry_run_output = capsys.readouterr()
    assert "server: program second as 1000, in debian:12: true" in dry_run_output.err
    for text in (show_output.err, dry_run_output.err, dry_run_output.out):
        assert "\x1b" not in text
        assert "\nhourglass: harmless" not in text
    assert not os.path.lexists("runs")
