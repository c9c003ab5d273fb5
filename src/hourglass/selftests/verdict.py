# SPDX-License-Identifier: Apache-2.0
"""The output and the exit status of a test → ok, missed or skipped, with the reason.

The exit status counts (0 passed, 4 skipped: tools/testing/selftests/kselftest.h). So do the lines: of TAP (`ok 3 - …`,
`not ok 4 …`) or of `log_test` (`TEST: … [ OK ]`). A test that lacks a module, a tool or a program tests nothing. Its
verdict is skipped, and the reason is the line that names the lack.
"""

import re
from dataclasses import dataclass
from typing import Literal

Word = Literal["ok", "missed", "failed", "skipped"]

SKIPPED = "exit 4"
LONGEST = 150
"""Characters of a reason."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OK = re.compile(r"^\s*ok \d+(?!.*# (?:SKIP|skip))|\[\s*(?:OK|PASS)\s*\]\s*$", re.MULTILINE)
_FAILED = re.compile(r"^\s*not ok \d+(?!.*# (?:SKIP|skip)).*$|^.*\[\s*(?:FAIL(?:ED)?|fail)\s*\].*$", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:not )?ok \d+.*# (?:SKIP|skip).*$|^.*\[\s*SKIP(?:PED)?\s*\].*$", re.MULTILINE)
_SKIPPING = re.compile(r"^.*\bskip(?:ping|ped)?\b.*$", re.MULTILINE | re.IGNORECASE)
# tdc works without pyroute2, and reports each time that it is missing
_TELLING = re.compile(
    r"^(?!# Totals|.*pyroute2).*(?:\bfail|error|not found|denied|expected|mismatch|timed? ?out).*$",
    re.MULTILINE | re.I,
)
_LACKS = re.compile(
    r"^.*(?:netdevsim/|RTNETLINK answers: Operation not supported"
    r"|command not found|: not found|Unknown device type|qdisc kind is unknown|Unknown qdisc"
    r"|Failed to load TC action module|TC classifier not found|[Pp]rotocol not supported|Address family not supported"
    r"|Could not create (?:IPVS|xfrm)|No module named (?!.pyroute2)"
    r"|modprobe: FATAL|Extension \S+ revision \d+ not supported"
    r"|\./\S+: No such file or directory|\.o: No such file or directory|cannot execute"
    r"|Missing \S+.*(?:Run 'make'|Build bpf)|SKIP: \S+ not installed|is not enabled in this kernel|Table does not exist"
    r"|sysctl: cannot stat|can't open /proc/sys).*$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class SelftestVerdict:
    """`passed` and `failed`: the counts of cases, 0 if the test reports none."""

    word: Word
    reason: str = ""
    passed: int = 0
    failed: int = 0


def verdict(status: str, output: str, limit_s: float) -> SelftestVerdict:
    """Return the verdict of a test.

    `status`: as a run records it (`exit 1`, `SIGSEGV`, `running`); `output`: standard output, then standard error;
    `limit_s`: its limit of virtual time."""
    output = _COLOURS.sub("", output)
    passed, failed = len(_OK.findall(output)), len(_FAILED.findall(output))
    if status == "exit 0" and not failed:
        if not passed and (left := _LEFT.search(output)):
            return SelftestVerdict("skipped", _short((_LACKS.search(output) or left)[0]))
        return SelftestVerdict("ok", "", passed)
    if status == SKIPPED:
        match = _LEFT.search(output) or _SKIPPING.search(output) or _LACKS.search(output)
        return SelftestVerdict("skipped", _short(match[0] if match else _last(output)), passed, failed)
    if status == "running":
        return SelftestVerdict("missed", f"not over after {limit_s:g} s", passed, failed)
    if not passed and (lacks := _LACKS.search(output)):
        return SelftestVerdict("skipped", _short(lacks[0]), passed, failed)
    lines = [
        match[0]
        for match in (_FAILED.search(output), _LACKS.search(output) or _TELLING.search(_FAILED.sub("", output)))
        if match
    ]
    reason = _short("; ".join(line.strip() for line in lines) or _last(output))
    return SelftestVerdict("missed", reason if status.startswith("exit") else f"{status}: {reason}", passed, failed)


def _last(output: str) -> str:
    """Return the last line of the output, for output without a recognised reason."""
    return next((line for line in reversed(output.splitlines()) if line.strip()), "no output")


def _short(line: str) -> str:
    """Return a line in a form that fits a row of a table."""
    plain = " ".join(line.replace("|", "/").split()).removeprefix("# ")
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
