# SPDX-License-Identifier: Apache-2.0
"""`hourglass kernel patch`: on every kernel the patch applies, has its style, compiles, and equals the guest's hook."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hourglass import resources
from hourglass.builders.kernel import hooks, patch, patch_check, source_tree
from hourglass.contract.kernels import KERNELS
from hourglass.errors import InputError

GIT = {
    "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
}  # fmt: skip


def pristine(kernel: str) -> Path:
    return source_tree.packaged(kernel, print, having=patch.DOCUMENTED).tree


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_git_applies_the_mail(kernel: str, tmp_path: Path) -> None:
    mail, tree = patch.patch(kernel, print), pristine(kernel)
    changed_files = patch.changed(tree)
    for name in (*changed_files, "Makefile"):
        if (tree / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(tree / name, tmp_path / name)

    def git(*arguments: str) -> str:
        command, settings = ["git", "-C", tmp_path, *arguments], os.environ | GIT
        return subprocess.run(command, env=settings, input=mail, text=True, stdout=subprocess.PIPE, check=True).stdout

    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "Linux"]):
        git(*arguments)
    assert patch.patch(f"{tmp_path}@HEAD", print) == mail, "of a revision as of the package"
    git("am", "-q")
    assert (
        git("log", "-1", "--format=%s|%an").strip() == "tcp: sysctls for TCP Small Queues and GSO autosizing|Your Name"
    )
    assert {name: (tmp_path / name).read_bytes() for name in changed_files} == changed_files
    assert git("status", "--porcelain") == ""
    counts = re.search(r"^ \d+ files changed, \d+ insertions", mail, re.MULTILINE)
    assert counts is not None
    assert git("diff", "--shortstat", "HEAD~").startswith(counts[0])


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_checkpatch_finds_nothing(kernel: str, tmp_path: Path) -> None:
    (tmp_path / "tsq.patch").write_text(patch.patch(kernel, print))
    tree = pristine(kernel)
    script = ["perl", tree / "scripts/checkpatch.pl", f"--root={tree}", "--strict", "--terse", "--no-summary"]
    result = subprocess.run([*script, "tsq.patch"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_guest_has_the_same_code(kernel: str) -> None:
    tree = pristine(kernel)
    other_hooks = {path.stem for path in (resources.KERNEL / "hooks").glob("*.toml")} - {"tsq"}
    documentation = {"Documentation/networking/ip-sysctl.rst"}
    if kernel in ("6.12", "7.3"):
        documentation.add("Documentation/networking/net_cachelines/netns_ipv4_sysctl.rst")
    patched_files = patch.changed(tree)
    guest = hooks.overlay(tree, without=other_hooks)
    assert patched_files.keys() - guest.keys() == documentation
    assert guest == {name: text for name, text in patched_files.items() if name not in documentation}


@pytest.mark.slow
@pytest.mark.guest
@pytest.mark.parametrize("kernel", KERNELS)
def test_the_patch_compiles_with_32_bit_longs(kernel: str) -> None:
    patch_check.compile_patched(kernel, "i386", patch_check.CHANGED, print)


def test_an_unknown_kernel_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"kernel = '6\.13': 5\.10, .* a folder, DIR@REVISION"):
        patch.patch("6.13", print)
    (tmp_path / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\n")
    with pytest.raises(InputError, match="does not exist in this kernel tree"):
        patch.patch(str(tmp_path), print)
    (tmp_path / "include/net").mkdir(parents=True)
    (tmp_path / "include/net/tcp_tsq.h").touch()
    with pytest.raises(InputError, match="already: it is patched"):
        patch.patch(str(tmp_path), print)
