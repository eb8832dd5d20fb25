"""The record of a call of an MCP tool (docs/reference/gateway.md#masks).

A tool gives one value in up to three forms: structured content, its text, and content blocks. A rule that masks a part
of one form would leave the value in the others. So these are masked whole, before anything else sees the output.
"""

from __future__ import annotations

from cogcli.gateway.tool_specs import OUTPUTS
from cogcli.run.engine.step_recorder import StepRecord


class ToolRecord(StepRecord):
    """A record whose masks cover every form of the output."""

    _masks: tuple[str, ...] = ()

    @property
    def masks(self) -> tuple[str, ...]:
        """The paths of the output that the policy masks, and the forms that it does not name."""
        return self._masks

    @masks.setter
    def masks(self, paths: tuple[str, ...]) -> None:
        named = {path.partition(".")[0] for path in paths}
        self._masks = (*paths, *(form for form in OUTPUTS if form not in named)) if paths else ()
