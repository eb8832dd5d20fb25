"""A project whose batches are counted."""

from __future__ import annotations

import faulthandler
from typing import Any, Final

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from counted import make_counted
from support.examples import LONG

_LONG_SECONDS: Final = 6 * 3600


@pytest.fixture
def counting(project: Any) -> Any:
    """A project with a skill whose effect must not happen twice."""
    return make_counted(project)


@pytest.fixture
def hours_in_a_long_run(pytestconfig: pytest.Config) -> None:
    """In a long run the test may take six hours. `faulthandler_timeout` would end it after minutes."""
    if LONG:
        file = pytestconfig.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(_LONG_SECONDS, exit=True, file=file)
