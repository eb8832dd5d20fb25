"""How a crash test says what it found; the fixtures of these types are in `conftest.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from crash_points import Outcome

LONG = bool(os.environ.get("COGCLI_LONG_TESTS"))
"""Whether every point is tried."""

Judge = Callable[[str, Iterable[Outcome]], None]
Tell = Callable[[str, str, int, int], None]
