"""Services that do what a test says."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from cogcli.base.calls import Answer, Attempt, BindingChain, Member, SkippedBinding
from cogcli.base.errors import BindingResolutionError

Script = Callable[[dict[str, Any]], Any]


class ScriptedRunner:
    """Answers by capability: a script gets the attempt's input and gives outputs, an Answer, or raises.

    A list of scripts is one per attempt, the last for all further ones. Keeps all attempts, and how many calls ever
    ran at the same time.
    """

    def __init__(self, scripts: dict[str, Script | list[Script]] | None = None) -> None:
        self.scripts = scripts or {}
        self.members: dict[str, tuple[Member, ...]] = {}
        self.passed_over: dict[str, tuple[SkippedBinding, ...]] = {}
        self.attempts: list[Attempt] = []
        self.most_at_once = 0
        self.closed = 0
        self.grace: float | None = None
        """What was left to services when they were closed."""
        self._now = 0
        self._counts: dict[str, int] = defaultdict(int)
        self._lock = threading.Lock()

    def chain(self, capability_id: str) -> BindingChain:
        if capability_id not in self.scripts:
            raise BindingResolutionError(
                "binding.none", f"capability `{capability_id}`: no binding"
            )
        members = self.members.get(capability_id) or (member(f"b_{capability_id}"),)
        return BindingChain(members, {}, self.passed_over.get(capability_id, ()))

    def attempt(self, attempt: Attempt) -> Answer:
        with self._lock:
            self.attempts.append(attempt)
            script = self._next_script(attempt.capability_id)
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            result = script(attempt.input)
        finally:
            with self._lock:
                self._now -= 1
        return result if isinstance(result, Answer) else Answer(result)

    def close(self, grace: float) -> None:
        self.closed += 1
        self.grace = grace

    def called(self) -> list[str]:
        """The step paths of all attempts, in order."""
        return [attempt.step_id for attempt in self.attempts]

    def _next_script(self, capability_id: str) -> Script:
        scripts = self.scripts[capability_id]
        if not isinstance(scripts, list):
            return scripts
        number = self._counts[capability_id]
        self._counts[capability_id] += 1
        return scripts[min(number, len(scripts) - 1)]


def member(binding: str, *, timeout: float = 30.0, retries: int = 0, base: float = 0.01) -> Member:
    """A binding of a chain; its service is named after it."""
    return Member(binding, f"s_{binding}", "pythoncall", timeout, retries, base, 2.0)


def gives(**outputs: Any) -> Script:
    """A service that always answers the same."""
    return lambda given: outputs


def raises(make: Callable[[], BaseException]) -> Script:
    """A service that always fails."""

    def script(given: dict[str, Any]) -> Any:
        raise make()

    return script


def echo(given: dict[str, Any]) -> dict[str, Any]:
    """A service that answers with its input."""
    return given


class Gate:
    """A service that answers only when the test lets it, and tells when it was entered."""

    def __init__(self, **outputs: Any) -> None:
        self.outputs = outputs
        self.entered = threading.Event()
        self.open = threading.Event()
        self.ended = threading.Event()

    def __call__(self, given: dict[str, Any]) -> Any:
        self.entered.set()
        self.open.wait(60)
        self.ended.set()
        return dict(self.outputs)
