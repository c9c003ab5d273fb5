# SPDX-License-Identifier: Apache-2.0
"""`tune` on a small link, compared with an exhaustive sweep of it."""

import json
import re
from pathlib import Path

import pytest

import hourglass
from hourglass.cli.exit_status import guarded

pytestmark = pytest.mark.guest

OVER = ["stack.qdisc", "stack.cc=cubic,bbr"]
GOAL = ["ping.icmp.p99", "goodput >= 95% of best"]
SETTINGS = ["test.length=1.5", "test.delay=0.2", "test.upload_streams=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tune")


@pytest.mark.slow
def test_the_race_finds_the_choice_of_an_exhaustive_sweep(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exhaustive = hourglass.tune(
        "R10M", minimise=GOAL[0], keep=GOAL[1:], over=OVER, near=["none"], overrides=SETTINGS, seeds=(1, 2),
        exhaustive=True, out=folder,
    )  # fmt: skip
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    words += [word for key in OVER for word in ("--over", key)]
    command = ["tune", "R10M", "--minimise", GOAL[0], "--keep", GOAL[1], *words, "--near", "none", "--seeds", "1-2"]
    assert guarded([*command, "--out", str(folder), "--json"]) == 0
    output = capsys.readouterr()
    raced = json.loads(output.out)
    assert raced["chosen"] == exhaustive.chosen.changes
    assert raced["runs"] < exhaustive.runs
    assert set(re.findall(r"(\d+) to make", output.err)) == {"0"}, "a run was made twice"
    (delay, goodput) = raced["margins"]
    assert delay["interval"][1] < -50
    assert goodput["chosen"] > 0.95 * goodput["default"]
    assert any(line.startswith("tc qdisc replace dev eth1 ") for line in raced["commands"]["router"])
    assert Path(raced["picture"]).is_file()


@pytest.mark.slow
def test_a_setting_that_the_kernel_refuses_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    over = "stack.router.device.eth1.qdisc=fq_codel,fq_codel limit x"
    result = hourglass.tune(
        "R10M", minimise=GOAL[0], over=[over], near=["none"], overrides=SETTINGS, seeds=(1,), out=folder
    )
    assert [bool(setting.failure) for setting in result.settings] == [False, False, True]
    assert result.chosen.changes == {"stack.router.device.eth1.qdisc": "fq_codel"}
