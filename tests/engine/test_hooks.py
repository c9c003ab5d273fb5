# SPDX-License-Identifier: Apache-2.0
"""The hook applier on small trees: where anchors match, where they must not, and what an overlay leaves behind."""

from pathlib import Path

import pytest

from hourglass import resources
from hourglass.contract.kernels import KERNELS
from hourglass.engine.kernel import hooks, source
from hourglass.errors import InputError

SOURCE = """\
static int other(int x);
static int limit(int x)
{
\tx <<= 1;
\treturn x;
}

int
other(int x)
{
\tx <<= 1;
\tif (x) {
\t\tx <<= 1;
\t}
\treturn x;
}
"""

HOOK = """
name = "{name}"
why = "a test"
[[edit]]
file = "net/a.c"
{edit}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree of "Linux 6.1" with one source file."""
    made = tmp_path / "tree"
    (made / "net").mkdir(parents=True)
    (made / "net/a.c").write_text(SOURCE)
    (made / "Makefile").write_text("# a comment\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n")
    return made


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """An empty kernel/ folder."""
    for name in ("hooks", "drivers", "tests"):
        (tmp_path / "kernel" / name).mkdir(parents=True)
    return tmp_path / "kernel"


def add(kernel: Path, edit: str, name: str = "one") -> None:
    """Writes a hook with one edit of net/a.c."""
    (kernel / "hooks" / f"{name}.toml").write_text(HOOK.format(name=name, edit=edit))


def edited(tree: Path, kernel: Path) -> str:
    """net/a.c with all hooks."""
    return hooks.overlay(tree, kernel)["net/a.c"].decode()


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("before", "{\n\tnew;\n\tx <<= 1;\n\treturn x;"),
        ("after", "{\n\tx <<= 1;\n\tnew;\n\treturn x;"),
        ("replace", "{\n\tnew;\n\treturn x;"),
    ],
)
def test_an_edit_stays_inside_its_function(tree: Path, kernel: Path, place: str, expected: str) -> None:
    add(kernel, f'function = "limit"\nanchor = "x <<= 1;"\nplace = "{place}"\ntext = "\\tnew;"')
    result = edited(tree, kernel)
    assert expected in result
    assert result.count("new;") == 1
    assert result.endswith(SOURCE[SOURCE.index("int\nother") :])


def test_a_definition_is_found_behind_its_declaration_and_with_its_type_on_another_line(
    tree: Path, kernel: Path
) -> None:
    add(kernel, 'function = "other"\ncount = 2\nanchor = "x <<= 1;"\nplace = "replace"\ntext = ""')
    assert (
        edited(tree, kernel)
        == SOURCE[: SOURCE.index("int\nother")] + "int\nother(int x)\n{\n\tif (x) {\n\t}\n\treturn x;\n}\n"
    )


def test_an_anchor_of_two_lines(tree: Path, kernel: Path) -> None:
    add(kernel, 'anchor = """\nif (x) {\nx <<= 1;\n"""\nplace = "before"\ntext = """\n\tone;\n\ttwo;\n"""')
    assert "\tx <<= 1;\n\tone;\n\ttwo;\n\tif (x) {\n\t\tx <<= 1;\n" in edited(tree, kernel)


@pytest.mark.parametrize(("anchor", "found"), [("x <<= 1;", "matches 3 times"), ("x <<= 2;", "matches 0 times")])
def test_an_anchor_that_does_not_match_as_said_names_hook_file_and_anchor(
    tree: Path, kernel: Path, anchor: str, found: str
) -> None:
    add(kernel, f'anchor = "{anchor}"\nplace = "after"\ntext = "new"')
    with pytest.raises(InputError) as raised:
        hooks.overlay(tree, kernel)
    for word in ("one.toml", "net/a.c", anchor, found, "Linux 6.1"):
        assert word in str(raised.value)


def test_an_optional_edit_may_miss_but_not_be_ambiguous(tree: Path, kernel: Path) -> None:
    add(kernel, 'anchor = "x <<= 2;"\nplace = "after"\ntext = "new"\noptional = true')
    assert edited(tree, kernel) == SOURCE
    add(kernel, 'anchor = "x <<= 1;"\nplace = "after"\ntext = "new"\noptional = true')
    with pytest.raises(InputError):
        hooks.overlay(tree, kernel)


def test_hooks_do_not_see_each_other(tree: Path, kernel: Path) -> None:
    add(kernel, 'function = "limit"\nanchor = "return x;"\nplace = "before"\ntext = "\\tif (x) {"', "one")
    add(kernel, 'anchor = "if (x) {"\nplace = "after"\ntext = "\\tnew;"', "two")
    assert edited(tree, kernel).count("new;") == 1


