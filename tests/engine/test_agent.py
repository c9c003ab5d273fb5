# SPDX-License-Identifier: Apache-2.0
"""The agent in the cache: which binary is taken, and what is said when none can be made. Cargo is not called."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hourglass.engine import agent, paths
from hourglass.errors import MissingError

RUST = "rustc 1.90.0 (abc 2025-09-14)\nrelease: 1.90.0\n"


@pytest.fixture
def cargo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An empty cache, a small source tree, and a cargo that notes which sources it compiles."""
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
    """Another process would see the sources anew."""
    (agent.AGENT / name).write_text(text)
    agent.sources_key.cache_clear()


def test_equal_sources_are_compiled_once_and_the_binary_can_be_run(cargo: list[str]) -> None:
    assert agent.binary() == agent.binary() == agent.build()
    assert len(cargo) == 1
    assert agent.binary().stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["src/main.rs", "src/new.rs", "Cargo.lock", ".cargo/config.toml"])
def test_other_sources_are_another_binary_and_the_old_ones_find_theirs_again(cargo: list[str], name: str) -> None:
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


def test_another_compiler_counts_when_the_agent_is_built_but_not_for_a_run(
    cargo: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = agent.binary()
    monkeypatch.setattr(agent, "compiler", lambda: RUST.replace("1.90", "1.91"))
    assert agent.binary() == before
    assert agent.build() != before
    assert agent.binary() == agent.build()
    assert len(cargo) == 2


@pytest.mark.parametrize(("said", "words"), [("", "here is neither"), ("rustc 1.63.0 (d)\n", r"here is rustc 1\.63")])
def test_without_a_rust_that_is_new_enough_the_remedy_is_named(
    cargo: list[str], monkeypatch: pytest.MonkeyPatch, said: str, words: str
) -> None:
    monkeypatch.setattr(agent, "compiler", lambda: said)
    with pytest.raises(MissingError, match=rf"rustc 1\.85 or newer .*{words}.*to fix: apt-get install -y cargo"):
        agent.binary()
    assert agent.built() is None


def test_the_real_binary_does_not_tell_where_it_was_built() -> None:
    content = agent.binary().read_bytes()
    for place in (agent.AGENT.resolve(), paths.cache(), Path.home() / ".cargo", Path("registry/src")):
        assert str(place).encode() not in content
