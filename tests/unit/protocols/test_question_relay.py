"""The questions of a server inside a call: how many reach a person."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

anyio = pytest.importorskip("anyio")
types = pytest.importorskip("mcp_types")

from cogcli.base.calls import QuestionAnswer, ServerQuestion  # noqa: E402
from cogcli.protocols.mcp.questions import MOST_QUESTIONS, QuestionRelay  # noqa: E402
from cogcli.protocols.mcp.traffic import CALL, McpTraffic, in_progress  # noqa: E402

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


def test_a_server_that_asks_without_end_is_declined() -> None:
    shown: list[ServerQuestion] = []

    def take(question: ServerQuestion) -> Future[QuestionAnswer]:
        shown.append(question)
        answer: Future[QuestionAnswer] = Future()
        answer.set_result(QuestionAnswer("accept", {"name": "Ada"}))
        return answer

    traffic = McpTraffic()
    exchange = traffic.open()
    asked = types.ElicitRequestFormParams(message="Who?", requested_schema=FORM)

    async def main() -> list[str]:
        in_progress.set(exchange)
        traffic.register(types.JSONRPCRequest(jsonrpc="2.0", id=1, method=CALL))
        relay = QuestionRelay(take, "web", traffic, lambda value: value)
        return [(await relay(None, asked)).action for _ in range(MOST_QUESTIONS + 5)]

    actions = anyio.run(main)
    assert actions == ["accept"] * MOST_QUESTIONS + ["decline"] * 5
    assert len(shown) == MOST_QUESTIONS
    assert [each for each in traffic.notices_of(exchange) if "more than" in each] == [
        f"the server asked more than {MOST_QUESTIONS} questions: the others are declined"
    ]
