# SPDX-License-Identifier: Apache-2.0
"""The hook applier on small trees: anchors that match, anchors that must not, and the files of an overlay."""

from pathlib import Path

import pytest

from hourglass import resources
from hourglass.builders.kernel import hooks, source_tree
from hourglass.contract.kernels import KERNELS
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
    """Return a tree of "Linux 6.1" with one source file."""
    tree = tmp_path / "tree"
    (tree / "net").mkdir(parents=True)
    (tree / "net/a.c").write_text(SOURCE)
    (tree / "Makefile").write_text("# a comment\nVERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 9\n")
    return tree


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    """Return an empty kernel/ folder."""
    for name in ("hooks", "drivers", "tests"):
        (tmp_path / "kernel" / name).mkdir(parents=True)
    return tmp_path / "kernel"


def add(kernel: Path, edit: str, name: str = "one") -> None:
    """Write a hook with one edit of net/a.c."""
    (kernel / "hooks" / f"{name}.toml").write_text(HOOK.format(name=name, edit=edit))


def edited(tree: Path, kernel: Path) -> str:
    """Return net/a.c with all hooks."""
    return hooks.overlay(tree, kernel)["net/a.c"].decode()


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("before", "{\n\tnew;\n\tx <<= 1;\n\treturn x;"),
        ("after", "{\n\tx <<= 1;\n\tnew;\n\treturn x;"),
        ("replace", "{\n\tnew;\n\treturn x;"),
    ],
)
def test_an_edit_stays_inside_its_function(tree: Path, kernel: Path, placement: str, expected: str) -> None:
    add(kernel, f'function = "limit"\nanchor = "x <<= 1;"\nplace = "{placement}"\ntext = "\\tnew;"')
    result = edited(tree, kernel)
    assert expected in result
    assert result.count("new;") == 1
    assert result.endswith(SOURCE[SOURCE.index("int\nother") :])


def test_a_definition_is_found_after_its_declaration_and_with_its_type_on_another_line(
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


@pytest.mark.parametrize(("anchor", "matches"), [("x <<= 1;", "matches 3 times"), ("x <<= 2;", "matches 0 times")])
def test_an_anchor_without_exactly_one_match_names_hook_file_and_anchor(
    tree: Path, kernel: Path, anchor: str, matches: str
) -> None:
    add(kernel, f'anchor = "{anchor}"\nplace = "after"\ntext = "new"')
    with pytest.raises(InputError) as raised:
        hooks.overlay(tree, kernel)
    for word in ("one.toml", "net/a.c", anchor, matches, "Linux 6.1"):
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


@pytest.mark.parametrize("wrong", ['place = "after"\ncolour = 1', 'place = "around"'])
def test_an_unknown_key_or_place_is_refused(tree: Path, kernel: Path, wrong: str) -> None:
    add(kernel, f'anchor = "return x;"\ntext = "a"\n{wrong}')
    with pytest.raises(InputError, match=r"one\.toml"):
        hooks.overlay(tree, kernel)


def test_drivers_tests_and_new_files_are_in_the_overlay(tree: Path, kernel: Path) -> None:
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


def test_a_second_overlay_needs_the_pristine_tree(tree: Path) -> None:
    hooks.lay({"net/a.c": b"new"}, tree)
    with pytest.raises(InputError, match="already has the hooks"):
        hooks.lay({"net/a.c": b"new"}, tree)


def test_an_omitted_hook_must_exist(tree: Path, kernel: Path) -> None:
    add(kernel, 'function = "limit"\nanchor = "return x;"\nplace = "before"\ntext = "new"')
    assert "net/a.c" not in hooks.overlay(tree, kernel, without=["one"])
    assert "net/a.c" not in hooks.overlay(tree, kernel, without=["one@a.c"])
    with pytest.raises(InputError, match="one@b"):
        hooks.overlay(tree, kernel, without=["one@b.c"])
    with pytest.raises(InputError, match="two"):
        hooks.overlay(tree, kernel, without=["two"])


def test_the_repository_s_hooks_are_valid() -> None:
    assert {hook.name for hook in hooks.load(resources.KERNEL / "hooks")} >= {"tsq", "determinism", "drivers"}


def test_the_check_names_each_edit_that_does_not_apply(tree: Path, kernel: Path) -> None:
    add(kernel, 'anchor = "y <<= 1;"\nplace = "after"\ntext = ""\nfunction = "limit"', "a")
    add(kernel, 'anchor = "x <<= 1;\\nreturn x;"\nplace = "after"\ntext = ""', "b")
    add(kernel, 'anchor = "x <<= 1;\\nif (x) {"\nplace = "after"\ntext = ""\ncount = 2', "c")
    add(kernel, 'anchor = "y"\nplace = "after"\ntext = ""\noptional = true', "d")
    add(kernel, 'anchor = "y"\nplace = "after"\ntext = ""\nversions = ">=6.2"', "e")
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    assert hooks.check(tree, kernel) == [
        'net/a.c, function limit: a: "y <<= 1;" matches 0 times in Linux 6.1, must match 1',
        'net/a.c: c: "x <<= 1;\\nif (x) {" matches 1 times in Linux 6.1, must match 2',
    ]
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_the_check_names_missing_files_also_of_the_documentation(tree: Path, kernel: Path) -> None:
    add(kernel, 'anchor = "x"\nplace = "after"\ntext = ""')
    path = kernel / "hooks/one.toml"
    path.write_text(path.read_text().replace("net/a.c", "Documentation/a.rst"))
    assert hooks.check(tree, kernel) == ['Documentation/a.rst: one: "x" does not exist in this kernel tree']


def test_the_check_refuses_a_tree_that_has_the_hooks(tree: Path, kernel: Path) -> None:
    hooks.lay({"net/a.c": b"new"}, tree)
    with pytest.raises(InputError, match="already has the hooks"):
        hooks.check(tree, kernel)


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_hooks_apply(kernel: str) -> None:
    assert hooks.check(source_tree.packaged(kernel, print).tree) == []


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_optional_edits_match_where_required(kernel: str) -> None:
    """Releases of a kernel differ: if a line has two forms, a tree has one of them, and the hook has to match."""
    changed = hooks.overlay(source_tree.packaged(kernel, print).tree)
    assert changed["net/sched/sch_netem.c"].count(b"probe_duplicated(skb2);") == 1
    assert b"um_udelay" not in changed["arch/um/kernel/skas/syscall.c"]


def test_copies_of_netem_are_announced_in_older_releases() -> None:
    """Linux 5.10.223 queues the clone in a condition, with an assignment after it."""
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
    lines = [hooks.EditedLine(text) for text in older]
    for edit in probe.edit:
        if edit.function == "netem_enqueue":
            hooks.apply_edit(lines, edit, "probe", (5, 10))
    assert [line.text for line in lines] == [*older[:3], "\t\tprobe_duplicated(skb2);", *older[3:]]
