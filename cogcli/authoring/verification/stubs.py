"""Answers to the calls of a test case, instead of services (docs/reference/test-case.md#stubs).

1. The answers of a capability are grouped by their `when`. The first group whose `when` fits the
   input answers the call. A group gives its answers call by call and repeats the last one.
2. A call that fits no group fails with `call.rejected`, and is reported as `test.unanswered`.
3. A capability without stubs is really called."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from cogcli.base.calls import Answer, Attempt
from cogcli.base.errors import RejectedError
from cogcli.base.jsonvalue import deep_copy
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.output_diff import SUBSET, differences
from cogcli.declarations.call_records import error_from_payload
from cogcli.declarations.value_types import Json
from cogcli.run.log_index import AttemptResult

UNSENT: Final = ("call.transport", "call.circuit-open", "call.overloaded")
"""Errors of a stub after which the call surely did not happen, unless the stub sets `left: true`.
"""


class Stub(NamedTuple):
    """One answer: checked outputs, or the error object with which the call fails.

    `number` is its index in the file.
    """

    capability: str
    number: int
    when: Json
    output: Json | None
    error: Json | None

    def answer(self) -> Answer:
        """Return the answer. Raise RuntimeErrorBase."""
        if self.error is None:
            return Answer(deep_copy(self.output))
        code = self.error["code"]
        given = {"message": "a stub says so", "left": code not in UNSENT, **self.error}
        raise error_from_payload(given)


class UnansweredCall(NamedTuple):
    """A call that fits no stub."""

    capability: str
    step: str
    input: Json


RecordedResults = Callable[[Attempt], AttemptResult | None]
"""A function that returns the result of an attempt in a recorded episode; None if the episode has
none."""


class StubbedCalls:
    """The handler of all attempts of a case (`run.prepare.Intercept`). It is called from several
    threads.
    """

    def __init__(
        self,
        stubs: Iterable[Stub],
        stubbed: frozenset[str],
        recorded: RecordedResults | None = None,
    ) -> None:
        self.stubbed = stubbed
        self.unanswered: list[UnansweredCall] = []
        self._recorded = recorded
        self._groups: dict[str, list[list[Stub]]] = {}
        self._given: Counter[tuple[str, int]] = Counter()
        self._lock = threading.Lock()
        self._stubs = tuple(stubs)
        for stub in self._stubs:
            groups = self._groups.setdefault(stub.capability, [])
            same = next((group for group in groups if group[0].when == stub.when), None)
            groups.append([stub]) if same is None else same.append(stub)

    def __call__(self, attempt: Attempt, send: Callable[[Attempt], Answer]) -> Answer:
        with self._lock:
            found = self._next_stub(attempt)
        if found is not None:
            return found.answer()
        if attempt.capability_id not in self.stubbed:
            return send(attempt)
        self.unanswered.append(
            UnansweredCall(attempt.capability_id, attempt.step_id, attempt.input)
        )
        raise RejectedError(
            "call.rejected", f"no stub of `{attempt.capability_id}` fits this input", left=False
        )

    @property
    def unused(self) -> list[Stub]:
        """Return the stubs that answered no call, in order."""
        return [stub for stub in self._stubs if not self._given[stub.capability, stub.number]]

    def _next_stub(self, attempt: Attempt) -> Stub | AttemptResult | None:
        if self._recorded is not None and attempt.capability_id in self.stubbed:
            return self._recorded(attempt)
        for group in self._groups.get(attempt.capability_id, ()):
            if not differences(group[0].when, attempt.input, SUBSET):
                used = sum(1 for stub in group if self._given[stub.capability, stub.number])
                stub = group[min(used, len(group) - 1)]
                self._given[stub.capability, stub.number] += 1
                return stub
        return None
