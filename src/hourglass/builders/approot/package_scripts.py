# SPDX-License-Identifier: Apache-2.0
"""Configure the unpacked packages of a root, as `dpkg --configure` does on a machine. Their own scripts add users and
groups, alternatives, certificates, default configurations, and Python's compiled modules.

The scripts run as root of a guest, in virtual time and with a fixed seed, so each machine gets the same files.
The files that they change return as an archive with owners. No daemon starts."""

import hashlib
import os
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

from hourglass.builders.approot.folder import Folder, walk
from hourglass.builders.kernel import apt
from hourglass.errors import HourglassError

DATABASE = "var/lib/dpkg"
OUTSIDE = ("dev", "proc", "sys", "tmp")
"""Folders that are mounts in a guest."""

USER = {"passwd": "user:x:1000:1000::/tmp:/bin/sh\n", "group": "user:x:1000:\n"}
"""The ordinary user of programs."""

NETWORK = {"hosts": "127.0.0.1 localhost\n", "resolv.conf": ""}
"""Files that scripts read. Each container has its files with these names."""

SCRIPTS = ("config", "postinst", "preinst", "postrm", "prerm")

UNIT_FOLDERS = r"""
function print_folders(key, folders, count, n) {
	if (!value["User"]) value["User"] = "root"
	for (key in PARENTS) {
		count = tolower(value["DynamicUser"]) ~ /^(yes|true|on|1)$/ ? 0 : split(value[key "Directory"], folders, " ")
		for (n = 1; n <= count; n++) {
			sub(/:.*/, "", folders[n])
			print value[key "DirectoryMode"] ? value[key "DirectoryMode"] : 755, value["User"],
				value["Group"] ? value["Group"] : "-", PARENTS[key] "/" folders[n]
		}
	}
	split("", value)
}
BEGIN {
	PARENTS["Runtime"] = "/run"; PARENTS["State"] = "/var/lib"
	PARENTS["Cache"] = "/var/cache"; PARENTS["Logs"] = "/var/log"
}
FNR == 1 { print_folders() }
/^[A-Za-z]+[ \t]*=/ {
	key = text = $0
	sub(/[ \t]*=.*/, "", key)
	sub(/^[^=]*=[ \t]*/, "", text); sub(/[ \t\\]*$/, "", text)
	value[key] = text && key ~ /Directory$/ ? value[key] " " text : text
}
END { print_folders() }
"""
"""Prints the folders of systemd units, as lines of mode, user, group (`-`: the user's) and path. It leaves out those of
users that exist only while the unit runs."""

SCRIPT = r"""
export PATH=/usr/sbin:/usr/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
mkdir /tmp/out
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
dpkg --configure --force-depends mawk
for script in /var/lib/dpkg/info/*.preinst; do
	package=$(basename "$script" .preinst)
	DPKG_MAINTSCRIPT_NAME=preinst DPKG_MAINTSCRIPT_PACKAGE=${package%:*} "$script" install ||
		echo "$package: preinst failed"
done
dpkg --configure --force-depends $(dpkg-query -f '${Essential} ${binary:Package}\n' -W | sed -n 's/^yes //p')
dpkg --configure --pending
dpkg-query -f '${db:Status-Abbrev} ${binary:Package}\n' -W | sed -n '/^ii/!s/^....//p' > /tmp/out/failed
rm /usr/sbin/policy-rc.d
rm -rf /run/* /var/log/dpkg.log /var/log/alternatives.log /var/lib/dpkg/*-old /var/cache/debconf/*-old
{
	awk '$1 ~ /^[dD]/ && $2 ~ /^\/(var\/)?run\/[^%]*$/ {
		gsub(/[^0-7]/, "", $3); gsub(/[:-]/, "", $4); gsub(/[:-]/, "", $5)
		print $3 ? $3 : 755, $4 ? $4 : "root", $5 ? $5 : "root", $2
	}' /usr/lib/tmpfiles.d/*.conf
	find -L /usr/lib/systemd/system -maxdepth 1 -name '*.service' -type f | sort |
		xargs -r awk 'UNIT_FOLDERS' | grep -v %
} | while read -r mode user group path; do
	test "$group" != - || group=$(id -gn "$user")
	install -d -m "$mode" -o "$user" -g "$group" "$path"
done
install -d -m 1777 /run/lock
cd /
find . -xdev -mindepth 1 \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./tmp \) -prune -o -print0 \
	> /tmp/out/names
find . -xdev -mindepth 1 \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./tmp \) -prune -o \
	-newerct '2024-01-01 00:00:00.5 UTC' -print0 |
	tar --create --file /tmp/out/changes.tar --no-recursion --null --files-from - && touch /tmp/out/done
""".replace("UNIT_FOLDERS", UNIT_FOLDERS)
"""Runs at 1 s of test time, so that the time of a changed file differs from those of the root's files."""

