# SPDX-License-Identifier: Apache-2.0
"""Build the OCI image without a daemon: Debian, Python, Hourglass and its dependencies, as three layers.

`python -m release.image FOLDER` takes the wheel in FOLDER and writes hourglass-VERSION-image.tar next to it. `docker
load`, `podman load` and `skopeo copy oci-archive:…` read it. The same wheels and the same root give the same bytes:
every file has the commit's time, and debootstrap's traces of machine and date are removed.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from hourglass.errors import HourglassError, MissingError
from release import roots, wheels
from release.bare_roots import BARE_ROOTS
from release.command import output_of
from release.wheel import commit_time

ROOT = Path(__file__).parents[1]
PREFIX = "opt/hourglass"
HOURGLASS_FILES = re.compile(r"(bin/hourglass$|lib/python[\d.]+/site-packages/hourglass(_|-|/|$))")
"""Files below PREFIX that change with each release: the last layer."""

LEFT_OUT = [
    "var/log/*", "var/cache/*", "var/lib/apt/lists/*", "var/lib/dpkg/*-old", "run/*", "tmp/*", "dev/*", "debootstrap",
    "etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/apt/sources.list*", "etc/*-", "wheels", "home/user",
    "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*", "usr/share/doc/*/[!c]*", roots.STAMP,
]  # fmt: skip
"""Files of the root with traces of machine or date, and files without use in a container."""

SETTINGS = {
    "config.user": f"{roots.USER}:{roots.USER}",
    "config.workingdir": "/work",
    "config.entrypoint": f"/{PREFIX}/bin/hourglass",
    "config.cmd": "--help",
}


def build(release: Path, say: Callable[[str], None]) -> Path:
    """Write the image of the wheel in `release` next to it. Raises MissingError if this machine cannot."""
    if not shutil.which("umoci"):
        raise MissingError("the image is made by umoci", "apt-get install -y umoci")
    (wheel,) = release.glob("hourglass_net-[0-9]*.whl")
    version = wheel.name.split("-")[1]
    bare_root = BARE_ROOTS[0]
    roots.make(bare_root, say)
    dependencies = wheels.folder(bare_root, wheel)
    epoch = commit_time(ROOT)
    with tempfile.TemporaryDirectory(prefix="hourglass-image-", dir="/var/tmp") as scratch:
        root, layout = Path(scratch) / "root", Path(scratch) / "layout"
        say("image: root and environment")
        output_of(["cp", "-a", str(bare_root.folder), str(root)])
        install(root, wheel, dependencies)
        clean(root)
        say("image: layers")
        layers = split(root, Path(scratch))
        for folder in layers:
            settle(folder, epoch)
        assemble(layout, layers, version, epoch)
        target = release / f"hourglass-{version}-image.tar"
        archive(layout, f"hourglass:{version}", target, epoch)
    return target


def install(root: Path, wheel: Path, dependencies: Path) -> None:
    """Install the wheel in an environment without pip in the root. The validity of bytecode does not depend on time
    stamps."""
    for source, name in ((wheel.parent, "release"), (dependencies, "others")):
        (root / "wheels" / name).mkdir()
        for file in source.glob("*.whl"):
            if name == "others" or file == wheel:
                shutil.copy(file, root / "wheels" / name)
    pip = f"/{PREFIX}/bin/python -m pip --disable-pip-version-check --quiet --no-cache-dir"
    steps = [
        f"python3 -m venv /{PREFIX}",
        f"{pip} install --no-compile --no-index --find-links /wheels/others --find-links /wheels/release hourglass",
        f"{pip} uninstall -y pip setuptools",
        f"rm -rf /{PREFIX}/bin/[aA]ctivate* /{PREFIX}/bin/__pycache__",
        f"find /{PREFIX} /usr -name __pycache__ -prune -exec rm -rf {{}} +",
        f"python3 -m compileall -q --invalidation-mode unchecked-hash /{PREFIX}/lib /usr/lib/python3*",
        f"install -d -o {roots.USER} -g {roots.USER} /work /home/user",
    ]
    private = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child"]
    script = 'mount --make-rprivate /; mount -t proc proc "$0/proc"; exec chroot "$0" /bin/sh -euc "$1"'
    command = [*private, "sh", "-euc", script, str(root), "\n".join(steps)]
    output_of(command, PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", PYTHONHASHSEED="0")


def clean(root: Path) -> None:
    """Remove LEFT_OUT."""
    for pattern in LEFT_OUT:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    home = root / "home/user"
    home.mkdir()
    os.chown(home, roots.USER, roots.USER)
    (root / "etc/apt").mkdir(exist_ok=True)


def split(root: Path, scratch: Path) -> list[Path]:
    """Split the root into folders by the frequency of changes: system, libraries, Hourglass."""
    folders = [root, scratch / "libraries", scratch / "own"]
    for folder in folders[1:]:
        (folder / "opt").mkdir(parents=True)
    (root / PREFIX).rename(folders[1] / PREFIX)
    environment = folders[1] / PREFIX
    names = [
        path for path in sorted(environment.rglob("*")) if HOURGLASS_FILES.fullmatch(str(path.relative_to(environment)))
    ]
    for path in names:
        target = folders[2] / PREFIX / path.relative_to(environment)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    return folders


def settle(folder: Path, epoch: int) -> None:
    """Give all files and folders the same time."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def assemble(layout: Path, layers: Iterable[Path], version: str, epoch: int) -> None:
    """Build the OCI layout of the layers with umoci."""
    created = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    image = f"{layout}:{version}"
    output_of(["umoci", "init", "--layout", str(layout)])
    output_of(["umoci", "new", "--image", image])
    for folder in layers:
        output_of(["umoci", "insert", "--image", image, "--history.created", created, str(folder), "/"])
    labels = {"title": "hourglass", "version": version, "licenses": "Apache-2.0 AND GPL-2.0-only"}
    settings = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
    settings += [
        word for name, value in labels.items()
        for word in ("--config.label", f"org.opencontainers.image.{name}={value}")
    ]  # fmt: skip
    output_of(["umoci", "config", "--image", image, "--created", created, "--history.created", created, *settings])
    output_of(["umoci", "gc", "--layout", str(layout)])


