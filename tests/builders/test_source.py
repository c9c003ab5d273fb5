# SPDX-License-Identifier: Apache-2.0
"""Kernel sources: the files that are unpacked from a package."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from hourglass.builders.kernel import obtain, source_tree
from hourglass.errors import HourglassError

UNPACKED = [
    "Makefile",
    "Documentation/Kconfig",
    "Documentation/networking/ip-sysctl.rst",
    "arch/Kconfig",
    "arch/powerpc/crypto/Kconfig",
    "arch/um/kernel/time.c",
    "arch/x86/um/delay.c",
    "crypto/aead.c",
    "drivers/base/core.c",
    "drivers/char/random.c",
    "drivers/gpu/Kconfig",
    "drivers/gpu/drm/Makefile",
    "drivers/net/veth.c",
    "drivers/net/ethernet/Kconfig",
    "drivers/tty/tty_io.c",
    "fs/exportfs/expfs.c",
    "fs/namei.c",
    "fs/overlayfs/super.c",
    "fs/proc/base.c",
    "fs/btrfs/Kconfig",
    "include/dt-bindings/leds/common.h",
    "kernel/fork.c",
    "net/ipv4/tcp.c",
    "scripts/checkpatch.pl",
    "sound/Kconfig",
    "tools/include/linux/kernel.h",
    "tools/lib/bpf/relo_core.h",
    "usr/gen_init_cpio.c",
]

LEFT_OUT = [
    "Documentation/admin-guide/tcp.rst",
    "arch/arm/kernel/setup.c",
    "arch/arm/boot/dts/a.dts",
    "arch/powerpc/configs/a_defconfig",
    "drivers/gpu/drm/a.c",
    "drivers/net/ethernet/intel/a.c",
    "drivers/net/wireless/ath/a.h",
    "drivers/platform/x86/a.c",
    "drivers/scsi/a.c",
    "fs/btrfs/a.c",
    "sound/core/a.c",
    "tools/perf/a.c",
    "tools/testing/a.c",
]


def archive(names: list[str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for name in names:
            member = tarfile.TarInfo(f"linux-source-6.1/{name}")
            tar.addfile(member, io.BytesIO())
    return buffer.getvalue()


def test_files_that_a_guest_kernel_never_compiles_are_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(archive(UNPACKED + LEFT_OUT))
    target = tmp_path / "tree"
    target.mkdir()
    obtain.unpack([["cat", str(tmp_path / "linux.tar.xz")]], "linux-source-6.1", target)
    assert source_tree.tree_files(target) == sorted(UNPACKED)


def test_a_broken_archive_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "linux.tar.xz").write_bytes(archive(UNPACKED)[:-40])
    with pytest.raises(HourglassError, match="unpacking the kernel source failed"):
        obtain.unpack([["cat", str(tmp_path / "linux.tar.xz")]], "linux-source-6.1", tmp_path)


@pytest.mark.parametrize("module", ["agent", "kernel.source_tree"])
def test_programs_that_make_calls_name_missing_tools_without_a_traceback(tmp_path: Path, module: str) -> None:
    environment = os.environ | {"PATH": str(tmp_path), "HOURGLASS_CACHE": str(tmp_path)}
    command = [sys.executable, "-m", f"hourglass.builders.{module}"]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 3
    assert result.stderr.startswith("hourglass: error: ")
    assert "to fix: apt-get install -y " in result.stderr
    assert len(result.stderr.splitlines()) == 1
