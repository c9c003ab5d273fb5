# SPDX-License-Identifier: Apache-2.0
"""The guest's root: equal tools give an equal root, and its loader cache is the same as ldconfig's."""

import os
import re
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from hourglass.builders import elf, loader_cache, root, tool_packages
from hourglass.builders.tool_packages import TOOLS, WIFI_TOOLS, Tree
from hourglass.errors import HourglassError
from hourglass.host import directories

HEADER = struct.Struct("<20sIIB3xI12x")
ENTRY = struct.Struct("<iIIIQ")

KEY = "import os; os.umask(0o077); from hourglass.builders import root; print(root.key(True))"


def entries(cache: bytes) -> list[tuple[str, str]]:
    """Return name and path of each library, in the cache's order."""
    count = HEADER.unpack_from(cache)[1]

    def text(start: int) -> str:
        return cache[start : cache.index(b"\0", start)].decode()

    offsets = [ENTRY.unpack_from(cache, HEADER.size + ENTRY.size * number)[1:3] for number in range(count)]
    return [(text(name), text(path)) for name, path in offsets]


def test_the_loader_cache_is_ldconfigs(tmp_path: Path) -> None:
    """Compare byte for byte, without the extension at the end: it names the ldconfig that wrote it."""
    if os.geteuid() != 0:
        assert not os.environ.get("CI"), "ldconfig -r needs root"
        pytest.skip("ldconfig -r needs root")
    members = root.members(wifi=True)
    libraries = [name for name in members if Path(name).name.startswith("lib") and stat.S_ISREG(members[name].mode)]
    for name in libraries:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(members[name].content)
    folders = sorted({f"/{Path(name).parent}" for name in libraries})
    (tmp_path / "conf").write_text("\n".join(folders))
    (tmp_path / "etc").mkdir()
    subprocess.run(["/sbin/ldconfig", "-X", "-r", tmp_path, "-f", "/conf", "-C", "/etc/ld.so.cache"], check=True)
    reference, cache = (tmp_path / "etc/ld.so.cache").read_bytes(), members["etc/ld.so.cache"].content
    magic, count, size, order, _ = HEADER.unpack_from(reference)
    assert count == len(libraries)
    plain = HEADER.pack(magic, count, size, order, 0) + reference[HEADER.size : HEADER.size + count * ENTRY.size + size]
    assert cache == plain


def test_digits_sort_as_numbers_after_letters() -> None:
    """The loader's binary search relies on this order: the greatest name is first."""
    names = ["lib10.so", "lib9.so", "libab.so.1", "liba.so.10", "liba.so.9", "liba-3.so.1", "lib.so.1"]
    libraries = entries(loader_cache.build(f"/lib/{name}" for name in reversed(names)))
    assert libraries == [(name, f"/lib/{name}") for name in names]


def test_every_program_finds_its_libraries_in_the_cache() -> None:
    members, tree = root.members(wifi=True), tool_packages.find()
    cached = dict(entries(members["etc/ld.so.cache"].content))
    assert all(path.removeprefix("/") in members for path in cached.values())
    for tool in TOOLS | WIFI_TOOLS:
        needs = elf.needs(tree.program(tool))
        assert {*needs.libraries} <= cached.keys(), tool
        assert f"usr{needs.loader}" in members


@pytest.mark.parametrize("program", ["/usr/bin/tar", "/usr/bin/apt-get"])
def test_needs_are_those_that_the_loader_finds(program: str) -> None:
    """Compare with the output of the loader for programs of the machine."""
    needed = Tree(Path("/")).dependencies([Path(program)])
    listed = subprocess.run(["ldd", program], text=True, capture_output=True, check=True).stdout
    names = {Path(word).name for word in re.findall(r"^\s*(\S+) (?:=> /|\(0x)", listed, re.MULTILINE)}
    assert needed.files.keys() == names - {"linux-vdso.so.1"}
    assert needed.unmet == {}


def test_libraries_for_certain_cpus_are_ignored(tmp_path: Path) -> None:
    """If a tree has a library twice, plain and for CPUs from a level on, the plain one is used."""
    libraries = tmp_path / "usr/lib/x86_64-linux-gnu"
    for folder in [libraries, *(libraries / "glibc-hwcaps" / f"x86-64-v{level}" for level in (2, 3, 4))]:
        folder.mkdir(parents=True, exist_ok=True)
        compile_c("int number(void) { return 1; }", "-nostdlib", "-shared", "-fPIC", "-o", folder / "libnumber.so")
    program = tmp_path / "program"
    code = "int number(void); int main(void) { return number(); }"
    compile_c(code, "-o", program, f"-L{libraries}", "-lnumber")
    needed = Tree(tmp_path).dependencies([program])
    assert needed.files["libnumber.so"] == libraries / "libnumber.so"
    assert needed.missing() == ["ld-linux-x86-64.so.2", "libc.so.6"]


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"#!/bin/sh\n", b"\x7fELF\1\1" + bytes(100), b"\x7fELF\2\1" + bytes(100)):
        (tmp_path / "tool").write_bytes(content)
        with pytest.raises(HourglassError, match="is not a program or library for x86-64"):
            elf.needs(tmp_path / "tool")


def compile_c(code: str, *arguments: str | Path) -> None:
    subprocess.run(["gcc", "-x", "c", "-", "-x", "none", *arguments], input=code, text=True, check=True)


def test_remaining_files_in_etc_stay_outside(tmp_path: Path) -> None:
    names = tmp_path / "etc/iproute2"
    (names / "rt_tables.d").mkdir(parents=True)
    for name in ("rt_tables", "rt_tables~", "rt_tables.dpkg-old", "#group#"):
        (names / name).touch()
    assert root.data(Tree(tmp_path)) == [names / "rt_tables"]


def test_the_key_follows_the_content_alone(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Tokyo", "LD_BIND_NOW": "1"}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "HOURGLASS_CACHE": str(directories.cache())}
    result = subprocess.run(
        [sys.executable, "-c", KEY], cwd=tmp_path, env=environment, text=True, capture_output=True, check=True
    )
    assert result.stdout.strip() == root.key(wifi=True) != root.key(wifi=False)
    assert root.tools_key(wifi=True) not in (root.key(wifi=True), root.tools_key(wifi=False))
