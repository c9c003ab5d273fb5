# SPDX-License-Identifier: Apache-2.0
"""What a test said and how it ended → pass, fail or skip, and why.

A test's exit status counts (0 passed, 4 skipped: tools/testing/selftests/kselftest.h), and its lines: of TAP
(`ok 3 - …`, `not ok 4 …`) or of `log_test` (`TEST: … [ OK ]`). A test that fails because something is not there that it
needs (a module, a tool, a program that was not compiled) has tested nothing: it is skipped, with the line that says so.
"""

import re
from dataclasses import dataclass
from typing import Literal

Word = Literal["pass", "fail", "skip"]

SKIPPED = "exit 4"
LONGEST = 150
"""Characters of a reason."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_OK = re.compile(r"^\s*ok \d+(?!.*# (?:SKIP|skip))|\[\s*(?:OK|PASS)\s*\]\s*$", re.MULTILINE)
_FAILED = re.compile(r"^\s*not ok \d+(?!.*# (?:SKIP|skip)).*$|^.*\[\s*(?:FAIL(?:ED)?|fail)\s*\].*$", re.MULTILINE)
_LEFT = re.compile(r"^\s*(?:not )?ok \d+.*# (?:SKIP|skip).*$|^.*\[\s*SKIP(?:PED)?\s*\].*$", re.MULTILINE)
_SKIPPING = re.compile(r"^.*\bskip(?:ping|ped)?\b.*$", re.MULTILINE | re.IGNORECASE)
# tdc can do without pyroute2, and says each time that it is not there
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
class Verdict:
    """`passed` and `failed`: how many of its cases; a test that tells none has 0 of each."""

    word: Word
    reason: str = ""
    passed: int = 0
    failed: int = 0


def verdict(status: str, said: str, limit_s: float) -> Verdict:
    """`status`: as a run has it (`exit 1`, `SIGSEGV`, `running`); `said`: standard output, then error; `limit_s`: the
    virtual time that it had."""
    said = _COLOURS.sub("", said)
    passed, failed = len(_OK.findall(said)), len(_FAILED.findall(said))
    if status == "exit 0" and not failed:
        if not passed and (left := _LEFT.search(said)):
            return Verdict("skip", _short((_LACKS.search(said) or left)[0]))
        return Verdict("pass", "", passed)
    if status == SKIPPED:
        found = _LEFT.search(said) or _SKIPPING.search(said) or _LACKS.search(said)
        return Verdict("skip", _short(found[0] if found else _last(said)), passed, failed)
    if status == "running":
        return Verdict("fail", f"not over after {limit_s:g} s", passed, failed)
    if not passed and (lacks := _LACKS.search(said)):
        return Verdict("skip", _short(lacks[0]), passed, failed)
    lines = [
        one[0] for one in (_FAILED.search(said), _LACKS.search(said) or _TELLING.search(_FAILED.sub("", said))) if one
    ]
    words = _short("; ".join(line.strip() for line in lines) or _last(said))
    return Verdict("fail", words if status.startswith("exit") else f"{status}: {words}", passed, failed)


def _last(said: str) -> str:
    """Its last line, where none tells by its words why."""
    return next((line for line in reversed(said.splitlines()) if line.strip()), "says nothing")


def _short(line: str) -> str:
    """A line as it fits a table's row."""
    plain = " ".join(line.replace("|", "/").split()).removeprefix("# ")
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 1] + "…"
