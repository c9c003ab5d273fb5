# SPDX-License-Identifier: Apache-2.0
"""A kernel is only relinked if nothing but the text of its modules changed."""

from pathlib import Path

from hourglass.builders.kernel import relink
from hourglass.builders.kernel.custom_modules import MODULES_FOLDER, with_modules
from hourglass.builders.kernel.hooks import DRIVERS_TARGET
from hourglass.contract.kernel_module import KernelModule

PLAIN = {f"{DRIVERS_TARGET}/Makefile": b"", f"{DRIVERS_TARGET}/wire.c": b"int wire;\n"}


def state(*modules: KernelModule, key: str = "key", options: str = "CONFIG_A=y", wire: bytes = b"int wire;\n") -> str:
    return relink.digest(with_modules(PLAIN | {f"{DRIVERS_TARGET}/wire.c": wire}, modules), key, options)


def module(text: str = "int a;\n", name: str = "mine", **fields: tuple[str, ...]) -> KernelModule:
    return KernelModule(name, (("mine.c", text), ("mine.h", "")), **fields)


def test_the_text_of_a_module_does_not_change_the_state() -> None:
    assert state(module()) == state(module("int b;\n"))


def test_everything_else_changes_the_state() -> None:
    two_files = KernelModule("mine", (("a.c", ""), ("mine.c", ""), ("mine.h", "")))
    changed_states = {
        state(module(name="other")), state(module(flags=("-DX",))), state(two_files), state(module(), key="compiler"),
        state(module(), options="CONFIG_A=n"), state(module(), wire=b"int fire;\n"),
    }  # fmt: skip
    assert len(changed_states | {state(module())}) == 7


def test_a_tree_is_relinked_after_a_complete_build_of_the_same_state(tmp_path: Path) -> None:
    assert not relink.is_possible(tmp_path, "state")
    relink.remember(tmp_path, "state")
    assert not relink.is_possible(tmp_path, "state")  # Linux 5.10: no archive
    (tmp_path / relink.ARCHIVE).touch()
    assert relink.is_possible(tmp_path, "state")
    assert not relink.is_possible(tmp_path, "another")
    relink.remember(tmp_path, "")
    assert not relink.is_possible(tmp_path, "")  # a tree of the user
    relink.remember(tmp_path, "state")
    relink.forget(tmp_path)
    assert not relink.is_possible(tmp_path, "state")


def test_the_modules_are_compiled_and_then_linked(tmp_path: Path) -> None:
    called: list[list[str]] = []

    def make(words: list[str]) -> int:
        called.append(words)
        return len(words)

    steps = relink.relink(tmp_path, [module()], make)
    assert called[0][-1] == f"{MODULES_FOLDER}/mine/mine_0.o"
    assert called[1][-1] == "linux"
    assert steps == len(called[0]) + len(called[1])
    assert (tmp_path / relink.ARCHIVE).is_file()
