# SPDX-License-Identifier: Apache-2.0
"""Grade an answer to a lab: `python labs/grade.py LAB ANSWER.toml`.

An answer is a TOML file of settings, `"stack.router.device.wan.qdisc" = "fq_codel"`, as `--set` takes them. `labs.toml`
lists the keys that it may set. The bounds are those of the lab's `start.toml`. The exit status is 0 when all bounds
are met, 1 when one is missed, 2 when the answer is not valid, 3 when the run fails.
"""

import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import hourglass
from hourglass.errors import HourglassError, InputError
from hourglass.studies.run_check import RunVerdict

LABS = Path(__file__).parent
KEYS: dict[str, list[str]] = {
    name: lab["keys"] for name, lab in tomllib.loads((LABS / "labs.toml").read_text("utf-8")).items()
}


def grade(lab: str, answer: Path) -> RunVerdict:
    """Run the lab with the answer's settings and return the verdict. Raise `InputError` for an invalid answer."""
    if lab not in KEYS:
        raise InputError("lab", lab, f"is no lab; the labs are {', '.join(KEYS)}")
    settings = _settings(lab, answer)
    (verdict,) = hourglass.check(LABS / lab / "start.toml", overrides=settings)
    return verdict


def _settings(lab: str, answer: Path) -> list[tuple[str, Any]]:
    try:
        table = tomllib.loads(answer.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError("answer", str(answer), f"cannot be read: {error}") from None
    for key, value in table.items():
        if not any(fnmatchcase(key, pattern) for pattern in KEYS[lab]):
            raise InputError(key, value, f"an answer to {lab} sets these keys: {', '.join(KEYS[lab])}")
    return [(key, _from_the_answer(value, answer)) for key, value in table.items()]


def _from_the_answer(value: Any, answer: Path) -> Any:
    """Return a C file's path relative to the answer as an absolute path; return other values unchanged."""
    return str((answer.parent / value).resolve()) if isinstance(value, str) and value.endswith(".c") else value


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        verdict = grade(arguments[0], Path(arguments[1]))
    except InputError as error:
        print(f"grade: {error}", file=sys.stderr)
        return 2
    except HourglassError as error:
        print(f"grade: {error}", file=sys.stderr)
        return 3
    if verdict.error is not None:
        print(f"grade: {verdict.error}", file=sys.stderr)
        return 3
    for check in verdict.checks:
        print(f"{'ok    ' if check.ok else 'missed'}  {check.figure} {check.bound}: {check.value} {check.unit}")
    print("passed" if verdict.ok else f"{len(verdict.missed)} of {len(verdict.checks)} bounds missed")
    return 0 if verdict.ok else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
