"""Changes of an agent's state: `(state, input, now) -> Updated`, pure (docs/reference/agent-state.md#updates)."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

State = TypeVar("State")


class Updated(NamedTuple, Generic[State]):
    """The next state, and notes `{code, what, detail}` of what was dropped, cut or refused."""

    state: State
    notes: tuple[dict[str, Any], ...] = ()
