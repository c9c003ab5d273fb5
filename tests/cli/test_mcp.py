# SPDX-License-Identifier: Apache-2.0
"""`hourglass mcp` as a client of the Model Context Protocol sees it, over standard input and output."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver", reason="the package mcp 2 is missing")
mcp = pytest.importorskip("mcp")

SERVER = ["-c", "from hourglass.cli import main; main()", "mcp"]


async def tools_and_results(folder: Path, *calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Return the tools of a server, and the results of calls."""
    server = mcp.StdioServerParameters(command=sys.executable, args=SERVER, cwd=folder)
    async with mcp.stdio_client(server) as (reading, writing), mcp.ClientSession(reading, writing) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        return tools, [await session.call_tool(name, arguments) for name, arguments in calls]


def text(result: Any) -> str:
    return str(result.content[0].text)


def test_wrong_input_is_the_error_of_a_tool(tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int nothing;\n")
    tools, (unknown, option, failed) = asyncio.run(
        tools_and_results(
            tmp_path,
            ("run", {"scenario": "L10OM", "directory": "a"}),
            ("explain", {"directory": "--version"}),
            ("score", {"candidate": "empty.c"}),
        )
    )
    assert [tool.name for tool in tools] == ["run", "score", "compare", "explain"]
    assert all(tool.description for tool in tools)
    assert unknown.is_error
    assert 'Did you mean "L10M"?' in text(unknown)
    assert option.is_error
    assert "--version" in text(option)
    assert not failed.is_error
    assert failed.structured_content["failure"]["code"] == "input"


@pytest.mark.guest
def test_runs_are_made_compared_and_explained(tmp_path: Path) -> None:
    short = ["test.length=1", "measure.packets=0"]
    _, (first, second, compared, explained) = asyncio.run(
        tools_and_results(
            tmp_path,
            ("run", {"scenario": "L10M", "directory": "a", "settings": short}),
            ("run", {"scenario": "L10M", "directory": "b", "settings": [*short, "stack.qdisc=pfifo_fast"]}),
            ("compare", {"directories": ["a", "b"]}),
            ("explain", {"directory": "b", "what_if": False}),
        )
    )
    assert not any(result.is_error for result in (first, second, compared, explained))
    assert 5 < first.structured_content["totals"]["upload_mbps"] < 10
    assert (tmp_path / "b/records.arrows").is_file()
    assert compared.structured_content["figures"]
    assert explained.structured_content["sentences"]


@pytest.mark.guest
def test_a_result_has_the_messages_of_the_command(tmp_path: Path) -> None:
    (folder := tmp_path / "here").mkdir()
    (tmp_path / "their.toml").write_text(
        '[testbed]\nnode = [{name = "a"}]\n[[app]]\nname = "p"\nnode = "a"\nroot = "/"\ncommand = ["true"]\n'
    )
    _, (result,) = asyncio.run(tools_and_results(folder, ("run", {"scenario": "../their.toml", "directory": "run"})))
    assert not result.is_error, text(result)
    assert result.structured_content["messages"][0].startswith("hourglass: ../their.toml is not from this folder: ")
