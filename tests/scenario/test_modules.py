# SPDX-License-Identifier: Apache-2.0
"""`cc = "my_cc.c"`: sources become data of the scenario, names replace them, and a mistake is one line."""

import json
from pathlib import Path
from typing import Any

import pytest

from hourglass import scenario
from hourglass.contract.capabilities import Capabilities
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.resources import KERNEL
from hourglass.scenario import c_source

AIMD = (KERNEL / "templates/aimd.c").read_text()
SOJOURN = (KERNEL / "templates/sojourn.c").read_text()
VETH = Capabilities(
    nic="veth", own_kernel=False, virtual_time=False, radios=False, programs=False, captures=False, layers=False
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a scenario, two congestion controls (one in a folder), and a qdisc."""
    (tmp_path / "aimd.c").write_text(AIMD)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/b.c").write_text(AIMD.replace('"aimd"', '"mine"'))
    (tmp_path / "mine/b.h").write_text("#define B 1\n")
    (tmp_path / "mine/notes.txt").write_text("nothing for a compiler\n")
    (tmp_path / "fifo.c").write_text(SOJOURN)
    (tmp_path / "s.toml").write_text('testbed.preset = "L100M"\n')
    return tmp_path


def load(folder: Path, *changes: str | tuple[str, Any]) -> scenario.Scenario:
    return scenario.load(folder / "s.toml", changes)


def test_a_source_in_bpf_registers_what_it_declares(folder: Path) -> None:
    text = (KERNEL / "templates/aimd.bpf.c").read_text()
    (folder / "gentle.bpf.c").write_text(text.replace('"aimd"', '"gentle"'))
    loaded = load(folder, ("test.flow_cc", ["aimd.c", "gentle.bpf.c"]))
    modules = {module.name: module.of_kernel() for module in loaded.module}
    assert {name: module.is_bpf for name, module in modules.items()} == {"aimd": False, "gentle": True}
    (folder / "two.bpf.c").write_text(text + text[text.index('SEC(".struct_ops")') :])
    with pytest.raises(InputError, match="registers aimd and aimd"):
        load(folder, ("stack.cc", "two.bpf.c"))


def test_every_key_with_a_name_accepts_a_file(folder: Path) -> None:
    loaded = load(
        folder,
        ("stack.cc", "aimd.c"),
        ("stack.client.cc", "mine/"),
        ("stack.qdisc", "fifo.c"),
        ("stack.router.device.eth1.qdisc", {"file": "fifo.c", "name": "slow", "parameters": {"threshold": 5000}}),
        ("test.flow_cc", ["cubic", {"file": "aimd.c", "name": "gentle", "parameters": {"share": 900}}, "aimd.c"]),
        ("test.competing", [{"client": "router", "cc": "mine/"}]),
        ("event", [{"at": 1, "node": "router", "tc": "qdisc replace dev eth0 root slow"}]),
    )
    assert (loaded.stack.cc, loaded.stack.of("client").cc, loaded.stack.qdisc) == ("aimd", "mine", "sojourn")
    assert loaded.stack.nodes["router"].device["eth1"].qdisc == "slow"
    assert loaded.test.flow_cc == ("cubic", "gentle", "aimd")
    assert loaded.test.competing[0].cc == "mine"
    modules = {module.name: module for module in loaded.module}
    assert {name: module.kind for name, module in modules.items()} == {
        "aimd": "cc", "mine": "cc", "sojourn": "qdisc", "slow": "qdisc", "gentle": "cc",
    }  # fmt: skip
    assert sorted(modules["mine"].files) == ["b.c", "b.h"]
    assert modules["gentle"].of_kernel().parameters == (("share", "900"),)
    assert modules["gentle"].files["aimd.c"] == AIMD.replace('"aimd"', '"gentle"')


def test_flents_lists_with_commas_accept_files(folder: Path) -> None:
    loaded = load(folder, "test.name=tcp_nup", ("test.cc_algos", "cubic, aimd.c"), "test.upload_streams=2")
    assert loaded.test.cc_algos == ("cubic", "aimd")


def test_a_stored_scenario_needs_no_file_and_is_the_same(folder: Path) -> None:
    loaded = load(folder, "stack.cc=aimd.c")
    (folder / "aimd.c").unlink()
    stored = folder / "scenario.json"
    stored.write_bytes(loaded.to_json())
    assert scenario.load(stored) == loaded
    assert scenario.load(stored).to_json() == loaded.to_json()
    assert scenario.load(stored, ["module.0.parameters.share=700"]).module[0].parameters == {"share": 700}
    assert "module" not in json.loads(load(folder).to_json())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("stack.cc", "none.c"), "stack.cc = 'none.c': no such file, neither next to the scenario"),
        (("stack.cc", "fifo.c"), "stack.cc = 'fifo.c': registers a qdisc, not a congestion control"),
        (("stack.qdisc", "fifo.c limit 5"), "tc knows no options|A qdisc|one of"),
        (("stack.cc", {"file": "aimd.c", "name": "cubic"}), "already has a congestion control called 'cubic'"),
        (("stack.cc", {"file": "aimd.c", "name": "a-b"}), "registers the name 'a-b'; a name is 1 to 15 letters"),
        (("stack.cc", {"file": "aimd.c", "name": "a" * 16}), "a name is 1 to 15 letters"),
        (("stack.cc", {"file": "aimd.c", "beta": 1}), "stack.cc.beta = 1: unknown key. Known here: file, name, param"),
        (("stack.cc", {"name": "x"}), "stack.cc.file = none: must be the name of a C file"),
        (("stack.cc", {"file": "aimd.c", "parameters": {"beta": 1}}), "beta: no module_param has this name; known"),
        (("stack.cc", {"file": "aimd.c", "parameters": {"share": 2**31}}), "share: must be a whole number from -21474"),
        (("stack.cc", {"file": "aimd.c", "parameters": {"share": True}}), "share: must be a whole number"),
        (("stack.cc", {"file": "fifo.c"}), "registers a qdisc, not"),
        (("stack.cc", "mine.c"), "no such file"),
        (("test.flow_cc", ["aimd.c", {"file": "aimd.c", "parameters": {"share": 1}}]), "flow_cc.1 = 'aimd.c': another"),
        (("module", [{"name": "x", "files": {"a.c": AIMD}}]), "the sources register 'aimd', not 'x'"),
        (("module", [{"name": "aimd", "files": {"../a.c": AIMD}}]), "is not a name of a C file"),
    ],
)  # fmt: skip
def test_a_mistake_is_refused(folder: Path, change: tuple[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(folder, change)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int x;", "registers nothing"),
        ("/* tcp_register_congestion_control(&a) */", "registers nothing"),
        (AIMD + SOJOURN, "registers aimd and sojourn; put each into a separate file"),
        (AIMD.replace('"aimd"', "NAME"), "registers aimd_ops, but lacks `struct tcp_congestion_ops aimd_ops = {"),
        (AIMD.replace('"aimd"', '""'), "registers the name ''; a name is"),
        (AIMD.replace('"aimd"', '"Makefile"'), "registers the name 'Makefile', which is a file of make"),
    ],
)
def test_sources_without_one_name_are_refused(folder: Path, text: str, message: str) -> None:
    (folder / "aimd.c").write_text(text)
    with pytest.raises(InputError, match=message):
        load(folder, "stack.cc=aimd.c")


def test_a_name_in_a_comment_or_of_another_struct_is_not_the_name() -> None:
    text = '// .name = "no"\nstatic struct x y = { .name = "neither" };\n' + AIMD.replace(
        '= "aimd"', '/* "nor" */ = /* here */ "yes"'
    )
    assert c_source.registered({"a.c": text}).name == "yes"
    assert c_source.renamed({"a.c": text}, "other")["a.c"] == text.replace('"yes"', '"other"')


def test_a_copy_has_no_exports() -> None:
    text = "bool f(int a)\n{\n}\nEXPORT_SYMBOL_GPL(f);\n\nstruct s *g(void)\n{\n\tf(1);\n}\nEXPORT_SYMBOL(g);\nint h;\n"
    copied = "static bool my_f(int a)\n{\n}\n\nstatic struct s *my_g(void)\n{\n\tmy_f(1);\n}\nint h;\n"
    assert c_source.private(text, "my") == copied
    with pytest.raises(ValueError, match="exports h, which is not a function"):
        c_source.private(text + "EXPORT_SYMBOL(h);\n", "my")


def test_engines_without_a_kernel_build_refuse_sources(folder: Path) -> None:
    with pytest.raises(InputError, match="compiled into the guest's kernel"):
        build(load(folder, "stack.cc=aimd.c"), VETH)


MAKEFILE = """# for the kernel, and for me
ifneq ($(KERNELRELEASE),)
obj-m := two.o
two-y := b.o \\
\tc.o   # the rest
ccflags-y += -DB=1 -I$(src)
else
KDIR ?= /lib/modules/$(shell uname -r)/build
all:
\tobj-m=x $(MAKE) -C $(KDIR) M=$(PWD) modules
endif
"""


def test_the_makefile_of_a_folder_selects_the_objects(folder: Path) -> None:
    (folder / "mine/c.c").write_text("int c;\n")
    (folder / "mine/tool.c").write_text("#include <stdio.h>\n")
    (folder / "mine/Makefile").write_text(MAKEFILE)
    loaded = load(folder, "stack.cc=mine/")
    (module,) = loaded.module
    assert (sorted(module.files), module.flags) == (["b.c", "b.h", "c.c"], ("-DB=1", "-I$(src)"))
    assert module.of_kernel().flags == module.flags
    stored = folder / "scenario.json"
    stored.write_bytes(loaded.to_json())
    assert scenario.load(stored) == loaded
    (folder / "mine/Kbuild").write_text("obj-y := b.o\n")
    assert sorted(load(folder, "stack.cc=mine/").module[0].files) == ["b.c", "b.h"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all:\n\tmake\n", r"stack.cc = 'mine/': its Makefile names no object; add obj-m := NAME.o"),
        ("obj-m := b.o gone.o\n", r"its Makefile lists gone.o, but the folder lacks gone.c"),
        ("obj-m := two.o\n", r"its Makefile lists two.o, but the folder lacks two.c"),
        (
            "\nobj-$(CONFIG_MINE) += b.o\n",
            r"line 2 of its Makefile, 'obj-\$\(CONFIG_MINE\) \+= b.o', must be a plain list",
        ),
        ("obj-m := b.o\ninclude x.mk\n", r"line 2 of its Makefile, 'include x.mk', must be a plain list"),
        ("obj-m := $(LIST)\n", r"line 1 of its Makefile: '\$\(LIST\)' must be an object of the folder, like a.o"),
        ("obj-m := ../b.o\n", r"'../b.o' must be an object of the folder"),
        ("obj-m := b.o\nccflags-y := -fplugin=x.so\n", r"'-fplugin=x.so' must be one of the flags -D, -U, -W"),
        ("obj-m := b.o\nccflags-y := -D'X=$(shell id)'\n", r"must be one of the flags -D"),
        ("obj-m := b.o\nCFLAGS_b.o := -DX\n", r"line 2 of its Makefile, 'CFLAGS_b.o := -DX', must be a plain list"),
    ],
)
def test_a_makefile_with_more_than_lists_is_refused(folder: Path, text: str, message: str) -> None:
    (folder / "mine/Makefile").write_text(text)
    with pytest.raises(InputError, match=message):
        load(folder, "stack.cc=mine/")


def test_a_stored_flag_runs_no_command(folder: Path) -> None:
    row = {"name": "aimd", "files": {"a.c": AIMD}, "flags": ["-DX=`id`"]}
    with pytest.raises(InputError, match=r"module.0.flags.*flags: '-DX=`id`' must be one of the flags -D"):
        load(folder, ("module", [row]))


@pytest.mark.parametrize(
    "line",
    [
        '#include "/etc/passwd"',
        "# include <../../secret.h>",
        '#define FILE "/etc/passwd"\n#include FILE',
        'asm(".incbin \\"/etc/passwd\\"");',
        '#embed "/etc/passwd"',
    ],
)
def test_sources_cannot_include_files_of_the_host(folder: Path, line: str) -> None:
    (folder / "aimd.c").write_text(f"{AIMD}\n{line}\n")
    with pytest.raises(InputError, match="can read a file outside of the kernel's tree"):
        load(folder, ("stack.cc", "aimd.c"))
