"""The functions that wings add to use cases of the core, by name. Each is imported when it is first
called.

The core imports no wing (docs/architecture.md#floors), so a run does not load a wing that it does
not need."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from cogcli.base.named_tuple import NamedTuple


class WingFunction(NamedTuple):
    """A function of a wing: its module and its name."""

    module: str
    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Import the module and call the function."""
        function: Callable[..., Any] = getattr(import_module(self.module), self.name)
        return function(*args, **kwargs)


AGENT_OF_LOG: Final = WingFunction("cogcli.agent.use_cases.runs", "agent_of")
"""Return the agent whose run a log has."""
OPEN_SAMPLER: Final = WingFunction("cogcli.agent.use_cases.sampling", "open_sampler")
"""Open the configured model for services that ask it inside a call."""
SESSION_OF_LOG: Final = WingFunction("cogcli.gateway.recorded", "session_of")
"""Return the session of a gateway that a log has."""
INVOKE_AGENT: Final = WingFunction("cogcli.agent.use_cases.invoke_agent", "invoke_request")
"""Run an agent for the JSON of a request."""
DOCTOR_CHECKS: Final = (
    WingFunction("cogcli.agent.use_cases.doctor_model", "model_checks"),
    WingFunction("cogcli.agent.use_cases.doctor_jobs", "job_checks"),
)
"""Return checks of `doctor` for settings, in the order in which they are shown."""
EPISODE_OF_LINE: Final = WingFunction("cogcli.scale.lookup", "find_episode")
"""Return the directory of the episode of `ba_.../LINE`."""


def is_batch_word(text: str) -> bool:
    """Return whether a string is the id of a batch, or the beginning of one."""
    return text.startswith("ba_") and text[3:].isalnum()


def is_line_word(text: str) -> bool:
    """Return whether a string names a line of a batch: `ba_.../LINE`."""
    batch, slash, line = text.partition("/")
    return bool(slash) and is_batch_word(batch) and line.isascii() and line.isdigit()
