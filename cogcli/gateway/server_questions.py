"""Questions that a server asks inside a call, passed to the person at the client with `--ask-client`
(docs/reference/gateway.md#questions).

The client reads which server asks. What the person answers goes to that server, and decides nothing here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types

from cogcli.base.calls import QuestionAnswer, ServerQuestion
from cogcli.base.canonical import digest_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.gateway.calls import CallTicket
from cogcli.gateway.client_approval import ask_person, is_modern

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    ClientRequest = ServerRequestContext[Any, Any]

_NAME: Final = "question"


class QuestionForm(NamedTuple):
    """A question of a server, as the person at the client reads it."""

    tool: str
    asked: ServerQuestion

    @property
    def params(self) -> types.ElicitRequestFormParams:
        """The question, with the name of the server that asks it."""
        asked = self.asked
        text = f"Server {asked.service_id} asks, in a call of {self.tool}:\n{asked.message}"
        return types.ElicitRequestFormParams(message=text, requested_schema=asked.schema)

    @property
    def state(self) -> str:
        """The text that a client returns with the answer."""
        return f"{_NAME}:{self.asked.step_id}:{digest_of([self.asked.message, self.asked.schema])}"

    def as_result(self) -> types.InputRequiredResult:
        """Return the question as the result of the call, for a client of 2026-07-28."""
        request = types.ElicitRequest(params=self.params)
        return types.InputRequiredResult(input_requests={_NAME: request}, request_state=self.state)


async def pass_question(
    ticket: CallTicket,
    client: ClientRequest,
    params: types.CallToolRequestParams,
    seconds: float,
) -> types.InputRequiredResult | None:
    """Pass the open question of a call to the person at the client, and the answer to the server.

    Return the question if the client has to ask, and to call again.
    """
    asked = ticket.question
    if asked is None:
        return None
    form = QuestionForm(params.name, asked)
    if not is_modern(client):
        result = await ask_person(client, form.params, seconds)
    elif params.request_state != form.state:
        return form.as_result()
    else:
        given = (params.input_responses or {}).get(_NAME)
        cancelled = types.ElicitResult(action="cancel")
        result = given if isinstance(given, types.ElicitResult) else cancelled
    content = dict(result.content) if result.content is not None else None
    ticket.close_question(asked, QuestionAnswer(result.action, content))
    return None
