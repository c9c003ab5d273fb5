# SPDX-License-Identifier: Apache-2.0
"""Download Debian packages of another release, without root and without a change to this machine's apt.

The sources are the machine's own, with the codename of the other release. So a mirror or a proxy of the machine is used
as well. Lists, caches and sources are in a folder in Hourglass's cache.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from hourglass.errors import HourglassError, MissingError

TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg"}
"""Programs that fetch and open packages, and the packages that contain them."""

MORE_SUITES = ("updates", "security")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
Stanza = dict[str, str]

_GONE = re.compile(r"does not have a Release file|Unable to locate package|No packages found|\b404\b")
"""apt's messages (locale C) about a suite or a package that no longer exists. apt has one exit status for all errors.
If the network is down, its messages differ."""

_UNKNOWN_PACKAGE = re.compile(r"^E: Unable to locate package (\S+)$", re.MULTILINE)


class DownloadError(HourglassError):
    """Packages cannot be downloaded. `gone`: the archive no longer has them; `reason`: apt's last message."""

    code = "download"

    def __init__(self, packages: Sequence[str], messages: Sequence[str], remedy: str) -> None:
        self.gone = any(map(_GONE.search, messages))
        self.reason = messages[-1].strip() if messages else ""
        lines = [f"cannot download {', '.join(packages)}; apt says:", *messages, f"or {remedy}"]
        super().__init__("\n".join(lines))


def machine_sources() -> list[tuple[str, str]]:
    """Return name and text of each file that lists this machine's package sources."""
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return [(path.name, path.read_text(errors="replace")) for path in files
            if path.suffix in {".list", ".sources"} and path.is_file()]  # fmt: skip


def machine_codename() -> str:
    """Return VERSION_CODENAME of this machine, like "bookworm", or an empty string."""
    return release_field("VERSION_CODENAME")


def release_field(name: str) -> str:
    """Return a field of this machine's os-release, or an empty string."""
    release = Path("/etc/os-release")
    match = re.search(rf'^{name}="?([\w.-]+)', release.read_text() if release.is_file() else "", re.MULTILINE)
    return match[1] if match else ""


def deb822_stanzas(text: str) -> list[Stanza]:
    """Return the stanzas of a *.sources file: field names in lower case, values with their continuation lines."""
    stanzas = []
    for block in re.split(r"\n\s*\n", text):
        fields: Stanza = {}
        name = ""
        for line in block.splitlines():
            if line.startswith("#"):
                continue
            if line[:1] in {" ", "\t"} and name:
                fields[name] += "\n" + line
            elif ":" in line:
                name, value = line.split(":", 1)
                name = name.strip().lower()
                fields[name] = value.strip()
        if fields:
            stanzas.append(fields)
    return stanzas


