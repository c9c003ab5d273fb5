# SPDX-License-Identifier: Apache-2.0
"""What the tests share that hold the agent to the contracts."""

import os
from pathlib import Path

import pytest

from hourglass.engine import agent as engine_agent
from hourglass.errors import MissingError


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent of these sources. Where it cannot be built the tests are skipped, but never in CI."""
    try:
        return engine_agent.binary()
    except MissingError as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(problem))
