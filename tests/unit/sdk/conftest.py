"""What functions may use of us, in ordinary folders."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def tmp_path(ordinary_path: Path) -> Path:
    """Functions read files in ordinary folders alone."""
    return ordinary_path
