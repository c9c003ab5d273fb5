# SPDX-License-Identifier: Apache-2.0
"""Downloads Debian packages of another release without root and without touching the machine's own apt.

The machine's own package sources are taken as they are, with the release's codename replaced, so a mirror or a proxy
that the machine uses is used here too. Lists, caches and sources live in a folder of ours.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from hourglass.errors import HourglassError, MissingError

TOOLS = {"apt-get": "apt", "dpkg-deb": "dpkg"}
"""What fetches packages and opens them, and the packages that these come in."""

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
Stanza = dict[str, str]

GONE = re.compile(r"does not have a Release file|Unable to locate package|No packages found|\b404\b")
"""What apt says of a suite or a package that is not there any more; of a network that is down it says other things."""


def machine_sources() -> list[tuple[str, str]]:
    """Name and text of every file that tells this machine's apt where packages are."""
    folder = Path("/etc/apt")
    files = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    return [(path.name, path.read_text(errors="replace")) for path in files
            if path.suffix in {".list", ".sources"} and path.is_file()]  # fmt: skip


def machine_codename() -> str:
    """VERSION_CODENAME of this machine, e.g. "bookworm"; empty where there is none."""
    release = Path("/etc/os-release")
    found = re.search(r'^VERSION_CODENAME="?(\w+)', release.read_text() if release.is_file() else "", re.MULTILINE)
    return found[1] if found else ""


def deb822_stanzas(text: str) -> list[Stanza]:
    """The stanzas of a *.sources file; field names in lower case, continuation lines kept."""
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
    """The lines of a *.list file as stanzas."""
    stanzas = []
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+\S", line)
        if found is None:
            continue
        stanza = {"types": "deb", "uris": found["uri"], "suites": found["suite"]}
        options = dict(pair.split("=", 1) for pair in (found["options"] or "").split() if "=" in pair)
        stanza |= {name: options[name] for name in ("signed-by", "trusted") if name in options}
        stanzas.append(stanza)
    return stanzas


def derive(files: Iterable[tuple[str, str]], own: str, wanted: str, types: str = "deb", updates: bool = True) -> str:
    """A *.sources text for release `wanted`, from the sources of a machine of release `own`.

    Only suites named after the machine's release count (`bookworm`, `bookworm-updates`, `bookworm-security`): sources
    that do not follow the distribution's releases are left out. Without `updates`, and of backports, the release's own
    suite alone counts. Empty when nothing is left.
    """
    alone = not updates or "-" in wanted
    stanzas, followed = [], {own} if alone else {own, f"{own}-updates", f"{own}-security"}
    for name, text in files:
        for stanza in deb822_stanzas(text) if name.endswith(".sources") else one_line_stanzas(text):
            suites = [wanted + suite.removeprefix(own) for suite in stanza.get("suites", "").split()
                      if suite in followed]  # fmt: skip
            if suites and "deb" in stanza.get("types", "").split() and stanza.get("enabled", "yes") != "no":
                stanzas.append(render(stanza, suites, types))
    return "\n".join(stanzas)


def render(stanza: Stanza, suites: list[str], types: str) -> str:
    """One stanza for other suites. A keyring of one Debian release gives way to that of all releases."""
    signed = stanza.get("signed-by", "")
    if signed.startswith(str(KEYRING.parent / "debian-archive-")) and KEYRING.exists():
        signed = str(KEYRING)
    lines = [f"Types: {types}", f"URIs: {stanza.get('uris', '')}", f"Suites: {' '.join(suites)}", "Components: main"]
    lines += [f"Signed-By: {signed}"] if signed else []
    lines += [f"Trusted: {stanza['trusted']}"] if "trusted" in stanza else []
    return "\n".join(lines) + "\n"


def last_words(problem: HourglassError) -> str:
    """apt's last line in what `Archive.download` raised."""
    return str(problem).splitlines()[-2].strip()


class Archive:
    """The packages of one Debian release, with apt's state in `folder`, which the machine's own state does not touch.

    `sources`: the source packages too. `updates`: what came after the last point release too. Raises MissingError when
    the machine's sources tell no Debian archive.
    """

    def __init__(self, release: str, folder: Path, *, sources: bool = False, updates: bool = True) -> None:
        derived = derive(machine_sources(), machine_codename(), release, "deb deb-src" if sources else "deb", updates)
        self.folder = folder
        self.remedy = f"add Debian's {release} to /etc/apt/sources.list.d"
        if not derived:
            raise MissingError(
                f"this machine's package sources name no suite of Debian to fetch {release} from", self.remedy
            )
        for name in ("lists/partial", "cache/archives/partial", "parts", "packages"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / "parts" / "derived.sources").write_text(derived)
        (folder / "status").touch()
        self.update = self.apt("update")

    def download(self, packages: Sequence[str]) -> list[Path]:
        """Downloads packages as they are now in the release. Raises HourglassError with apt's words."""
        result = self.apt("download", *packages)
        found = [path for name in packages for path in sorted((self.folder / "packages").glob(f"{name}_*.deb"))[-1:]]
        if result.returncode or len(found) < len(packages):
            said = (self.update.stderr + result.stderr).splitlines()
            words = [line for line in said if line.startswith(("E:", "Err"))][-6:]
            raise HourglassError(
                "\n".join([f"cannot download {', '.join(packages)}; apt says:", *words, f"or {self.remedy}"])
            )
        return found

    def apt(self, *arguments: str, place: Path | None = None) -> subprocess.CompletedProcess[str]:
        """apt-get for this release alone: what the machine has installed, prefers or pins does not count.
        Downloads go to `place`, else to folder/packages."""
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
            [*command, *arguments], cwd=place or folder / "packages", text=True, capture_output=True, check=False,
            env=os.environ | {"LC_ALL": "C"}, stdin=subprocess.DEVNULL,
        )  # fmt: skip
