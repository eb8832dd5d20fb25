"""What is wanted of a list of episodes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from cogcli.episode.episode_row import Overview

_SHORT_TRACE: Final = re.compile(r"[0-9a-f]{8}")


class Wanted(NamedTuple):
    """Filters, absent ones let everything pass. `since` is a timestamp, `outcomes` are words of `Overview.status`."""

    skill: str | None = None
    outcomes: tuple[str, ...] = ()
    trace_id: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    since: str | None = None

    @property
    def short_trace(self) -> bool:
        """Whether the trace id may be the first 8 hex digits of one."""
        return self.trace_id is not None and _SHORT_TRACE.fullmatch(self.trace_id) is not None

    def fits(self, row: Overview) -> bool:
        """Whether an episode passes."""
        return (
            (self.skill is None or row.skill == self.skill)
            and (not self.outcomes or row.status in self.outcomes)
            and (self.trace_id is None or self._is_of_trace(row.trace_id))
            and (self.since is None or (row.started_at or "") >= self.since)
            and all(name in row.tags and tag_text(row.tags[name]) == value for name, value in self.tags)
        )

    def _is_of_trace(self, trace_id: str | None) -> bool:
        if trace_id is None or self.trace_id is None:
            return False
        return trace_id == self.trace_id or (self.short_trace and trace_id.startswith(self.trace_id))


def tag_text(value: Any) -> str:
    """A tag's value as it is asked for; other tools may have put no text there."""
    if isinstance(value, str):
        return value
    import orjson

    return orjson.dumps(value).decode()
