# SPDX-License-Identifier: Apache-2.0
"""The guest's own root: the agent as /init, the real network tools with their libraries, and nothing else of the host.

One archive in the cache, named after its content. The guest's only way to the host is /out, the run directory.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from hourglass.engine import cpio, paths
from hourglass.engine.cpio import Member
from hourglass.errors import MissingError

TOOLS = {"ip": "iproute2", "tc": "iproute2", "ethtool": "ethtool"}
"""The tools that every guest has, and the Debian packages they come in."""

WIFI_TOOLS = {"iw": "iw", "hostapd": "hostapd"}
"""Those that only plans with radios call: 8 MB with their libraries, by which a start takes 15 % longer."""

KEPT = 8
"""How many archives the cache keeps: each is some megabytes, and each build of the agent makes one."""

DATA = ["/etc/iproute2/*", "/usr/lib/tc/*.dist", "/usr/lib/*/tc/*.dist"]
"""What the tools read: names of tables and DSCPs, and netem's distributions."""


def image(wifi: bool = False) -> Path:
    """The archive for this agent and the tools; made if the cache does not have it. Raises MissingError."""
    content, key = _archive(wifi, _agent())
    path = paths.cache() / "roots" / f"{key}.cpio"
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        fresh.write_bytes(content)
        fresh.replace(path)
        paths.keep_newest(path.parent.glob("*.cpio"), KEPT)
    path.touch()
    return path


@lru_cache(maxsize=2)
def _archive(wifi: bool, _built: tuple[int, int]) -> tuple[bytes, str]:
    """The archive and its key. A process that makes many runs makes it once: an agent that is built anew is noticed,
    the machine's tools are taken for the same."""
    content = cpio.archive(members(wifi))
    return content, hashlib.sha256(content).hexdigest()[:16]


def _agent() -> tuple[int, int]:
    """What tells one build of the agent from another. Raises MissingError."""
    try:
        found = paths.AGENT.stat()
    except FileNotFoundError:
        raise MissingError(f"the agent is not built ({paths.AGENT})", "make setup") from None
    return found.st_mtime_ns, found.st_size


def needs_wifi(plan: Mapping[str, Any]) -> bool:
    """Whether a plan calls the Wi-Fi tools."""
    return any(step["do"] in ("iw", "daemon") for step in plan["setup"])


def members(wifi: bool = False) -> dict[str, Member]:
    """All files of the root by path."""
    files = skeleton() | {"init": cpio.file(paths.AGENT.read_bytes(), 0o755)}
    if wifi:
        files["var/run"] = cpio.link("../run")  # where iw looks for the names of namespaces
    libraries: set[Path] = set()
    for tool in TOOLS | WIFI_TOOLS if wifi else TOOLS:
        program = find(tool)
        files[f"usr/sbin/{tool}"] = cpio.file(program.read_bytes(), 0o755)
        libraries |= needed(program)
    for library in sorted(libraries):
        files[guest_path(library)] = cpio.file(library.read_bytes(), 0o755)
    for pattern in DATA:
        for data in sorted(Path("/").glob(pattern[1:])):
            if data.is_file():
                files[guest_path(data)] = cpio.file(data.read_bytes())
    return files


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
    """The shared libraries of a program and its loader, under the names it asks for."""
    environment = {"LD_TRACE_LOADED_OBJECTS": "1"}  # what ldd does
    listed = subprocess.run([program], env=environment, text=True, capture_output=True, check=False).stdout
    if lacking := re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE):
        packages = " ".join(sorted({*TOOLS.values(), *WIFI_TOOLS.values()}))
        raise MissingError(f"{program} lacks {', '.join(lacking)}", f"apt-get install -y --reinstall {packages}")
    return {Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed, re.MULTILINE)}


def guest_path(path: Path) -> str:
    """Where a file of the host stands in the root: its own place, with /lib and /lib64 below /usr."""
    place = str(path.parent.resolve() / path.name)[1:]
    return f"usr/{place}" if place.startswith("lib") else place
