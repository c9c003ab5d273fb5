# SPDX-License-Identifier: Apache-2.0
"""A kernel's selftests as programs of its guest: each by itself, judged by what it says and how it ends."""

import shutil
from pathlib import Path

import pytest

from hourglass.contract.plan_apps import Root
from hourglass.engine.approot import ready
from hourglass.selftests import page, run
from hourglass.selftests.build import PLACE, Built
from hourglass.selftests.verdict import Verdict

pytestmark = pytest.mark.guest

TESTS = {
    "net/namespaces.sh": "ip netns add a && ip -n a link set lo up && ip netns exec a ping -c 1 127.1 && echo 'ok 1 a'",
    "net/wrong.sh": "sleep 60; echo 'ok 1 slept'; echo 'not ok 2 this'; exit 1",
    "net/lacks.sh": "ip link add a0 type ipvlan",
    "net/plain.sh": "echo 'ok 1 called by its interpreter'",
}


def test_each_test_has_a_guest_and_a_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    shutil.copytree(ready(Root(kind="debian", place="12", packages=["bash"])).folder, root, symlinks=True)
    for name, text in TESTS.items():
        script = root / PLACE / name
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o644 if "plain" in name else 0o755)
    monkeypatch.setattr(run, "built", lambda *_: Built(root, tuple(sorted(TESTS))))
    found = run.selftests("6.1", ["net/*"], out=tmp_path / "out")
    assert {one.name: one.verdicts for one in found.tests} == {
        "net/lacks.sh": (Verdict("skip", "Error: Unknown device type."),),
        "net/namespaces.sh": (Verdict("pass", "", 1),),
        "net/plain.sh": (Verdict("pass", "", 1),),
        "net/wrong.sh": (Verdict("fail", "not ok 2 this", 1, 1),),
    }
    text = page.markdown(found)
    assert "| net | 2 | 1 | 1 | 3 | 1 |" in text
    assert "| net/wrong.sh | fail | 1 of 2 | not ok 2 this |" in text
