# SPDX-License-Identifier: Apache-2.0
"""The OCI image: Debian, Python, Hourglass and what it needs of others, as three layers; built without a daemon.

`python -m release.image FOLDER` takes the wheel in FOLDER and writes hourglass-VERSION-image.tar beside it, which
`docker load`, `podman load` and `skopeo copy oci-archive:…` read. The same wheels and the same root give the same
bytes: every file has the time of the commit, and nothing that debootstrap wrote about this machine or its day is left.
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
from release.command import called
from release.places import PLACES
from release.wheel import commit_time

ROOT = Path(__file__).parents[1]
PREFIX = "opt/hourglass"
OWN = re.compile(r"(bin/hourglass$|lib/python[\d.]+/site-packages/hourglass(_|-|/|$))")
"""What below PREFIX is the last layer: what a release changes."""

LEFT_OUT = [
    "var/log/*", "var/cache/*", "var/lib/apt/lists/*", "var/lib/dpkg/*-old", "run/*", "tmp/*", "dev/*", "debootstrap",
    "etc/machine-id", "etc/hostname", "etc/resolv.conf", "etc/apt/sources.list*", "etc/*-", "wheels", "home/user",
    "usr/share/man/*", "usr/share/info/*", "usr/share/locale/*", "usr/share/doc/*/[!c]*", roots.MADE,
]  # fmt: skip
"""What of the root says something about this machine or this day, and what nobody reads in a container."""

SETTINGS = {
    "config.user": f"{roots.USER}:{roots.USER}",
    "config.workingdir": "/work",
    "config.entrypoint": f"/{PREFIX}/bin/hourglass",
    "config.cmd": "--help",
}


def build(release: Path, say: Callable[[str], None]) -> Path:
    """Writes the image of the wheel in `release` beside it. Raises MissingError where this machine cannot."""
    if not shutil.which("umoci"):
        raise MissingError("the image is made by umoci", "apt-get install -y umoci")
    (wheel,) = release.glob("hourglass-[0-9]*.whl")
    version = wheel.name.split("-")[1]
    place = PLACES[0]
    roots.make(place, say)
    others = wheels.folder(place, wheel)
    epoch = commit_time(ROOT)
    with tempfile.TemporaryDirectory(prefix="hourglass-image-", dir="/var/tmp") as scratch:
        root, layout = Path(scratch) / "root", Path(scratch) / "layout"
        say("image: root and environment")
        called(["cp", "-a", str(place.root), str(root)])
        install(root, wheel, others)
        clean(root)
        say("image: layers")
        layers = split(root, Path(scratch))
        for folder in layers:
            settle(folder, epoch)
        assemble(layout, layers, version, epoch)
        made = release / f"hourglass-{version}-image.tar"
        archive(layout, f"hourglass:{version}", made, epoch)
    return made


def install(root: Path, wheel: Path, others: Path) -> None:
    """An environment in the root with the wheel, and without pip. Bytecode is checked by no time stamp."""
    for source, name in ((wheel.parent, "release"), (others, "others")):
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
    called(command, PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", PYTHONHASHSEED="0")


def clean(root: Path) -> None:
    """Removes LEFT_OUT."""
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
    """The root as folders of what changes ever more often: system, libraries, Hourglass."""
    folders = [root, scratch / "libraries", scratch / "own"]
    for folder in folders[1:]:
        (folder / "opt").mkdir(parents=True)
    (root / PREFIX).rename(folders[1] / PREFIX)
    whole = folders[1] / PREFIX
    names = [path for path in sorted(whole.rglob("*")) if OWN.fullmatch(str(path.relative_to(whole)))]
    for path in names:
        target = folders[2] / PREFIX / path.relative_to(whole)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    return folders


def settle(folder: Path, epoch: int) -> None:
    """Gives all files the same time, and folders too."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def assemble(layout: Path, layers: Iterable[Path], version: str, epoch: int) -> None:
    """The OCI layout of the layers, by umoci."""
    when = datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    image = f"{layout}:{version}"
    called(["umoci", "init", "--layout", str(layout)])
    called(["umoci", "new", "--image", image])
    for folder in layers:
        called(["umoci", "insert", "--image", image, "--history.created", when, str(folder), "/"])
    labels = {"title": "hourglass", "version": version, "licenses": "Apache-2.0 AND GPL-2.0-only"}
    settings = [word for name, value in SETTINGS.items() for word in (f"--{name}", value)]
    settings += [
        word for name, value in labels.items()
        for word in ("--config.label", f"org.opencontainers.image.{name}={value}")
    ]  # fmt: skip
    called(["umoci", "config", "--image", image, "--created", when, "--history.created", when, *settings])
    called(["umoci", "gc", "--layout", str(layout)])


def archive(layout: Path, name: str, made: Path, epoch: int) -> None:
    """One file of the layout, named for Docker and Podman, with the list that a `docker load` without OCI reads."""
    index = json.loads((layout / "index.json").read_text())
    (entry,) = index["manifests"]
    entry["annotations"]["io.containerd.image.name"] = f"docker.io/library/{name}"
    (layout / "index.json").write_text(json.dumps(index))
    manifest = json.loads((layout / blob(entry)).read_text())
    listed = [{
        "Config": blob(manifest["config"]), "RepoTags": [name], "Layers": [blob(layer) for layer in manifest["layers"]]
    }]  # fmt: skip
    (layout / "manifest.json").write_text(json.dumps(listed))
    fresh = made.with_suffix(".new")
    called([
        "tar", "--create", f"--file={fresh}", f"--directory={layout}", "--sort=name", "--owner=0", "--group=0",
        "--numeric-owner", "--mode=u=rwX,go=rX", f"--mtime=@{epoch}", "--format=ustar", ".",
    ])  # fmt: skip
    fresh.rename(made)


def blob(descriptor: dict[str, str]) -> str:
    """Where the layout has it."""
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m release.image", description="Makes the OCI image.")
    parser.add_argument("release", type=Path, nargs="?", default=ROOT / "dist", help="the folder with the wheel")
    try:
        made = build(parser.parse_args().release, lambda line: print(line, file=sys.stderr, flush=True))
    except HourglassError as error:
        print(error, file=sys.stderr)
        return error.status
    print(f"{made}  {made.stat().st_size / 1e6:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
