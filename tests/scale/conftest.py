"""A project whose batches are counted."""

from __future__ import annotations

from typing import Any

import pytest
from counted import make_counted


@pytest.fixture
def counting(project: Any) -> Any:
    """A project with a skill whose effect must not happen twice."""
    return make_counted(project)
