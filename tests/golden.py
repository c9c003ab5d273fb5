# SPDX-License-Identifier: Apache-2.0
"""The golden digests: the records of a few short runs on every kernel, byte for byte.

`golden.toml` has a table for each pair of a kernel's release and a root's tools (`root.tools_key`). The tools are
iproute2, ethtool, iw, hostapd and their libraries, of one Debian release. `python -m tests.golden` makes the runs and
prints their table, `--update` writes it into the file. The commit has to explain the diff. Figures of the run follow
each digest, so that the diff can be read.
"""

import argparse
import json
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hourglass import runner, scenario
from hourglass.builders import root
from hourglass.contract.kernels import KERNELS, tools

FILE = Path(__file__).parent / "golden.toml"
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Written by `python -m tests.golden --update`, read by tests/guest/test_golden.py.
# A table is KERNEL RELEASE / ROOT'S TOOLS.
"""
SHORT = ("test.length=1", "test.delay=0.2")
CASES: dict[str, tuple[str, tuple[str, ...]]] = {
    "L100M": ("L100M", SHORT),
    "L100M-bbr": ("L100M", (*SHORT, "stack.cc=bbr", "stack.qdisc=fq")),
    "L100M-cake": ("L100M", (*SHORT, "stack.qdisc=cake", "test.name=tcp_bidirectional")),
    "R100M": ("R100M", SHORT),
    "asymmetric": ("asymmetric", SHORT),
    "parking-lot": ("parking-lot", SHORT),
    "lan": ("lan", ("test.length=6",)),
    "faults": ("L10M", (*SHORT, "testbed.link.0.loss=1%", "testbed.link.0.jitter=1ms")),
    "voip": ("R10M", ("test.length=1", "test.name=voip")),
    "http": ("L10M", ("test.length=1", "test.name=http")),
    "wifi-ath9k": ("wifi-ath9k", SHORT),
    "wifi-ax": ("wifi-ax", SHORT),
}
"""Name → built-in scenario and settings: about a second of every kind of link, chip and traffic."""

Run = Callable[..., Any]


def pair(release: str) -> str:
    """Return the key of a table: the kernel's release and the tools of the root."""
    return f"{release} / {root.tools_key(True, tools(release))}"


def entry(folder: Path) -> dict[str, Any]:
    """Return the entry of a run directory: the digest, and figures that show a reader what changed."""
    summary = json.loads((folder / "summary.json").read_text())
    totals, ping = summary["totals"], summary["ping_ms"]
    figures = {"upload_mbps": totals["upload_mbps"], "download_mbps": totals["download_mbps"]}
    figures |= {f"{name}_p50_ms": delays["p50"] for name, delays in ping.items()}
    return {"sha256": summary["digest"][:16]} | {name: value for name, value in figures.items() if value is not None}


def line(name: str, fields: dict[str, Any]) -> str:
    return f"{name} = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in fields.items())} }}"


def read() -> dict[str, dict[str, Any]]:
    """Return the file as `{pair: {case: entry}}`."""
    return tomllib.loads(FILE.read_text()) if FILE.is_file() else {}


def write(tables: dict[str, dict[str, Any]]) -> None:
    parts = [f'["{key}"]\n' + "".join(f"{line(*item)}\n" for item in tables[key].items()) for key in sorted(tables)]
    FILE.write_text("\n".join([HEAD, *parts]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the golden runs and prints what their table is.")
    parser.add_argument("--update", action="store_true", help="write it into tests/golden.toml")
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="this kernel alone (repeat)")
    arguments = parser.parse_args()
    tables = read()
    with tempfile.TemporaryDirectory() as folder:
        for kernel in arguments.kernel or KERNELS:
            entries = {}
            for name, (source, overrides) in CASES.items():
                run = runner.run(scenario.load(source, overrides, kernel=kernel), Path(folder) / kernel / name)
                entries[name] = entry(run.path)
            release = json.loads((run.path / "run.json").read_text())["kernel"]["release"]
            tables[pair(release)] = entries
            print(f'["{pair(release)}"]', *(line(*item) for item in entries.items()), sep="\n", flush=True)
    if arguments.update:
        write(tables)


if __name__ == "__main__":
    main()
