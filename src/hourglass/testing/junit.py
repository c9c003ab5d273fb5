# SPDX-License-Identifier: Apache-2.0
"""Verdicts as JUnit XML, the de-facto form that CI systems read: a suite for each run, a case for each bound.

Form: Jenkins' junit-10.xsd (github.com/jenkinsci/xunit-plugin). A bound missed is a failure, a run that could not be
made an error. No time stamps: equal verdicts are equal bytes.
"""

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as xml

from hourglass import files
from hourglass.contract.summary import Check
from hourglass.results.sections.checks import value
from hourglass.testing.judge import Verdict


def write(path: Path, verdicts: Sequence[Verdict]) -> None:
    """Writes the file. Raises `HourglassError` when it cannot be written."""
    with files.writing(path, "the JUnit file"):
        files.write(path, document(verdicts))


def document(verdicts: Sequence[Verdict]) -> bytes:
    """The XML of the verdicts."""
    root = xml.Element("testsuites", _counts(verdicts), name="hourglass")
    root.extend(_suite(verdict) for verdict in verdicts)
    xml.indent(root)
    return bytes(xml.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _counts(verdicts: Sequence[Verdict]) -> dict[str, str]:
    errors = sum(one.error is not None for one in verdicts)
    counts = {
        "tests": sum(len(one.checks) for one in verdicts) + errors,
        "failures": sum(len(one.missed) for one in verdicts),
        "errors": errors,
    }
    return {name: str(count) for name, count in counts.items()} | {"time": f"{sum(map(_seconds, verdicts)):.3f}"}


def _seconds(verdict: Verdict) -> float:
    """Wall seconds of the run."""
    return verdict.run.info.wall_s if verdict.run else 0.0


def _suite(verdict: Verdict) -> xml.Element:
    suite = xml.Element("testsuite", _counts([verdict]), name=_text(verdict.name), skipped="0")
    if verdict.run is not None:
        info = verdict.run.info
        told = {"run": verdict.run.path, "kernel": info.kernel.release, "seed": info.seed, "digest": info.digest}
        properties = xml.SubElement(suite, "properties")
        for name, one in told.items():
            xml.SubElement(properties, "property", name=name, value=_text(one))
    suite.extend(_case(verdict, check) for check in verdict.checks)
    if verdict.error is not None:
        case = xml.SubElement(suite, "testcase", classname=_class(verdict), name="run", time="0")
        message = str(verdict.error).splitlines()[0]
        kind = type(verdict.error).__name__
        xml.SubElement(case, "error", message=_text(message), type=kind).text = _text(verdict.error)
    return suite


def _case(verdict: Verdict, check: Check) -> xml.Element:
    case = xml.Element("testcase", classname=_class(verdict), name=_text(f"{check.figure} {check.bound}"), time="0")
    if not check.ok:
        shown = value(check)
        found = check.reason if shown is None else f"{shown}, not {check.bound}"
        failure = xml.SubElement(case, "failure", message=_text(f"{check.figure}: {found}"), type="missed")
        place = f"\nrun: {verdict.run.path}\nhourglass report {verdict.run.path}" if verdict.run else ""
        failure.text = _text(f"{check.figure}: {check.reason or found}{place}")
    return case


def _class(verdict: Verdict) -> str:
    return _text(f"hourglass.{verdict.name}")


def _text(value: object) -> str:
    """As XML can hold it: no control characters."""
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in str(value))
