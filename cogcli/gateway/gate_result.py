"""What became of a call through a gate (docs/reference/api.md#gate-result)."""

from __future__ import annotations

from typing import Final, Literal

from cogcli.base.canonical import text_from
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.gateway.calls import CallResult, CallTicket

GateStatus = Literal["done", "denied", "pending", "failed", "in_doubt"]
_STATUSES: Final[dict[str, GateStatus]] = {
    "done": "done",
    "failed": "failed",
    "pending": "in_doubt",
}
"""By the status of a call. Any other one is a call that was not made."""
_NOT_MADE: Final = "call.not-made"


class GateResult(NamedTuple):
    """The result of one call.

    `done`: it was allowed and made. `denied`: a rule, a gate, a budget or a person refused it, and
    it was not made. `pending`: it waits for a person, and was not made. `failed`: it was made, or
    could not be. `in_doubt`: it may have happened, and is not made again.
    """

    status: GateStatus
    output: Json | None = None
    """The outputs of the capability if the call is done."""
    code: str = ""
    """The stable code of the error, such as `policy.denied`. Empty if the call is done."""
    reason: str = ""
    """The reason why the call was not made, for people who run the agent."""
    say: str = ""
    """The text of the pack for the customer."""
    approval_id: str = ""
    next: str = ""
    """The command by which a person decides."""
    episode: str = ""
    step: str = ""
    is_masked: bool = False
    """Whether a rule masked a part of the output."""
    is_shadow: bool = False
    """Whether no rule of the pack was enforced."""

    @property
    def is_done(self) -> bool:
        """Whether the call was allowed and made."""
        return self.status == "done"

    @property
    def verdict(self) -> Json:
        """The verdict in the form of AGENT-HOOKS 0.1: allow, deny, a deny that an approval can change, or transform."""
        if self.status == "pending":
            return {"decision": "deny", "reason": self.code, "approval": {}}
        if self.status != "done":
            return {"decision": "deny", "reason": self.code}
        if self.is_masked:
            transform = {"path": "$target", "value": self.output}
            return {"decision": "transform", "reason": "policy.masked", "transform": transform}
        return {"decision": "allow"}

    @property
    def text(self) -> str:
        """The text that a model reads as the result of its tool."""
        if self.output is not None:
            only = next(iter(self.output.values())) if len(self.output) == 1 else self.output
            return text_from(only)
        lines = [f"{self.status}[{self.code}]: {self.reason}"]
        lines += [_ADVICE[self.status]]
        lines += [f"a person decides: {self.next}"] if self.next else []
        return "\n".join(lines)

    def require(self) -> Json:
        """Return the output. Raise CallRefused if the call has no output."""
        if self.output is None:
            raise CallRefused(self)
        return self.output


_ADVICE: Final[dict[GateStatus, str]] = {
    "done": "",
    "denied": "Nothing was called. Do not try to reach the same by another tool; tell your user.",
    "pending": "Nothing was called yet. Tell your user, go on with something else, and make the same call later.",
    "failed": "The call failed.",
    "in_doubt": "Whether the call happened is not known. Do not make it again; tell your user.",
}


class CallRefused(Exception):
    """Raised for a call that was not made. `result` contains the reason."""

    def __init__(self, result: GateResult) -> None:
        super().__init__(result.text)
        self.result = result


def result_from_pending(ticket: CallTicket, episode: str) -> GateResult:
    """Return the result of a call that waits for a person."""
    id = ticket.approval_id
    return GateResult(
        "pending",
        code="policy.approval",
        reason=f"this call waits for a person's approval ({id})",
        approval_id=id,
        next=f"cogcli approvals approve {id}",
        episode=episode,
        step=ticket.step_id,
    )


def result_from_call(result: CallResult, episode: str) -> GateResult:
    """Return the result of a call that has ended."""
    status, error = _STATUSES.get(result.status, "denied"), result.error
    found = GateResult(status, episode=episode, step=result.step_id)
    if status == "done":
        return found._replace(output=result.output or {}, is_masked=result.is_masked)
    if error is None:
        reason = result.detail or "the session ended before the call was made"
        return found._replace(code=_NOT_MADE, reason=reason)
    if status == "in_doubt":
        found = found._replace(next=f"cogcli resume {episode} --in-doubt done|rerun|skip|fail")
    hint = f" ({error.hint})" if error.hint and status == "failed" else ""
    return found._replace(code=error.code, reason=f"{error.message}{hint}", say=error.say)


def result_of_unknown_argument(capability: str, name: str) -> GateResult:
    """Return the result of a call with an argument that its capability does not have."""
    reason = f"`{capability}` has no argument `{name[:60]}`"
    return GateResult("failed", code="request.value", reason=reason)


def result_of_unknown(capability: str) -> GateResult:
    """Return the result of a call of a capability that the session does not have."""
    reason = f"the pack has no capability `{capability[:120]}`"
    return GateResult("denied", code="capability.unknown", reason=reason)