@pytest.mark.parametrize(
    ("ranges", "holds"),
    [("", True), (">=6.1", True), (">6.1", False), (">=5.10 <6.6", True), (">=5.10, <6.1", False), ("==6.1", True),
     ("<6.12", True), (">=6.12", False)],
)  # fmt: skip
def test_version_ranges(ranges: str, holds: bool) -> None:
    assert hooks.in_range((6, 1), ranges) is holds


@pytest.mark.parametrize("ranges", ["6.1", ">=6", "~6.1"])
def test_a_bad_version_range_is_refused(ranges: str) -> None:
    with pytest.raises(InputError, match="versions"):
        hooks.in_range((6, 1), ranges)


@pytest.mark.parametrize("wrong", ['place = "after"\ncolour = 1', 'place = "beside"'])
def test_an_unknown_key_or_place_is_refused(tree: Path, kernel: Path, wrong: str) -> None:
    add(kernel, f'anchor = "return x;"\ntext = "a"\n{wrong}')
    with pytest.raises(InputError, match=r"one\.toml"):
        hooks.overlay(tree, kernel)


def test_drivers_tests_and_new_files_come_along(tree: Path, kernel: Path) -> None:
    (kernel / "drivers/deep").mkdir()
    for name in ("drivers/Kconfig", "drivers/wire.c", "drivers/deep/a.h", "tests/t.c", "drivers/notes.md", "hooks/x.c"):
        (kernel / name).write_text(name)
    (kernel / "hooks/new.toml").write_text(
        'name = "new"\nwhy = "w"\n[[file]]\nsource = "x.c"\ntarget = "net/x.c"\n'
        '[[file]]\nsource = "x.c"\ntarget = "net/y.c"\nversions = ">6.1"\n'
    )
    assert sorted(hooks.overlay(tree, kernel)) == [
        "drivers/net/hourglass/Kconfig",
        "drivers/net/hourglass/deep/a.h",
        "drivers/net/hourglass/t.c",
        "drivers/net/hourglass/wire.c",
        "net/x.c",
    ]


def test_laying_twice_needs_the_pristine_tree(tree: Path) -> None:
    hooks.lay({"net/a.c": b"new"}, tree)
    with pytest.raises(InputError, match="already has the hooks"):
        hooks.lay({"net/a.c": b"new"}, tree)


def test_a_hook_left_out_is_an_existing_one(tree: Path, kernel: Path) -> None:
    add(kernel, 'function = "limit"\nanchor = "return x;"\nplace = "before"\ntext = "new"')
    assert "net/a.c" not in hooks.overlay(tree, kernel, without=["one"])
    assert "net/a.c" not in hooks.overlay(tree, kernel, without=["one@a.c"])
    with pytest.raises(InputError, match="one@b"):
        hooks.overlay(tree, kernel, without=["one@b.c"])
    with pytest.raises(InputError, match="two"):
        hooks.overlay(tree, kernel, without=["two"])


def test_the_repository_s_own_hooks_are_well_formed() -> None:
    assert {hook.name for hook in hooks.load(resources.KERNEL / "hooks")} >= {"tsq", "determinism", "drivers"}


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_optional_is_there_where_it_should_be(kernel: str) -> None:
    """Releases of a kernel differ: of two forms of one line a tree has one, and then the hook is in."""
    changed = hooks.overlay(source.packaged(kernel, print).tree)
    assert changed["net/sched/sch_netem.c"].count(b"probe_duplicated(skb2);") == 1
    assert b"um_udelay" not in changed["arch/um/kernel/skas/syscall.c"]


def test_a_copy_of_netem_is_announced_in_older_releases_too() -> None:
    """As Linux 5.10.223 queues it: the clone in a condition, an assignment after it."""
    (probe,) = (hook for hook in hooks.load(resources.KERNEL / "hooks") if hook.name == "probe")
    older = [
        "static int netem_enqueue(struct sk_buff *skb)",
        "{",
        "\tif (many && (skb2 = skb_clone(skb, GFP_ATOMIC)) != NULL) {",
        "\t\trootq->enqueue(skb2, rootq, to_free);",
        "\t\tq->duplicate = dupsave;",
        "\t\trc_drop = NET_XMIT_SUCCESS;",
        "\t}",
        "}",
    ]
    lines = [hooks.Line(text) for text in older]
    for edit in probe.edit:
        if edit.function == "netem_enqueue":
            hooks.apply_edit(lines, edit, "probe", (5, 10))
    assert [line.text for line in lines] == [*older[:3], "\t\tprobe_duplicated(skb2);", *older[3:]]
