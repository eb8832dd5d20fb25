"""The rules of `verify-invoker`: what an invoker promises, and the calls that show it
(docs/reference/protocols.md#own-rules).

A rule is data: its calls, the answers of the servers and what is expected.
`authoring/verification/harness.py` runs them, and so does `tests/contracts`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

from cogcli.base.errors import CogcliError
from cogcli.protocols.exchange import Answering, Reply, Seen, json_reply

PATIENT: Final = 10.0
"""Seconds by which a call with a timeout of a fraction of a second must have ended."""
SECRET: Final = "s3cr3t-of-the-bench"  # noqa: S105
ANY_ERROR: Final = "any"
DIRECTORY: Final = "{directory}"
"""In a call: the temporary directory of its rule."""
UNIQUE: Final = "{unique}"
"""In a call: a word that no other rule has, for names of modules."""
ELSEWHERE: Final = "{elsewhere}"
"""In a call or in the header of a reply: the address of the server that no request may reach."""
ANYTHING: Final = object()
"""Of outputs and requests: every value is right."""


class RuleCall(NamedTuple):
    """One call of one capability. Members of `binding`, `service`, `capability` and `step` are added to those that
    every call has."""

    url: str | None = None
    """The address of the service; None for that of the server."""
    protocol: str = "openapi"
    operation: str = "op"
    request: Mapping[str, Any] = {"a": "input.a"}
    response: Mapping[str, Any] = {"r": "response"}
    metadata: Mapping[str, Any] = {}
    service: Mapping[str, Any] = {}
    service_metadata: Mapping[str, Any] = {}
    network: str = "private"
    trusted: bool = True
    """Whether the service's layer is trusted."""
    effect: str = "none"
    input: Mapping[str, Any] = {"a": 1}
    capability: Mapping[str, Any] = {}
    config: Mapping[str, Any] = {}
    environ: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """The files of the layer, by name."""
    options: Mapping[str, Any] = {}
    step: Mapping[str, Any] = {}
    """Members that replace those of the one step."""
    nested: Mapping[str, Any] | None = None
    """Config of the step that nests a skill with the call, where the call is nested."""
    outputs: Mapping[str, Any] | None = None
    """The skill's declared outputs instead of the capability's."""
    without: tuple[str, ...] = ()
    """Kinds of specs to leave out: `bindings`, `services`."""
    rule: bool = True
    """Whether `--bind` names the binding."""
    extra: str = ""
    """The extra without which the call is left out."""


class RuleRun(Protocol):
    """What came of a call: its error or outputs, the seconds that each attempt had, and the runs directory."""

    @property
    def error(self) -> CogcliError | None: ...
    @property
    def outputs(self) -> dict[str, Any]: ...
    @property
    def seconds_given(self) -> list[float]: ...
    @property
    def runs_dir(self) -> str: ...


def succeed(seen: Seen) -> Reply:
    """The answer of a server that is content with everything."""
    return json_reply({"ok": True})


class RuleCase(NamedTuple):
    """One call and what is expected: an error, else outputs; and the requests that the server got.

    Replies in a sequence are given in turn, the last one again and again. Without `error` the call succeeds; `says` is
    in its message or hint. `sent` gives of the requests what must equal `wanted`. `within` bounds the seconds; `hidden`
    is in no file. `fault` gives what else is wrong, an empty text if nothing is. No request reaches `elsewhere`.
    """

    answering: Answering | Sequence[Reply] | None = succeed
    call: RuleCall = RuleCall()
    path: str = ""
    error: str | tuple[str, ...] = ""
    left: bool | None = None
    says: str = ""
    outputs: Any = ANYTHING
    sent: Callable[[Sequence[Seen]], Any] = len
    wanted: Any = ANYTHING
    within: float = 0.0
    hidden: str = ""
    fault: Callable[[RuleRun], str] = lambda ran: ""
    elsewhere: Answering | None = None


class InvokerRule(NamedTuple):
    """A rule as a short text, and the cases that show it, run in order."""

    rule: str
    cases: tuple[RuleCase, ...]


InvokerRules = Mapping[str, InvokerRule]
