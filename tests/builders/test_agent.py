# SPDX-License-Identifier: Apache-2.0
"""The agent in the cache: the choice of the binary, and the errors if none can be built. Cargo is not called."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hourglass.builders import agent
from hourglass.errors import HourglassError, MissingError
from hourglass.host import directories

RUST = "rustc 1.90.0 (abc 2025-09-14)\nrelease: 1.90.0\n"


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Set up an empty cache and a small source tree. Return the list of sources that a false cargo compiled."""
    compiled: list[str] = []

    def compile_(target: Path, triple: str) -> Path:
        compiled.append(agent.sources_key())
        (target / agent.NAME).parent.mkdir(parents=True, exist_ok=True)
        (target / agent.NAME).write_text(f"binary of {compiled[-1]}")
        return target / agent.NAME

    sources = tmp_path / "agent"
    for name in ("Cargo.toml", "Cargo.lock", ".cargo/config.toml", "src/main.rs"):
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        (sources / name).write_text(name)
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(agent, "AGENT", sources)
    monkeypatch.setattr(agent, "compiler", lambda: RUST)
    monkeypatch.setattr(agent, "_compile", compile_)
    agent.sources_key.cache_clear()
    yield compiled
    agent.sources_key.cache_clear()


def edit(name: str, text: str) -> None:
    """Edit a source and forget cached digests, as a new process would."""
    (agent.AGENT / name).write_text(text)
    agent.sources_key.cache_clear()


def test_equal_sources_are_compiled_once_and_the_binary_can_be_run(cargo: list[str]) -> None:
    assert agent.binary() == agent.binary() == agent.build()
    assert len(cargo) == 1
    assert agent.binary().stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["src/main.rs", "src/new.rs", "Cargo.lock", ".cargo/config.toml"])
def test_other_sources_have_another_binary_and_old_binaries_remain(cargo: list[str], name: str) -> None:
    before = agent.binary()
    old = (agent.AGENT / name).read_text() if (agent.AGENT / name).exists() else None
    edit(name, "changed")
    assert agent.binary() != before
    if old is None:
        (agent.AGENT / name).unlink()
        agent.sources_key.cache_clear()
    else:
        edit(name, old)
    assert agent.binary() == before
    assert len(cargo) == 2


def test_sources_that_change_during_the_build_are_refused(cargo: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The binary would have the key of other sources."""
    compile_ = agent._compile

    def compile_late(target: Path, triple: str) -> Path:
        edit("src/main.rs", "changed")
        return compile_(target, triple)

    monkeypatch.setattr(agent, "_compile", compile_late)
    with pytest.raises(HourglassError, match="changed while it was compiled; run the command again"):
        agent.binary()
    assert agent.built() is None
    (agent.AGENT / "src/main.rs").write_text("src/main.rs")
    agent.sources_key.cache_clear()
    assert agent.built() is None


def test_a_binary_that_was_just_used_stays(cargo: list[str]) -> None:
    """Another process may be about to read it."""
    used = agent.binary()
    os.utime(used, (1_000_000_000, 1_000_000_000))
    assert agent.binary() == used
    for number in range(agent.CACHED_MAX + 1):
        edit("src/main.rs", str(number))
        agent.binary()
    assert used.is_file()


def test_another_compiler_counts_when_the_agent_is_built_but_not_for_a_run(
    cargo: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = agent.binary()
    monkeypatch.setattr(agent, "compiler", lambda: RUST.replace("1.90", "1.91"))
    assert agent.binary() == before
    assert agent.build() != before
    assert agent.binary() == agent.build()
    assert len(cargo) == 2


@pytest.mark.parametrize(
    ("version", "reason"), [("", "this machine has neither"), ("rustc 1.63.0 (d)\n", r"this machine has rustc 1\.63")]
)
def test_without_a_rust_that_is_new_enough_the_remedy_is_named(
    cargo: list[str], monkeypatch: pytest.MonkeyPatch, version: str, reason: str
) -> None:
    monkeypatch.setattr(agent, "compiler", lambda: version)
    with pytest.raises(MissingError, match=rf"rustc 1\.85 or newer .*{reason}.*to fix: apt-get install -y cargo"):
        agent.binary()
    assert agent.built() is None


def test_the_binary_has_no_paths_of_its_build() -> None:
    content = agent.binary().read_bytes()
    for path in (agent.AGENT.resolve(), directories.cache(), Path.home() / ".cargo", Path("registry/src")):
        assert str(path).encode() not in content
