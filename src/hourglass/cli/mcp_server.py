# SPDX-License-Identifier: Apache-2.0
"""Implement `hourglass mcp`: a server of the Model Context Protocol, whose tools are commands with `--json`.

A tool starts the command, so it has the same checks, messages and objects, and ends with a cancelled request. The
messages of a command that fails are the error of the tool; otherwise they are part of the result.
"""

import asyncio
import json
import sys
from typing import Any

from hourglass import __version__
from hourglass.cli.exit_status import MISSED
from hourglass.cli.help import examples
from hourglass.errors import MissingError, installing

HOURGLASS = [sys.executable, "-c", "from hourglass.cli import main; main()"]
MESSAGES = "messages"
"""The key of a result with the lines that the command printed as messages, such as the code of a stranger's scenario
that it executed."""
INSTRUCTIONS = (
    "Runs of the real Linux network stack in virtual time. Equal scenarios and seeds give equal bytes. "
    "Paths are relative to the folder in which this server was started."
)


async def run(scenario: str, directory: str, settings: list[str] | None = None, seed: int = 1) -> dict[str, Any]:
    """Run a scenario and return its summary: throughput, latency, drops, queues.

    scenario: a built-in name such as L100M, or the path of a TOML file. directory: for the run, which compare and
    explain take. settings: keys and values, such as stack.cc=bbr or test.length=5.
    """
    changes = [f"--set={setting}" for setting in settings or []]
    return await _called(["run", "--no-picture", f"--out={directory}", f"--seed={seed}", *changes], scenario)


async def score(candidate: str, study: str = "score", held_out: bool = False, seeds: str = "") -> dict[str, Any]:
    """Score a congestion control from 0 to 100, with its parts, or with the reason why it failed.

    candidate: the path of a C file, or the name of a built-in one. seeds: such as 1-3; default: the study's.
    """
    options = [*(["--held-out"] if held_out else []), *([f"--seeds={seeds}"] if seeds else [])]
    return await _called(["score", f"--study={study}", *options], candidate)


async def compare(directories: list[str]) -> dict[str, Any]:
    """Compare the figures of runs with those of the first: values, differences in %, and their significance."""
    return await _called(["compare"], *directories)


async def explain(directory: str, what_if: bool = True) -> dict[str, Any]:
    """Explain what limits a run, and where its latency is. what_if: also try changes that may help, in further runs."""
    return await _called(["explain", *([] if what_if else ["--no-what-if"])], directory)


TOOLS = (run, score, compare, explain)


@examples("""\
hourglass mcp""")
def mcp() -> int:
    """Serve run, score, compare and explain to a program that speaks the Model Context Protocol.

    It uses standard input and output, until the input ends.
    """
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError:
        raise MissingError("hourglass mcp needs the Python package mcp", installing("hourglass-net[mcp]")) from None
    server = MCPServer("hourglass", instructions=INSTRUCTIONS, version=__version__)
    for tool in TOOLS:
        server.tool()(tool)
    server.run("stdio")
    return 0


async def _called(command: list[str], *arguments: str) -> dict[str, Any]:
    """Return the object that a command prints, with its messages. Raises `ToolError` with its messages."""
    from mcp.server.mcpserver.exceptions import ToolError

    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *HOURGLASS, *command, "--json", "--", *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
    )
    try:
        output, messages = await process.communicate()
    finally:
        if process.returncode is None:
            process.terminate()
    text = messages.decode(errors="replace").strip()
    if process.returncode not in (0, MISSED):
        raise ToolError(text)
    result: dict[str, Any] = json.loads(output)
    if text:
        result[MESSAGES] = text.splitlines()
    return result
