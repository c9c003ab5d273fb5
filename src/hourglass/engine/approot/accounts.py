# SPDX-License-Identifier: Apache-2.0
"""Users and groups of a root of Debian's packages: Debian's own, and those that the packages' scripts would add for
what they install (`tcpdump` drops its rights to one, daemons run as one), with numbers in the order of their names.

They are read from what a package would run, `postinst`, and from `sysusers.d` where it has that. What a script
computes, but for a plain variable, is not known.
"""

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FIRST = 100
"""The first number that Debian gives to what packages add."""

NOBODY = 65534
HOME, SHELL = "/nonexistent", "/usr/sbin/nologin"

NAME = re.compile(r"[a-z_][a-z0-9_.-]*")
_SET = re.compile(r"^\s*(\w+)=[\"']?([\w.-]+)[\"']?\s*$", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")
_WITH_VALUE = {
    "--home": "home", "--home-dir": "home", "-d": "home", "--shell": "shell", "-s": "shell", "--ingroup": "group",
    "--gid": "group", "-g": "group", "--comment": "", "-c": "", "--gecos": "", "--uid": "", "-u": "", "--groups": "",
    "-G": "", "--conf": "", "--root": "", "--prefix": "", "-R": "", "-P": "",
}  # fmt: skip
"""Options of adduser and useradd that have one, and what of it is taken."""


@dataclass(frozen=True)
class Account:
    """A group, and unless it is one alone, a user. `group`: the user's, its own by default."""

    name: str
    user: bool = True
    group: str = ""
    home: str = HOME
    shell: str = SHELL


def write(path: Path, scripts: Iterable[str]) -> None:
    """/etc/passwd and /etc/group of the root at `path`: base-passwd's, and what the scripts ask for."""
    for name in ("passwd", "group"):
        shutil.copy(path / "usr/share/base-passwd" / f"{name}.master", path / "etc" / name)
    snippets = sorted((path / "usr/lib/sysusers.d").glob("*.conf"))
    wanted = [one for script in scripts for one in asked(script)]
    wanted += [one for snippet in snippets for one in declared(snippet.read_text("utf-8"))]
    numbers, there = _known(path / "etc/group"), _known(path / "etc/passwd")
    groups = {one.name for one in wanted if not one.user or one.group in {"", one.name}}
    new = {name: FIRST + place for place, name in enumerate(sorted(groups - numbers.keys()))}
    numbers |= new
    users = {one.name: one for one in reversed(wanted) if one.user and one.name not in there}
    with (path / "etc/group").open("a") as file:
        file.writelines(f"{name}:x:{number}:\n" for name, number in new.items())
    with (path / "etc/passwd").open("a") as file:
        for place, (name, one) in enumerate(sorted(users.items())):
            group = numbers.get(one.group or name, NOBODY)
            file.write(f"{name}:x:{FIRST + place}:{group}::{one.home}:{one.shell}\n")


def asked(script: str) -> Iterator[Account]:
    """What a `postinst` adds with adduser, useradd, addgroup, groupadd as accounts of the system."""
    values = dict(_SET.findall(script))
    for line in script.replace("\\\n", " ").splitlines():
        found = re.search(r"\b(adduser|useradd|addgroup|groupadd)\s([^;|&)]*)", line)
        if not found or line.lstrip().startswith("#"):
            continue
        try:
            words = shlex.split(_VARIABLE.sub(lambda one: values.get(one[1], one[0]), found[2]), comments=True)
        except ValueError:
            continue
        if ("--system" in words or "-r" in words) and (account := _account(found[1], words)):
            yield account


def _account(tool: str, words: list[str]) -> Account | None:
    """What the words of a tool name; None: nothing that is known."""
    taken: dict[str, str] = {}
    names, rest = [], iter(words)
    for word in rest:
        option, equals, value = word.partition("=")
        if option in _WITH_VALUE:
            taken[_WITH_VALUE[option]] = value if equals else next(rest, "")
        elif not word.startswith("-"):
            names.append(word)
    if len(names) != 1 or not NAME.fullmatch(names[0]):
        return None
    if tool in {"addgroup", "groupadd"}:
        return Account(names[0], user=False)
    group = taken.get("group") or ("" if tool == "useradd" or "--group" in words else "nogroup")
    return Account(names[0], True, group, taken.get("home", HOME), taken.get("shell", SHELL))


def declared(snippet: str) -> Iterator[Account]:
    """What a file of sysusers.d declares: lines `u NAME ID GECOS HOME SHELL` and `g NAME ID`."""
    for line in snippet.splitlines():
        kind, name, *rest = [*shlex.split(line, comments=True), *[""] * 6][:6]
        if kind.rstrip("!") not in {"u", "g"} or not NAME.fullmatch(name):
            continue
        home, shell = (given if given.startswith("/") else "" for given in rest[2:4])
        yield Account(name, kind.startswith("u"), "", home or HOME, shell or SHELL)


def _known(path: Path) -> dict[str, int]:
    """The numbers of a file's names."""
    lines = (line.split(":") for line in path.read_text().splitlines() if line)
    return {words[0]: int(words[2]) for words in lines}
