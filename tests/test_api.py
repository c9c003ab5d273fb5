# SPDX-License-Identifier: Apache-2.0
"""The functions of the package, on an engine without a guest."""

import pytest
from cli.conftest import FakeEngine, engine  # noqa: F401

import hourglass
from hourglass import runner, scenario
from hourglass.errors import InputError


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def runs(engine: FakeEngine):  # noqa: F811
    return [hourglass.run("synthetic", f"runs/{name}", seed=seed) for name, seed in (("a", 1), ("b", 2))]


def test_a_run_takes_a_name_with_seed_kernel_and_overrides(engine, monkeypatch):  # noqa: F811
    calls = []
    load = scenario.load
    monkeypatch.setattr(
        runner.scenarios,
        "load",
        lambda source, changes, **options: calls.append((source, changes, options)) or load(source),
    )
    run = hourglass.run("L100M", "runs/a", overrides={"stack.tsq": "off"}, seed=2, kernel="6.12")
    assert calls == [("L100M", {"stack.tsq": "off"}, {"seed": 2, "kernel": "6.12"})]
    assert (run.name, str(run.path)) == ("L100M", "runs/a")


def test_listed_names_of_the_package_exist():
    names = [name for name in dir(hourglass) if not name.startswith("_")]
    assert {"run", "study", "check", "compare", "plot", "write_report", "scenario"} <= set(names)
    assert "Any" not in names
    assert all(hasattr(hourglass, name) for name in names)


def test_a_comparison_is_a_row_per_figure_and_run(runs):
    table = hourglass.compare(*runs)
    upload = table.filter(table["name"] == "totals.upload_mbps")
    assert upload["value"].to_list() == [8.0, 8.0]
    assert upload["change_percent"].to_list() == [None, 0.0]
    assert hourglass.compare("runs/a", runs[1]).equals(table)
    with pytest.raises(InputError, match="two or more runs"):
        hourglass.compare(runs[0])


def test_a_picture_is_a_file_or_a_notebooks_output(runs):
    assert hourglass.plot("cdf", runs)._repr_png_().startswith(b"\x89PNG")
    assert hourglass.plot("cdf", runs, out="cdf.svg").read_text().startswith("<?xml")
    with pytest.raises(InputError, match='Did you mean "scatter"'):
        hourglass.plot("scater", runs)


def test_a_changed_figure_is_the_picture(runs):
    picture, repeated = (hourglass.plot("cdf", runs) for _ in range(2))
    assert picture.png == repeated.png
    picture.figure.axes[0].set_title("mine")
    assert picture._repr_png_() != repeated.png


def test_a_drawing_function_takes_a_path_as_text(runs, tmp_path):
    hourglass.plots.timeseries(runs[0], "run.png")
    assert (tmp_path / "run.png").is_file()


def test_a_notebook_shows_a_run_as_tables(runs):
    html = runs[0]._repr_html_()
    assert html.count("<table>") == html.count("</table>") > 1
    assert "synthetic" in html
    assert "Mbit/s" in html


def test_a_table_of_no_such_name_is_refused_with_a_guess(runs):
    with pytest.raises(InputError, match="table = 'tpc': Did you mean \"tcp\""):
        runs[0].table("tpc")


def test_a_report_that_cannot_be_written_leaves_the_older_one(runs, tmp_path, monkeypatch):
    page = tmp_path / "report.html"
    assert hourglass.write_report(runs, "report.html").stat().st_size > 10_000
    before = page.read_bytes()

    def full(path, text, *_):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(hourglass.errors.HourglassError, match="report cannot be written: No space") as caught:
        hourglass.write_report(runs[0], "report.html")
    assert caught.value.status == 3
    assert page.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "runs"}


@pytest.mark.parametrize("changes", [{"stack.cc": "bbr"}, "stack.cc=bbr", ["stack.cc=bbr"], [("stack.cc", "bbr")]])
def test_overrides_are_a_mapping_a_text_or_a_list(changes):
    assert scenario.load("L100M", changes).stack.cc == "bbr"
