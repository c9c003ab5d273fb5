# SPDX-License-Identifier: Apache-2.0
"""Run the OCI image like its users: with podman and its default seccomp profile, no network, no added capabilities.

If this machine starts no containers (without the kernel's cgroups, for example), umoci unpacks the image, which checks
every digest, and chroot runs it. The table then says so.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hourglass.errors import HourglassError, MissingError
from release.command import output_of

RUN = ["run", "L100M", "--out", "runs/L100M"]
ULIMITS = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096"]
"""Podman's defaults exceed what a machine without the privilege to raise limits allows."""


@dataclass(frozen=True)
class Contained:
    """The result of a run in the image."""

    method: str
    seconds: float
    digest: str


def run(image: Path, say: Callable[[str], None]) -> Contained:
    """Run in a container, otherwise with chroot. Raises MissingError, or HourglassError if the run fails."""
    with tempfile.TemporaryDirectory(prefix="hourglass-container-", dir="/var/tmp") as scratch:
        try:
            return by_podman(image, Path(scratch))
        except MissingError as error:
            say(f"image: {error}; it is run by chroot instead")
        return by_chroot(image, Path(scratch))


def by_podman(image: Path, scratch: Path) -> Contained:
    """Run `podman run` with separate storage. Raises MissingError if this machine starts no containers."""
    if not (program := shutil.which("podman")):
        raise MissingError("no podman", "apt-get install -y podman runc")
    podman = [program, "--root", str(scratch / "storage"), "--runroot", str(scratch / "run"), "--storage-driver=vfs"]
    podman += ["--cgroup-manager=cgroupfs", "--events-backend=none"]
    podman += ["--runtime=runc"] if shutil.which("runc") else []
    try:
        loaded = output_of([*podman, "load", "--quiet", "--input", str(image)])
        name = loaded.split("Loaded image: ", 1)[1].split()[0]
        started = [*podman, "run", "--rm", "--network=none", *ULIMITS]
        try:
            output_of([*started, "--entrypoint=/bin/true", name])
        except HourglassError as error:
            raise MissingError(str(error).splitlines()[-1], "a machine that starts containers") from error
        return timed("podman, default seccomp profile", [*started, name, *RUN])
    finally:
        subprocess.run([*podman, "system", "reset", "--force"], check=False, capture_output=True)


def by_chroot(image: Path, scratch: Path) -> Contained:
    """Unpack the image and run its command as its user."""
    if os.geteuid() != 0:
        raise MissingError("unpacking an image takes root's rights", "sudo make release")
    layout, bundle = scratch / "layout", scratch / "bundle"
    layout.mkdir()
    output_of(["tar", "-xf", str(image), "-C", str(layout)])
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    name = entry["annotations"]["org.opencontainers.image.ref.name"]
    output_of(["umoci", "unpack", "--image", f"{layout}:{name}", str(bundle)])
    process = json.loads((bundle / "config.json").read_text())["process"]
    command = f"cd {process['cwd']} && exec {process['args'][0]} {' '.join(RUN)}"
    mounts = 'mount --make-rprivate /; cd "$0"; mount -t proc proc proc; mount -t tmpfs -o mode=1777 tmpfs tmp; '
    mounts += "for d in null zero urandom random; do touch dev/$d; mount --bind /dev/$d dev/$d; done; "
    user = f"{process['user']['uid']}:{process['user']['gid']}"
    enter = f'exec chroot --userspec={user} --groups= . /usr/bin/env -i HOME=/home/user PATH=/usr/bin:/bin sh -c "$1"'
    private = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "sh", "-euc", mounts + enter]
    return timed("umoci unpack, chroot", [*private, str(bundle / "rootfs"), command])


def timed(method: str, command: list[str]) -> Contained:
    """Run a command and return its time and the digest that it prints."""
    start = time.monotonic()
    output = output_of(command)
    match = re.search(r"^digest +(\w+)", output, re.MULTILINE)
    if not match:
        raise HourglassError(f"{method}: no digest is printed:\n{output[-2000:]}")
    return Contained(method, time.monotonic() - start, match[1])
