"""The rules of `verify-invoker` and `verify-errors`: what is promised, and the calls that provoke it
(docs/reference/protocols.md#own-rules).

Most rules are data: a `RuleCase` per call, with the server's answer and what must come of it. A harness above runs
them; `tests/contracts` runs the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol

from cogcli.core.errors import RuntimeErrorBase
from cogcli.protocols.exchange import Answering, Seen, json_reply

PATIENT: Final = 10.0
"""Seconds by which a call with a timeout of a fraction of a second must have ended."""
SECRET: Final = "s3cr3t-of-the-bench"  # noqa: S105
ANY_ERROR: Final = "any"
_ANYTHING: Final = object()


class RuleBroken(Exception):
    """A rule does not hold: a value differs from the expected one."""


class RuleSkipped(Exception):
    """A rule that cannot be checked on this machine; the message is the reason."""


class RuleRun(Protocol):
    """The result of a call: its error or outputs, the episode's files by name, and the seconds that it took."""

    @property
    def error(self) -> RuntimeErrorBase | None: ...
    @property
    def outputs(self) -> dict[str, Any]: ...
    @property
    def files(self) -> dict[str, bytes]: ...
    @property
    def seconds(self) -> float: ...
    @property
    def deadlines(self) -> list[float]:
        """The seconds that each attempt was given."""
        ...


class RuleServer(Protocol):
    """A server on loopback and the requests that it got."""

    @property
    def url(self) -> str: ...
    @property
    def seen(self) -> list[Seen]: ...


class RuleBench(Protocol):
    """Runs calls for rules; `members` are those of the harness's call."""

    directory: str

    def call(
        self, answering: Answering | None, path: str = "", **members: Any
    ) -> tuple[RuleRun, list[Seen]]:
        """The result of a call to a server at `path`, to none for None, and the requests that it got."""
        ...

    def serve(self, answering: Answering) -> AbstractContextManager[RuleServer]:
        """A server of its own."""
        ...


def succeed(seen: Seen) -> Any:
    """The answer of a server that is content with everything."""
    return json_reply({"ok": True})


class RuleCase(NamedTuple):
    """One call and what must come of it: an error, else outputs; and the requests that the server got.

    `setting` adds members that depend on the bench; `sent` gives of the requests what must equal `wanted`. Without
    `error` the call succeeds; `says` is in its message or hint. `within` bounds its seconds; `hidden` is in no file.
    """

    answering: Answering | None = succeed
    call: Mapping[str, Any] = {}
    setting: Callable[[RuleBench], Mapping[str, Any]] | None = None
    path: str = ""
    error: str = ""
    left: bool | None = None
    says: str = ""
    outputs: Any = _ANYTHING
    sent: Callable[[list[Seen]], Any] = len
    wanted: Any = _ANYTHING
    within: float = 0.0
    hidden: str = ""

    def check(self, bench: RuleBench) -> None:
        """Raises RuleBroken, RuleSkipped."""
        more = self.setting(bench) if self.setting else {}
        ran, seen = bench.call(self.answering, self.path, **{**self.call, **more})
        if self.error:
            error = require_error(ran, self.error, left=self.left)
            require(
                self.says in f"{error.message}\n{error.hint}", True, f"{self.says} in the message"
            )
        else:
            outputs = require_ok(ran)
            if self.outputs is not _ANYTHING:
                require(outputs, self.outputs, "outputs")
        if self.wanted is not _ANYTHING:
            require(self.sent(seen), self.wanted, "requests")
        if self.within and ran.seconds > self.within:
            raise RuleBroken(f"ended after {ran.seconds:.1f} s, expected {self.within} s")
        if self.hidden:
            held = [name for name, data in ran.files.items() if self.hidden.encode() in data]
            require(held, [], "files that hold the secret")


class InvokerRule(NamedTuple):
    """A rule as a short text, and the cases that show it, or a function of a bench that raises RuleBroken."""

    rule: str
    shown_by: tuple[RuleCase, ...] | Callable[[Any], None]

    def check(self, bench: Any) -> None:
        """Raises RuleBroken, RuleSkipped."""
        if callable(self.shown_by):
            self.shown_by(bench)
            return
        for case in self.shown_by:
            case.check(bench)


InvokerRules = Mapping[str, InvokerRule]


def require(found: Any, wanted: Any, what: str) -> None:
    """Raises RuleBroken unless the two are equal."""
    if found != wanted:
        raise RuleBroken(f"{what}: found {_short(found)}, expected {_short(wanted)}")


def require_error(ran: RuleRun, code: str, *, left: bool | None = None) -> RuntimeErrorBase:
    """The run's error, which must have this code. Raises RuleBroken."""
    error = ran.error
    if error is None:
        raise RuleBroken(f"no error, expected {code}; outputs {_short(ran.outputs)}")
    if code not in (error.code, ANY_ERROR):
        raise RuleBroken(f"found {error.code} ({error.message}), expected {code}")
    if left is not None and error.left is not left:
        raise RuleBroken(f"{code}: found left {error.left}, expected {left}")
    return error


def require_ok(ran: RuleRun) -> dict[str, Any]:
    """The outputs of a run, which must have succeeded. Raises RuleBroken."""
    if ran.error is not None:
        raise RuleBroken(f"{ran.error.code}: {ran.error.message}")
    return ran.outputs


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:199]}…"
