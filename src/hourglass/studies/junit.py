# SPDX-License-Identifier: Apache-2.0
"""Write verdicts as JUnit XML, the format that CI systems read: a suite per run, a case per bound.

Format: Jenkins' junit-10.xsd (github.com/jenkinsci/xunit-plugin). A missed bound is a failure, a failed run an error.
No time stamps, so equal verdicts give equal bytes.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as xml

from hourglass import files
from hourglass.contract.summary import CheckVerdict
from hourglass.results.sections.check_sections import value
from hourglass.studies.run_check import RunVerdict


def write(path: Path, verdicts: Sequence[RunVerdict]) -> None:
    """Write the file. Raises `HourglassError` if it cannot be written."""
    with files.writing(path, "the JUnit file"):
        files.write(path, document(verdicts))


def document(verdicts: Sequence[RunVerdict]) -> bytes:
    """Return the XML of the verdicts."""
    root = xml.Element("testsuites", _counts(verdicts), name="hourglass")
    numbers = Counter(verdict.name for verdict in verdicts)
    for verdict in verdicts:
        seed = f".seed-{verdict.seed}" if numbers[verdict.name] > 1 and verdict.seed is not None else ""
        root.append(_suite(verdict, _text(f"{verdict.name}{seed}")))
    xml.indent(root)
    return bytes(xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _counts(verdicts: Sequence[RunVerdict]) -> dict[str, str]:
    errors = sum(verdict.error is not None for verdict in verdicts)
    counts = {
        "tests": sum(len(verdict.checks) for verdict in verdicts) + errors,
        "failures": sum(len(verdict.missed) for verdict in verdicts),
        "errors": errors,
    }
    return {name: str(count) for name, count in counts.items()} | {"time": f"{sum(map(_seconds, verdicts)):.3f}"}


def _seconds(verdict: RunVerdict) -> float:
    """Return the wall seconds of the run."""
    return verdict.run.info.wall_s if verdict.run else 0.0


def _suite(verdict: RunVerdict, name: str) -> xml.Element:
    suite = xml.Element("testsuite", _counts([verdict]), name=name, skipped="0")
    if verdict.run is not None:
        info = verdict.run.info
        values = {"run": verdict.run.path, "kernel": info.kernel.release, "seed": info.seed, "digest": info.digest}
        properties = xml.SubElement(suite, "properties")
        for key, content in values.items():
            xml.SubElement(properties, "property", name=key, value=_text(content))
    suite.extend(_case(verdict, check, f"hourglass.{name}") for check in verdict.checks)
    if verdict.error is not None:
        case = xml.SubElement(suite, "testcase", classname=f"hourglass.{name}", name="run", time="0")
        message = str(verdict.error).splitlines()[0]
        code = verdict.error.code
        xml.SubElement(case, "error", message=_text(message), type=code).text = _text(verdict.error)
    return suite


def _case(verdict: RunVerdict, check: CheckVerdict, classname: str) -> xml.Element:
    case = xml.Element("testcase", classname=classname, name=_text(f"{check.figure} {check.bound}"), time="0")
    if not check.ok:
        measured = value(check)
        message = check.reason if measured is None else f"{measured}, not {check.bound}"
        failure = xml.SubElement(case, "failure", message=_text(f"{check.figure}: {message}"), type="missed")
        location = f"\nrun: {verdict.run.path}\nhourglass report {verdict.run.path}" if verdict.run else ""
        failure.text = _text(f"{check.figure}: {check.reason or message}{location}")
    return case


def _text(value: object) -> str:
    """Return the text without control characters, which XML cannot contain."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "\ufffd" for letter in str(value))