OUTPUTS = "/tmp/out"
"""The folder in the guest with the results of SCRIPT."""

START_S = 1

RunScript = Callable[[Path, str, Path], Path]
"""Runs a shell script in a guest; see `engine/program_root.py`."""


def register(control: tarfile.TarFile, names: Sequence[str], folder: Folder) -> None:
    """Add a package with these files to the root's list of packages, as unpacked. `control`: its control files."""
    parts = {}
    for member in control:
        stream = control.extractfile(member)
        if stream is not None:
            parts[PurePosixPath(member.name).name] = stream.read()
    text = parts.pop("control").decode().strip()
    (fields,) = apt.deb822_stanzas(text)
    name = fields["package"] + (":amd64" if fields.get("multi-arch") == "same" else "")
    conffiles = [line for line in parts.get("conffiles", b"").decode().splitlines() if _is_file(folder, line)]
    parts["list"] = "".join(f"{path.removeprefix('.') or '/.'}\n" for path in names).encode()
    info = folder.make(f"{DATABASE}/info")
    for part, content in parts.items():
        file = info / f"{name}.{part}"
        file.write_bytes(content)
        file.chmod(0o755 if part in SCRIPTS else 0o644)
    with (folder.path / DATABASE / "status").open("a") as status:
        status.write(f"{text}\nStatus: install ok unpacked\n")
        if conffiles:
            status.write("Conffiles:\n" + "".join(f" {path} {_md5(folder.resolve(path))}\n" for path in conffiles))
        status.write("\n")


def _is_file(folder: Folder, name: str) -> bool:
    """Tell if a line of `conffiles` is a file of the root. Others begin with a flag."""
    path = folder.resolve(name) if name.startswith("/") else None
    return path is not None and path.is_file() and not path.is_symlink()


def _md5(file: Path) -> str:
    """Return the digest by which dpkg recognizes changed configuration files."""
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()


def _replace(folder: Folder, name: str, content: str) -> None:
    """Write a file. A link at its path is replaced, not followed."""
    path = folder.resolve(name)
    folder.remove(path)
    path.write_text(content)


def run(folder: Folder, run_script: RunScript, work: Path) -> list[str]:
    """Configure the packages of a root; return those whose scripts failed. `work`: a new folder for the guest. Raises
    HourglassError if the scripts do not end."""
    (folder.path / DATABASE / "info/format").write_text("1\n")
    for name in ("updates", "triggers", "alternatives"):
        folder.make(f"{DATABASE}/{name}")
    for name in ("passwd", "group"):
        accounts = folder.path / "usr/share/base-passwd" / f"{name}.master"
        _replace(folder, f"etc/{name}", accounts.read_text() + USER[name])
    for name, content in NETWORK.items():
        _replace(folder, f"etc/{name}", content)
    outputs = run_script(folder.path, SCRIPT, work)
    if not (outputs / "done").exists():
        raise HourglassError(f"the scripts of a root's packages did not end; their output is in {work}/apps")
    remaining = {os.fsdecode(name) for name in (outputs / "names").read_bytes().split(b"\0")}
    for name, path in list(walk(folder.path)):
        outside = name.partition("/")[0] in OUTSIDE
        if not outside and f"./{name}" not in remaining and os.path.lexists(path):
            folder.remove(path)
    with tarfile.open(outputs / "changes.tar") as changes:
        for member in changes:
            folder.add(changes, member)
    return (outputs / "failed").read_text().split()
