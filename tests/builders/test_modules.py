# SPDX-License-Identifier: Apache-2.0
"""A user's modules in a tree: a folder and an object each, keys and labels, and the cause of a failed build."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from hourglass.builders.kernel import builder, confined_tools, custom_modules
from hourglass.builders.kernel.hooks import DRIVERS_TARGET
from hourglass.builders.kernel.recipe import Recipe
from hourglass.contract.kernel_module import KernelModule
from hourglass.files import LOG_MAX
from hourglass.host import sandbox

MINE = KernelModule("mine", (("a.c", "int a;\n"), ("b.c", "int b;\n"), ("b.h", "#define B\n")), (("share", "900"),))
PLAIN = Recipe("6.12", "linux-source-6.12 1", (6, 12))
FOLDER = f"{DRIVERS_TARGET}/modules"


def test_each_module_is_one_object_whose_lines_are_the_users() -> None:
    makefile = f"{DRIVERS_TARGET}/Makefile"
    drivers = {makefile: b"obj-y += load.o\n", "mm/x.c": b""}
    laid = custom_modules.with_modules(drivers, [MINE])
    assert laid[makefile] == b"obj-y += load.o\nobj-y += modules/\n"
    assert laid[f"{FOLDER}/Makefile"].endswith(b"\nobj-y := mine/\n")
    assert laid[f"{FOLDER}/mine/mine_0.c"] == b'#line 1 "a.c"\nint a;\n'
    assert laid[f"{FOLDER}/mine/b.h"] == b"#define B\n"
    assert b"\nobj-y := mine.o\nmine-y := mine_0.o mine_1.o\n" in laid[f"{FOLDER}/mine/Makefile"]
    assert custom_modules.with_modules(drivers, []) is drivers


def test_text_and_name_decide_the_key_and_parameters_do_not() -> None:
    recipe = replace(PLAIN, modules=(MINE,))
    assert recipe.label == "6.12+mine.c"
    assert replace(PLAIN, modules=(replace(MINE, parameters=()),)).key() == recipe.key()
    variants = [replace(MINE, name="yours"), replace(MINE, files=MINE.files[:2]), replace(MINE, flags=("-DX",))]
    keys = {PLAIN.key(), recipe.key(), *(replace(PLAIN, modules=(other,)).key() for other in variants)}
    assert len(keys) == 5


def test_a_failed_build_is_blamed_on_the_users_file_alone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        f"a.c:3:5: error: 'x' undeclared\n{FOLDER}/mine/b.h:1:1: note: here\nmm/x.c:1:1: error: other\n  CC mm/x.o\n"
    )
    assert custom_modules.compiler_messages(log, [MINE]) == ["a.c:3:5: error: 'x' undeclared", "b.h:1:1: note: here"]
    log.write_text("mm/x.c:1:1: error: other\n")
    assert custom_modules.compiler_messages(log, [MINE]) == []
    log.write_text("ld: undefined reference to `nothing'\n")
    assert custom_modules.compiler_messages(log, [MINE]) == ["ld: undefined reference to `nothing'"]
    assert custom_modules.compiler_messages(log, []) == []


def test_nothing_of_earlier_modules_stays_in_the_tree(tmp_path: Path) -> None:
    """The `.incbin` of a module reads all files of its tree."""
    program, text = b"\x7fELF\x02secret", b"text"
    present = {
        f"{FOLDER}/mine/mine_0.c": text, f"{FOLDER}/mine/Makefile": text, f"{FOLDER}/built-in.a": b"!<thin>\n",
        "vmlinux.a": b"!<thin>\n", "mm/slab.o": program,
    }  # fmt: skip
    earlier = [f"{FOLDER}/mine/mine_0.o", f"{FOLDER}/yours/yours_0.o", f"{FOLDER}/yours/.yours_0.o.cmd"]
    earlier += ["linux", "vmlinux.o", ".tmp_vmlinux1", "System.map", ".vmlinux.export.o"]
    for name, content in (present | dict.fromkeys(earlier, program)).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    custom_modules.delete_objects(tmp_path, [])
    assert (tmp_path / "linux").is_file()
    custom_modules.delete_objects(tmp_path, [MINE])
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == present.keys()


def test_an_endless_build_log_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builder, "MAKE", ["sh", "-c", f"head -c {LOG_MAX + 10**6} /dev/zero; echo; echo '  CC last'"])
    steps: list[int] = []
    builder.run_make(tmp_path, "compiling", [], lambda: steps.append(1), tmp_path / "log")
    assert (tmp_path / "log").stat().st_size < LOG_MAX + 100
    assert len(steps) == 1


def compile_file(work: Path, source: str) -> None:
    """Compile a C file as a module's, in a new folder."""
    work.mkdir()
    (work / "a.c").write_text(f"{source}\n")
    (work / "Makefile").write_text("linux:\n\tgcc -c a.c\n")
    builder.run_make(work, "compiling", ["linux"], log=work / "log", rules=confined_tools.compiler_rules(work))


@pytest.mark.parametrize(
    "source",
    [
        '#include "../secret"',
        '#define FILE "../secret"\n#include FILE',
        '#inc\\\nlude "../secret"',
        '__asm__(".inc" "bin \\"../secret\\"");',
    ],
)
def test_a_c_file_reads_no_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """The compiler's confinement refuses what no pattern of text can find; without it, the file is compiled."""
    if not sandbox.layers().landlock:
        pytest.skip("no native runs here: Landlock is not in this kernel")
    (tmp_path / "secret").write_text("int secret;\n")
    with pytest.raises(builder.BuildError):
        compile_file(tmp_path / "work", source)
    assert re.search("secret.*Permission denied|file not found.*secret", (tmp_path / "work/log").read_text())
    monkeypatch.setattr(sandbox, "ENABLED", set())
    compile_file(tmp_path / "without", source)


def test_a_c_file_fills_no_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_tools, "FILE_BYTES", 1 << 20)
    with pytest.raises(builder.BuildError):
        compile_file(tmp_path / "work", '__asm__(".fill 1000000, 8, 0x41");')
    assert re.search("File size limit|too large|No space", (tmp_path / "work/log").read_text())
