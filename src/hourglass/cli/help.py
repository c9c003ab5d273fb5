# SPDX-License-Identifier: Apache-2.0
"""Lay out `--help`: the usage in one line, arguments and options with their descriptions, commands in groups, examples.

The examples of a command are its `epilog`. Lists that need a heavy import (the kinds of pictures) are loaded only for
that command's help. A group's help reads the first sentences of its commands from their sources: their import takes
much longer.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cache, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

Rows = list[tuple[str, str]]
HELP_NAMES: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


def _kinds() -> Rows:
    from hourglass.cli import pictures

    return [(name, kind.description) for name, kind in pictures.plots().KINDS.items()]


MORE_LISTS: dict[str, tuple[str, Callable[[], Rows]]] = {"plot": ("Kinds", _kinds)}
"""By command: an additional list in its help."""


class CliCommand(TyperCommand):
    """A command with this layout."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _head(self, ctx, formatter, " ".join([*(argument.metavar for argument in _arguments(self)), "[OPTIONS]"]))
        _listed(formatter, "Arguments", [(argument.metavar, argument.help) for argument in _arguments(self)])
        if self.name in MORE_LISTS:
            title, rows = MORE_LISTS[self.name]
            _listed(formatter, title, rows())
        _listed(formatter, "Options", _options(self, ctx))
        _examples(self, formatter)


Commands = dict[str, tuple[str, str]]
"""By name: the title of a command's group, empty for a hidden one, and "MODULE:FUNCTION"."""
Function = TypeVar("Function", bound=Callable[..., object])


def examples(text: str, **settings: object) -> Callable[[Function], Function]:
    """Declare a function as a command, with its examples and click's settings."""

    def declared(function: Function) -> Function:
        function.__dict__.update(examples=text, settings=settings)
        return function

    return declared


def flat(function: Callable[..., object]) -> Callable[..., object]:
    """Return a function that has the fields of a dataclass as parameters, instead of a parameter of that type."""
    parameters = inspect.signature(function, eval_str=True).parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}
    if not groups:
        return function

    def call(**values: Any) -> object:
        grouped = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        return function(**values, **grouped)

    flattened = [
        each.replace(kind=each.KEYWORD_ONLY)
        for parameter in parameters
        for each in (
            inspect.signature(groups[parameter.name]).parameters.values() if parameter.name in groups else [parameter]
        )
    ]
    update_wrapper(call, function)
    call.__annotations__ = {each.name: each.annotation for each in flattened}
    call.__dict__["__signature__"] = inspect.Signature(flattened)
    return call


@cache
def _command(name: str, panel: str, position: str) -> Any:
    """Import a function and return its command."""
    module, _, attribute = position.partition(":")
    function = getattr(import_module(f"hourglass.cli.{module}"), attribute)
    info = CommandInfo(
        name=name, cls=CliCommand, callback=flat(function), epilog=getattr(function, "examples", None),
        hidden=not panel, context_settings=HELP_NAMES | getattr(function, "settings", {}),
    )  # fmt: skip
    return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode=None)


@cache
def _listed_command(name: str, panel: str, position: str) -> CliCommand:
    """Return a command for a list: its help is the first sentence of the docstring, read from the source."""
    if not panel:
        return CliCommand(name, hidden=True)
    module, _, attribute = position.partition(":")
    source = Path(__file__).with_name(f"{module}.py").read_text("utf-8")
    match = re.search(rf'^def {attribute}\(.*?^    """(.*?)(?:\n\n|""")', source, re.MULTILINE | re.DOTALL)
    assert match, position
    sentence = " ".join(match[1].split())
    return CliCommand(name, help=sentence, short_help=sentence, rich_help_panel=panel)


class LazyGroup(TyperGroup):
    """A group of commands with this layout. A command is imported when it is called."""

    table: ClassVar[Commands]
    is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, then those of nested groups."""
        return [*self.table, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command."""
        if cmd_name not in self.table:
            return super().get_command(ctx, cmd_name)
        return (_listed_command if self.is_listing else _command)(cmd_name, *self.table[cmd_name])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command of the first word. Its error suggests names that are alike."""
        nested = self.commands
        named: dict[str, Any] = dict.fromkeys(name for name, (panel, _) in self.table.items() if panel)
        self.commands = {**named, **nested}
        try:
            return super().resolve_command(ctx, args)
        finally:
            self.commands = nested

    @contextmanager
    def _list(self) -> Iterator[None]:
        self.is_listing = True
        try:
            yield
        finally:
            self.is_listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Complete names without imports."""
        with self._list():
            return super().shell_complete(ctx, incomplete)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _head(self, ctx, formatter, "COMMAND ...")
        panels: dict[str, Rows] = {}
        with self._list():
            commands = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        for command in commands:
            if not command.hidden:
                panels.setdefault(command.rich_help_panel, []).append((command.name, _first(command.help)))
        widest = max(len(name) for rows in panels.values() for name, _ in rows)
        for panel, rows in panels.items():
            _listed(formatter, panel, [(name.ljust(widest), about) for name, about in rows])
        _listed(formatter, "Options", _options(self, ctx))
        _examples(self, formatter)


def _head(command: Any, ctx: Any, formatter: Any, usage: str) -> None:
    formatter.write_usage(ctx.command_path, usage)
    command.format_help_text(ctx, formatter)


def _listed(formatter: Any, title: str, rows: Rows) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl(rows)


def _examples(command: Any, formatter: Any) -> None:
    if command.epilog:
        with formatter.section("Examples"):
            for line in command.epilog.splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _arguments(command: Any) -> list[Any]:
    """Return the arguments. Their metavars say whether they may repeat or be absent."""
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _options(command: Any, ctx: Any) -> Rows:
    options = [option for option in command.params if option.param_type_name == "option" and not option.hidden]
    return [(_option_names(option), _description(option)) for option in [*options, command.get_help_option(ctx)]]


def _option_names(option: Any) -> str:
    """Return "-j, --jobs N". Further long names are those of earlier releases."""
    short = [name for name in option.opts if not name.startswith("--")]
    names = ", ".join([*short, *[name for name in option.opts if name not in short][:1]])
    return names if option.is_flag or option.metavar is None else f"{names} {option.metavar}"


def _description(option: Any) -> str:
    """Return the option's description, with its default if that is a word."""
    has_word = isinstance(option.default, str) and option.default and not option.is_flag
    return f"{option.help} Default: {option.default}." if has_word else str(option.help)


def _first(text: str | None) -> str:
    """Return the first sentence of a command's help."""
    return (text or "").partition("\n\n")[0].replace("\n", " ").strip()
