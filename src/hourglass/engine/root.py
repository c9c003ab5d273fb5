# SPDX-License-Identifier: Apache-2.0
"""The guest's own root: the agent as /init, the real network tools with their libraries, and nothing else of the host.

One archive in the cache, named after its content: its key is part of a run's identity, because tools and libraries are
those of the machine's Debian release. Nothing in it, nor how its programs start, depends on the machine's CPU, its
users or the environment. The guest's only way to the host is /out, the run directory.
"""

import hashlib
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from hourglass.engine import agent, cpio, loader_cache, paths
from hourglass.engine.cpio import Member
from hourglass.errors import MissingError
from hourglass.files import write

TOOLS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
"""The tools that every guest has, and the Debian packages they come in."""

WIFI_TOOLS = {"iw": "iw", "hostapd": "hostapd"}
"""Those that only plans with radios call: 8 MB with their libraries, by which a start takes 15 % longer."""

AGENT = "init"
"""The agent's place in the root."""

KEPT = 8
"""How many archives the cache keeps: each is some megabytes, and each build of the agent makes one."""

DATA = ["/usr/lib/tc/*.dist", "/usr/lib/*/tc/*.dist"]
"""What tc reads: netem's distributions."""

NAMES = [Path("/usr/share/iproute2"), Path("/etc/iproute2")]
"""Where iproute2's names of tables, protocols and DSCPs are: the package's own, up to Debian 12 beside what the
administrator wrote."""

LOADER = Path("/lib64/ld-linux-x86-64.so.2")


def image(wifi: bool = False) -> Path:
    """The archive for this agent and the tools; made if the cache does not have it. Raises MissingError."""
    content, key = _archive(wifi)
    path = paths.cache() / "roots" / f"{key}.cpio"
    if not path.is_file():
        write(path, content)
        paths.keep_newest(path.parent.glob("*.cpio"), KEPT)
    path.touch()
    return path


def key(wifi: bool = False) -> str:
    """Stands for the content of the archive, and so for all that the root does to the records. Raises MissingError."""
    return _archive(wifi)[1]


def tools_key(wifi: bool = False) -> str:
    """Stands for what of the root comes from the machine: everything but the agent. Raises MissingError."""
    return _key(cpio.archive({name: member for name, member in members(wifi).items() if name != AGENT}))


def _key(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


@cache
def _archive(wifi: bool) -> tuple[bytes, str]:
    """The archive and its key. A process that makes many runs makes it once: the machine's tools are taken for the
    same."""
    content = cpio.archive(members(wifi))
    return content, _key(content)


def members(wifi: bool = False) -> dict[str, Member]:
    """All files of the root by path."""
    files = skeleton() | {AGENT: cpio.file(agent.binary().read_bytes(), 0o755)}
    if wifi:
        files["var/run"] = cpio.link("../run")  # where iw looks for the names of namespaces
    libraries: set[Path] = set()
    for tool in TOOLS | WIFI_TOOLS if wifi else TOOLS:
        program = find(tool)
        files[f"usr/sbin/{tool}"] = cpio.file(program.read_bytes(), 0o755)
        libraries |= needed(program)
    files |= {guest_path(library): cpio.file(library.read_bytes(), 0o755) for library in libraries}
    cached = {f"/{guest_path(library)}" for library in libraries - {LOADER}}
    files["etc/ld.so.cache"] = cpio.file(loader_cache.build(cached))
    return files | {guest_path(path): cpio.file(path.read_bytes()) for path in data()}


def data() -> list[Path]:
    """The files that the tools read; of /etc none that the administrator or an editor left behind ("group~")."""
    names = next((folder for folder in NAMES if folder.is_dir()), None)
    found = [path for path in names.iterdir() if re.fullmatch(r"\w+", path.name)] if names else []
    found += [path for pattern in DATA for path in Path("/").glob(pattern[1:])]
    return [path for path in found if path.is_file()]


def skeleton() -> dict[str, Member]:
    """Folders, links, device nodes and the few files of /etc."""
    made = {name: cpio.folder() for name in ("proc", "sys", "dev", "run", "tmp", "out", "usr/sbin", "usr/lib64")}
    made |= {name: cpio.link("usr/sbin") for name in ("bin", "sbin")}
    made |= {"usr/bin": cpio.link("sbin"), "lib": cpio.link("usr/lib"), "lib64": cpio.link("usr/lib64")}
    made |= {"dev/console": cpio.character_device(5, 1), "dev/null": cpio.character_device(1, 3)}
    made["etc/passwd"] = cpio.file(b"root:x:0:0:root:/:/bin/false\n")
    made["etc/group"] = cpio.file(b"root:x:0:\n")
    return made


def find(tool: str) -> Path:
    """Where the host has a tool; also looks where only root's search path leads."""
    found = shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise MissingError(f"the guest needs the host's {tool}", f"apt-get install -y {(TOOLS | WIFI_TOOLS)[tool]}")
    return Path(found).resolve()


def needed(program: Path) -> set[Path]:
    """The shared libraries of a program and its loader, under the names it asks for; the plain ones, not those that the
    machine may have for CPUs like its own."""
    plain = ["--glibc-hwcaps-mask", "none"], {"GLIBC_TUNABLES": "glibc.cpu.hwcap_mask=0"}  # glibc before 2.37 has both
    listed = subprocess.run(
        [LOADER, *plain[0], "--list", program], env=plain[1], text=True, capture_output=True, check=False
    ).stdout
    if lacking := re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE):
        packages = " ".join(sorted({*TOOLS.values(), *WIFI_TOOLS.values()}))
        raise MissingError(f"{program} lacks {', '.join(lacking)}", f"apt-get install -y --reinstall {packages}")
    return {LOADER} | {Path(path) for path in re.findall(r"=> (/\S+) \(0x", listed)}


def guest_path(path: Path) -> str:
    """Where a file of the host stands in the root: its own place, with /lib and /lib64 below /usr."""
    place = str(path.parent.resolve() / path.name)[1:]
    return f"usr/{place}" if place.startswith("lib") else place
