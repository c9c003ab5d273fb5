# SPDX-License-Identifier: Apache-2.0
"""Run directories are written safely: completely or not at all, and never over a user's files."""

import os
import subprocess
from pathlib import Path

import pytest

from hourglass.errors import GuestError, HourglassError, InputError
from hourglass.results.staging import staging
from results.synthetic import make


def names(path):
    return sorted(entry.name for entry in path.iterdir())


def finish(out, text="new"):
    with staging(out) as shop:
        (shop.path / "run.json").write_text(text)
        shop.publish()


def fail(out, files, error):
    """Write `files` and fail with `error`, which gets the path of the run."""
    with staging(out) as shop:
        for name, text in files.items():
            (shop.path / name).write_text(text)
        raise error(shop.path)


def test_a_run_appears_complete_and_leaves_no_other_files(tmp_path):
    finish(tmp_path / "deep" / "run")
    assert names(tmp_path / "deep") == ["run"]
    assert (tmp_path / "deep" / "run" / "run.json").read_text() == "new"


def test_the_path_is_empty_before_the_end(tmp_path):
    with staging(tmp_path / "run") as shop:
        assert names(tmp_path) == [f".run.{os.getpid()}"]
        (shop.path / "run.json").write_text("")
        shop.publish()


def test_an_older_run_is_replaced_completely(tmp_path):
    make(tmp_path / "run")
    finish(tmp_path / "run")
    assert names(tmp_path / "run") == ["run.json"]
    assert names(tmp_path) == ["run"]


def test_after_a_failure_the_older_run_and_the_log_remain(tmp_path):
    make(tmp_path / "run")
    before = names(tmp_path / "run")
    with pytest.raises(GuestError) as caught:
        fail(
            tmp_path / "run",
            {"console.log": "panic"},
            lambda path: GuestError("the guest stopped", path / "console.log", ["panic"]),
        )
    assert names(tmp_path) == ["run", "run.failed"]
    assert names(tmp_path / "run") == before
    assert caught.value.log == tmp_path / "run.failed" / "console.log"
    assert caught.value.log.read_text() == "panic"
    assert str(caught.value.log) in str(caught.value)


def test_a_second_failure_replaces_the_first(tmp_path):
    for text in ("first", "second"):
        with pytest.raises(HourglassError):
            fail(tmp_path / "run", {"run.json": text}, lambda path: HourglassError("no"))
    assert names(tmp_path) == ["run.failed"]
    assert (tmp_path / "run.failed" / "run.json").read_text() == "second"


@pytest.mark.parametrize(("log", "left"), [("", []), ("booting", ["run.failed"])])
def test_after_an_interruption_only_a_folder_with_a_log_remains(tmp_path, log, left):
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "run", {"scenario.json": "{}", "console.log": log}, lambda path: KeyboardInterrupt())
    assert names(tmp_path) == left


def test_after_a_bug_the_log_remains(tmp_path):
    with pytest.raises(ZeroDivisionError), staging(tmp_path / "run"):
        _ = 1 / 0
    assert names(tmp_path) == ["run.failed"]


@pytest.mark.parametrize("content", [{"thesis.txt": "years"}, {"run.json": "{}", "notes.md": "mine"}])
@pytest.mark.parametrize("name", ["run", "run.failed"])
def test_a_users_files_are_never_touched(tmp_path, content, name):
    (tmp_path / name).mkdir()
    for file, text in content.items():
        (tmp_path / name / file).write_text(text)
    with pytest.raises(InputError, match=r"not a run directory|not part of a run"):
        finish(tmp_path / "run")
    assert names(tmp_path) == [name]
    assert {path.name: path.read_text() for path in (tmp_path / name).iterdir()} == content


def test_a_place_where_no_folder_can_be_is_the_users_mistake():
    with pytest.raises(InputError, match=r"out = '/proc/x': the run cannot be written: "), staging(Path("/proc/x")):
        pass


def test_an_empty_directory_may_become_a_run(tmp_path):
    (tmp_path / "run").mkdir()
    finish(tmp_path / "run")
    assert names(tmp_path / "run") == ["run.json"]


def test_a_file_or_the_root_cannot_become_a_run(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(InputError, match="is a file"):
        finish(tmp_path / "run")
    with pytest.raises(InputError, match="must name the run's new directory"):
        finish(tmp_path.__class__("/"))
    with pytest.raises(InputError, match="cannot be written"):
        finish(tmp_path / "run" / "below")


def test_a_link_to_a_run_is_followed(tmp_path):
    make(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    finish(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path / "real") == ["run.json"]


def test_a_full_disk_is_one_clear_line(tmp_path):
    with pytest.raises(HourglassError, match="No space left on device") as caught, staging(tmp_path / "run"):
        raise OSError(28, os.strerror(28), str(tmp_path / "run" / "records.arrows"))
    assert "\n" not in str(caught.value)


def test_the_next_run_removes_the_files_of_a_killed_command(tmp_path):
    process = subprocess.Popen(["true"])
    process.wait()
    leftover, alive, other = (tmp_path / name for name in (f".run.{process.pid}", f".run.{os.getppid()}", ".run.old"))
    for folder in (leftover, alive, other):
        (folder / "records").mkdir(parents=True)
    with staging(tmp_path / "run") as stage:
        assert {path.name for path in tmp_path.iterdir()} == {stage.path.name, alive.name, other.name}
        (stage.path / "run.json").write_text("{}")
        stage.publish()


def test_an_unusable_file_outside_of_the_run_is_named(tmp_path):
    """The message does not blame the folder of the run."""
    elsewhere = tmp_path / "cache" / "cpus" / "1"
    denied = PermissionError(13, "Permission denied", str(elsewhere))
    with pytest.raises(HourglassError, match=f"^{elsewhere}: Permission denied$"):
        fail(tmp_path / "runs" / "run", {}, lambda _: denied)
    inside = PermissionError(13, "Permission denied", str(tmp_path / "runs" / "run" / "run.json"))
    with pytest.raises(InputError, match="cannot be written: Permission denied"):
        fail(tmp_path / "runs" / "run", {}, lambda _: inside)