def one_line_stanzas(text: str) -> list[Stanza]:
    """Return the lines of a *.list file as stanzas."""
    stanzas = []
    for line in text.splitlines():
        match = re.match(r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+\S", line)
        if match is None:
            continue
        stanza = {"types": "deb", "uris": match["uri"], "suites": match["suite"]}
        options = dict(pair.split("=", 1) for pair in (match["options"] or "").split() if "=" in pair)
        stanza |= {name: options[name] for name in ("signed-by", "trusted") if name in options}
        stanzas.append(stanza)
    return stanzas


def derive(
    files: Iterable[tuple[str, str]], machine_release: str, release: str, types: str = "deb", updates: bool = True
) -> str:
    """Return the text of a *.sources file for `release`, from the sources of a machine with release `machine_release`.

    Sources that do not follow the distribution's releases are left out: only suites named after the machine's release
    count (`bookworm`, `bookworm-updates`, `bookworm-security`). Without `updates`, and for backports, only the
    release's main suite counts. The text is empty if no source remains.
    """
    main_only = not updates or "-" in release
    stanzas = []
    used_suites = {machine_release, *(f"{machine_release}-{name}" for name in MORE_SUITES if not main_only)}
    for name, text in files:
        for stanza in deb822_stanzas(text) if name.endswith(".sources") else one_line_stanzas(text):
            suites = [release + suite.removeprefix(machine_release) for suite in stanza.get("suites", "").split()
                      if suite in used_suites]  # fmt: skip
            if suites and "deb" in stanza.get("types", "").split() and stanza.get("enabled", "yes") != "no":
                stanzas.append(render(stanza, suites, types))
    return "\n".join(stanzas)


def render(stanza: Stanza, suites: list[str], types: str) -> str:
    """Return a stanza for other suites. The keyring of one Debian release is replaced by that of all releases."""
    signed = stanza.get("signed-by", "")
    if signed.startswith(str(KEYRING.parent / "debian-archive-")) and KEYRING.exists():
        signed = str(KEYRING)
    lines = [f"Types: {types}", f"URIs: {stanza.get('uris', '')}", f"Suites: {' '.join(suites)}", "Components: main"]
    lines += [f"Signed-By: {signed}"] if signed else []
    lines += [f"Trusted: {stanza['trusted']}"] if "trusted" in stanza else []
    return "\n".join(lines) + "\n"


def unknown_package(messages: str) -> str | None:
    """Return the first package that apt does not know, according to its messages."""
    match = _UNKNOWN_PACKAGE.search(messages)
    return match[1] if match else None


class Archive:
    """The packages of one Debian release. `folder` has apt's state; the machine's own state does not change.

    `sources`: also the source packages. `updates`: also the updates since the last point release. Raises MissingError
    if the machine is not Debian, or if its sources list no Debian archive.
    """

    def __init__(self, release: str, folder: Path, *, sources: bool = False, updates: bool = True) -> None:
        if (distribution := release_field("ID")) != "debian":
            raise MissingError(
                f"Debian's packages are needed, but /etc/os-release has ID={distribution or 'none'}",
                "run Hourglass in a container of Debian, or install its wheel, which contains kernel and tools",
            )
        derived = derive(machine_sources(), machine_codename(), release, "deb deb-src" if sources else "deb", updates)
        self.folder = folder
        self.remedy = f"add Debian's {release} to /etc/apt/sources.list.d"
        if not derived:
            raise MissingError(
                f"this machine's package sources have no suite of Debian that contains {release}", self.remedy
            )
        for name in ("lists/partial", "cache/archives/partial", "parts", "packages"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "parts" / "derived.sources").write_text(derived)
        (folder / "status").touch()
        self.update = self.apt("update")

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Download the release's current packages. Raises DownloadError with apt's messages: if the index could not be
        read, those about the index alone, since apt then locates no package."""
        result = self.apt("download", *packages)
        files = [path for name in packages for path in sorted((self.folder / "packages").glob(f"{name}_*.deb"))[-1:]]
        if result.returncode or len(files) < len(packages):
            reachable = not self.update.returncode or _GONE.search(self.update.stderr)
            output = (self.update.stderr + (result.stderr if reachable else "")).splitlines()
            messages = [line for line in output if line.startswith(("E:", "Err"))][-6:]
            raise DownloadError(packages, messages, self.remedy)
        return files

    def apt(self, *arguments: str, target: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run apt-get for this release alone, without the machine's installed packages, preferences and pins. Downloads
        go to `target`, by default to folder/packages."""
        folder = self.folder
        options = {
            "Dir::State::Lists": folder / "lists",
            "Dir::State::status": folder / "status",
            "Dir::Cache": folder / "cache",
            "Dir::Etc::SourceList": "/dev/null",
            "Dir::Etc::SourceParts": folder / "parts",
            "Dir::Etc::Preferences": "/dev/null",
            "Dir::Etc::PreferencesParts": "/dev/null",
            "APT::Default-Release": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
        }
        if os.geteuid() == 0:
            options["APT::Sandbox::User"] = "root"
        command = ["apt-get", "-q", *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
        return subprocess.run(
            [*command, *arguments], cwd=target or folder / "packages", text=True, capture_output=True, check=False,
            env=os.environ | {"LC_ALL": "C"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
