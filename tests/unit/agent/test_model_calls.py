"""Model calls of a run: what is written, what is charged, what is asked again (docs/reference/models.md#calls)."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.language_model import FakeModel
from fakes.runner import ScriptedRunner
from fakes.runs import RUN_ID, engine_for, request
from fakes.sink import MemorySink
from fakes.specs import skill

from cogcli.agent.cognition.model_calls import AnsweredCall, ModelCalls, request_of_log
from cogcli.agent.models import port
from cogcli.agent.models.port import ModelError, ModelReply, ModelRequest, TokenUsage
from cogcli.declarations.envelope import row_of
from cogcli.run.engine.context import Engine
from cogcli.run.engine.effects import Effects, Spawn
from cogcli.run.engine.outcome import RunOutcome
from cogcli.run.engine.run import Limit, RootRun, execute

QUESTION = ModelRequest(
    ({"role": "user", "content": "what now?"},),
    (
        {
            "name": "login",
            "description": "",
            "parameters": {"properties": {"password": {"type": "string"}}},
        },
    ),
    {"type": "object"},
)
CALL = {"id": "c1", "name": "login", "args": {"password": "opensesame"}}
REPLY = ModelReply("so", (CALL,), "stop", TokenUsage(7, 3), "m", "r1")


def _ended() -> Effects:
    """A task that is over at once, and that nobody waited for: as a step that was cut off."""
    yield from ()


class Asking:
    """A program that asks the question this often."""

    def __init__(self, model: FakeModel, times: int = 1, on_response: Any = None) -> None:
        self._model, self._times, self._on_response = model, times, on_response
        self.answers: list[AnsweredCall] = []

    def limit(self, engine: Engine) -> Limit | None:
        return None

    def run(self, root: RootRun) -> Effects:
        yield Spawn(_ended())
        calls = ModelCalls(root, lambda known: self._model, self._on_response)
        for turn in range(1, self._times + 1):
            self.answers.append((yield from calls.ask(turn, "judgment", QUESTION)))
        return RunOutcome("ok", None, {})

    def end(self, root: RootRun, outcome: RunOutcome) -> RunOutcome:
        return outcome


def ask(
    model: FakeModel, times: int = 1, on_response: Any = None
) -> tuple[list[AnsweredCall], list[tuple[str, dict[str, Any]]]]:
    """What came of the questions, and the model events of the log."""
    program, engine = (
        Asking(model, times, on_response),
        engine_for(ScriptedRunner({}), [], [skill()], fast=False),
    )
    execute(engine, engine.plan_of(skill().id), request(), RUN_ID, program)
    assert isinstance(engine.sink, MemorySink)
    events = [(str(e.event_type), e.payload) for e in engine.sink.events]
    return program.answers, [each for each in events if each[0].startswith("model.")]


def test_a_question_is_written_before_it_leaves_and_what_is_sent_is_what_is_written() -> None:
    model = FakeModel(REPLY)
    (asked,), ((first, requested), (last, answered)) = ask(model)
    assert (first, last) == ("model.requested", "model.answered")
    assert (asked.outcome.reply, asked.tokens) == (REPLY, 10)
    (sent,) = model.asked
    assert (
        request_of_log(requested["request"])._replace(call_id="m1")
        == sent
        == QUESTION._replace(call_id="m1")
    )
    assert answered["request_hash"] == sent.request_hash
    assert answered["usage"] == {"llm_calls": 1, "tool_calls": 0, "tokens_in": 7, "tokens_out": 3}


def test_a_member_named_like_a_secret_is_kept_in_schemas_and_arguments() -> None:
    _, ((_, requested), (_, answered)) = ask(FakeModel(REPLY))
    assert '"password":{"type":"string"}' in requested["request"]["tools"]
    assert answered["reply"]["tool_calls"] == [{**CALL, "args": '{"password":"opensesame"}'}]


def test_a_busy_model_is_asked_again_and_each_try_is_counted() -> None:
    busy = ModelError("overloaded", "busy", retry_after=0.0)
    model = FakeModel(busy, busy, REPLY, REPLY)
    (asked, again), events = ask(model, 2)
    assert [name for name, _ in events] == [
        "model.requested", "model.retried", "model.retried", "model.answered", "model.requested", "model.answered",
    ]  # fmt: skip
    assert [payload["attempt"] for name, payload in events if name == "model.retried"] == [2, 3]
    assert events[3][1]["usage"]["llm_calls"] == 3
    assert (asked.outcome.reply, again.outcome.reply) == (REPLY, REPLY)
    assert [payload["call_id"] for name, payload in events if name == "model.requested"] == [
        "m1",
        "m2",
    ]


def test_a_wait_that_is_cut_says_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port, "_LONGEST_WAIT", 0.0)
    busy = ModelError("rate_limited", "busy", retry_after=900.0)
    _, events = ask(FakeModel(busy, REPLY))
    (retried,) = [payload for name, payload in events if name == "model.retried"]
    assert (retried["wait_ms"], retried["asked_ms"]) == (0, 900_000)
    assert "asked_ms" in row_of("model.retried").words


def test_an_error_is_an_outcome_and_costs_nothing() -> None:
    (asked,), (_, (_, answered)) = ask(FakeModel(ModelError("auth", "who are you?")))
    assert asked.outcome.error is not None
    assert (asked.outcome.error.kind, asked.tokens) == ("auth", 0)
    assert (answered["error"]["kind"], answered.get("reply")) == ("auth", None)


def test_three_failures_are_the_end_of_it() -> None:
    busy = ModelError("overloaded", "busy", retry_after=0.0)
    (asked,), events = ask(FakeModel(busy, busy, busy, REPLY))
    assert asked.outcome.error is not None
    assert len(events) == 4


def test_a_model_that_streams_shows_its_response_as_it_grows() -> None:
    seen: list[str] = []
    reply = REPLY._replace(text='{"response":"so"}')
    (asked,), _ = ask(FakeModel(reply, features=("stream",)), on_response=seen.append)
    assert (list(dict.fromkeys(seen)), asked.outcome.reply) == (["", "s", "so"], reply)


def test_a_long_reply_is_read_anew_for_some_of_its_letters_only() -> None:
    seen: list[str] = []
    reply = REPLY._replace(text='{"response":"' + "a long answer " * 1000 + '"}')
    (asked,), _ = ask(FakeModel(reply, features=("stream",)), on_response=seen.append)
    assert asked.outcome.reply == reply
    assert seen[-1] == "a long answer " * 1000, "the end is shown, too"
    assert 256 < len(seen) < len(reply.text) / 4
