# SPDX-License-Identifier: Apache-2.0
"""`cc = "my_cc.c"`: sources become data of the scenario, names stand in their places, nonsense is one line."""

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
    """With a scenario, and beside it two congestion controls, one in a folder, and a qdisc."""
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


def test_every_place_of_a_name_takes_a_file(folder: Path) -> None:
    made = load(
        folder,
        ("stack.cc", "aimd.c"),
        ("stack.client.cc", "mine/"),
        ("stack.qdisc", "fifo.c"),
        ("stack.router.device.eth1.qdisc", {"file": "fifo.c", "name": "slow", "parameters": {"threshold": 5000}}),
        ("test.flow_cc", ["cubic", {"file": "aimd.c", "name": "gentle", "parameters": {"share": 900}}, "aimd.c"]),
        ("test.competing", [{"client": "router", "cc": "mine/"}]),
        ("event", [{"at": 1, "node": "router", "tc": "qdisc replace dev eth0 root slow"}]),
    )
    assert (made.stack.cc, made.stack.of("client").cc, made.stack.qdisc) == ("aimd", "mine", "sojourn")
    assert made.stack.nodes["router"].device["eth1"].qdisc == "slow"
    assert made.test.flow_cc == ("cubic", "gentle", "aimd")
    assert made.test.competing[0].cc == "mine"
    there = {one.name: one for one in made.module}
    assert {name: one.kind for name, one in there.items()} == {
        "aimd": "cc", "mine": "cc", "sojourn": "qdisc", "slow": "qdisc", "gentle": "cc",
    }  # fmt: skip
    assert sorted(there["mine"].files) == ["b.c", "b.h"]
    assert there["gentle"].of_kernel().parameters == (("share", "900"),)
    assert there["gentle"].files["aimd.c"] == AIMD.replace('"aimd"', '"gentle"')


def test_flents_lists_with_commas_take_files_too(folder: Path) -> None:
    made = load(folder, "test.name=tcp_nup", ("test.cc_algos", "cubic, aimd.c"), "test.upload_streams=2")
    assert made.test.cc_algos == ("cubic", "aimd")


def test_what_is_stored_needs_no_file_and_is_the_same_scenario(folder: Path) -> None:
    made = load(folder, "stack.cc=aimd.c")
    (folder / "aimd.c").unlink()
    stored = folder / "scenario.json"
    stored.write_bytes(made.to_json())
    assert scenario.load(stored) == made
    assert scenario.load(stored).to_json() == made.to_json()
    assert scenario.load(stored, ["module.0.parameters.share=700"]).module[0].parameters == {"share": 700}
    assert "module" not in json.loads(load(folder).to_json())


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("stack.cc", "none.c"), "stack.cc = 'none.c': no such file, neither beside the scenario"),
        (("stack.cc", "fifo.c"), "stack.cc = 'fifo.c': registers a qdisc, not a congestion control"),
        (("stack.qdisc", "fifo.c limit 5"), "tc knows no options|A qdisc|one of"),
        (("stack.cc", {"file": "aimd.c", "name": "cubic"}), "the kernel has a congestion control called 'cubic'"),
        (("stack.cc", {"file": "aimd.c", "name": "a-b"}), "its name 'a-b' is not 1 to 15 letters"),
        (("stack.cc", {"file": "aimd.c", "name": "a" * 16}), "is not 1 to 15 letters"),
        (("stack.cc", {"file": "aimd.c", "beta": 1}), "stack.cc.beta = 1: unknown key. Known here: file, name, param"),
        (("stack.cc", {"name": "x"}), "stack.cc.file = none: the name of a C file"),
        (("stack.cc", {"file": "aimd.c", "parameters": {"beta": 1}}), "beta: no module_param of this name; there"),
        (("stack.cc", {"file": "aimd.c", "parameters": {"share": 2**31}}), "share: int: a whole number from -21474"),
        (("stack.cc", {"file": "aimd.c", "parameters": {"share": True}}), "share: int: a whole number"),
        (("stack.cc", {"file": "fifo.c"}), "registers a qdisc, not"),
        (("stack.cc", "mine.c"), "no such file"),
        (("test.flow_cc", ["aimd.c", {"file": "aimd.c", "parameters": {"share": 1}}]), "flow_cc.1 = 'aimd.c': another"),
        (("module", [{"name": "x", "files": {"a.c": AIMD}}]), "the sources register 'aimd', not 'x'"),
        (("module", [{"name": "aimd", "files": {"../a.c": AIMD}}]), "is no name of a C file"),
    ],
)  # fmt: skip
def test_refused(folder: Path, change: tuple[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load(folder, change)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("int x;", "registers nothing"),
        ("/* tcp_register_congestion_control(&a) */", "registers nothing"),
        (AIMD + SOJOURN, "registers aimd and sojourn: give each a file of its own"),
        (AIMD.replace('"aimd"', "NAME"), "registers aimd_ops, but has no `struct tcp_congestion_ops aimd_ops = {"),
        (AIMD.replace('"aimd"', '""'), "its name '' is not"),
    ],
)
def test_sources_without_one_name_are_refused(folder: Path, text: str, told: str) -> None:
    (folder / "aimd.c").write_text(text)
    with pytest.raises(InputError, match=told):
        load(folder, "stack.cc=aimd.c")


