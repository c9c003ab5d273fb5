# SPDX-License-Identifier: Apache-2.0
"""`python -m generators.kernel_options`, at the root of a checkout: compare the kernels' options with Debian's.

It writes docs/reference/kernel-options.md and a part of docs/explanation/model.md. Debian's options are those of its
packages `linux-config-VERSION`, which it downloads.
"""

import lzma
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from generators.parts import with_part
from hourglass.builders.kernel import apt, builder, config, source_tree
from hourglass.builders.kernel.config import Options
from hourglass.contract.kernels import KERNELS

PAGE = Path("docs/reference/kernel-options.md")
MODEL = Path("docs/explanation/model.md")
ARCHITECTURE = "config.amd64_none_amd64.xz"

NETWORK = (
    "net",
    "drivers/net",
    "drivers/net/bonding",
    "drivers/net/ipvlan",
    "drivers/net/team",
    "drivers/net/wireguard",
)
"""The folders whose Kconfig files are compared; of `net` with all folders below."""

EFFECTS = {
    "HZ": "timers of seconds; see below",
    "SMP": "a guest has one CPU, so one queue per NIC; RPS, RFS and XPS do not exist",
    "PREEMPT_VOLUNTARY, PREEMPT_LAZY, PREEMPT_NONE": "code in the kernel lets no other process run before it ends or "
    "waits; it takes no time, so this decides only an order",
    "MODULES": "everything is built in; `modprobe` does not exist",
    "DEFAULT_NET_SCH": "the qdisc of a device that a program makes (n: pfifo_fast); `net.core.default_qdisc` sets it; "
    "devices of the testbed have the scenario's",
    "CFG80211_DEFAULT_PS": "stations do not save power",
    "MAC80211_MESH": "`iw dev … mesh join` is refused",
    "BRIDGE_NETFILTER": "bridges pass no frames to iptables; `br_netfilter` and its sysctls do not exist",
    "BPF_JIT": "BPF programs are interpreted; the variant `bpf` compiles them",
    "CGROUP_BPF": "BPF programs cannot be attached to cgroups; `wide` has it",
    "MEMCG": "no limit of memory by cgroups",
    "CFS_BANDWIDTH": "no limit of CPU time by cgroups",
    "KPROBES": "no kprobes, so no `bpftrace`; the probe records instead",
    "FTRACE": "no tracefs",
    "PERF_EVENTS": "no `perf`",
    "DEBUG_FS": "no debugfs; `wide` has it",
    "IO_URING": "programs get ENOSYS and use other calls",
    "SECURITY": "no AppArmor, no SELinux",
    "COMPAT": "programs of 32 bits do not start",
}
"""Options with their own value in a guest → the effect. Of several options, the one that is on counts."""

HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- generated: by `python -m generators.kernel_options`: do not edit. -->
# The kernels' options, compared with Debian's

