"""Approval by the person at the client, with `--ask-client` (docs/reference/gateway.md#ask-client).

1. It is off by default, since the client may be the agent. A gate with roles is never answered here, nor one that the
   requester may not answer.
2. The person reads the exact action. The answer is bound to the request and to the hash of the action.
3. The answer is recorded as unauthenticated: no one has proven who gave it.
4. A client of 2026-07-28 gets an `input_required` result, and sends the answer with the same call. The SDK signs the
   state that it sends back. An earlier client gets `elicitation/create` while its call is held.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.governance_events import ApprovalRequested
from cogcli.gateway.calls import PersonAnswer
from cogcli.run.answers import Approver
from cogcli.specs.unchecked import value_at

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    ClientRequest = ServerRequestContext[Any, Any]

MODERN: Final = "2026-07-28"
_NAME: Final = "approval"
_APPROVE: Final = "approve"
_BY: Final = "unauthenticated"
_LONGEST: Final = 4000
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        _APPROVE: {
            "type": "boolean",
            "title": "Approve this one action",
            "description": "Yes: it is made now, once. No: it is not made.",
            "default": False,
        }
    },
    "required": [_APPROVE],
}


class ClientQuestion(NamedTuple):
    """A request for approval, as the person at the client reads it."""

    tool: str
    asked: ApprovalRequested

    @property
    def is_allowed(self) -> bool:
        """Whether the person at the client may answer: no role is needed, and the requester may approve. An action too
        long to display whole must not be approved this way.
        """
        asked = self.asked
        needs_other = asked.approver_roles is not None and not asked.allow_self
        return (
            not asked.approver_roles and not needs_other and len(self._arguments_text) <= _LONGEST
        )

    @property
    def _arguments_text(self) -> str:
        return json.dumps(self.asked.input, ensure_ascii=True, indent=2, sort_keys=True)

    @property
    def params(self) -> types.ElicitRequestFormParams:
        """The question, with the exact action."""
        asked = self.asked
        text = (
            f"Approve this one call of {self.tool}?\n{self._arguments_text}\n"
            f"Why it asks: {asked.reason}\n{asked.approval_id}, action {asked.action_hash}"
        )
        return types.ElicitRequestFormParams(message=text, requested_schema=_SCHEMA)

    def as_result(self) -> types.InputRequiredResult:
        """Return the question as the result of the call, for a client of 2026-07-28."""
        request = types.ElicitRequest(params=self.params)
        return types.InputRequiredResult(input_requests={_NAME: request}, request_state=self.state)

    @property
    def state(self) -> str:
        """The text that a client returns with the answer."""
        return json.dumps([self.asked.approval_id, self.asked.action_hash])

    def answer_from_params(self, params: types.CallToolRequestParams) -> PersonAnswer | None:
        """Return the answer that a client sent with its call; None if it has none for this request and action."""
        if params.request_state != self.state:
            return None
        response = (params.input_responses or {}).get(_NAME)
        return (
            self.answer_from_result(response) if isinstance(response, types.ElicitResult) else None
        )

    def answer_from_result(self, result: types.ElicitResult) -> PersonAnswer | None:
        """Return the person's answer; None if the person has not decided."""
        if result.action == "cancel":
            return None
        granted = result.action == "accept" and value_at(result.content, _APPROVE) is True
        reason = "answered at the client, which proves no identity"
        return PersonAnswer(self.asked.approval_id, granted, Approver(_BY, reason))


def can_ask(client: ClientRequest) -> bool:
    """Return whether a client declares that it can ask its user."""
    capabilities = client.session.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None


def is_modern(client: ClientRequest) -> bool:
    """Return whether a client supports `input_required` results."""
    return client.protocol_version >= MODERN


async def ask_person(
    client: ClientRequest, params: types.ElicitRequestFormParams, seconds: float
) -> types.ElicitResult:
    """Ask the person at the client. Return a `cancel` result if the person does not decide within `seconds`, or cannot
    be asked.
    """
    try:
        async with asyncio.timeout(seconds):
            return await client.session.elicit_form(
                params.message, params.requested_schema, client.request_id
            )
    except (MCPError, TimeoutError):
        return types.ElicitResult(action="cancel")