def archive(layout: Path, name: str, target: Path, epoch: int) -> None:
    """Pack the layout into a file, named for Docker and Podman, with the list for a `docker load` without OCI."""
    index = json.loads((layout / "index.json").read_text())
    (entry,) = index["manifests"]
    entry["annotations"]["io.containerd.image.name"] = f"docker.io/library/{name}"
    (layout / "index.json").write_text(json.dumps(index))
    manifest = json.loads((layout / blob(entry)).read_text())
    listed = [{
        "Config": blob(manifest["config"]), "RepoTags": [name], "Layers": [blob(layer) for layer in manifest["layers"]]
    }]  # fmt: skip
    (layout / "manifest.json").write_text(json.dumps(listed))
    fresh = target.with_suffix(".new")
    output_of([
        "tar", "--create", f"--file={fresh}", f"--directory={layout}", "--sort=name", "--owner=0", "--group=0",
        "--numeric-owner", "--mode=u=rwX,go=rX", f"--mtime=@{epoch}", "--format=ustar", ".",
    ])  # fmt: skip
    fresh.rename(target)


def blob(descriptor: dict[str, str]) -> str:
    """Return a blob's path in the layout."""
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release.image", description="Makes the OCI image.")
    parser.add_argument("release", type=Path, nargs="?", default=ROOT / "dist", help="the folder with the wheel")
    try:
        archive_path = build(parser.parse_args().release, lambda line: print(line, file=sys.stderr, flush=True))
    except HourglassError as error:
        print(error, file=sys.stderr)
        return error.status
    print(f"{archive_path}  {archive_path.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
