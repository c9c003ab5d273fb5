# SPDX-License-Identifier: Apache-2.0
"""Create users and groups of a root of Debian packages: Debian's, and those that package scripts would add (`tcpdump`
drops its rights to one, daemons run as one). Numbers follow the order of the names.

They are read from `preinst`, `postinst` and `sysusers.d`. Words that a script computes, except plain variables, are
ignored."""

import contextlib
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

FIRST = 100
"""The first number that Debian gives to the accounts of packages."""

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
"""Options of adduser and useradd with a value, and the field that the value sets."""


@dataclass(frozen=True)
class Account:
    """A group, or a user with a group. `group`: the user's, by default of the same name."""

    name: str
    user: bool = True
    group: str = ""
    home: str = HOME
    shell: str = SHELL


def write(path: Path, scripts: Iterable[str]) -> None:
    """Write /etc/passwd and /etc/group of the root at `path`: base-passwd's entries, and those of the scripts."""
    for name in ("passwd", "group"):
        shutil.copy(path / "usr/share/base-passwd" / f"{name}.master", path / "etc" / name)
    snippets = sorted((path / "usr/lib/sysusers.d").glob("*.conf"))
    scripts = list(scripts)
    accounts = [account for script in scripts for account in added_accounts(script)]
    accounts += [account for snippet in snippets for account in declared_accounts(snippet.read_text("utf-8"))]
    numbers, users_present = _numbers(path / "etc/group"), _numbers(path / "etc/passwd")
    groups = {account.name for account in accounts if not account.user or account.group in {"", account.name}}
    new = {name: FIRST + position for position, name in enumerate(sorted(groups - numbers.keys()))}
    numbers |= new
    users = {
        account.name: account for account in reversed(accounts) if account.user and account.name not in users_present
    }
    members: dict[str, set[str]] = {}
    for user, group in (pair for script in scripts for pair in memberships(script)):
        if user in users or user in users_present:
            members.setdefault(group, set()).add(user)
    lines = (path / "etc/group").read_text().splitlines() + [f"{name}:x:{number}:" for name, number in new.items()]
    joined = ((line, sorted(members.get(line.partition(":")[0], ()))) for line in lines)
    (path / "etc/group").write_text("".join(f"{line}{','.join(names)}\n" for line, names in joined))
    with (path / "etc/passwd").open("a") as file:
        for position, (name, account) in enumerate(sorted(users.items())):
            number = numbers.get(account.group or name, NOBODY)
            file.write(f"{name}:x:{FIRST + position}:{number}::{account.home}:{account.shell}\n")


def added_accounts(script: str) -> Iterator[Account]:
    """Yield the system accounts that a script adds with adduser, useradd, addgroup or groupadd."""
    for tool, arguments in _commands(script, "adduser|useradd|addgroup|groupadd"):
        if ("--system" in arguments or "-r" in arguments) and (account := _account(tool, arguments)):
            yield account


def memberships(script: str) -> Iterator[tuple[str, str]]:
    """Yield the users and groups that a script joins: `adduser USER GROUP`, `usermod -aG GROUPS USER`."""
    for tool, arguments in _commands(script, "adduser|usermod"):
        words = [word for word in arguments if not word.startswith(("-", "$"))]
        appends = tool == "usermod" and any(re.fullmatch(r"-a?G|--groups", word) for word in arguments)
        if len(words) != 2 or "--system" in arguments or (tool == "usermod" and not appends):
            continue
        groups, user = words if appends else words[::-1]
        yield from ((user, group) for group in groups.split(","))


def _commands(script: str, tools: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the calls of tools, with the values of plain variables."""
    values = dict(_SET.findall(script))
    for line in script.replace("\\\n", " ").splitlines():
        command = re.search(rf"\b({tools})\s([^;|&)]*)", line)
        if not command or line.lstrip().startswith("#"):
            continue
        with contextlib.suppress(ValueError):
            text = _VARIABLE.sub(lambda variable: values.get(variable[1], variable[0]), command[2])
            yield command[1], shlex.split(text, comments=True)


def _account(tool: str, arguments: list[str]) -> Account | None:
    """Return the account of a tool's arguments; None if it is unknown."""
    values: dict[str, str] = {}
    names, remaining = [], iter(arguments)
    for argument in remaining:
        option, equals, value = argument.partition("=")
        if option in _WITH_VALUE:
            values[_WITH_VALUE[option]] = value if equals else next(remaining, "")
        elif not argument.startswith(("-", "$")):
            names.append(argument)
    if len(names) != 1 or not NAME.fullmatch(names[0]):
        return None
    if tool in {"addgroup", "groupadd"}:
        return Account(names[0], user=False)
    group = values.get("group") or ("" if tool == "useradd" or "--group" in arguments else "nogroup")
    return Account(names[0], True, group, values.get("home", HOME), values.get("shell", SHELL))


def declared_accounts(snippet: str) -> Iterator[Account]:
    """Yield the accounts of a file of sysusers.d: lines `u NAME ID GECOS HOME SHELL` and `g NAME ID`."""
    for line in snippet.splitlines():
        kind, name, *fields = [*shlex.split(line, comments=True), *[""] * 6][:6]
        if kind.rstrip("!") not in {"u", "g"} or not NAME.fullmatch(name):
            continue
        home, shell = (path if path.startswith("/") else "" for path in fields[2:4])
        yield Account(name, kind.startswith("u"), "", home or HOME, shell or SHELL)


def _numbers(path: Path) -> dict[str, int]:
    """Return the numbers by name in a file."""
    lines = (line.split(":") for line in path.read_text().splitlines() if line)
    return {fields[0]: int(fields[2]) for fields in lines}
