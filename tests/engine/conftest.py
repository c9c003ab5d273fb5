# SPDX-License-Identifier: Apache-2.0
"""What the tests that boot a guest share."""

import os

import pytest

from hourglass.engine import root
from hourglass.engine.kernel.built import BuiltKernel
from hourglass.engine.kernel.store import ensure
from hourglass.errors import MissingError


@pytest.fixture(scope="session")
def guest_kernel() -> BuiltKernel:
    """Linux 6.1, built if need be. Where guests cannot be made the tests are skipped, but never in CI."""
    try:
        root.image()
        return ensure("6.1")
    except MissingError as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(problem))
