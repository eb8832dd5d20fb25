"""The state of a run as rules read it: parts of the current `state.json` (docs/reference/pack.md#rules).

This is a fold over the events of the log, so a resumed or replayed run reads the same values. Values are not truncated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from cogcli.declarations.envelope import Event
from cogcli.declarations.value_types import Json
from cogcli.episode.log_lines import LATEST
from cogcli.episode.projection import Projection


class RunStateReader:
    """The requested parts of `state.json` after the events read so far. Other parts are not computed."""

    def __init__(self, parts: Collection[str]) -> None:
        self._projection = Projection()
        of: dict[str, Callable[[], Any]] = {
            "goal": self._projection.goal,
            "plan": self._plan_part,
            "memory": self._projection.memory,
            "outcomes": self._outcomes_part,
        }
        self._parts = {name: of[name] for name in sorted(parts)}

    def apply(self, event: Event) -> None:
        """Fold the next event of the log."""
        self._projection.apply(event)
        # A log with a pack follows the latest rules, even if a masked first event hides the version.
        self._projection.plan.rules = LATEST

    def read(self) -> Json:
        """Return the parts by name. Later events do not change the returned lists."""
        return {name: part() for name, part in self._parts.items()}

    def _plan_part(self) -> Json:
        plan = self._projection.plan.result()
        return {**plan, "steps": [dict(step) for step in plan["steps"]]}

    def _outcomes_part(self) -> Json:
        outcomes = self._projection.outcomes()
        return {**outcomes, "actions": list(outcomes["actions"])}