A guest's kernel has its own [configuration](../../kernel/config/). This page compares its network options with those of
Debian's kernel for amd64. [Kernel code and its
changes](../explanation/model.md#what-differs-from-your-distributions-kernel) lists the differences that matter for
results.

| kernel | Debian's package | network options of Debian's that the guest has | only in `wide` | missing |
|---|---|---|---|---|
"""

MISSING = """
## Options of Debian's kernels

These options are on in Debian's kernel, built in or as a module, and off in the guest's kernel. If only some
kernels differ in an option, their versions follow it. Options that users cannot choose are left out. The variant
`openvswitch` has `OPENVSWITCH` and its tunnels.

| Kconfig of | only in [`wide`](../how-to/test-kernels.md#network-features-of-the-kernels) | missing |
|---|---|---|
"""

ADDED = """
## Options of the guests' kernels

These options are on in a guest, and off in Debian's kernel.

| Kconfig of | options |
|---|---|
"""


@dataclass(frozen=True)
class Kernel:
    """A named kernel: Debian's package, and the options of Debian's kernel, of the guest's and of its variant `wide`;
    `folders` has the Kconfig folder of each network option with a question."""

    name: str
    package: str
    debian: Options
    plain: Options
    wide: Options
    folders: dict[str, str]

    @cached_property
    def common(self) -> set[str]:
        """Return the network options that Debian's kernel and the guest's have."""
        return self._on(self.debian) & self._on(self.plain)

    @cached_property
    def only_wide(self) -> set[str]:
        """Return those of Debian's that only the variant has."""
        return (self._on(self.debian) & self._on(self.wide)) - self._on(self.plain)

    @cached_property
    def missing(self) -> set[str]:
        """Return those of Debian's that not even the variant has."""
        return self._on(self.debian) - self._on(self.wide)

    @cached_property
    def added(self) -> set[str]:
        """Return those that only the guest's kernel has."""
        return self._on(self.plain) - self._on(self.debian)

    def _on(self, options: Options) -> set[str]:
        return {name for name in self.folders if is_on(options, name)}


def is_on(options: Options, name: str) -> bool:
    """Return whether an option is built in or a module."""
    return options.get(f"CONFIG_{name}", "n") in {"y", "m"}


def read_kernel(name: str, suite: str) -> Kernel:
    """Return a named kernel. Downloads its source and Debian's configuration."""

    def report(_: float, text: str) -> None:
        print(f"{name}: {text}", file=sys.stderr)

    package, debian = debian_options(name, suite)
    plain, wide = (builder.configuration(name, variant, report) for variant in (None, "wide"))
    tree = source_tree.packaged(name, lambda text: report(0.0, text)).tree
    return Kernel(name, package, debian, plain, wide, option_folders(tree))


def debian_options(name: str, suite: str) -> tuple[str, Options]:
    """Return Debian's package of configurations, and the options of its kernel for amd64."""
    with TemporaryDirectory() as folder:
        (deb,) = apt.Archive(suite, Path(folder)).download([f"linux-config-{name}"])
        subprocess.run(["dpkg-deb", "-x", str(deb), folder], check=True)
        (path,) = Path(folder).glob(f"usr/src/*/{ARCHITECTURE}")
        return " ".join(deb.name.split("_")[:2]), config.parse(lzma.decompress(path.read_bytes()).decode())


def option_folders(tree: Path) -> dict[str, str]:
    """Return the Kconfig folder of each network option that has a question."""
    files = [path for folder in NETWORK
             for path in (tree / folder).glob("**/Kconfig*" if folder == "net" else "Kconfig")]  # fmt: skip
    folders = {}
    for path in sorted(files):
        for match in re.finditer(r"^(?:menu)?config (\w+)\n((?:[ \t].*\n|\n)*)", path.read_text(), re.MULTILINE):
            if re.search(r"^\s+(?:bool|tristate|prompt)\s*[\"']", match[2], re.MULTILINE):
                folders[match[1]] = str(path.parent.relative_to(tree))
    return folders


def versioned(kernels: list[Kernel], names: dict[str, set[str]]) -> str:
    """Return options in alphabetical order, each with its kernels unless these are all that have it."""
    cells = []
    for option in sorted(names):
        available = {k.name for k in kernels if is_on(k.debian, option) or is_on(k.plain, option)}
        versions = [kernel.name for kernel in kernels if kernel.name in names[option]]
        cells.append(f"`{option}`" + (f" ({', '.join(versions)})" if names[option] != available else ""))
    return ", ".join(cells)


def by_folder(kernels: list[Kernel], options: Callable[[Kernel], set[str]]) -> dict[str, str]:
    """Return the text of each folder's options."""
    folders: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for kernel in kernels:
        for name in options(kernel):
            folders[kernel.folders[name]][name].add(kernel.name)
    return {folder: versioned(kernels, names) for folder, names in folders.items()}


def page(kernels: list[Kernel]) -> str:
    """Return the page."""
    text = HEAD
    for kernel in kernels:
        counts = " | ".join(str(len(options)) for options in (kernel.common, kernel.only_wide, kernel.missing))
        text += f"| {kernel.name} | {kernel.package} | {counts} |\n"
    only_wide = by_folder(kernels, lambda kernel: kernel.only_wide)
    missing = by_folder(kernels, lambda kernel: kernel.missing)
    text += MISSING
    for folder in sorted(only_wide.keys() | missing.keys()):
        text += f"| `{folder}` | {only_wide.get(folder, '')} | {missing.get(folder, '')} |\n"
    added = by_folder(kernels, lambda kernel: kernel.added)
    text += ADDED
    for folder in sorted(added):
        text += f"| `{folder}` | {added[folder]} |\n"
    return text


def value(options: Options, names: str) -> str:
    """Return the value of an option, or of several that exclude each other the name of the one that is on."""
    choices = names.split(", ")
    if len(choices) > 1:
        return "".join(f"`{name}`" for name in choices if is_on(options, name))
    return options.get(f"CONFIG_{names}", "n").strip('"')


def values(kernels: list[Kernel]) -> str:
    """Return the table of the options whose values change results, or what programs can do."""
    text = "| option | Debian | guest | effect |\n|---|---|---|---|\n"
    for names, effect in EFFECTS.items():
        debian = {kernel.name: value(kernel.debian, names) for kernel in kernels}
        plain = {kernel.name: value(kernel.plain, names) for kernel in kernels}
        if debian == plain:
            raise SystemExit(f"{names}: the guests' kernels have Debian's value; remove the row")
        cells = " | ".join(by_value(column) for column in (debian, plain))
        text += f"| {', '.join(f'`{name}`' for name in names.split(', '))} | {cells} | {effect} |\n"
    return text


def by_value(column: dict[str, str]) -> str:
    """Return the value of all kernels, or each value with its kernels."""
    kernels = defaultdict(list)
    for kernel, text in column.items():
        kernels[text].append(kernel)
    if len(kernels) == 1:
        return next(iter(kernels))
    return ", ".join(f"{text} ({', '.join(names)})" for text, names in kernels.items())


def main() -> None:
    kernels = [read_kernel(name, suite) for name, suite in KERNELS.items()]
    PAGE.write_text(page(kernels))
    MODEL.write_text(with_part(MODEL, "options", values(kernels)))


if __name__ == "__main__":
    main()
