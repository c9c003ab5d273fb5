# SPDX-License-Identifier: Apache-2.0
"""Run directories of a stranger: opened, compared, exported and printed, and paths that runs are written to."""

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from results.synthetic import Recipe, make

import hourglass
from hourglass import scenario
from hourglass.cli.exit_status import guarded
from hourglass.errors import HourglassError, InputError
from hourglass.report import write
from hourglass.results.records import Tables
from hourglass.results.staging import staging
from hourglass.results.sweeps import runs

SECRET = "the private key"
TERMINAL = "\x1b]0;title\x07\x1b[2J\x1b[8mhidden\x9b31m\u202egnp\r"


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text(SECRET)
    run_path = make(tmp_path / "theirs", Recipe())
    loaded = scenario.load("L100M", ["test.length=10", "test.delay=2"])
    (run_path / "scenario.json").write_bytes(loaded.to_json())
    return run_path


def change(run_path: Path, name: str, edit: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads((run_path / name).read_text())
    edit(data)
    (run_path / name).write_text(json.dumps(data))


def use(run_path: Path) -> None:
    """Read everything that reports and tables read of a run."""
    run = hourglass.load(run_path)
    run.experiment, run.streams, run.scenario, run.summary, run.apps  # noqa: B018
    for table in run.tables:
        run.table(table)


def test_the_run_is_valid_without_an_attack(run_path: Path) -> None:
    use(run_path)


NAMES = ["run.json", "plan.json", "scenario.json", "records.arrows"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["link", "fifo", "device", "folder", "huge"])
def test_files_of_a_run_are_regular(run_path: Path, name: str, kind: str) -> None:
    file = run_path / name
    file.rename(run_path.parent / name)
    match kind:
        case "link":
            file.symlink_to(run_path.parent / name)
        case "fifo":
            os.mkfifo(file)
        case "device":
            file.symlink_to("/dev/zero")
        case "folder":
            file.mkdir()
        case "huge":
            os.truncate(os.open(file, os.O_CREAT | os.O_WRONLY), 2**40)
    with pytest.raises(HourglassError) as caught:
        use(run_path)
    assert SECRET not in str(caught.value)


TEXTS = [
    "[" * 10**6,
    '{"a":' * 10**5,
    "9" * 10**5,
    "null",
    "[]",
    "{",
    "\xff",
    '{"schema": 1e999}',
    '{"schema": NaN}',
    "",
]


@pytest.mark.parametrize("name", NAMES[:3])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:12])
def test_json_of_any_form_is_an_error_or_a_run(run_path: Path, name: str, text: str) -> None:
    (run_path / name).write_bytes(text.encode("latin-1"))
    with pytest.raises(HourglassError):
        use(run_path)


def streams(run_path: Path) -> list[pa.Table]:
    tables = []
    with pa.BufferReader((run_path / "records.arrows").read_bytes()) as source:
        while source.tell() < source.size():
            with pa.ipc.open_stream(source) as stream:
                tables.append(stream.read_all())
    return tables


def rewrite(run_path: Path, tables: list[pa.Table]) -> None:
    with (run_path / "records.arrows").open("wb") as sink:
        for table in tables:
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)


def test_a_column_of_another_type_is_an_error(run_path: Path) -> None:
    for number, table in enumerate(streams(run_path)):
        for column in range(table.num_columns):
            for other in (pa.string(), pa.float64(), pa.int8(), pa.dictionary(pa.int8(), pa.string())):
                if table.schema.field(column).type == other:
                    continue
                changed = table.set_column(
                    column, table.schema.field(column).with_type(other), pa.nulls(table.num_rows, other)
                )
                rewrite(run_path, [*streams(run_path)[:number], changed])
                with pytest.raises(HourglassError, match="has an undeclared type"):
                    Tables(run_path / "records.arrows")
            break


def test_texts_that_point_outside_of_their_memory_are_an_error(run_path: Path) -> None:
    """Arrow checks the offsets of texts only on request."""
    fact = pa.table({name: pa.array(["MARKER__"], pa.string()) for name in ("node", "key", "value")})
    rewrite(run_path, [fact.replace_schema_metadata({"table": "fact"})])
    content = (run_path / "records.arrows").read_bytes()
    sound, far = (b"".join(offset.to_bytes(4, "little") for offset in ends) for ends in ((0, 8), (0, 2**31 - 1)))
    offsets = content.rindex(sound, 0, content.index(b"MARKER__"))
    (run_path / "records.arrows").write_bytes(content[:offsets] + far + content[offsets + 8 :])
    with pytest.raises(HourglassError, match="cut off or damaged"):
        hourglass.load(run_path).table("fact")


