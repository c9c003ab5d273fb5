# SPDX-License-Identifier: Apache-2.0
"""How `--help` is laid out: usage in one line, arguments and options by their own words, commands in groups, examples.

A command's group is its `rich_help_panel`, its examples are its `epilog`: lines as one types them. What only a heavy
import knows (the kinds of pictures) is asked when that command's help is.
"""

from collections.abc import Callable
from typing import Any

from typer.core import TyperCommand, TyperGroup

Rows = list[tuple[str, str]]


def _kinds() -> Rows:
    from hourglass.cli import pictures

    return [(name, kind.description) for name, kind in pictures.plots().KINDS.items()]


FURTHER: dict[str, tuple[str, Callable[[], Rows]]] = {"plot": ("Kinds", _kinds)}
"""By command: a further list in its help."""


class Command(TyperCommand):
    """A command with our help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _head(self, ctx, formatter, " ".join([*(one.metavar for one in _arguments(self)), "[OPTIONS]"]))
        _listed(formatter, "Arguments", [(one.metavar, one.help) for one in _arguments(self)])
        if self.name in FURTHER:
            title, rows = FURTHER[self.name]
            _listed(formatter, title, rows())
        _listed(formatter, "Options", _options(self, ctx))
        _examples(self, formatter)


class Group(TyperGroup):
    """A group of commands with our help."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        _head(self, ctx, formatter, "COMMAND ...")
        panels: dict[str, Rows] = {}
        for name in self.list_commands(ctx):
            one = self.get_command(ctx, name)
            if one is not None and not one.hidden:
                panel = getattr(one, "rich_help_panel", None)
                panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append((name, _first(one.help)))
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
    """Their metavars say whether there may be several or none."""
    return [one for one in command.params if one.param_type_name == "argument"]


def _options(command: Any, ctx: Any) -> Rows:
    own = [one for one in command.params if one.param_type_name == "option"]
    return [(_written(one), _about(one)) for one in [*own, command.get_help_option(ctx)]]


def _written(option: Any) -> str:
    """ "-j, --jobs N"."""
    names = ", ".join(sorted(option.opts, key=len))
    return names if option.is_flag or option.metavar is None else f"{names} {option.metavar}"


def _about(option: Any) -> str:
    """What it is, and the default if that is a word."""
    default = f" Default: {option.default}." if isinstance(option.default, str) and not option.is_flag else ""
    return f"{option.help}{default}"


def _first(text: str | None) -> str:
    """The first sentence of a command's help."""
    return (text or "").partition("\n\n")[0].replace("\n", " ").strip()
