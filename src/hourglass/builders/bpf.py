# SPDX-License-Identifier: Apache-2.0
"""Compile congestion controls and qdiscs in BPF to objects that a guest loads. No kernel is built for them.

The types of the kernel (`#include "vmlinux.h"`) are those of the guest's kernel. Like the compiler of other custom
modules, clang sees only the source, that header, and the system's files."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from hourglass import files
from hourglass.builders.kernel import config, confined_tools
from hourglass.builders.kernel.builder import SourceError
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.recipe import BPF_VARIANT
from hourglass.contract.kernel_module import KernelModule
from hourglass.contract.kernels import VARIANT
from hourglass.errors import HourglassError, InputError, MissingError
from hourglass.host import directories, process

TOOLS = {"clang": "clang", "bpftool": "bpftool"}
HEADER = Path("/usr/include/bpf/bpf_helpers.h")
HEADER_PACKAGE = "libbpf-dev"
FLAGS = ("-target", "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", "-O2", "-g", "-w")
CACHED_MAX = 100
LINES_SHOWN = 20


def check(kernel: BuiltKernel, modules: list[KernelModule]) -> None:
    """Raise InputError if a kernel cannot load BPF objects, or MissingError with all tools that this machine lacks."""
    if config.parse(kernel.config.read_text()).get("CONFIG_BPF_JIT") != "y":
        names = ", ".join(module.files[0][0] for module in modules)
        raise InputError("--kernel", kernel.name, f"cannot load {names}; use --kernel 7.3{VARIANT}{BPF_VARIANT}")
    packages = process.missing_tools(TOOLS) + ([] if HEADER.is_file() else [HEADER_PACKAGE])
    if packages:
        raise MissingError("BPF sources cannot be compiled", f"apt-get install -y {' '.join(packages)}")


def compiled(kernel: BuiltKernel, module: KernelModule) -> Path:
    """Return the object of a module for a kernel: from the cache, else newly compiled. Raises SourceError."""
    version = subprocess.run(["clang", "--version"], text=True, capture_output=True, check=True).stdout
    key = hashlib.sha256(repr((FLAGS, version, kernel.key, module.files)).encode()).hexdigest()[:16]
    path = directories.cache() / "bpf" / f"{key}.o"
    return directories.entry(path, CACHED_MAX, lambda fresh: fresh.write_bytes(_compile(kernel, module)))


def _compile(kernel: BuiltKernel, module: KernelModule) -> bytes:
    source = module.files[0][0]
    with tempfile.TemporaryDirectory(dir=directories.temporary()) as folder:
        work = Path(folder)
        (work / "vmlinux.h").write_bytes(_types(kernel))
        for name, text in module.files:
            (work / name).write_text(text)
        command = ["clang", *FLAGS, "-I.", "-c", source, "-o", "object.o"]
        status, _, messages = confined_tools.run(command, work)
        if status:
            lines = messages.splitlines()[:LINES_SHOWN] or ["clang was ended by a limit of CPU time or memory"]
            raise SourceError("\n".join([f"{source}: does not compile", *(f"  | {line}" for line in lines)]))
        return (work / "object.o").read_bytes()


def _types(kernel: BuiltKernel) -> bytes:
    """Return the C declarations of all types of a kernel."""
    path = kernel.linux.with_name("vmlinux.h")
    if not path.is_file():
        files.write(path, _dumped_types(kernel))
    return path.read_bytes()


def _dumped_types(kernel: BuiltKernel) -> bytes:
    """Return the declarations that bpftool reads from a kernel, of which a C file may be a part."""
    command = [shutil.which("bpftool", path="/usr/sbin:/usr/bin") or "bpftool", "btf", "dump", "file",
               str(kernel.linux), "format", "c"]  # fmt: skip
    with tempfile.TemporaryDirectory(dir=directories.temporary()) as folder:
        status, types, messages = confined_tools.run(command, Path(folder), [kernel.linux])
    if status:
        reason = messages.partition("\n")[0] or "a limit of CPU time, memory or output ended it"
        raise HourglassError(f"bpftool cannot read the types of Linux {kernel.name}: {reason}")
    return types
