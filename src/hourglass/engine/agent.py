# SPDX-License-Identifier: Apache-2.0
"""The agent's binary: built by cargo into the cache, by what it is made of.

    agents/KEY              a binary; KEY: over its sources and the compiler
    agents/names/SOURCES    which binary was last built of these sources
    agents/target/          cargo's own folder, so that a change compiles little

`python -m hourglass.engine.agent` builds it and asks the compiler for its version; a run takes the one last built of
the sources as they are, which needs no compiler. Equal sources and compilers give equal bytes, wherever they lie: the
agent is part of the guest's root, and so of a run's identity.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from hourglass import files, locks
from hourglass.engine import paths, prebuilt, process
from hourglass.engine.kernel import apt
from hourglass.errors import HourglassError, MissingError, program
from hourglass.resources import AGENT

LEAST_RUST = (1, 85)
TARGET = "x86_64-unknown-linux-gnu"
TARGETS = {"x86_64": TARGET, "aarch64": "aarch64-unknown-linux-musl"}
"""By what `uname -m` calls a machine. Rust brings musl and a linker for it: no C compiler is needed."""
NAME = "hourglass-agent"

RECIPE = 1
"""Raised whenever something else is made of the same sources."""

KEPT = 8
"""How many binaries the cache keeps: each is some megabytes."""


def target(machine: str) -> str:
    """Rust's name for a kind of machine. Raises MissingError."""
    if machine not in TARGETS:
        kinds = " or ".join(TARGETS)
        raise MissingError(
            f"there is no agent for a machine of the kind {machine or '(unknown)'}", f"a machine of {kinds}"
        )
    return TARGETS[machine]


def binary(machine: str = "x86_64") -> Path:
    """The agent of these sources for a kind of machine: the wheel's, else the cache's, else built. Raises MissingError,
    or HourglassError with the compiler's words."""
    wanted = target(machine)
    return (prebuilt.agent() if wanted == TARGET else None) or built(wanted) or build(wanted)


def built(target: str = TARGET) -> Path | None:
    """The binary last built of these sources, if the cache has it."""
    name = _folder() / "names" / _name(target)
    found = _folder() / name.read_text() if name.is_file() else None
    return found if found is not None and found.is_file() else None


def build(target: str = TARGET) -> Path:
    """The agent of these sources and this compiler; compiled if the cache has none."""
    if (problem := rust_problem()) is not None:
        raise MissingError(f"the agent cannot be built: {problem}", f"apt-get install -y {package()}")
    if not _knows(target):
        remedy = f"rustup target add {target}"
        raise MissingError(f"the agent for {target.split('-')[0]} cannot be built: Rust here has no {target}", remedy)
    folder, sources = _folder(), _name(target)
    key = hashlib.sha256(f"{RECIPE} {sources} {compiler()}".encode()).hexdigest()[:16]
    with locks.held(folder / "lock"):
        if not (folder / key).is_file():
            files.write(folder / key, _compile(folder / "target", target).read_bytes())
            (folder / key).chmod(0o755)
            paths.keep_newest(folder.glob("?" * len(key)), KEPT)
        files.write(folder / "names" / sources, key.encode())
    return folder / key


def _name(target: str) -> str:
    """What a binary is called after: its sources, and its target if it is not this machine's."""
    return sources_key() if target == TARGET else f"{sources_key()}-{target}"


def _knows(target: str) -> bool:
    """Whether this Rust has the standard library of a target."""
    asked = ["rustc", "--print", "target-libdir", "--target", target]
    done = subprocess.run(asked, cwd=AGENT, env=_environment(), text=True, capture_output=True, check=False)
    return done.returncode == 0 and any(Path(done.stdout.strip()).glob("libstd-*"))


@cache
def sources_key() -> str:
    """Over all that cargo reads. A process that makes many runs makes it once."""
    total = hashlib.sha256()
    settings = [AGENT / "Cargo.toml", AGENT / "Cargo.lock", AGENT / ".cargo" / "config.toml"]
    for path in [*settings, *sorted((AGENT / "src").rglob("*.rs"))]:
        total.update(f"{path.relative_to(AGENT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def compiler() -> str:
    """What `rustc` says it is, version and commit; nothing where there is none."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return ""
    asked, environment = ["rustc", "-vV"], _environment()
    return subprocess.run(asked, cwd=AGENT, env=environment, text=True, capture_output=True, check=False).stdout


def rust_problem() -> str | None:
    """Why this machine's Rust cannot build the agent; None if it can."""
    said = compiler()
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is not None and (int(version[1]), int(version[2])) >= LEAST_RUST:
        return None
    wanted = ".".join(map(str, LEAST_RUST))
    return f"cargo and rustc {wanted} or newer are needed, here is {said.splitlines()[0] if said else 'neither'}"


def package() -> str:
    """The package of a cargo that is new enough: Debian 12's own is too old, its second one is kept up to date."""
    return "cargo-web" if apt.machine_codename() == "bookworm" else "cargo"


def _compile(folder: Path, target: str) -> Path:
    """Calls cargo; `--remap-path-prefix` keeps out of the binary where its dependencies' sources lie."""
    environment = _environment() | {"CARGO_TARGET_DIR": str(folder)}
    _cargo(["fetch", "--locked", "--quiet", f"--target={target}"], environment)
    registry = Path(environment.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src"
    flags = [f"--remap-path-prefix={folder}=registry" for folder in sorted(registry.glob("*"))]
    words = ["--release", "--locked", "--quiet", f"--target={target}"]
    words += ["--config", f"target.{target}.rustflags={json.dumps(flags)}"]
    told = ["--cfg", f'sources="{sources_key()}"']  # cargo itself goes by times, which installers set as they like
    _cargo(["rustc", *words, "--bin", NAME, "--", *told], environment)
    return folder / target / "release" / NAME


def _environment() -> dict[str, str]:
    """The build's environment: which toolchain it is and how it reaches its registry, but no flags."""
    kept = ("CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "RUSTUP_", "SSL_CERT_")
    return process.clean_environment() | {name: text for name, text in os.environ.items() if name.startswith(kept)}


def _cargo(words: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(["cargo", *words], cwd=AGENT, env=environment, text=True, capture_output=True, check=False)
    if done.returncode:
        lines = [f"  | {line}" for line in done.stderr.strip().splitlines()[-12:]]
        raise HourglassError("\n".join([f"cargo {words[0]} of the agent failed", *lines]))


def _folder() -> Path:
    folder = paths.cache() / "agents"
    folder.mkdir(exist_ok=True)
    return folder


if __name__ == "__main__":
    program(build)
