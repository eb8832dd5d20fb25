"""The contexts of an agent's run, compiled again from its log (docs/reference/pack.md#placements). Pure.

The log holds the result of a compilation, not what it left out. So it is repeated from its input: the pinned pack, the
recorded values of the stores, the facts of earlier calls, and the time of the event before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cogcli.agent.cognition.attention import attention_from
from cogcli.agent.cognition.context_for_model import restore_recorded_sizes
from cogcli.agent.cognition.invocation import Invocation
from cogcli.agent.cognition.observer import Observer
from cogcli.agent.context.compiler import STAGES, CompiledContext, compile_context
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.agent_events import ContextCompiled, LayerCompleted
from cogcli.declarations.envelope import Event
from cogcli.declarations.layer_records import ContextDocument, ContextLedger
from cogcli.declarations.reading import read_record
from cogcli.declarations.run_start import LATEST_EDITION
from cogcli.declarations.value_types import Json


class RecompiledTurn(NamedTuple):
    """The repeated context of one turn, and the ledger of the recorded one."""

    turn: int
    context: CompiledContext
    recorded: Json

    @property
    def differs(self) -> str:
        """The first stage with another result, else the first other member of the ledger. Empty if all are equal."""
        made = self.context.payload["context_ledger"]
        if made == self.recorded:
            return ""
        hashes = read_record(ContextLedger, self.recorded).stage_hashes
        stages = (name for name in STAGES if hashes.get(name) != made["stage_hashes"][name])
        members = (name for name in made if made[name] != self.recorded.get(name))
        return next(stages, "") or next(members, "context_ledger")


def recompile(invocation: Invocation, events: Iterable[Event]) -> Iterator[RecompiledTurn]:
    """Compile the context of each turn again, in order. `events` begin with the start of the run."""
    seen: Observer | None = None
    started: Event | None = None
    now, view, logged = "", invocation.policy.observe, dict[str, object]()
    for event in events:
        if started is None or seen is None:
            started, seen = event, Observer(event, invocation)
        elif event.event_type == ContextCompiled.event.name:
            turn, context = event.payload["turn"], event.payload["context"]
            compile_input = invocation.compile_input(
                turn, started.run_id or "", started.trace_id or "", now, seen.learned_edges
            )
            if invocation.policy.edition >= LATEST_EDITION:
                compile_input = compile_input._replace(attention=attention_from(logged))
            report = read_record(ContextDocument, context).budget_report
            compile_input = restore_recorded_sizes(compile_input, report)
            recorded = dict(context["context_ledger"])
            yield RecompiledTurn(turn, compile_context(compile_input), recorded)
        elif event.event_type == LayerCompleted.event.name:
            logged |= event.payload["writes"]
        if event is not started:
            seen.apply(event)
        if view is not None:
            view(event)
        now = event.timestamp
