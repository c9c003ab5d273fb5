# SPDX-License-Identifier: Apache-2.0
"""The commands: exit status, and what they print to stdout and stderr."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from results.synthetic import Flow, Recipe, make

from hourglass.cli import exit_status
from hourglass.errors import GuestError, MissingError
from tests.clocks import HANG_S


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def hourglass(*arguments, **options):
    """Run a command in a new process."""
    command = [sys.executable, "-c", "from hourglass.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def raises(error):
    def fail(directory):
        raise error

    return fail


def test_run_prints_the_table_and_leaves_run_and_picture(engine, call, tmp_path):
    status, out, err = call("run", "synthetic", "--out", "out")
    assert status == 0, err
    for text in ("upload::1", "8.00", "drops", "run      out", "picture  out/run.png", "x real time", "digest"):
        assert text in out
    assert "\x1b" not in out
    assert (tmp_path / "out" / "run.png").read_bytes().startswith(b"\x89PNG")


def test_run_json_is_all_that_is_on_stdout(engine, call, tmp_path):
    status, out, _ = call("run", "synthetic", "--json", "--no-picture", "--out", "out", "--seed", "7")
    assert status == 0
    assert json.loads(out) == json.loads((tmp_path / "out" / "summary.json").read_text())
    assert json.loads(out)["seed"] == 7
    assert not (tmp_path / "out" / "run.png").exists()


def test_another_scenarios_run_is_replaced_only_by_force(engine, call):
    assert call("run", "synthetic", "--out", "out", "--no-picture")[0] == 0
    assert call("run", "synthetic", "--out", "out", "--no-picture")[0] == 0
    status, out, err = call("run", "another", "--out", "out", "--no-picture")
    assert (status, out, engine.runs) == (2, "", 2)
    assert "contains another run (name = synthetic there); --force replaces it" in err
    assert call("run", "another", "--out", "out", "--no-picture", "--force")[0] == 0


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (GuestError("the kernel panicked"), 3, "the kernel panicked"),
        (MissingError("no compiler", "apt install gcc"), 3, "to fix: apt install gcc"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (ZeroDivisionError("oops"), 70, "internal error: ZeroDivisionError: oops"),
        (OSError(28, "No space left on device"), 3, "No space left"),
    ],
)
def test_each_failure_has_its_status_and_one_line(engine, call, error, status, message):
    engine.fail = raises(error)
    actual, out, err = call("run", "synthetic", "--out", "out")
    assert (actual, out) == (status, "")
    assert message in err.strip().splitlines()[-1]
    assert "Traceback" not in err


def test_the_traceback_of_an_internal_error_is_stored(engine, call, monkeypatch, tmp_path):
    monkeypatch.setattr(exit_status.tempfile, "tempdir", str(tmp_path))
    engine.fail = raises(ZeroDivisionError("oops"))
    _, _, err = call("run", "synthetic", "--out", "out")
    report = next(tmp_path.glob("hourglass-error-*.txt"))
    assert str(report) in err
    assert "Traceback" in report.read_text()


def test_debug_shows_the_traceback(engine, call, monkeypatch):
    monkeypatch.setenv("HOURGLASS_DEBUG", "1")
    engine.fail = raises(ZeroDivisionError("oops"))
    status, _, err = call("run", "synthetic", "--out", "out")
    assert status == 70
    assert "Traceback" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["frobnicate"], "No such command 'frobnicate'; see `hourglass --help`"),
        (["compair"], "Did you mean 'compare'? see `hourglass --help`"),
        (["run"], "Missing argument"),
        (["run", "x", "--frob"], "No such option"),
        (["run", "x", "--seed", "many"], "--seed = 'many': must be a whole number"),
        (["study", "x", "-j", "many"], "-j = 'many': must be a whole number"),
        (["run", "x", "--frob"], "see `hourglass run --help`"),
        (
            ["list", "test"],
            "KIND = 'test': Did you mean \"tests\"? A kind is one of scenarios, testbeds, tests, kernels",
        ),
        (["compare", "nowhere", "nowhere"], "run = 'nowhere': no such directory, and not a .flent.gz file"),
        (["compare", "nowhere"], "no such directory, and not a .flent.gz file"),
        (["run", "no-such-scenario"], "no-such-scenario"),
        (["show", "no-such-name"], "no-such-name"),
        (
            ["exec", "L100M", "server", "--kernel", "7.3", "--", "true"],
            "COMMAND = '--kernel': is not a program's name; options ",
        ),
        (["exec", "L100M", "srever", "--", "true"], "NODE = 'srever': no such node. Did you mean \"server\"? Nodes: "),
        (["exec", "-it", "L100M", "srever"], "NODE = 'srever': no such node. Did you mean \"server\"? Nodes: "),
        (["kernel", "new", "/proc/my_cc.c"], "FILE = '/proc/my_cc.c': cannot be written: "),
        (
            ["kernel", "new", "cubic.c"],
            "FILE = 'cubic.c': is the name of the kernel's cubic; choose a name like my_cubic.c",
        ),
        (
            ["kernel", "new", "x.c", "--kernel", "6.12"],
            "--kernel = '6.12': needs --from and an algorithm of the kernel; aimd is",
        ),
        (["study", "bbr", "--seeds", "9-7"], "--seeds = '9-7': must be a seed or a range, like 11-15"),
        (["study", "bbr", "--junit", "/proc/x.xml"], "--junit = '/proc/x.xml': cannot be written"),
        (["show", "L100M", "--set", "stack.cc={file='a.c'"], "is not an inline table: "),
        (["show", "L100M", "--set", "testbed.link.0.gates=1"], "gates = 1: needs several queues; set testbed.link.0.q"),
        (["study", "bbr", "--baseline", "no.json"], "--baseline = 'no.json': no such file; --update-baseline"),
    ],
)
def test_wrong_input_is_one_line_and_status_2(call, arguments, message):
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert err.startswith("hourglass: error: ")
    assert len(err.splitlines()) == 1


def test_compare_prints_table_json_and_picture(call, tmp_path):
    make(tmp_path / "a")
    make(tmp_path / "b", Recipe(name="slow", flows=[Flow(rtt_us=lambda t: 9000)]))
    status, out, _ = call("compare", "a", "b", "--picture", "c.svg")
    assert status == 0
    assert "+350.0 *" in out
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    status, out, _ = call("compare", "a", "b", "--json")
    rtt = next(row for row in json.loads(out)["figures"] if row["figure"] == "TCP RTT p50")
    assert rtt["runs"][1] == {"value": 9, "change_percent": 350, "interval": [7, 7], "significant": True}


def test_diff_ends_with_0_for_the_same_records_and_1_for_others(call, tmp_path):
    make(tmp_path / "a")
    make(tmp_path / "b")
    make(tmp_path / "c", Recipe(flows=[Flow(rtt_us=lambda t: 9000)]))
    status, out, _ = call("diff", "a", "b")
    assert (status, out.splitlines()[-1]) == (0, "the same records, byte by byte")
    assert json.loads(call("diff", "a", "b", "--json")[1])["same"] is True
    status, out, _ = call("diff", "a", "c")
    assert status == 1
    assert re.search(r"^tcp +\d+ +\d+ +\d+ .*: rtt 2000 / 9000$", out, re.MULTILINE)
    assert call("diff", "a", "nowhere")[0] == 2


def test_one_run_is_not_compared(call, tmp_path):
    make(tmp_path / "a")
    assert "RUN = 'a': must be two or more" in call("compare", "a")[2]


def test_runs_of_different_tests_have_no_marks_but_a_note(call, tmp_path):
    make(tmp_path / "a")
    other = make(tmp_path / "b", Recipe(flows=[Flow(rtt_us=lambda t: 9000)])) / "scenario.json"
    scenario = json.loads(other.read_text())
    other.write_text(json.dumps(scenario | {"test": scenario["test"] | {"name": "rrul"}}))
    _, out, _ = call("compare", "a", "b")
    assert "A  test=tcp_nup  a (" in out
    assert "no * if a different test than A's tcp_nup loads the path: B rrul" in out
    assert "+350.0" in out
    assert "+350.0 *" not in out
    marked = [run["significant"] for row in json.loads(call("compare", "a", "b", "--json")[1])["figures"]
              for run in row["runs"]]  # fmt: skip
    assert not any(marked)


def test_equal_records_are_named(call, tmp_path):
    make(tmp_path / "a")
    make(tmp_path / "b")
    assert "the same records as A" in call("compare", "a", "b")[1]


def test_broken_records_are_one_line(call, tmp_path):
    make(tmp_path / "a")
    (tmp_path / "a" / "records.arrows").write_bytes(b"rubbish")
    status, _, err = call("compare", "a", "a")
    assert status == 3
    assert "cut off" in err


def test_a_separate_process_exits_with_the_status():
    wrong = hourglass("compare", "nowhere", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("hourglass: error: run = 'nowhere'")
    version = hourglass("--version")
    assert (version.returncode, version.stdout.split()[0]) == (0, "hourglass")


def test_a_closed_output_pipe_causes_no_message(tmp_path):
    make(tmp_path / "a")
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", "from hourglass.cli import main; main()", "compare", "a", "a", "--json"]
    result = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (result.returncode, result.stderr) == (1, b"")


def test_a_run_begins_before_the_analysis_is_imported():
    heavy = ("numpy", "pyarrow", "polars", "matplotlib")
    code = f"import sys, hourglass.cli.run; print([module for module in {heavy} if module in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


@pytest.mark.parametrize("module", ["numpy", "polars", "pyarrow", "matplotlib", "pydantic", "rich.console"])
def test_help_imports_nothing_heavy(module):
    run = "import sys; from hourglass.cli.exit_status import guarded; guarded(['--help'])"
    code = f"{run}; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


def test_reading_a_run_does_not_import_pandas(tmp_path):
    """pandas is installed, and pyarrow would import it for an empty array: half a second."""
    make(tmp_path / "a")
    code = (
        f"import sys, hourglass; run = hourglass.load({str(tmp_path / 'a')!r}); "
        "run.summary, run.tcp; sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_interrupt_that_python_drops_is_repeated(monkeypatch, capsys):
    class Ends:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            for _ in range(1000):  # Python calls the handler here and drops its exception
                pass

    def work(_):
        Ends()
        time.sleep(HANG_S)
        return 0

    monkeypatch.setattr(exit_status, "_run", work)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    assert exit_status.guarded([]) == 130
    assert capsys.readouterr().err == "hourglass: interrupted\n"
