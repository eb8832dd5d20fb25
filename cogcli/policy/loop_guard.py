"""The loop guard: it detects proposed calls that repeat without a new result (docs/reference/pack.md#loop-guard). Pure.

The guard folds the calls that a planner proposes, and their results. A call that trips the guard is not made.
"""

from __future__ import annotations

from typing import Final

from cogcli.base.canonical import digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json

SAME_RESULT: Final = 3
"""An identical call trips the guard as the N-th one if the earlier ones had identical results."""
SAME_CALL: Final = 5
"""An identical call trips the guard as the N-th one, whatever the results were."""
LONGEST_CYCLE: Final = 4
IDLE_TURNS: Final = 2
"""This number of consecutive turns with nothing new trips the guard."""


class LoopTrip(NamedTuple):
    """Explains why a call or another turn is refused.

    `again` is true if the same key tripped the guard before; then the run ends.
    """

    kind: str
    key: str
    times: int
    calls: tuple[str, ...]
    unchanged: tuple[str, ...]
    hint: str
    again: bool = False

    def to_payload(self) -> Json:
        """Return the payload of `loop.detected`."""
        return {
            "kind": self.kind,
            "key": self.key,
            "count": self.times,
            "calls": list(self.calls),
            "unchanged": list(self.unchanged),
            "hint": self.hint,
        }


def call_key(capability: str, arguments: Json) -> str:
    """Return the digest of a call. Calls of one capability with equal arguments have equal digests."""
    return digest_of({"capability": capability, "arguments": arguments})


class LoopGuard:
    """The calls that a run has proposed up to now, with the digests of their results."""

    def __init__(self) -> None:
        self._history: list[tuple[str, str]] = []
        """Each call made, as (key, capability)."""
        self._results: dict[str, list[str]] = {}
        self._proposals: dict[str, int] = {}
        self._tripped: set[str] = set()
        self._seen: set[str] = set()
        self._idle = 0

    @property
    def max_identical(self) -> int:
        """The highest number of times that one identical call was proposed."""
        return max(self._proposals.values(), default=0)

    @property
    def idle_turns(self) -> int:
        """The number of consecutive turns without a new fact, effect, plan or result."""
        return self._idle

    def propose(self, capability: str, arguments: Json) -> LoopTrip | None:
        """Count a proposed call. Return a trip if the call is refused."""
        key = call_key(capability, arguments)
        count = self._proposals[key] = self._proposals.get(key, 0) + 1
        results = self._results.get(key, [])
        if count >= SAME_RESULT and len(results) >= SAME_RESULT - 1 and len(set(results)) == 1:
            hint = "the same call gave the same result before: use that result, or ask for something else"
            return self._build_trip(
                "identical_results", key, count, (capability,), ("arguments", "result"), hint
            )
        if count >= SAME_CALL:
            hint = "this call was made before: change its arguments, or answer"
            return self._build_trip(
                "identical_calls", key, count, (capability,), ("arguments",), hint
            )
        cycle = self._find_cycle(key, capability)
        if cycle:
            hint = "these calls follow each other again: change one of them, or answer"
            return self._build_trip("cycle", key, 2, cycle, ("arguments", "order"), hint)
        return None

    def record_result(self, capability: str, arguments: Json, result: object) -> None:
        """Record the output or the error of a call."""
        key = call_key(capability, arguments)
        self._history.append((key, capability))
        self._results.setdefault(key, []).append(digest_of(result))

    def end_turn(self, turn_items: list[object]) -> LoopTrip | None:
        """Record the facts, effects, plans and results of a turn.

        Return a trip if the last `IDLE_TURNS` turns produced nothing new.
        """
        new_digests = {digest_of(each) for each in turn_items} - self._seen
        self._seen |= new_digests
        self._idle = 0 if new_digests else self._idle + 1
        if self._idle < IDLE_TURNS:
            return None
        # The text is in logs, and a replay compares it.
        hint = "nothing new came of the last turns: answer with what there is, or ask"
        return self._build_trip(
            "idle", "turns", self._idle, (), ("facts", "effects", "plan", "results"), hint
        )

    def _find_cycle(self, key: str, capability: str) -> tuple[str, ...]:
        """Return the capabilities of a cycle of 2 to 4 calls if this call would complete the cycle a second time;
        otherwise empty.
        """
        history = [*self._history, (key, capability)]
        lengths = range(2, LONGEST_CYCLE + 1)
        again = (history[-n:] for n in lengths if history[-n:] == history[-2 * n : -n])
        return next(
            (tuple(name for _, name in calls) for calls in again if len(set(calls)) > 1), ()
        )

    def _build_trip(
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