def test_damaged_records_are_errors(run_path: Path) -> None:
    """After random changes of bytes, reading either succeeds or fails with one line."""
    sound, draw = (run_path / "records.arrows").read_bytes(), random.Random(1)
    refused = 0
    for _ in range(500):
        damaged = bytearray(sound)
        for _ in range(draw.randint(1, 4)):
            damaged[draw.randrange(min(len(damaged), 4_000))] = draw.choice([0, 1, 0x7F, 0x80, 0xFF])
        (run_path / "records.arrows").write_bytes(damaged)
        try:
            tables = Tables(run_path / "records.arrows")
            for name in tables:
                tables[name]
        except HourglassError as error:
            refused += len(str(error)) < 2000
    assert refused > 20
    for end in range(0, len(sound), max(1, len(sound) // 50)):
        (run_path / "records.arrows").write_bytes(sound[:end])
        with pytest.raises(HourglassError):
            use(run_path)


def out_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    guarded([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return printed.out + printed.err


HOSTILE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.mark.parametrize(
    "command", [["compare"], ["export", "--format", "flent"], ["check"], ["diff"]], ids=lambda c: c[0]
)
def test_names_reach_the_terminal_escaped(
    run_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    def renamed(data: dict[str, Any]) -> None:
        data["name"] = TERMINAL
        data["test"]["name"] = TERMINAL

    change(run_path, "scenario.json", renamed)
    change(run_path, "plan.json", lambda data: data["streams"][0].update(name=TERMINAL))
    change(run_path, "run.json", lambda data: data.update(warnings=[TERMINAL], results="another"))
    text = out_of(capsys, *command, run_path, run_path)
    assert not HOSTILE.search(text), text
    assert "\\x1b" in text or command[0] != "compare"


@pytest.mark.parametrize("error", [TERMINAL, "a\nhourglass: run ok", 7, None, {"a": TERMINAL}])
def test_errors_of_a_run_reach_the_terminal_escaped(
    run_path: Path, capsys: pytest.CaptureFixture[str], error: object
) -> None:
    change(run_path, "run.json", lambda data: data.update(status="failed", error=error))
    assert not HOSTILE.search(out_of(capsys, "compare", run_path, run_path))
    name = run_path.with_name(TERMINAL.replace("/", ""))
    assert not HOSTILE.search(out_of(capsys, "report", name))


def test_a_scenario_s_names_reach_the_terminal_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (f'"{json.dumps(TERMINAL)[1:-1]}" = 1', f"name = {json.dumps(TERMINAL)}", f"{TERMINAL} = 1"):
        (tmp_path / "s.toml").write_text(text)
        printed = out_of(capsys, "run", tmp_path / "s.toml")
        assert "error: " in printed
        assert not HOSTILE.search(printed)


def test_json_on_a_terminal_has_no_control_characters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = json.dumps(["printf", TERMINAL])
    app = f'testbed.preset = "L100M"\n[[app]]\nnode = "client"\ncommand = {command}\n'
    (tmp_path / "s.toml").write_text(app)
    for key, options in (("app", []), ("apps", ["--plan", "--json"])):
        guarded(["show", str(tmp_path / "s.toml"), *options])
        printed = capsys.readouterr().out
        assert not HOSTILE.search(printed)
        assert json.loads(printed)[key][0]["command"] == ["printf", TERMINAL]


def test_a_page_is_text(run_path: Path, tmp_path: Path) -> None:
    script = "<script>alert(1)</script><img src=x onerror=alert(1)>'\""

    def renamed(data: dict[str, Any]) -> None:
        data["name"] = data["description"] = data["test"]["name"] = script

    change(run_path, "scenario.json", renamed)
    change(run_path, "plan.json", lambda data: data["streams"][0].update(name=script))
    change(run_path, "run.json", lambda data: data.update(warnings=[script], results="another", version=script))
    write([hourglass.load(run_path)], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "</script><img" not in page


@pytest.mark.parametrize("name", ["../../out", "/tmp/out", "a\nb", "", ".."])
def test_exports_stay_in_their_folder(run_path: Path, tmp_path: Path, name: str) -> None:
    change(run_path, "scenario.json", lambda data: data["test"].update(name=name))
    change(run_path, "run.json", lambda data: data.update(digest=f"{name}/../../"))
    before = {*tmp_path.rglob("*")}
    for kind in ("flent", "csv", "parquet"):
        guarded(["export", str(run_path), "--format", kind, "--out", str(tmp_path / "a/b")])
    new = {*tmp_path.rglob("*")} - before - {tmp_path / "a", tmp_path / "a/b"}
    assert all(path.parent == tmp_path / "a/b" and path.name.isprintable() for path in new)


def test_exports_do_not_follow_links(run_path: Path) -> None:
    """Without --out, exports are written into the run directory, which may contain links to the user's files."""
    assert guarded(["export", str(run_path), "--format", "csv"]) == 0
    for path in run_path.glob("*.csv"):
        path.unlink()
        path.symlink_to(run_path.parent / "secret")
    assert guarded(["export", str(run_path), "--format", "flent"]) == 0
    for path in run_path.glob("*.flent.gz"):
        path.unlink()
        path.symlink_to(run_path.parent / "secret")
    for kind in ("csv", "flent"):
        assert guarded(["export", str(run_path), "--format", kind]) == 0
    assert (run_path.parent / "secret").read_text() == SECRET


def test_a_sweep_s_table_names_runs_below_it(run_path: Path, tmp_path: Path) -> None:
    import polars as pl

    sweep = tmp_path / "sweep"
    (sweep / "runs").mkdir(parents=True)
    pl.DataFrame({"seed": [1], "run": ["../../theirs"], "status": ["done"]}).write_parquet(sweep / "table.parquet")
    with pytest.raises(InputError, match="names a run with an invalid key"):
        runs(sweep)
    (sweep / "table.parquet").unlink()
    (sweep / "table.parquet").symlink_to(tmp_path / "secret")
    assert guarded(["export", str(sweep), "--format", "parquet", "--out", str(tmp_path / "shared")]) != 0
    assert not any(SECRET in path.read_text(errors="replace") for path in (tmp_path / "shared").glob("*"))


@pytest.mark.parametrize("linked", ["out", "out.failed", "above"])
def test_links_at_the_path_of_a_run(tmp_path: Path, linked: str) -> None:
    """A link to a folder that is no run remains, with the folder's files, however the run ends."""
    user_folder, out = tmp_path / "mine", tmp_path / "above/out"
    user_folder.mkdir()
    (user_folder / "precious").write_text(SECRET)
    if linked == "above":
        out.parent.symlink_to(user_folder)
    else:
        out.parent.mkdir()
        out.with_name(linked).symlink_to(user_folder)
    for fails in (True, False):
        try:
            with staging(out) as stage:
                (stage.path / "run.json").write_text("{}")
                (stage.path / "link.json").symlink_to(user_folder / "precious")
                if fails:
                    raise HourglassError("it failed")
                stage.publish()
        except HourglassError:
            pass
    assert (user_folder / "precious").read_text() == SECRET


def test_a_replaced_run_is_deleted_without_the_targets_of_its_links(tmp_path: Path) -> None:
    user_folder, out = tmp_path / "mine", tmp_path / "out"
    for folder in (user_folder, out):
        folder.mkdir()
    (user_folder / "precious").write_text(SECRET)
    (out / "run.json").write_text("{}")
    (out / "apps").symlink_to(user_folder)
    (out / "a.json").symlink_to(user_folder / "precious")
    with staging(out) as stage:
        (stage.path / "run.json").write_text("{}")
        stage.publish()
    assert (user_folder / "precious").read_text() == SECRET
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out"]


def test_another_user_s_staging_folder_is_not_taken(tmp_path: Path) -> None:
    """In a folder that others can write to, another user may create the hidden folder first."""
    user_folder = tmp_path / "mine"
    user_folder.mkdir()
    (tmp_path / f".out.{os.getpid()}").symlink_to(user_folder)
    with pytest.raises(HourglassError, match="cannot be written"), staging(tmp_path / "out"):
        pass
    assert [*user_folder.iterdir()] == []
