"""The loop guard: calls that are proposed again and bring nothing new (docs/reference/pack.md#loop-guard). Pure.

A fold over the calls that a planner proposes and over what came of them. A call that trips is not made.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from cogcli.base.canonical import digest_of

SAME_RESULT: Final = 3
"""The identical call that trips where the ones before it had identical results."""
SAME_CALL: Final = 5
"""The identical call that trips whatever came of the ones before it."""
LONGEST_CYCLE: Final = 4
IDLE_TURNS: Final = 2
"""Turns running without anything new that trip."""


class LoopTrip(NamedTuple):
    """Why a call, or a further turn, is not made. `again`: whether its key has tripped before, which ends the run."""

    kind: str
    key: str
    times: int
    calls: tuple[str, ...]
    unchanged: tuple[str, ...]
    hint: str
    again: bool = False

    def to_payload(self) -> dict[str, Any]:
        """The payload of `loop.detected`."""
        return {
            "kind": self.kind,
            "key": self.key,
            "count": self.times,
            "calls": list(self.calls),
            "unchanged": list(self.unchanged),
            "hint": self.hint,
        }


def call_key(capability: str, arguments: dict[str, Any]) -> str:
    """The digest that names a call: equal for an equal capability and equal arguments."""
    return digest_of({"capability": capability, "arguments": arguments})


class LoopGuard:
    """The proposed calls of a run so far, with the digests of their results."""

    def __init__(self) -> None:
        self._history: list[tuple[str, str]] = []
        """Each call made, as (key, capability)."""
        self._results: dict[str, list[str]] = {}
        self._proposals: dict[str, int] = {}
        self._tripped: set[str] = set()
        self._seen: set[str] = set()
        self._idle = 0

    @property
    def most_identical(self) -> int:
        """How often the call was proposed that was proposed most often."""
        return max(self._proposals.values(), default=0)

    @property
    def idle_turns(self) -> int:
        """How many turns have run without anything new."""
        return self._idle

    def propose(self, capability: str, arguments: dict[str, Any]) -> LoopTrip | None:
        """Count a proposed call; the trip where it must not be made."""
        key = call_key(capability, arguments)
        count = self._proposals[key] = self._proposals.get(key, 0) + 1
        results = self._results.get(key, [])
        if count >= SAME_RESULT and len(results) >= SAME_RESULT - 1 and len(set(results)) == 1:
            hint = "the same call gave the same result before: use that result, or ask for something else"
            return self._trip(
                "identical_results", key, count, (capability,), ("arguments", "result"), hint
            )
        if count >= SAME_CALL:
            hint = "this call was made before: change its arguments, or answer"
            return self._trip("identical_calls", key, count, (capability,), ("arguments",), hint)
        cycle = self._cycle(key, capability)
        if cycle:
            hint = "these calls follow each other again: change one of them, or answer"
            return self._trip("cycle", key, 2, cycle, ("arguments", "order"), hint)
        return None

    def note_result(self, capability: str, arguments: dict[str, Any], result: Any) -> None:
        """Take up what came of a call that was made: its output, or its error."""
        key = call_key(capability, arguments)
        self._history.append((key, capability))
        self._results.setdefault(key, []).append(digest_of(result))

    def end_turn(self, news: list[Any]) -> LoopTrip | None:
        """Take up what a turn brought: facts, effects, plans, results; the trip after too many turns without news."""
        fresh = {digest_of(each) for each in news} - self._seen
        self._seen |= fresh
        self._idle = 0 if fresh else self._idle + 1
        if self._idle < IDLE_TURNS:
            return None
        hint = "nothing new came of the last turns: answer with what there is, or ask"
        return self._trip(
            "idle", "turns", self._idle, (), ("facts", "effects", "plan", "results"), hint
        )

    def _cycle(self, key: str, capability: str) -> tuple[str, ...]:
        """The capabilities of a cycle of 2 to 4 calls that this one would complete the second time; else empty."""
        history = [*self._history, (key, capability)]
        lengths = range(2, LONGEST_CYCLE + 1)
        again = (history[-n:] for n in lengths if history[-n:] == history[-2 * n : -n])
        return next(
            (tuple(name for _, name in calls) for calls in again if len(set(calls)) > 1), ()
        )

    def _trip(
        self,
        kind: str,
        key: str,
        count: int,
        calls: tuple[str, ...],
        unchanged: tuple[str, ...],
        hint: str,
    ) -> LoopTrip:
        again = key in self._tripped
        self._tripped.add(key)
        return LoopTrip(kind, key, count, calls, unchanged, hint, again)
