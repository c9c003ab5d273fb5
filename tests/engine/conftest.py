# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that boot a guest."""

import os

import pytest

from hourglass.builders import root
from hourglass.builders.kernel.built import BuiltKernel
from hourglass.builders.kernel.registry import ensure
from hourglass.errors import MissingError


@pytest.fixture(scope="session")
def guest_kernel() -> BuiltKernel:
    """Return Linux 6.1, built if necessary. If guests cannot be built, the tests are skipped, but never in CI."""
    try:
        root.image()
        return ensure("6.1")
    except MissingError as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(problem))
