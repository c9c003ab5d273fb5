# SPDX-License-Identifier: Apache-2.0
"""The reference of the command line: the help of each command, as the typer app prints it."""

from collections.abc import Iterator
from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive

from hourglass.cli.commands import app

WIDTH = 88


class Commands(Directive):  # type: ignore[misc]  # docutils has no types
    """`{commands}`: a section for each command of `hourglass`, with its help."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        return [section(path, help_text) for path, help_text in helps()]


def helps() -> Iterator[tuple[str, str]]:
    """Yield each command with its help: "hourglass", "hourglass run", "hourglass kernel build" …"""
    root = typer.main.get_command(app)
    yield from _helps(root, "hourglass", None)


def _helps(command: Any, name: str, parent: Any) -> Iterator[tuple[str, str]]:
    context = command.context_class(
        command, info_name=name, parent=parent, max_content_width=WIDTH, terminal_width=WIDTH
    )
    yield context.command_path, str(command.get_help(context))
    for child in command.list_commands(context) if hasattr(command, "list_commands") else []:
        if not command.get_command(context, child).hidden:
            yield from _helps(command.get_command(context, child), child, context)


def section(path: str, help_text: str) -> nodes.section:
    """Return a section with the help of a command as it appears in a terminal."""
    result = nodes.section(ids=[nodes.make_id(path)])
    result += nodes.title(text=path)
    result += nodes.literal_block(help_text, help_text, language="text")
    return result
