# SPDX-License-Identifier: Apache-2.0
"""Codes of errors: the declaration lists all that the sources use, and no other; messages are made of it."""

import ast
import re
from pathlib import Path

import pytest

from hourglass.contract import error_codes
from hourglass.contract.error_codes import ErrorCode

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src/hourglass").rglob("*.py"))
AGENT = sorted(path for path in (ROOT / "agent/src").rglob("*.rs") if path.name != "cause.rs")
CODES = [(name, code) for group in error_codes.groups().values() for name, code in group.items()]

FIRST_ARGUMENT = ("Stop", "Hang")
"""Classes whose first argument is a code."""

TEXT_OF_AN_ERROR = re.compile(r"""["'] (not )?in str\((error|problem|failure)\)|(search|match)\(str\((error|problem)""")


def used() -> set[str]:
    """Return the codes of the package's classes and calls."""
    codes = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.keyword(arg="code", value=ast.Constant(str(name))):
                    codes.add(name)
                case ast.Call(func=ast.Name(id) | ast.Attribute(attr=id), args=[ast.Constant(str(name)), *_]):
                    codes |= {name} if id in FIRST_ARGUMENT else set()
                case ast.ClassDef(body=body):
                    codes |= {
                        item.value.value
                        for item in body
                        if isinstance(item, ast.Assign)
                        and [target.id for target in item.targets if isinstance(target, ast.Name)] == ["code"]
                        and isinstance(item.value, ast.Constant)
                        and isinstance(item.value.value, str)
                    }
    return codes


def test_codes_are_unique_and_have_a_form() -> None:
    names = [name for name, _ in CODES]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


def test_every_code_of_the_package_is_declared() -> None:
    assert used() <= {name for name, _ in CODES}


def test_every_declared_code_is_used() -> None:
    text = "".join(path.read_text() for path in SOURCES if path.parent.name != "contract")
    declared = [name for group in ("run", "command") for name in error_codes.groups()[group]]
    assert [name for name in declared if f'"{name}"' not in text] == []


def test_the_agent_uses_every_cause() -> None:
    text = "".join(path.read_text() for path in AGENT)
    causes = {name: name.title().replace("-", "") for name in error_codes.groups()["agent"]}
    assert [name for name, cause in causes.items() if not re.search(rf"(Cause|Self)::{cause}\b", text)] == []


@pytest.mark.parametrize(("name", "code"), error_codes.groups()["agent"].items(), ids=str)
def test_a_message_needs_no_undeclared_field(name: str, code: ErrorCode) -> None:
    words = re.findall(r"\{(\w+)\}", code.text)
    assert set(words) <= set(code.fields)
    assert not set(code.fields) & {*error_codes.CONTEXT, "event", "code"}
    event = {"code": name} | {field: 2 if field == "errno" or field.endswith("_ns") else "x" for field in code.fields}
    message = error_codes.message(event)
    assert message
    assert "{" not in message


def test_fields_are_worded_as_people_read_them() -> None:
    assert error_codes.message({"code": "system", "what": "eth0", "errno": 19}) == "eth0: No such device"
    late = {"code": "program-late", "program": "server", "timeout_ns": 1_500_000_000, "condition": "its start"}
    assert error_codes.message(late | {"output": "a\nb"}) == (
        "server was not ready within 1.5 s, waiting for its start; its last output: a | b"
    )
    assert error_codes.message(late | {"output": ""}).endswith("; it printed nothing")
    missing = {"code": "daemon-missing", "tool": "hostapd", "subject": "flow 1"}
    assert error_codes.message(missing) == "flow 1: hostapd is not running in this node"


def test_nothing_decides_by_the_message_of_an_error() -> None:
    assert [path for path in SOURCES if TEXT_OF_AN_ERROR.search(path.read_text())] == []
