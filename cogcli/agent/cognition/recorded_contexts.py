"""The contexts of an agent's run, compiled again from its log (docs/reference/pack.md#placements). Pure.

A record holds what came of a compilation; what it left out is in none, so that it is made again from what it read: the
pinned pack, what the stores gave then, the facts of calls before it, and the time of the event before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.observer import Observer
from cogcli.agent.context.compiler import STAGES, CompiledContext, compile_context
from cogcli.base.jsonvalue import object_of
from cogcli.declarations.envelope import Event


class RecompiledTurn(NamedTuple):
    """The context of one turn, made again, and the ledger of the recorded one."""

    turn: int
    context: CompiledContext
    recorded: dict[str, Any]

    @property
    def differs(self) -> str:
        """The first stage that gave something else, or else the member of the ledger; empty where all is equal."""
        made = self.context.payload["context_ledger"]
        if made == self.recorded:
            return ""
        hashes = object_of(self.recorded.get("stage_hashes"))
        stages = (name for name in STAGES if hashes.get(name) != made["stage_hashes"][name])
        members = (name for name in made if made[name] != self.recorded.get(name))
        return next(stages, "") or next(members, "context_ledger")


def recompile(invocation: Invocation, events: Iterable[Event]) -> Iterator[RecompiledTurn]:
    """Compile the context of each turn again, in order. `events` begin with the start of the run."""
    seen: Observer | None = None
    started: Event | None = None
    now, view = "", invocation.policy.observe
    for event in events:
        if started is None or seen is None:
            started, seen = event, Observer(event, invocation)
        elif event.event_type == "context.compiled":
            turn, recorded = event.payload["turn"], dict(event.payload["context"]["context_ledger"])
            given = invocation.compile_input(
                turn, started.run_id or "", started.trace_id or "", now, seen.learned
            )
            yield RecompiledTurn(turn, compile_context(given), recorded)
        if event is not started:
            seen.apply(event)
        if view is not None:
            view(event)
        now = event.timestamp
