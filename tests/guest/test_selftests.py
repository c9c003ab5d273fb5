# SPDX-License-Identifier: Apache-2.0
"""A kernel's selftests as programs of its guest, each judged by its output and its end."""

import shutil
from pathlib import Path

import pytest

from hourglass.contract.plan.apps import Root
from hourglass.engine.program_root import ready
from hourglass.selftests import page, selftest_runs
from hourglass.selftests.build import TESTS_FOLDER, SelftestRoot
from hourglass.selftests.verdict import SelftestVerdict

pytestmark = pytest.mark.guest

TESTS = {
    "net/namespaces.sh": "ip netns add a && ip -n a link set lo up && ip netns exec a ping -c 1 127.1 && echo 'ok 1 a'",
    "net/wrong.sh": "sleep 60; echo 'ok 1 slept'; echo 'not ok 2 this'; exit 1",
    "net/lacks.sh": "ip link add a0 type macsec",
    "net/plain.sh": "echo 'ok 1 called by its interpreter'",
}


def test_each_test_has_a_guest_and_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    shutil.copytree(ready(Root(kind="debian", place="12", packages=["bash"])).folder, root, symlinks=True)
    for name, text in TESTS.items():
        script = root / TESTS_FOLDER / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o644 if "plain" in name else 0o755)
    monkeypatch.setattr(selftest_runs, "build_selftests", lambda *_: SelftestRoot(root, tuple(sorted(TESTS))))
    results = selftest_runs.selftests("6.1", ["net/*"], out=tmp_path / "out")
    assert {result.name: result.verdicts for result in results.tests} == {
        "net/lacks.sh": (SelftestVerdict("skipped", "Error: Unknown device type."),),
        "net/namespaces.sh": (SelftestVerdict("ok", "", 1),),
        "net/plain.sh": (SelftestVerdict("ok", "", 1),),
        "net/wrong.sh": (SelftestVerdict("missed", "not ok 2 this", 1, 1),),
    }
    text = page.markdown(results)
    assert "| net | 2 | 1 | 1 | 3 | 1 |" in text
    assert "| net/wrong.sh | missed | 1 of 2 | not ok 2 this |" in text
