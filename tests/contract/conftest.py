# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that compare the agent with the contracts."""

import os
from pathlib import Path

import pytest

from hourglass.builders import agent as engine_agent
from hourglass.errors import MissingError


@pytest.fixture(scope="session")
def agent() -> Path:
    """Return the agent of these sources. If it cannot be built, the tests are skipped, but never in CI."""
    try:
        return engine_agent.binary()
    except MissingError as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(problem))
