"""The rules of `verify-invoker`: promises of an invoker, and the calls that prove them
(docs/reference/protocols.md#own-rules).

A rule is data: its calls, the answers of the servers and what is expected.
`authoring/verification/harness.py` runs them, and so does `tests/contracts`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from cogcli.base.errors import CogcliError
from cogcli.base.named_tuple import NamedTuple
from cogcli.protocols.exchange import ReceivedRequest, Responder, ServerReply, json_reply

PATIENT: Final = 10.0
"""Seconds by which a call with a timeout of a fraction of a second must end."""
SECRET: Final = "s3cr3t-of-the-bench"  # noqa: S105
ANY_ERROR: Final = "any"
DIRECTORY: Final = "{directory}"
"""The placeholder in a call for the temporary directory of its rule."""
UNIQUE: Final = "{unique}"
"""The placeholder in a call for a word that no other rule has, for names of modules."""
ELSEWHERE: Final = "{elsewhere}"
"""The placeholder in a call or a reply header for the address of a server that no request may
reach."""
ANYTHING: Final = object()
"""The expectation of outputs or requests that accepts every value."""


class RuleCall(NamedTuple):
    """One call of one capability.

    Members of `service`, `capability` and `step` are added to the default ones."""

    url: str | None = None
    """The address of the service; None for the address of the server."""
    protocol: str = "openapi"
    operation: str = "op"
    request: Mapping[str, object] = {"a": "input.a"}
    response: Mapping[str, object] = {"r": "response"}
    metadata: Mapping[str, object] = {}
    page: Mapping[str, object] | None = None
    """The `page` of the binding."""
    service: Mapping[str, object] = {}
    service_metadata: Mapping[str, object] = {}
    network: str = "private"
    trusted: bool = True
    """Whether the service's layer is trusted."""
    effect: str = "none"
    input: Mapping[str, object] = {"a": 1}
    capability: Mapping[str, object] = {}
    config: Mapping[str, object] = {}
    environ: Mapping[str, str] = {}
    files: Mapping[str, str] = {}
    """The files of the layer, by name."""
    options: Mapping[str, Any] = {}
    step: Mapping[str, object] = {}
    """Members that replace those of the only step."""
    nested: Mapping[str, object] | None = None
    """The config of the step that nests a skill with the call; None if the call is not nested."""
    outputs: Mapping[str, object] | None = None
    """The declared outputs of the skill, instead of the capability's."""
    without: tuple[str, ...] = ()
    """Kinds of specs to leave out: `bindings`, `services`."""
    rule: bool = True
    """Whether `--bind` selects the binding."""
    extra: str = ""
    """The extra that the call requires; without it the call is skipped."""


class RuleRun(Protocol):
    """The result of a call: its error or outputs, the seconds of each attempt, and the runs
    directory."""

    @property
    def error(self) -> CogcliError | None: ...
    @property
    def outputs(self) -> Mapping[str, Any]: ...
    @property
    def time_limits(self) -> list[float]: ...
    @property
    def runs_dir(self) -> str: ...


def succeed(seen: ReceivedRequest) -> ServerReply:
    """Reply as a server that accepts every request."""
    return json_reply({"ok": True})


class RuleCase(NamedTuple):
    """One call and its expectations: an error or outputs, and the requests that the server received.

    Replies in a sequence are sent in order, and the last one repeats. Without `error` the call must succeed. Its
    message or hint must contain `says`. `sent` extracts a value from the requests that must equal `wanted`. `within`
    limits the seconds. No file may contain `hidden`. `fault` returns any other fault, empty for none. No request may
    reach `elsewhere`.
    """

    answering: Responder | Sequence[ServerReply] | None = succeed
    call: RuleCall = RuleCall()
    path: str = ""
    error: str | tuple[str, ...] = ""
    left: bool | None = None
    says: str = ""
    outputs: object = ANYTHING
    sent: Callable[[Sequence[ReceivedRequest]], object] = len
    wanted: object = ANYTHING
    within: float = 0.0
    hidden: str = ""
    fault: Callable[[RuleRun], str] = lambda ran: ""
    elsewhere: Responder | None = None


class InvokerRule(NamedTuple):
    """A rule as a short sentence, and the cases that prove it, run in order."""

    rule: str
    cases: tuple[RuleCase, ...]


InvokerRules = Mapping[str, InvokerRule]
