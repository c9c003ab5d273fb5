# SPDX-License-Identifier: Apache-2.0
"""The golden digests: what the records of a few short runs are, on every kernel, byte for byte.

`golden.toml` has a table for each pair of a kernel's release and a root's tools (`root.tools_key`: iproute2, ethtool,
iw, hostapd and their libraries, of one Debian release). `python -m tests.golden` makes the runs and prints their table,
`--update` writes it into the file; what changed is then in the diff, and has to be explained by the commit. Beside a
digest stand figures of the run, so that the diff can be read.
"""

import argparse
import json
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hourglass import runner, scenario
from hourglass.contract.kernels import KERNELS, tools
from hourglass.engine import root

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
    "faults": ("L10M", (*SHORT, "testbed.link.0.loss=1%", "testbed.link.0.jitter=1ms")),
    "voip": ("R10M", ("test.length=1", "test.name=voip")),
    "http": ("L10M", ("test.length=1", "test.name=http")),
    "wifi-ath9k": ("wifi-ath9k", SHORT),
    "wifi-ax": ("wifi-ax", SHORT),
}
"""Name → built-in scenario and what is set: a second or so of every kind of link, chip and traffic."""

Run = Callable[..., Any]


def pair(release: str) -> str:
    """What a digest is of beside its scenario: the kernel's release and the tools of the root."""
    return f"{release} / {root.tools_key(True, tools(release))}"


def entry(place: Path) -> dict[str, Any]:
    """What the table says of a run directory: the digest, and figures by which a person sees what became of it."""
    summary = json.loads((place / "summary.json").read_text())
    totals, ping = summary["totals"], summary["ping_ms"]
    figures = {"upload_mbps": totals["upload_mbps"], "download_mbps": totals["download_mbps"]}
    figures |= {f"{name}_p50_ms": delays["p50"] for name, delays in ping.items()}
    return {"sha256": summary["digest"][:16]} | {name: value for name, value in figures.items() if value is not None}


def line(name: str, of: dict[str, Any]) -> str:
    return f"{name} = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in of.items())} }}"


def read() -> dict[str, dict[str, Any]]:
    """{pair: {case: entry}}."""
    return tomllib.loads(FILE.read_text()) if FILE.is_file() else {}


def write(tables: dict[str, dict[str, Any]]) -> None:
    parts = [f'["{key}"]\n' + "".join(f"{line(*item)}\n" for item in tables[key].items()) for key in sorted(tables)]
    FILE.write_text("\n".join([HEAD, *parts]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Makes the golden runs and prints what their table is.")
    parser.add_argument("--update", action="store_true", help="write it into tests/golden.toml")
    parser.add_argument("--kernel", action="append", choices=list(KERNELS), help="this kernel alone (repeat)")
    wanted = parser.parse_args()
    tables = read()
    with tempfile.TemporaryDirectory() as folder:
        for kernel in wanted.kernel or KERNELS:
            found = {}
            for name, (source, overrides) in CASES.items():
                run = runner.run(scenario.load(source, overrides, kernel=kernel), Path(folder) / kernel / name)
                found[name] = entry(run.path)
            release = json.loads((run.path / "run.json").read_text())["kernel"]["release"]
            tables[pair(release)] = found
            print(f'["{pair(release)}"]', *(line(*item) for item in found.items()), sep="\n", flush=True)
    if wanted.update:
        write(tables)


if __name__ == "__main__":
    main()
