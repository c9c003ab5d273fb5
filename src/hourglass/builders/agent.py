# SPDX-License-Identifier: Apache-2.0
"""Build the agent's binary with cargo, into the cache.

    agents/KEY              a binary; KEY is a hash of its sources and the compiler
    agents/names/SOURCES    the key of the last binary built from these sources
    agents/target/          cargo's folder, which makes a rebuild incremental

`python -m hourglass.builders.agent` builds it and asks the compiler for its version. A run uses the last binary of the
current sources, so it needs no compiler. Equal sources and compilers give equal bytes in any folder: the agent is part
of the guest's root, and so of a run's identity."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from hourglass import files, locks
from hourglass.builders import prebuilt
from hourglass.builders.kernel import apt
from hourglass.errors import HourglassError, MissingError, program
from hourglass.host import directories, process
from hourglass.resources import AGENT

LEAST_RUST = (1, 85)
TARGET = "x86_64-unknown-linux-gnu"
TARGETS = {"x86_64": TARGET, "aarch64": "aarch64-unknown-linux-musl"}
"""Rust targets by the machine name of `uname -m`. Rust includes musl and a linker for it, so no C compiler is
needed."""
NAME = "hourglass-agent"

RECIPE = 1
"""Raised when the build changes while the sources stay the same."""

CACHED_MAX = 8
"""Binaries in the cache. Each has some megabytes."""


def target(machine: str) -> str:
    """Return Rust's name for a kind of machine. Raises MissingError."""
    if machine not in TARGETS:
        kinds = " or ".join(TARGETS)
        raise MissingError(
            f"the agent does not support machines of type {machine or '(unknown)'}", f"use a machine of type {kinds}"
        )
    return TARGETS[machine]


def binary(machine: str = "x86_64") -> Path:
    """Return the agent for a kind of machine: from the wheel, else from the cache, else newly built. Raises
    MissingError, or HourglassError with the compiler's message."""
    target_name = target(machine)
    return (prebuilt.agent() if target_name == TARGET else None) or built(target_name) or build(target_name)


def built(target: str = TARGET) -> Path | None:
    """Return the last binary of the current sources, or None if the cache lacks it."""
    name = _folder() / "names" / _binary_name(target)
    path = _folder() / name.read_text() if name.is_file() else None
    return path if path is not None and directories.mark_used(path) else None


def build(target: str = TARGET) -> Path:
    """Build the agent of the current sources and compiler unless the cache has it."""
    if (problem := rust_problem()) is not None:
        raise MissingError(f"the agent cannot be built: {problem}", f"apt-get install -y {package()}")
    if not _supports(target):
        remedy = f"rustup target add {target}"
        raise MissingError(
            f"the agent for {target.split('-')[0]} cannot be built: this Rust installation lacks {target}", remedy
        )
    sources_key.cache_clear()
    folder, sources = _folder(), _binary_name(target)
    key = hashlib.sha256(f"{RECIPE} {sources} {compiler()}".encode()).hexdigest()[:16]

    def compile_(fresh: Path) -> None:
        shutil.copyfile(_compile(folder / "target", target), fresh)
        fresh.chmod(0o755)
        sources_key.cache_clear()
        if _binary_name(target) != sources:
            raise HourglassError("the agent's sources changed while it was compiled; run the command again")

    with locks.exclusive(folder / "lock"):
        directories.entry(folder / key, CACHED_MAX, compile_)
        files.write(folder / "names" / sources, key.encode())
    return folder / key


def _binary_name(target: str) -> str:
    """Return the name of a binary: its sources' key, with the target if that is not this machine's."""
    return sources_key() if target == TARGET else f"{sources_key()}-{target}"


def _supports(target: str) -> bool:
    """Return whether this Rust has the standard library of a target."""
    command = ["rustc", "--print", "target-libdir", "--target", target]
    done = subprocess.run(command, cwd=AGENT, env=_environment(), text=True, capture_output=True, check=False)
    return done.returncode == 0 and any(Path(done.stdout.strip()).glob("libstd-*"))


@cache
def sources_key() -> str:
    """Return the hash of all files that cargo reads. A process with many runs computes it once."""
    total = hashlib.sha256()
    settings = [AGENT / "Cargo.toml", AGENT / "Cargo.lock", AGENT / ".cargo" / "config.toml"]
    for path in [*settings, *sorted((AGENT / "src").rglob("*.rs"))]:
        total.update(f"{path.relative_to(AGENT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def compiler() -> str:
    """Return the version and commit that `rustc` prints; empty without cargo or rustc."""
    if shutil.which("cargo") is None or shutil.which("rustc") is None:
        return ""
    command, environment = ["rustc", "-vV"], _environment()
    return subprocess.run(command, cwd=AGENT, env=environment, text=True, capture_output=True, check=False).stdout


def rust_problem() -> str | None:
    """Return why this machine's Rust cannot build the agent, or None."""
    version_text = compiler()
    version = re.search(r"(\d+)\.(\d+)", version_text)
    if version is not None and (int(version[1]), int(version[2])) >= LEAST_RUST:
        return None
    least = ".".join(map(str, LEAST_RUST))
    return (
        f"cargo and rustc {least} or newer are required; this machine has {(version_text or 'neither').splitlines()[0]}"
    )


def package() -> str:
    """Return the Debian package of a recent cargo. Debian 12's `cargo` is too old; its `cargo-web` is updated."""
    return "cargo-web" if apt.machine_codename() == "bookworm" else "cargo"


def _compile(folder: Path, target: str) -> Path:
    """Run cargo. `--remap-path-prefix` removes the paths of the dependencies' sources from the binary."""
    environment = _environment() | {"CARGO_TARGET_DIR": str(folder)}
    _cargo(["fetch", "--locked", "--quiet", f"--target={target}"], environment)
    registry = Path(environment.get("CARGO_HOME") or Path.home() / ".cargo") / "registry" / "src"
    flags = [f"--remap-path-prefix={folder}=registry" for folder in sorted(registry.glob("*"))]
    options = ["--release", "--locked", "--quiet", f"--target={target}"]
    options += ["--config", f"target.{target}.rustflags={json.dumps(flags)}"]
    configuration = [
        "--cfg",
        f'sources="{sources_key()}"',
    ]  # cargo ignores content
    _cargo(["rustc", *options, "--bin", NAME, "--", *configuration], environment)
    return folder / target / "release" / NAME


def _environment() -> dict[str, str]:
    """Return the build's environment: the toolchain and the access to its registry, but no flags."""
    prefixes = ("CARGO_HOME", "CARGO_HTTP_", "CARGO_NET_", "RUSTUP_", "SSL_CERT_")
    return process.clean_environment() | {name: text for name, text in os.environ.items() if name.startswith(prefixes)}


def _cargo(arguments: list[str], environment: dict[str, str]) -> None:
    done = process.output_of(["cargo", *arguments], environment, AGENT)
    if done.returncode:
        lines = [f"  | {line}" for line in done.stderr.strip().splitlines()[-12:]]
        raise HourglassError("\n".join([f"cargo {arguments[0]} of the agent failed", *lines]))


def _folder() -> Path:
    folder = directories.cache() / "agents"
    folder.mkdir(exist_ok=True)
    return folder


if __name__ == "__main__":
    program(build)
