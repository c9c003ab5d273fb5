# SPDX-License-Identifier: Apache-2.0
"""Scenario and study files of a stranger: the files that they can name, and their limits of size."""

import json
from pathlib import Path
from typing import Any

import pytest

from hourglass import scenario
from hourglass.errors import InputError
from hourglass.results.run_directory import RunDirectory
from hourglass.scenario import load
from hourglass.studies import cells
from hourglass.studies.comparison import comparison
from hourglass.studies.grid import Grid
from hourglass.studies.reader import read
from tests.clocks import limited_cpu

SECRET = "the private key"
LINK = """
testbed.node = [{ name = "client" }, { name = "server" }]
[[testbed.link]]
between = ["client", "server"]
"""
APP = '[testbed]\npreset = "L100M"\n[[app]]\nnode = "client"\ncommand = ["true"]\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the stranger's scenario, next to the user's current folder with a secret file."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/id_rsa").write_text(SECRET)
    (tmp_path / "home/mine.c").write_text(SECRET)
    (tmp_path / "home/times").write_text("1\n2\n")
    monkeypatch.chdir(tmp_path / "home")
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path / "home/id_rsa")
    (folder / "out.c").symlink_to(tmp_path / "home/mine.c")
    (folder / "folder").symlink_to(tmp_path / "home")
    (folder / "circle").symlink_to("circle")
    (folder / ".hidden").write_text(SECRET)
    (folder / "shown").symlink_to(".hidden")
    (folder / "sub").mkdir()
    (folder / "sub/fine").write_text("fine")
    return folder


def app(name: object) -> str:
    return f"{APP}files = {{ '/x' = '{name}' }}\n"


NAMES = ["../home/id_rsa", "id_rsa", "out", "folder/id_rsa", "sub/../../home/id_rsa", ".hidden", "shown", "circle",
         "./../home/id_rsa", "sub/.././.hidden"]  # fmt: skip


@pytest.mark.parametrize("name", [*NAMES, "ABSOLUTE"])
def test_a_program_s_file_is_below_the_scenario_s_folder(folder: Path, name: str) -> None:
    chosen = name.replace("ABSOLUTE", str(folder.parent / "home/id_rsa"))
    (folder / "s.toml").write_text(app(chosen))
    with pytest.raises(InputError) as caught:
        load(folder / "s.toml")
    assert caught.value.key == "app.0.files./x"
    assert SECRET not in str(caught.value)


def test_a_file_below_the_folder_is_read(folder: Path) -> None:
    (folder / "s.toml").write_text(app("sub/fine"))
    assert load(folder / "s.toml").app[0].files["/x"].text == "fine"


@pytest.mark.parametrize("name", ["../home/times", "times", "folder/times", "/dev/stdin"])
def test_a_trace_is_below_the_scenario_s_folder(folder: Path, name: str) -> None:
    (folder / "s.toml").write_text(f"{LINK}trace = '{name}'\n")
    with pytest.raises(InputError, match=r"testbed\.link\.0\.trace = "):
        load(folder / "s.toml")


@pytest.mark.parametrize("name", ["../home/mine.c", "mine.c", "out.c", "folder/", "../home/"])
@pytest.mark.parametrize("key", ["stack.cc", "stack.client.qdisc", "test.flow_cc"])
def test_c_sources_are_below_the_scenario_s_folder(folder: Path, key: str, name: str) -> None:
    (folder / "s.toml").write_text(f"testbed.preset = 'L100M'\n{key} = '{name}'\n")
    with pytest.raises(InputError, match=r"a scenario file names files|no such file") as caught:
        load(folder / "s.toml")
    assert SECRET not in str(caught.value)


def test_a_folder_s_link_does_not_lead_out_of_it(folder: Path) -> None:
    (folder / "cc").mkdir()
    (folder / "cc/a.c").write_text("x")
    (folder / "cc/b.h").symlink_to(folder.parent / "home/id_rsa")
    (folder / "s.toml").write_text("testbed.preset = 'L100M'\nstack.cc = 'cc/'\n")
    with pytest.raises(InputError, match="leads out"):
        load(folder / "s.toml")


def test_the_user_names_any_file(folder: Path) -> None:
    """The user may name any file on the command line, absolute or relative, and in a table from Python."""
    secret = folder.parent / "home/id_rsa"
    (folder / "s.toml").write_text(APP)
    for name in (str(secret), "id_rsa", "out"):
        loaded = load(folder / "s.toml", [f'app.0.files."/x"={name}'])
        assert loaded.app[0].files["/x"].text == SECRET
    table = {"testbed": {"preset": "L100M"}, "app": [{"node": "client", "command": ["x"], "files": {"/x": "id_rsa"}}]}
    assert load(table).app[0].files["/x"].text == SECRET


def grid(source: Path | dict[str, Any]) -> Grid:
    """Return the grid of a study without parts."""
    study = read(source)
    return study.column_grid(study.parts[0], ("",)).grid


