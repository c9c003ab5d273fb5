# SPDX-License-Identifier: Apache-2.0
"""Removing kernels from the cache, which is the test's own."""

import json
from pathlib import Path

import pytest

from hourglass.builders.kernel import registry
from hourglass.errors import InputError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three names, two of which share a kernel, and a working tree of each."""
    monkeypatch.setenv("HOURGLASS_CACHE", str(tmp_path))
    for name, key in (("mine", "a"), ("mine+my_cc.c", "b"), ("other", "a"), ("mine2", "c")):
        for path in (f"kernels/{key}/linux", f"work/{name}/vmlinux.o"):
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(bytes(8192))
        names = tmp_path / "kernels/names"
        names.mkdir(exist_ok=True)
        (names / name).write_text(json.dumps({"key": key}))
    return tmp_path


def test_a_removed_kernel_takes_its_variants_and_objects_with_it(cache: Path) -> None:
    assert registry.remove("mine") == 3 * 8192
    assert sorted(path.name for path in (cache / "kernels/names").iterdir()) == ["mine2", "other"]
    assert sorted(path.name for path in (cache / "kernels").glob("?")) == ["a", "c"]
    assert sorted(path.name for path in (cache / "work").iterdir() if path.is_dir()) == ["mine2", "other"]


def test_an_unknown_name_is_refused(cache: Path) -> None:
    with pytest.raises(InputError, match="no kernel was built under this name"):
        registry.remove("mien")
