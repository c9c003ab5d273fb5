# SPDX-License-Identifier: Apache-2.0
"""Flent files of a stranger: bombs, impossible numbers and random files. Bad input is one line."""

import bz2
import contextlib
import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hourglass
from hourglass.errors import InputError
from hourglass.estimation import estimate_link
from hourglass.flent import data_file, document
from tests.clocks import limited_cpu

SOUND: dict[str, Any] = {
    "version": 4,
    "x_values": [0.0, 0.5, 1.0, 1.5],
    "results": {"TCP upload": [None, 8.0, 8.0, 16.0], "Ping (ms) ICMP": [1.0] * 4},
    "raw_values": {
        "TCP upload": [{"t": 1000.0 + i / 2, "val": 8.0, "dur": 0.5} for i in range(4)],
        "Ping (ms) ICMP": [{"t": 1000.0 + i / 2, "val": 10.0 + i, "seq": i} for i in range(4)],
        "VoIP": [{"t": 1001.0, "seq": 0, "val": 40.0, "owd_up": 20.0}, {"t": 1001.02, "seq": 1, "lost": True}],
        "HTTP latency": [{"t": 1001.5, "val": 250.0, "bytes": 100}],
    },
    "metadata": {
        "NAME": "rrul", "HOST": "far", "T0": "1970-01-01T00:16:40.000000Z", "LENGTH": 1, "TOTAL_LENGTH": 2,
        "STEP_SIZE": 0.5, "SERIES_META": {"TCP upload": {"TCP_RETRANSMIT": "7"}},
    },
}  # fmt: skip


def open_file(folder: Path, text: str | bytes, name: str = "x.flent") -> None:
    """Open the file, and read everything that tables and reports read."""
    file = folder / name
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    run = hourglass.load(file)
    run.experiment, run.streams, run.summary, run.apps  # noqa: B018
    for table in run.tables:
        run.table(table)
    with contextlib.suppress(InputError):
        estimate_link(file)


def test_the_sound_file_is_a_run(tmp_path: Path) -> None:
    open_file(tmp_path, json.dumps(SOUND))


@pytest.mark.parametrize("pack", [(gzip.compress, ".gz"), (bz2.compress, ".bz2")], ids=["gz", "bz2"])
def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Any) -> None:
    monkeypatch.setattr(data_file, "UNPACKED_MAX", 2**22)
    content = pack[0](b" " * 2**27)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="decompressed JSON is larger than 4 MiB"):
            open_file(tmp_path, content, f"x.flent{pack[1]}")
        assert tracemalloc.get_traced_memory()[1] < 2**25
    finally:
        tracemalloc.stop()


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.flent").open("wb").truncate(2**40)
    with pytest.raises(InputError, match="larger than 256 MiB"):
        hourglass.load(tmp_path / "x.flent")


@pytest.mark.parametrize(
    "content",
    [b"", b"\x1f\x8b", gzip.compress(b"{}" * 100, mtime=0)[:-9], b"\x1f\x8b\x08" + b"x" * 50, bz2.compress(b"{}")[:-5]],
)
def test_damaged_archives_are_refused(tmp_path: Path, content: bytes) -> None:
    for suffix in (".gz", ".bz2", ""):
        with pytest.raises(InputError):
            open_file(tmp_path, content, f"x.flent{suffix}")


ODD = [
    '{"a":' * 10**5, "[" * 10**6, '{"version": 4, "metadata": ' + '{"a":' * 900 + "1" + "}" * 901, "9" * 10**6,
    '{"version": 4, "metadata": {"LENGTH": 1e999}}', '{"version": 4, "metadata": {"LENGTH": ' + "9" * 400 + "}}",
    '{"version": 4, "x_values": [NaN], "metadata": {}}', '{"version": 4, "x_values": [1e300], "metadata": {}}',
    '{"version": 4, "metadata": {"STEP_SIZE": 1e-300, "LENGTH": 1000, "TOTAL_LENGTH": 1000}}',
    '{"version": 4, "metadata": {"STEP_SIZE": -1}}', '{"version": 4, "metadata": {"LENGTH": -5}}',
    '{"version": 4, "metadata": {"SERIES_META": {"a": {"TCP_RETRANSMIT": ' + "9" * 100 + "}}}}",
    '{"version": 4, "metadata": [], "results": 1}', '{"version": true, "metadata": {}}',
]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=lambda text: text[:40])
def test_impossible_measurements_are_refused(tmp_path: Path, text: str) -> None:
    with limited_cpu(5), pytest.raises(InputError) as caught:
        open_file(tmp_path, text)
    assert len(str(caught.value)) < 600


NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.sampled_from([0, -0.0, 1e-300, 1e300, 2**63, -(2**63) - 1, 2**53, 1e6, 1e10, 1e15, 0.5, 1000.0]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text(max_size=8), st.just("\ud800\x1b[2J")),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
    max_leaves=8,
)
KEYS = [
    *document.Point.model_fields,
    *map(str.upper, document.Metadata.model_fields),
    *document.Document.model_fields,
    "CONG_CONTROL",
]
SERIES = ["TCP upload", "TCP download::2", "Ping (ms) ICMP", "Ping (ms) UDP BE", "VoIP", "HTTP latency", "TCP", ""]


@st.composite
def files(draw: st.DrawFn) -> str:
    """Draw the sound file with some values exchanged, added or removed."""
    data = json.loads(json.dumps(SOUND))
    for _ in range(draw(st.integers(1, 4))):
        table, parents = data, []
        while draw(st.integers(0, 3)) and isinstance(table, dict | list) and table:
            key = draw(st.sampled_from(sorted(table) if isinstance(table, dict) else range(len(table))))
            parents.append((table, key))
            table = table[key]
        if isinstance(table, dict) and draw(st.booleans()):
            table[draw(st.sampled_from([*KEYS, *SERIES]))] = draw(VALUES)
        elif isinstance(table, list) and draw(st.booleans()):
            table.append(
                draw(st.one_of(VALUES, st.just({"t": 1e10, "val": -1e12}), st.just({"t": -1e10, "seq": 2**53})))
            )
        elif parents:
            parent, key = parents[-1]
            parent[key] = draw(VALUES)
    return json.dumps(data)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(text=files())
def test_a_changed_file_is_a_run_or_one_line(tmp_path: Path, text: str) -> None:
    try:
        with limited_cpu(10):
            open_file(tmp_path, text)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert len(str(error)) < 2000  # noqa: PT017


@settings(max_examples=100, suppress_health_check=list(HealthCheck))
@given(content=st.binary(max_size=200), suffix=st.sampled_from([".gz", ".bz2", ""]))
def test_bytes_by_chance_are_one_line(tmp_path: Path, content: bytes, suffix: str) -> None:
    with pytest.raises(InputError):
        open_file(tmp_path, content, f"x.flent{suffix}")
