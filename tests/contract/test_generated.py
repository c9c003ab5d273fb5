# SPDX-License-Identifier: Apache-2.0
"""Generated files are up to date, and C lays out the structures as declared."""

import subprocess
from pathlib import Path

import pytest

from generators.__main__ import generated_texts, main
from hourglass.contract.probe import PROBE

ROOT = Path(__file__).parents[2]


def test_nothing_that_is_generated_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["--check"]) == 0


def test_a_stale_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in generated_texts(ROOT):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent/src/abi.rs").write_text("// changed by hand\n")
    assert main(["--check"]) == 1
    assert capsys.readouterr().out == "agent/src/abi.rs is stale: run python -m hourglass.contract\n"
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_c_has_every_field_where_it_is_declared(tmp_path: Path) -> None:
    """In Rust the compiler asserts this: a structure as long as all of its fields has no gap (agent/src/abi.rs)."""
    lines = ["#include <stddef.h>", f'#include "{ROOT}/kernel/drivers/probe/probe_abi.h"']
    for struct in PROBE.structs:
        name = f"struct probe_{struct.name}"
        offsets = [(f"offsetof({name}, {member.name})", offset) for member, offset in PROBE.layout(struct)]
        lines += [f'_Static_assert({expression} == {number}, "{expression}");' for expression, number in offsets]
        lines.append(f'_Static_assert(sizeof({name}) == {PROBE.size(struct)}, "{name}");')
    for enum in PROBE.enums:
        for number, name in enumerate(enum.names, enum.first):
            lines.append(f'_Static_assert({enum.prefix}{name.upper()} == {number}, "{name}");')
    source = tmp_path / "layout.c"
    source.write_text("\n".join(lines))
    result = subprocess.run(["cc", "-c", source, "-o", tmp_path / "o"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("arguments", [["--wrong"], ["--check", "more"]])
def test_unknown_arguments_are_refused(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit, match="usage"):
        main(arguments)
