# SPDX-License-Identifier: Apache-2.0
"""The guest's root file system: the agent as /init, the network tools with their libraries, and no file of the host.

It is one archive in the cache, named after its content: its key is part of a run's identity. The tools come from
Debian packages (`tool_packages.py`). Neither the root nor the way its programs start depends on the machine's CPU, its
users or the environment. The guest reaches the host only through /out, the run directory.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from hourglass.builders import agent, cpio, loader_cache, prebuilt, tool_packages
from hourglass.builders.cpio import CpioMember
from hourglass.builders.digest_cache import cached, state
from hourglass.builders.tool_packages import ALL_TOOLS, BPF_TOOLS, TOOLS, WIFI_TOOLS, Tree
from hourglass.errors import MissingError
from hourglass.host import directories

AGENT = "init"
"""The agent's path in the root."""

CACHED_MAX = 8
"""Archives in the cache. Each has some megabytes, and each build of the agent adds one."""

DATA = ["usr/lib/tc/*.dist", "usr/lib/*/tc/*.dist"]
"""Files that tc reads: netem's distributions."""

NAMES = ["usr/share/iproute2", "etc/iproute2"]
"""Folders with iproute2's names of tables, protocols and DSCPs: the package's, and up to Debian 12 also the
administrator's."""

_NAMES = ("cpio", "elf", "loader_cache", "root", "tool_packages")
MAKERS = [state(Path(__file__).with_name(f"{name}.py")) for name in _NAMES]
"""The code that decides the content of the archive, as this process loaded it."""


def image(wifi: bool = False, release: str = tool_packages.RELEASE, bpf: bool = False) -> Path:
    """Return the archive for this agent and the tools of a Debian release: from the wheel, else from the cache, else
    newly built. Raises MissingError."""
    if not bpf and (prebuilt_root := prebuilt.root(wifi, release)) is not None:
        return prebuilt_root[0]
    path = directories.cache() / "roots" / f"{key(wifi, release, bpf)}.cpio"
    return directories.entry(path, CACHED_MAX, lambda fresh: fresh.write_bytes(_archive(wifi, release, bpf)))


def key(wifi: bool = False, release: str = tool_packages.RELEASE, bpf: bool = False) -> str:
    """Return the key of the archive's content, and so of the root's effect on records. Raises MissingError."""
    if not bpf and (prebuilt_root := prebuilt.root(wifi, release)) is not None:
        return prebuilt_root[1]
    tree = tool_packages.find(release)
    if not tree.packages:  # this machine's files, which may change at any time
        return _key(_archive(wifi, release, bpf))
    kind = f"root {'with' if wifi else 'without'} radios{' and with BPF' if bpf else ''}, agent {_agent()[1]}"
    return cached(f"{kind}, {MAKERS}", [tree.described], lambda: _key(_archive(wifi, release, bpf)))


def tools_key(wifi: bool = False, release: str = tool_packages.RELEASE) -> str:
    """Return the key of the archive without the agent. Raises MissingError."""
    return _key(cpio.archive({name: member for name, member in members(wifi, release).items() if name != AGENT}))


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _agent() -> tuple[bytes, str]:
    """Return the agent and its digest. All runs of a process have the same agent, whatever is built meanwhile."""
    content = agent.binary().read_bytes()
    return content, hashlib.sha256(content).hexdigest()


@cache
def _archive(wifi: bool, release: str, bpf: bool) -> bytes:
    """Return the archive. A process with many runs builds it once."""
    return cpio.archive(members(wifi, release, bpf))


def members(wifi: bool = False, release: str = tool_packages.RELEASE, bpf: bool = False) -> dict[str, CpioMember]:
    """Return all files of the root by path."""
    files, tree = skeleton() | {AGENT: cpio.file(_agent()[0], 0o755)}, tool_packages.find(release)
    if wifi:
        files["var/run"] = cpio.link("../run")  # iw reads the names of namespaces there
    names = [*TOOLS, *(WIFI_TOOLS if wifi else ()), *(BPF_TOOLS if bpf else ())]
    programs = {tool: tree.program(tool) for tool in names}
    files |= {f"usr/sbin/{tool}": cpio.file(program.read_bytes(), 0o755) for tool, program in programs.items()}
    needed = tree.dependencies(programs.values())
    if needed.unmet:
        remedy = f"apt-get install -y --reinstall {' '.join(sorted({*ALL_TOOLS.values()}))}"
        raise MissingError(f"the guest's tools lack {', '.join(needed.missing())}", remedy)
    libraries = {name: path for name, path in needed.files.items() if not name.startswith("ld-")}
    files |= {tree.path_in_root(path): cpio.file(path.read_bytes(), 0o755) for path in needed.files.values()}
    files["etc/ld.so.cache"] = cpio.file(
        loader_cache.build(f"/{tree.path_in_root(path)}" for path in libraries.values())
    )
    return files | {tree.path_in_root(path): cpio.file(path.read_bytes()) for path in data(tree)}


def data(tree: Tree) -> list[Path]:
    """Return the files that the tools read; from /etc none that the administrator or an editor added ("group~")."""
    names = next((tree.folder / name for name in NAMES if (tree.folder / name).is_dir()), None)
    listed = [path for path in names.iterdir() if re.fullmatch(r"\w+", path.name)] if names else []
    listed += [path for pattern in DATA for path in tree.folder.glob(pattern)]
    return [path for path in listed if path.is_file()]


def skeleton() -> dict[str, CpioMember]:
    """Return folders, links, device nodes and the few files of /etc."""
    files = {name: cpio.folder() for name in ("proc", "sys", "dev", "run", "tmp", "out", "usr/sbin", "usr/lib64")}
    files |= {name: cpio.link("usr/sbin") for name in ("bin", "sbin")}
    files |= {"usr/bin": cpio.link("sbin"), "lib": cpio.link("usr/lib"), "lib64": cpio.link("usr/lib64")}
    files |= {"dev/console": cpio.character_device(5, 1), "dev/null": cpio.character_device(1, 3)}
    files["etc/passwd"] = cpio.file(b"root:x:0:0:root:/:/bin/false\n")
    files["etc/group"] = cpio.file(b"root:x:0:\n")
    return files
