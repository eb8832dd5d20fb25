"""The context of a turn of a recorded run, from its episode alone (docs/reference/pack.md#placements)."""

from __future__ import annotations

import re
from shlex import quote
from typing import Final

from cogcli.agent.cognition.invocation import recorded_invocation
from cogcli.agent.cognition.recorded_contexts import RecompiledTurn, recompile
from cogcli.agent.context.compiler import CompiledContext
from cogcli.agent.context.placements import Placement, list_names, placements
from cogcli.agent.use_cases.log import AgentLog, read_agent_log
from cogcli.app import episodes
from cogcli.app.settings import Settings
from cogcli.base.errors import UnusableEnvironment, UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import suggestion
from cogcli.declarations.events import RunResumed
from cogcli.declarations.layer_records import ContextLedger
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

_MEMORY_ID: Final = re.compile(r"mp_[0-9a-f]{16}")
_ENTITY: Final = re.compile(r"[a-z_]+:[\w.-]{1,100}", re.ASCII)


class TurnContext(NamedTuple):
    """The context of one of the `turns` of an episode."""

    episode_id: str
    turn: int
    turns: int
    context: CompiledContext

    def explained(self, word: str | None = None) -> Json:
        """Return stages, blocks and placements with their reasons, or only those that `word` names.

        Raise UsageError for a word that names none.
        """
        found, payload = self.context.compilation, self.context.payload
        known = placements(found)
        return {
            "episode_id": self.episode_id,
            "turn": self.turn,
            "turns": self.turns,
            "intent": found.intent.intent or None,
            "refused": self.context.refused or None,
            "overpacked": self.context.is_overpacked,
            **payload["context_ledger"],
            "budget_report": payload["budget_report"],
            "bucket_sizes": found.caps,
            "redactions": payload["redactions"],
            "placements": [
                each.to_payload()
                for each in (
                    _find_placements(known, word, found.compile_input.run.tenant_id)
                    if word
                    else known
                )
            ],
        }


def turn_context(settings: Settings, word: str, turn: int | None = None) -> TurnContext:
    """Return the context of a turn: for `EP` the last one, or `turn`; for `EP#2` the second one.

    Raise UsageError for an episode that is not an agent's, and for an unknown turn. Raise UnusableEnvironment
    `episode.unreadable` for an unreadable one, or one whose log leads to other contexts.
    """
    name, turn = _episode_and_turn(word, turn)
    log = read_agent_log(episodes.find(settings, name))
    turns = _recompile_turns(log)
    if not turns:
        raise UsageError(
            "usage.value",
            f"`{log.directory.name}` was stopped before its first context was compiled",
            next=(f"cogcli trace {log.directory.name}",),
        )
    chosen = [each for each in turns if each.turn == (turns[-1].turn if turn is None else turn)]
    if not chosen:
        raise UsageError(
            "usage.value",
            f"`{log.directory.name}` has no turn {turn}",
            expected=f"1 to {turns[-1].turn}",
        )
    _require_equal(log, chosen[0])
    return TurnContext(log.directory.name, chosen[0].turn, len(turns), chosen[0].context)


def _recompile_turns(log: AgentLog) -> list[RecompiledTurn]:
    """Return the contexts of the turns. Raise UnusableEnvironment `episode.unreadable`."""
    catalog = log.read_catalog()
    with log.refusing():
        return list(recompile(recorded_invocation(log.started, catalog), log.events))


def _require_equal(log: AgentLog, found: RecompiledTurn) -> None:
    """Raise UnusableEnvironment if the context compiled from the log differs from the recorded one."""
    if not found.differs:
        return
    why = "it was altered, or made by another version"
    resumed = [event for event in log.events if event.event_type == RunResumed.event.name]
    if any(read_record(RunResumed, event.payload).changed_specs for event in resumed):
        why = "the run continued with changed specs, which its log does not hold"
    text = f"`{log.directory.name}`: the context of turn {found.turn} cannot be made again: {why}"
    raise UnusableEnvironment(
        "episode.unreadable",
        text,
        expected=str(read_record(ContextLedger, found.recorded).context_hash),
        found=f"{found.context.hash}, from `{found.differs}` on",
        next=(f"cogcli verify {log.directory.name}",),
    )


def _episode_and_turn(word: str, turn: int | None) -> tuple[str, int | None]:
    name, mark, number = word.rpartition("#")
    if mark and number.isascii() and number.isdigit() and len(number) < 10:
        return name, int(number)
    return word, turn


def _find_placements(known: tuple[Placement, ...], word: str, tenant: str) -> list[Placement]:
    """Return the placements that a word names. Raise UsageError with similar words."""
    found = [each for each in known if each.answers_to(word)]
    if not found:
        text = f"this turn knew of nothing named `{word[:60]}`"
        hint = (
            suggestion(word, list_names(known))
            or "what the stores did not give for the request was not known"
        )
        raise UsageError("usage.value", text, hint=hint, next=_lookup_command(word, tenant))
    return found


def _lookup_command(word: str, tenant: str) -> tuple[str, ...]:
    """Return the command that looks up a memory or an entity in the stores now."""
    if _MEMORY_ID.fullmatch(word):
        return (f"cogcli memory ls --why {word} --tenant {quote(tenant)}",)
    if _ENTITY.fullmatch(word):
        return (f"cogcli knowledge query {word} --tenant {quote(tenant)}",)
    return ()
