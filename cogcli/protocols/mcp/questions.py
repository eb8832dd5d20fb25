"""Questions that a server asks in the middle of a call (docs/reference/mcp.md#asked): by `elicitation/create` inside
the open call, or by an `InputRequiredResult`, after which the call is sent again with the answers.

1. A question is passed on only if the caller of the run takes questions. Else no server is told that it could ask.
2. One by `elicitation/create` belongs to the only call that is open. If several are, it is declined.
3. A form is passed on. An address is shown at a terminal, and otherwise declined. No one here opens it.
4. An answer that does not fit the form counts as none.
5. A server may ask 20 times in a call. Further questions are declined.
6. While a person at the terminal answers, the time limit of the call stands still, up to the seconds for answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from cogcli.base.calls import NO_ANSWER, QuestionAnswer, ServerQuestion, TakeQuestion
from cogcli.base.schema import validator
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.protocols.mcp.input_forms import MOST_FORMS, find_form, is_web_address
from cogcli.protocols.mcp.tool_result import InputDemand
from cogcli.protocols.mcp.traffic import McpExchange, McpTraffic

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

ANSWER_SECONDS: Final = 110.0
"""Seconds that a person has for an answer. A call of a gateway may take 120."""
MOST_QUESTIONS: Final = 20
"""The questions by `elicitation/create` in one call that are passed on."""
_SHOWN: Final = 500
"""The characters of a question that the record of the call has."""


class QuestionRelay:
    """Passes the questions of one connection to the caller of the run, and the answers back."""

    def __init__(
        self,
        take: TakeQuestion,
        service_id: str,
        traffic: McpTraffic,
        mask: Callable[[Json], Json],
        *,
        shows_addresses: bool = False,
    ) -> None:
        """`mask` removes the secrets from the server's data."""
        self._take = take
        self._mask = mask
        self._shows_addresses = shows_addresses
        self._service_id = service_id
        self._traffic = traffic

    async def __call__(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        """Return the answer to a question. The SDK calls this."""
        from mcp_types import ElicitResult

        exchange = self._traffic.only_open
        if exchange is None:
            self._traffic.note("the server asked a question that belongs to no one call: declined")
            return ElicitResult(action="decline")
        exchange.questions += 1
        if exchange.questions > MOST_QUESTIONS:
            if exchange.questions == MOST_QUESTIONS + 1:
                text = f"the server asked more than {MOST_QUESTIONS} questions: the others are declined"
                exchange.notices.append(text)
            return ElicitResult(action="decline")
        return await self._find_answer(exchange, params)

    async def answer_all(
        self, exchange: McpExchange, result: Json
    ) -> dict[str, ElicitResult] | None:
        """Return the answers to the questions of an unfinished result, by their names. None if it is finished, or if it
        asks for anything else or for too much.
        """
        from mcp_types import ElicitRequest, InputRequiredResult

        if not read_record(InputDemand, result).is_unfinished:
            return None
        try:
            asked = InputRequiredResult.model_validate(result).input_requests or {}
        except ValueError:  # it has not the form of the protocol
            return None
        if len(asked) > MOST_FORMS:
            return None
        answers = {}
        for name, request in asked.items():
            if not isinstance(request, ElicitRequest):
                return None
            answers[name] = await self._find_answer(exchange, request.params)
        return answers

    async def _find_answer(
        self, exchange: McpExchange, params: ElicitRequestParams
    ) -> ElicitResult:
        """Return a person's answer to one question."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        asked = self._mask(params.model_dump(by_alias=True, mode="json"))
        if isinstance(params, ElicitRequestFormParams):
            answer = await self._ask_form(exchange, asked)
        elif self._shows_addresses and is_web_address(asked["url"]):
            answer = await self._ask_person(
                exchange, self._question(exchange, asked, url=asked["url"])
            )
        else:
            self._traffic.note("the server asked to open an address: declined")
            answer = QuestionAnswer("decline")
        return ElicitResult(action=answer.action, content=answer.content)

    async def _ask_form(self, exchange: McpExchange, asked: Json) -> QuestionAnswer:
        """Return a person's answer to a form. One that cannot be shown whole is declined."""
        if find_form("", asked) is None:
            self._traffic.note(
                "the server asked with a form that is too large or unusable: declined"
            )
            return QuestionAnswer("decline")
        schema = asked["requestedSchema"]
        answer = await self._ask_person(exchange, self._question(exchange, asked, schema))
        if answer.action == "accept" and validator.errors(schema, answer.content or {}):
            return NO_ANSWER
        return answer

    def _question(
        self, exchange: McpExchange, asked: Json, schema: Json | None = None, url: str = ""
    ) -> ServerQuestion:
        return ServerQuestion(
            exchange.step_id,
            self._service_id,
            asked["message"],
            schema or {},
            exchange.capability_id,
            url,
        )

    async def _ask_person(self, exchange: McpExchange, question: ServerQuestion) -> QuestionAnswer:
        """Return an answer, and record it: as events if a person at the terminal gave it, else as notices."""
        with clock_stopped(exchange):
            answer = await _wait_for(
                self._take(question), exchange.answer_seconds or ANSWER_SECONDS
            )
        if answer.by:
            exchange.answered.append((question, answer))
            return answer
        names = ", ".join(sorted(answer.content or {}))
        self._traffic.note(f"the server asked: {question.message[:_SHOWN]}")
        self._traffic.note(f"the answer: {answer.action}{f', with {names}' if names else ''}")
        return answer


async def _wait_for(answer: Future[QuestionAnswer], seconds: float) -> QuestionAnswer:
    """Return the answer, or NO_ANSWER after a time limit. A question without an answer in time is closed."""
    try:
        return await asyncio.wait_for(asyncio.wrap_future(answer), seconds)
    except TimeoutError:
        return NO_ANSWER


@contextmanager
def clock_stopped(exchange: McpExchange) -> Iterator[None]:
    """Let the time limit of a call stand still in this context, for the seconds for answers that are left."""
    scope, allowed = exchange.scope, exchange.answer_seconds
    if scope is None or not allowed:
        yield
        return
    now = asyncio.get_running_loop().time
    began = now()
    scope.deadline += allowed
    try:
        yield
    finally:
        used = min(now() - began, allowed)
        exchange.answer_seconds = allowed - used
        scope.deadline -= allowed - used