@pytest.mark.parametrize(
    "text",
    [
        "scenario = 'L100M'\n[axes]\nseed = [1]\n[set]\n'app' = [{ node = 'client', command = ['x'], FILES }]\n",
        "axes.seed = [1]\n[scenario]\ntestbed.preset = 'L100M'\napp = [{ node = 'client', command = ['x'], FILES }]\n",
        "scenario = 'L100M'\n[axes]\n'stack.cc' = ['PATH.c']\n",
        "scenario = 'L100M'\n[[zip]]\n'stack.cc' = ['PATH.c']\n",
    ],
)
@pytest.mark.parametrize("name", ["../home/id_rsa", "id_rsa", "folder/id_rsa", "ABSOLUTE"])
def test_a_sweep_file_reads_below_its_folder(folder: Path, text: str, name: str) -> None:
    (folder.parent / "home/id_rsa.c").write_text(SECRET)
    chosen = name.replace("ABSOLUTE", str(folder.parent / "home/id_rsa"))
    text = text.replace("FILES", "files = { '/x' = 'PATH' }").replace("PATH", chosen)
    (folder / "s.toml").write_text(text)
    with pytest.raises(InputError, match=r"a scenario file names files|no such file"):
        cells.scenarios(grid(folder / "s.toml"))


def test_a_sweep_s_files_are_next_to_it(folder: Path) -> None:
    files = "[{ node = 'client', command = ['x'], files = { '/x' = 'sub/fine' } }]"
    (folder / "s.toml").write_text(f"scenario = 'L100M'\n[axes]\nseed = [1]\n[set]\napp = {files}\n")
    (loaded,) = cells.scenarios(grid(folder / "s.toml"))
    assert loaded.app[0].files["/x"].text == "fine"
    table = {
        "scenario": "L100M",
        "axes": {"seed": [1]},
        "set": {"app": [{"node": "client", "command": ["x"], "files": {"/x": "id_rsa"}}]},
    }
    (loaded,) = cells.scenarios(grid(table))
    assert loaded.app[0].files["/x"].text == SECRET


def test_files_of_a_comparison_are_below_its_folder(folder: Path) -> None:
    """Only a command's words may name other files."""
    compare = "compare = { axis = 'stack.cc', values = ['PATH', 'cubic'], reference = 'cubic' }\n"
    for name in ("../home/id_rsa.c", "mine.c"):
        (folder / "c.toml").write_text(f"scenario = 'L100M'\nseeds = 5\n{compare.replace('PATH', name)}")
        study = read(folder / "c.toml")
        with pytest.raises(InputError, match=r"a scenario file names files|no such file"):
            cells.scenarios(study.column_grid(study.parts[0], study.columns).grid)
    study = comparison(["L100M"], "stack.cc", ["mine.c", "cubic"])
    with pytest.raises(InputError, match="register"):  # it was read: these are no C sources
        cells.scenarios(study.column_grid(study.parts[0], study.columns).grid)


def test_a_run_directory_s_scenario_reads_nothing(folder: Path) -> None:
    """Reports read `scenario.json` of a stranger's run."""
    run = object.__new__(RunDirectory)
    run.path = folder
    app = {"node": "client", "command": ["x"], "files": {"/x": "../home/id_rsa"}}
    (folder / "scenario.json").write_text(json.dumps({"testbed": {"preset": "L100M"}, "app": [app]}))
    assert run.scenario() is None


READERS = {
    "scenario": load,
    "study": read,
}
HUGE = {
    "100 MB": lambda path: path.open("wb").truncate(100 * 2**20),
    "deep": lambda path: path.write_text("x = " + "[" * 100_000),
    "deep tables": lambda path: path.write_text("x = " + "{a=" * 100_000),
    "dots": lambda path: path.write_text("a." * 60_000 + "a = 1\n"),
    "dots in a header": lambda path: path.write_text("[" + "a . 'b' ." * 60_000 + "a]\n"),
    "dots in a table": lambda path: path.write_text("x = {" + '"a".' * 60_000 + "a = 1}\n"),
    "digits": lambda path: path.write_text("x = " + "9" * 1_000_000),
    "hexadecimal digits": lambda path: path.write_text("seed = 0x" + "f" * 1_000_000),
    "not UTF-8": lambda path: path.write_bytes(b"x = '\xff'"),
}


@pytest.mark.parametrize("kind", HUGE)
@pytest.mark.parametrize("reader", READERS)
def test_files_that_are_too_large_are_refused_at_once(tmp_path: Path, reader: str, kind: str) -> None:
    path = tmp_path / "s.toml"
    HUGE[kind](path)
    with limited_cpu(5), pytest.raises(InputError) as caught:
        READERS[reader](path)
    assert len(str(caught.value)) < 600


def test_long_lines_without_keys_cost_little(tmp_path: Path) -> None:
    """The search for long keys is linear."""
    path = tmp_path / "s.toml"
    for text in ("a" * 4_000_000, "a." * 60 + " ", "\"'" * 1_000_000, '"' + "'" * 2_000_000, "a .\t" * 63):
        path.write_text(f"description = '''{text}'''\n" if "'" not in text else f'description = """\n{text}\n')
        with limited_cpu(5), pytest.raises(InputError):
            load(path)


def test_built_ins_can_read_their_files() -> None:
    for name, _ in scenario.builtin():
        load(name)
