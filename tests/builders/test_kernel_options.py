# SPDX-License-Identifier: Apache-2.0
"""The comparison of the kernels' options with Debian's, on invented kernels, and the committed page."""

import re
from pathlib import Path

import pytest

from generators import kernel_options
from generators.kernel_options import Kernel
from hourglass import resources
from hourglass.builders.kernel import config
from hourglass.contract.kernels import KERNELS, version_of

FOLDERS = {"ALPHA": "net", "BETA": "net/sched", "GAMMA": "net/sched", "DELTA": "net"}


def options(*names: str) -> dict[str, str]:
    return {f"CONFIG_{name}": "y" for name in names}


def test_options_are_listed_for_the_kernels_that_lack_them() -> None:
    old = Kernel("5.10", "p 1", options("ALPHA", "BETA", "GAMMA"), options("ALPHA"), options("ALPHA", "BETA"), FOLDERS)
    new = Kernel("6.1", "p 2", options("ALPHA", "BETA"), options("DELTA"), options("BETA", "DELTA"), FOLDERS)
    text = kernel_options.page([old, new])
    assert "| 5.10 | p 1 | 1 | 1 | 1 |" in text
    assert "| 6.1 | p 2 | 0 | 1 | 1 |" in text
    assert "| `net` |  | `ALPHA` (6.1) |" in text
    assert "| `net/sched` | `BETA` | `GAMMA` |" in text
    assert "| `net` | `DELTA` |" in text


def test_values_name_their_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_options, "EFFECTS", {"HZ": "timers", "ALPHA, BETA": "order"})
    old = Kernel("5.10", "", {"CONFIG_HZ": "250"} | options("ALPHA"), {"CONFIG_HZ": "1000"}, {}, FOLDERS)
    new = Kernel("6.1", "", {"CONFIG_HZ": "250"} | options("BETA"), {"CONFIG_HZ": "1000"}, {}, FOLDERS)
    text = kernel_options.values([old, new])
    assert "| `HZ` | 250 | 1000 | timers |" in text
    assert "| `ALPHA`, `BETA` | `ALPHA` (5.10), `BETA` (6.1) |  | order |" in text
    with pytest.raises(SystemExit, match="HZ: the guests' kernels have Debian's value"):
        kernel_options.values([Kernel("6.1", "", {"CONFIG_HZ": "250"}, {"CONFIG_HZ": "250"}, {}, FOLDERS)])


def test_only_questions_of_kconfig_are_options(tmp_path: Path) -> None:
    (tmp_path / "net/sched").mkdir(parents=True)
    (tmp_path / "drivers/net").mkdir(parents=True)
    (tmp_path / "net/sched/Kconfig").write_text(
        'config ALPHA\n\tbool "Alpha"\n\tdepends on NET\n\nmenuconfig BETA\n\tdepends on NET\n\n\ttristate\n'
        "\tprompt 'Beta'\n\nconfig HIDDEN\n\tbool\n"
    )
    (tmp_path / "drivers/net/Kconfig").write_text('config GAMMA\n\ttristate "Gamma"\n')
    assert kernel_options.option_folders(tmp_path) == {
        "GAMMA": "drivers/net",
        "ALPHA": "net/sched",
        "BETA": "net/sched",
    }


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_page_lists_no_option_that_a_kernel_has(kernel: str) -> None:
    folder = resources.KERNEL / "config"
    plain, wide = (config.merge(config.fragments(folder, version_of(kernel), variant)) for variant in (None, "wide"))
    table = kernel_options.PAGE.read_text().split("## Options of Debian's kernels")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert rows
    for _, only_wide, missing in rows:
        for cell, have in ((only_wide, plain), (missing, plain | wide)):
            for name, versions in re.findall(r"`(\w+)`(?: \(([\d., ]+)\))?", cell):
                if not versions or kernel in versions.split(", "):
                    assert not kernel_options.is_on(have, name), f"run python -m generators.kernel_options: {name}"
