# SPDX-License-Identifier: Apache-2.0
"""The guest's own root: the agent as /init, the real network tools with their libraries, and nothing else of the host.

One archive in the cache, named after its content: its key is part of a run's identity. The tools come from a tree
of Debian's packages (`tree.py`). Nothing in the root, nor how its programs start, depends on the machine's CPU, its
users or the environment. The guest's only way to the host is /out, the run directory.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from hourglass.engine import agent, cpio, loader_cache, paths, prebuilt, tree
from hourglass.engine.cpio import Member
from hourglass.engine.known import known
from hourglass.engine.tree import TOOLS, WIFI_TOOLS, Tree
from hourglass.errors import MissingError
from hourglass.files import write

AGENT = "init"
"""The agent's place in the root."""

KEPT = 8
"""How many archives the cache keeps: each is some megabytes, and each build of the agent makes one."""

DATA = ["usr/lib/tc/*.dist", "usr/lib/*/tc/*.dist"]
"""What tc reads: netem's distributions."""

NAMES = ["usr/share/iproute2", "etc/iproute2"]
"""Where iproute2's names of tables, protocols and DSCPs are: the package's own, up to Debian 12 beside what the
administrator wrote."""

MAKERS = [Path(__file__).with_name(f"{name}.py") for name in ("cpio", "elf", "loader_cache", "root", "tree")]
"""The code that decides what of the tree is in the archive, and how."""


def image(wifi: bool = False, release: str = tree.RELEASE) -> Path:
    """The archive for this agent and the tools of a Debian release: that of the wheel, else the cache's; made
    if need be. Raises MissingError."""
    if (brought := prebuilt.root(wifi, release)) is not None:
        return brought[0]
    path = paths.cache() / "roots" / f"{key(wifi, release)}.cpio"
    if not path.is_file():
        write(path, _archive(wifi, release))
        paths.keep_newest(path.parent.glob("*.cpio"), KEPT)
    path.touch()
    return path


def key(wifi: bool = False, release: str = tree.RELEASE) -> str:
    """Stands for the content of the archive, and so for all that the root does to the records. Raises MissingError."""
    if (brought := prebuilt.root(wifi, release)) is not None:
        return brought[1]
    found = tree.find(release)
    if not found.packages:  # the machine's own files, which may change at any time
        return _key(_archive(wifi, release))
    of = [agent.binary(), found.described, *MAKERS]
    return known(f"root {'with' if wifi else 'without'} radios", of, lambda: _key(_archive(wifi, release)))


def tools_key(wifi: bool = False, release: str = tree.RELEASE) -> str:
    """Stands for what of the root comes from the tree: everything but the agent. Raises MissingError."""
    return _key(cpio.archive({name: member for name, member in members(wifi, release).items() if name != AGENT}))


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _archive(wifi: bool, release: str) -> bytes:
    """The archive. A process that makes many runs makes it once."""
    return cpio.archive(members(wifi, release))


def members(wifi: bool = False, release: str = tree.RELEASE) -> dict[str, Member]:
    """All files of the root by path."""
    files, found = skeleton() | {AGENT: cpio.file(agent.binary().read_bytes(), 0o755)}, tree.find(release)
    if wifi:
        files["var/run"] = cpio.link("../run")  # where iw looks for the names of namespaces
    programs = {tool: found.program(tool) for tool in (TOOLS | WIFI_TOOLS if wifi else TOOLS)}
    files |= {f"usr/sbin/{tool}": cpio.file(program.read_bytes(), 0o755) for tool, program in programs.items()}
    needed = found.needed(programs.values())
    if needed.lacking:
        remedy = f"apt-get install -y --reinstall {' '.join(sorted({*TOOLS.values(), *WIFI_TOOLS.values()}))}"
        raise MissingError(f"the guest's tools lack {', '.join(needed.missing())}", remedy)
    libraries = {name: path for name, path in needed.files.items() if not name.startswith("ld-")}
    files |= {found.place(path): cpio.file(path.read_bytes(), 0o755) for path in needed.files.values()}
    files["etc/ld.so.cache"] = cpio.file(loader_cache.build(f"/{found.place(path)}" for path in libraries.values()))
    return files | {found.place(path): cpio.file(path.read_bytes()) for path in data(found)}


def data(found: Tree) -> list[Path]:
    """The files that the tools read; of /etc none that the administrator or an editor left behind ("group~")."""
    names = next((found.folder / name for name in NAMES if (found.folder / name).is_dir()), None)
    listed = [path for path in names.iterdir() if re.fullmatch(r"\w+", path.name)] if names else []
    listed += [path for pattern in DATA for path in found.folder.glob(pattern)]
    return [path for path in listed if path.is_file()]


def skeleton() -> dict[str, Member]:
    """Folders, links, device nodes and the few files of /etc."""
    made = {name: cpio.folder() for name in ("proc", "sys", "dev", "run", "tmp", "out", "usr/sbin", "usr/lib64")}
    made |= {name: cpio.link("usr/sbin") for name in ("bin", "sbin")}
    made |= {"usr/bin": cpio.link("sbin"), "lib": cpio.link("usr/lib"), "lib64": cpio.link("usr/lib64")}
    made |= {"dev/console": cpio.character_device(5, 1), "dev/null": cpio.character_device(1, 3)}
    made["etc/passwd"] = cpio.file(b"root:x:0:0:root:/:/bin/false\n")
    made["etc/group"] = cpio.file(b"root:x:0:\n")
    return made