def test_a_name_in_a_comment_or_of_another_struct_is_not_the_name() -> None:
    text = '// .name = "no"\nstatic struct x y = { .name = "neither" };\n' + AIMD.replace(
        '= "aimd"', '/* "nor" */ = /* here */ "yes"'
    )
    assert c_source.registered({"a.c": text}).name == "yes"
    assert c_source.renamed({"a.c": text}, "other")["a.c"] == text.replace('"yes"', '"other"')


def test_engines_on_kernels_that_are_there_refuse(folder: Path) -> None:
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


def test_a_folders_makefile_says_what_is_compiled(folder: Path) -> None:
    (folder / "mine/c.c").write_text("int c;\n")
    (folder / "mine/tool.c").write_text("#include <stdio.h>\n")
    (folder / "mine/Makefile").write_text(MAKEFILE)
    made = load(folder, "stack.cc=mine/")
    (one,) = made.module
    assert (sorted(one.files), one.flags) == (["b.c", "b.h", "c.c"], ("-DB=1", "-I$(src)"))
    assert one.of_kernel().flags == one.flags
    stored = folder / "scenario.json"
    stored.write_bytes(made.to_json())
    assert scenario.load(stored) == made
    (folder / "mine/Kbuild").write_text("obj-y := b.o\n")
    assert sorted(load(folder, "stack.cc=mine/").module[0].files) == ["b.c", "b.h"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("all:\n\tmake\n", r"stack.cc = 'mine/': its Makefile names no object: obj-m := NAME.o"),
        ("obj-m := b.o gone.o\n", r"its Makefile lists gone.o, and there is no gone.c in the folder"),
        ("obj-m := two.o\n", r"its Makefile lists two.o, and there is no two.c in the folder"),
        (
            "\nobj-$(CONFIG_MINE) += b.o\n",
            r"line 2 of its Makefile, 'obj-\$\(CONFIG_MINE\) \+= b.o': plain lists alone",
        ),
        ("obj-m := b.o\ninclude x.mk\n", r"line 2 of its Makefile, 'include x.mk': plain lists"),
        ("obj-m := $(LIST)\n", r"line 1 of its Makefile: '\$\(LIST\)': objects of the folder, like a.o"),
        ("obj-m := ../b.o\n", r"'../b.o': objects of the folder"),
        ("obj-m := b.o\nccflags-y := -fplugin=x.so\n", r"'-fplugin=x.so': flags are -D, -U, -W"),
        ("obj-m := b.o\nccflags-y := -D'X=$(shell id)'\n", r"flags are -D"),
        ("obj-m := b.o\nCFLAGS_b.o := -DX\n", r"line 2 of its Makefile, 'CFLAGS_b.o := -DX': plain lists"),
    ],
)
def test_a_makefile_that_is_more_than_lists_is_refused(folder: Path, text: str, told: str) -> None:
    (folder / "mine/Makefile").write_text(text)
    with pytest.raises(InputError, match=told):
        load(folder, "stack.cc=mine/")


def test_a_stored_flag_runs_nothing(folder: Path) -> None:
    row = {"name": "aimd", "files": {"a.c": AIMD}, "flags": ["-DX=`id`"]}
    with pytest.raises(InputError, match=r"module.0.flags.*flags: '-DX=`id`': flags are -D"):
        load(folder, ("module", [row]))
