# SPDX-License-Identifier: Apache-2.0
"""Merge the fragments of the guest's configuration, and check that make accepted every line."""

import re
from collections.abc import Iterable
from pathlib import Path

from hourglass import resources
from hourglass.builders.kernel.hooks import Version
from hourglass.contract.kernels import VARIANT
from hourglass.errors import InputError

_LINE = re.compile(r"^(?:(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set)$")

Options = dict[str, str]
"""Option → value as written; "n" for a disabled option."""


def fragments(folder: Path, version: Version, variant: str | None) -> list[Path]:
    """Return the fragments in ascending order of priority: common.config and VARIANT.config, each followed by its
    fragment of the version or of the nearest older one."""
    paths = [folder / "common.config", *_nearest(folder, "", version)]
    if variant is not None:
        if variant not in (choices := variants(folder)):
            raise InputError("kernel variant", variant, f"must be one of {', '.join(choices) or 'none'}")
        paths += [folder / f"{variant}.config", *_nearest(folder, f"{variant}-", version)]
    return paths


def variants(folder: Path) -> list[str]:
    """Return the names of all variants, sorted."""
    return sorted({path.stem.split("-")[0] for path in folder.glob("[a-z]*.config")} - {"common"})


def kernel_and_variant(name: str) -> tuple[str, str | None]:
    """Return the kernel and the variant that a name such as "6.1+wide" has, or the name and None."""
    kernel, _, variant = name.partition(VARIANT)
    return (kernel, variant) if variant in variants(resources.KERNEL / "config") else (name, None)


def _nearest(folder: Path, prefix: str, version: Version) -> list[Path]:
    """Return the fragment PREFIXVERSION.config of the highest version up to this one, if any."""
    by_version = {_version(path.stem.removeprefix(prefix)): path for path in folder.glob(f"{prefix}[0-9]*.config")}
    versions = [fragment_version for fragment_version in by_version if fragment_version <= version]
    return [by_version[max(versions)]] if versions else []


def _version(text: str) -> Version:
    major, minor = text.split(".")
    return int(major), int(minor)


def parse(text: str) -> Options:
    """Return the options of a fragment or a .config. The last line about an option counts."""
    matches = (_LINE.match(line.strip()) for line in text.splitlines())
    return {(match[1] or match[3]): (match[2] if match[1] else "n") for match in matches if match}


def merge(files: Iterable[Path]) -> Options:
    """Return the options of all fragments. Later fragments take precedence."""
    merged: Options = {}
    for path in files:
        merged |= parse(path.read_text())
    return merged


def render(options: Options) -> str:
    """Return the options as the text of a fragment."""
    lines = [f"# {name} is not set" if value == "n" else f"{name}={value}" for name, value in options.items()]
    return "\n".join(lines) + "\n"


def unmet(required: Options, actual: Options) -> list[str]:
    """Return the required options that a .config lacks, or has with another value."""
    return [f"{name}={value}" for name, value in required.items() if actual.get(name, "n") != value]
