# SPDX-License-Identifier: Apache-2.0
"""Any input gives a scenario or an InputError of one line per mistake; any scenario gives a plan or an InputError.

The cases are seeded: a failure names its seed.
"""

import copy
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from hourglass.contract.plan import Plan
from hourglass.errors import InputError
from hourglass.plan import build
from hourglass.resources import PRESETS, SCENARIOS
from hourglass.scenario import Scenario, load
from hourglass.scenario.blame import MISTAKES_MAX

from .able import ALL

TEXTS = [path.read_bytes() for path in sorted(SCENARIOS.glob("*.toml"))]
SMALL = [text for text in TEXTS if len(text) < 2000]
EXPANDED = [load(path.stem).model_dump(mode="json") for path in sorted(SCENARIOS.glob("*.toml"))]
PIECES = [
    b"nan", b"-inf", b"1e400", b"0x" + b"f" * 99, b"9" * 40, b"''", b'"\\n"', b'"\\u0000"', b"[]", b"{}", b"[[]]",
    b"true", b"1979-05-27", b'"0"', b'"1mbit"', b'"10ms"', b'"100%"', b"0", b"-1", b"1.5",
    b'"client:eth0"', b'"off"', b'"\xff"',
    b'["a:b", "c:d"]', b'[[1, "1mbit"]]', b'"../x"', b"[[[[[[[[1]]]]]]]]", b"\r", b"#", b"]", b'"""',
]  # fmt: skip
TEXT_VALUES = [
    "", "a b", "1mbit", "10ms", "64KiB", "0.1%", "client", "server", "router:eth1", "off", "default", "bbr", "fq",
    "tcp_ndown",
]  # fmt: skip
VALUES: list[Any] = [
    *TEXT_VALUES, None, True, 0, -1, 1, 2**63, 2**64, 10**400, 1.5, float("nan"), float("inf"), "\n", "\0", "é",
    "\ud800", "x" * 999, [], [[]], {}, [1, 2], [1], {"a": {"b": []}}, b"bytes", object(), {1: 2}, (1, 2), {1, 2},
    [[0, "1mbit"]], ["10.0.0.1/8", "10.9.9.9/8"],
]  # fmt: skip
KEYS = [
    "stack.cc", "stack.client.tsq", "testbed.link.0.rate", "testbed.link.0.trace", "test.name", "seed", "testbed",
    "testbed.link.0.addresses", "testbed.node.0", "stack.sysctl.net.ipv4.x", "test.flow_cc", "", "a.b",
    "testbed.preset",
]  # fmt: skip


def answer(source: Any, changes: list[str]) -> None:
    """Load and plan. Raises every error except an InputError with a line for each mistake."""
    messages, mistakes = list[str](), 0
    try:
        loaded = load(source, changes)
        assert isinstance(loaded, Scenario)
        assert load(loaded) == loaded
        assert isinstance(build(loaded, ALL), Plan)
    except InputError as error:
        messages, mistakes = str(error).split("\n"), len(error.mistakes)
    assert len(messages) == mistakes <= MISTAKES_MAX
    assert all(len(line) < 2000 for line in messages)


def broken_text(chance: random.Random) -> bytes:
    """Return a built-in file with one to four mutations."""
    text = chance.choice(SMALL if chance.random() < 0.9 else TEXTS)
    for _ in range(chance.randint(1, 4)):
        text = chance.choice([flip_byte, repeat_line, drop_line, swap_lines, put_piece, put_value])(text, chance)
    return text


def flip_byte(text: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(text) + 1)
    return text[:position] + bytes([chance.randrange(256)]) + text[position + 1 :]


def repeat_line(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    lines.insert(chance.randrange(len(lines)), chance.choice(lines))
    return b"".join(lines)


def drop_line(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def swap_lines(text: bytes, chance: random.Random) -> bytes:
    lines = text.splitlines(keepends=True) or [b""]
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def put_piece(text: bytes, chance: random.Random) -> bytes:
    position = chance.randrange(len(text) + 1)
    return text[:position] + chance.choice(PIECES) + text[position:]


def put_value(text: bytes, chance: random.Random) -> bytes:
    """Return the text with another value after an equals sign."""
    lines = text.splitlines()
    numbers = [number for number, line in enumerate(lines) if b" = " in line]
    if numbers:
        number = chance.choice(numbers)
        lines[number] = lines[number].split(b" = ")[0] + b" = " + chance.choice(PIECES)
    return b"\n".join(lines)


def broken_data(chance: random.Random) -> dict[str, Any]:
    """Return a resolved built-in with one to three values replaced, keys added or dropped."""
    data: dict[str, Any] = copy.deepcopy(chance.choice(EXPANDED))
    for _ in range(chance.randint(1, 3)):
        table: Any = data
        while True:
            keys = list(table) if isinstance(table, dict) else list(range(len(table)))
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(table[key], dict | list) and table[key] and chance.random() < 0.8:
                table = table[key]
                continue
            mutate(table, key, chance)
            break
    return data


def mutate(table: Any, key: Any, chance: random.Random) -> None:
    kind = chance.randrange(6)
    if kind == 0 and isinstance(table, dict):
        table[chance.choice(["x", "", "node", "trace", "\n", "nodes", "client"])] = chance.choice(VALUES)
    elif kind == 1:
        del table[key]
    elif kind == 2 and isinstance(table, list):
        table.append(copy.deepcopy(table[key]))
    else:
        table[key] = chance.choice(VALUES)


def change(chance: random.Random) -> str:
    """Return an argument of --set."""
    value = chance.choice(PIECES).decode("latin-1") if chance.random() < 0.7 else chance.choice(TEXT_VALUES)
    return f"{chance.choice(KEYS)}={value}" if chance.random() < 0.97 else value


@pytest.mark.parametrize("seed", range(8))
def test_broken_files_are_refused_in_one_line(seed: int, tmp_path: Path) -> None:
    file = tmp_path / "case.toml"
    for number in range(500):
        chance = random.Random(f"file {seed} {number}")
        file.write_bytes(broken_text(chance))
        guard(f"file {seed} {number}", file, [])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_broken_tables_and_changes_are_refused_in_one_line(seed: int) -> None:
    for number in range(500):
        chance = random.Random(f"table {seed} {number}")
        data = broken_data(chance)
        changes = [change(chance) for _ in range(chance.choice([0, 0, 1, 2]))]
        guard(f"table {seed} {number}", data, changes)


def guard(name: str, source: Any, changes: list[str]) -> None:
    """Name the failed case."""
    try:
        answer(source, changes)
    except Exception as error:
        raise AssertionError(f"case {name!r}") from error


def test_the_pieces_are_not_all_refused() -> None:
    """Some broken files have to remain scenarios. Otherwise the fuzz would prove little."""
    accepted = 0
    for number in range(200):
        chance = random.Random(f"file 0 {number}")
        try:
            load(tomllib.loads(broken_text(chance).decode()))
            accepted += 1
        except (InputError, ValueError):
            continue
    assert 10 < accepted < 190


def test_presets_are_data_like_any_other() -> None:
    for path in PRESETS.glob("*.toml"):
        assert isinstance(build(load(path), ALL), Plan)
