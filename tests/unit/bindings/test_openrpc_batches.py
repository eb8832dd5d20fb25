"""Calls of one foreach in one array: what goes out, and whose answer is whose (docs/reference/protocols.md#batch)."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.invoking import Caller, calling
from support.raw_server import Conversation, serving

from cogcli.core.calls import Cancellation, Siblings
from cogcli.core.errors import RuntimeErrorBase
from cogcli.protocols.invoker import InvocationResponse

DOCUMENT = """
openrpc: "1.3.2"
info: {title: Doubles, version: "1"}
x-batch: true
methods:
  - name: double
    params: [{name: n, required: true, schema: {type: integer}}]
    result: {name: twice, schema: {type: integer}}
  - name: log
    params: [{name: n, schema: {type: integer}}]
"""

Got = InvocationResponse | RuntimeErrorBase


def one(call: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": call["id"], "result": call["params"]["n"] * 2} | members


def doubling(conversation: Conversation) -> None:
    """A server that answers arrays from the back."""
    asked = json.loads(conversation.body)
    told = [one(call) for call in reversed(asked)] if isinstance(asked, list) else one(asked)
    conversation.reply(json.dumps(told).encode())


def together(call: Caller, numbers: list[int], operation: str = "double", **rest: Any) -> list[Got]:
    """What calls get that were announced together, each made by a thread of its own."""
    siblings = Siblings(len(numbers))
    places = [siblings.announce() for _ in numbers]
    got: dict[int, Got] = {}

    def make(index: int) -> None:
        try:
            got[index] = call(operation, {"n": numbers[index]}, place=places[index], **rest)
        except RuntimeErrorBase as error:
            got[index] = error
        finally:
            places[index].settle()

    threads = [threading.Thread(target=make, args=(index,)) for index in range(len(numbers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return [got[index] for index in range(len(numbers))]


def bodies(got: list[Got]) -> list[Any]:
    return [each.body if isinstance(each, InvocationResponse) else each.code for each in got]


@contextmanager
def served(answer: Any, folder: Path, document: str = DOCUMENT) -> Iterator[tuple[Any, Caller]]:
    with serving(answer) as server, calling("openrpc", server.url, document=document, folder=folder) as call:
        yield server, call


def sent(server: Any) -> list[Any]:
    """What was posted: numbers of one array sorted, a single call's number bare."""
    told = [json.loads(request.body) for request in server.requests]
    return [
        sorted(call["params"]["n"] for call in each) if isinstance(each, list) else each["params"]["n"]
        for each in told
    ]


def test_siblings_go_out_as_one_array_and_answers_may_come_in_any_order(tmp_path: Path) -> None:
    with served(doubling, tmp_path) as (server, call):
        got = together(call, [1, 2, 3, 4])
        assert bodies(got) == [2, 4, 6, 8]
        assert sent(server) == [[1, 2, 3, 4]]
        for n, each in enumerate(got, 1):
            assert isinstance(each, InvocationResponse)
            record = each.meta.to_payload()
            assert record["request"]["body"]["params"] == {"n": n}
            assert record["reply"]["body"]["result"] == 2 * n
            assert record["reply"]["body"]["id"] == record["request"]["body"]["id"]
            assert record["batch"]["calls"] == 4
            assert record["batch"]["request_bytes"] == len(server.requests[0].body)


def test_without_the_documents_word_each_call_goes_alone(tmp_path: Path) -> None:
    with served(doubling, tmp_path, DOCUMENT.replace("x-batch: true\n", "")) as (server, call):
        assert bodies(together(call, [1, 2])) == [2, 4]
        assert sorted(sent(server)) == [1, 2]


@pytest.mark.parametrize("effect", ["effect", "unknown"])
def test_what_may_not_happen_twice_goes_alone(tmp_path: Path, effect: str) -> None:
    with served(doubling, tmp_path) as (server, call):
        assert bodies(together(call, [1, 2], effect=effect)) == [2, 4]
        assert sorted(sent(server)) == [1, 2]


def test_notifications_go_alone(tmp_path: Path) -> None:
    with served(lambda c: c.send(b"HTTP/1.1 204 No Content\r\n\r\n"), tmp_path) as (server, call):
        assert bodies(together(call, [1, 2], "log")) == [{}, {}]
        assert len(server.requests) == 2


def test_of_idempotent_calls_all_keys_are_told(tmp_path: Path) -> None:
    with served(doubling, tmp_path) as (server, call):
        together(call, [1, 2], effect="idempotent", key="run_1:s#0")
        assert server.requests[0].headers["idempotency-key"] == "run_1:s#0, run_1:s#0"


def test_one_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    with served(doubling, tmp_path) as (server, call):
        siblings = Siblings(8)
        other, place = siblings.announce(), siblings.announce()
        other.settle()
        assert call("double", {"n": 4}, place=place).body == 8
        assert sent(server) == [4]


def spoilt(spoil: Any) -> Any:
    """A server that answers arrays wrongly, and single calls well."""

    def answer(conversation: Conversation) -> None:
        asked = json.loads(conversation.body)
        if isinstance(asked, list):
            conversation.reply(json.dumps(spoil([one(call) for call in asked])).encode())
        else:
            conversation.reply(json.dumps(one(asked)).encode())

    return answer


@pytest.mark.parametrize(
    "spoil",
    [
        lambda answers: answers[0],
        lambda answers: {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no arrays"}},
        lambda answers: None,
        lambda answers: [],
        lambda answers: answers[1:],
        lambda answers: [7, "x", None, [], *answers[1:]],
        lambda answers: [answers[0] | {"id": str(answers[0]["id"])}, *answers[1:]],
        lambda answers: [answers[0] | {"id": 999}, *answers[1:]],
        lambda answers: [answers[0] | {"id": True}, *answers[1:]],
    ],
)
def test_what_an_array_does_not_answer_is_called_singly_and_so_is_the_rest(
    tmp_path: Path, spoil: Any
) -> None:
    with served(spoilt(spoil), tmp_path) as (server, call):
        assert bodies(together(call, [1, 2, 3])) == [2, 4, 6]
        asked = sent(server)
        assert asked[0] == [1, 2, 3]
        assert all(isinstance(each, int) for each in asked[1:])
        before = len(asked)
        got = together(call, [4, 5])
        assert bodies(got) == [8, 10]
        assert sorted(sent(server)[before:]) == [4, 5]
        assert isinstance(got[0], InvocationResponse)
        assert "called singly" in (got[0].meta.notices or [""])[0]


def test_two_answers_to_one_call_fail_that_call_alone(tmp_path: Path) -> None:
    with served(spoilt(lambda answers: [*answers, answers[0]]), tmp_path) as (server, call):
        got = together(call, [1, 2])
        assert sorted(map(str, bodies(got))) in (["2", "call.server-error"], ["4", "call.server-error"])
        (error,) = (each for each in got if isinstance(each, RuntimeErrorBase))
        assert "2 answers with the id" in error.message
        assert error.left is True
        assert len(server.requests) == 1


def test_one_calls_error_is_its_own(tmp_path: Path) -> None:
    def spoil(answers: list[Any]) -> list[Any]:
        return [
            {"jsonrpc": "2.0", "id": each["id"], "error": {"code": -32602, "message": "odd"}}
            if each["result"] == 2
            else each
            for each in answers
        ]

    with served(spoilt(spoil), tmp_path) as (server, call):
        got = together(call, [1, 2])
        assert bodies(got) == ["call.rejected", 4]
        assert isinstance(got[0], RuntimeErrorBase)
        record: Any = got[0].record
        assert record["reply"]["body"]["error"]["message"] == "odd"
        assert len(server.requests) == 1


@pytest.mark.parametrize("status", ["429 Slow", "503 Busy"])
def test_a_service_that_is_overloaded_is_not_asked_singly(tmp_path: Path, status: str) -> None:
    def busy(conversation: Conversation) -> None:
        conversation.reply(b"", status=status, headers="Retry-After: 7")

    with served(busy, tmp_path) as (server, call):
        got = together(call, [1, 2])
        assert bodies(got) == ["call.overloaded"] * 2
        assert got[0] is not got[1]
        assert [each.retry_after for each in got if isinstance(each, RuntimeErrorBase)] == [7, 7]
        assert len(server.requests) == 1


def test_a_lost_connection_fails_each_with_an_error_of_its_own(tmp_path: Path) -> None:
    with served(lambda c: c.close(), tmp_path) as (server, call):
        got = together(call, [1, 2])
        assert bodies(got) == ["call.transport"] * 2
        assert got[0] is not got[1]
        for n, each in enumerate(got, 1):
            assert isinstance(each, RuntimeErrorBase)
            record: Any = each.record
            assert each.left is True
            assert record["request"]["body"]["params"] == {"n": n}
            assert record["batch"]["calls"] == 2
        assert len(server.requests) == 1


def test_each_call_keeps_its_own_deadline(tmp_path: Path) -> None:
    with served(lambda c: c.hold() and None, tmp_path) as (_, call):
        assert bodies(together(call, [1, 2], seconds=0.3)) == ["call.timeout"] * 2


def test_one_given_up_leaves_the_others_their_answers(tmp_path: Path) -> None:
    going, patience = threading.Event(), threading.Event()

    def slow(conversation: Conversation) -> None:
        going.set()
        patience.wait(10)
        doubling(conversation)

    with served(slow, tmp_path) as (_, call):
        siblings = Siblings(2)
        cancels = [Cancellation(), Cancellation()]
        places = [siblings.announce(), siblings.announce()]
        got: dict[int, Any] = {}

        def make(index: int) -> None:
            try:
                got[index] = call("double", {"n": index}, place=places[index], cancel=cancels[index]).body
            except RuntimeErrorBase as error:
                got[index] = error.code

        threads = [threading.Thread(target=make, args=(index,)) for index in (0, 1)]
        for thread in threads:
            thread.start()
        assert going.wait(10)
        cancels[1].set()
        patience.set()
        for thread in threads:
            thread.join(10)
        assert got == {0: 0, 1: "call.transport"}


def test_when_all_are_given_up_the_connection_ends(tmp_path: Path) -> None:
    closed = threading.Event()
    going = threading.Event()

    def silent(conversation: Conversation) -> None:
        going.set()
        if conversation.hold():
            closed.set()

    with served(silent, tmp_path) as (_, call):
        siblings = Siblings(2)
        cancels = [Cancellation(), Cancellation()]
        places = [siblings.announce(), siblings.announce()]
        codes: list[str] = []

        def make(index: int) -> None:
            codes.append(
                call.failure("double", {"n": index}, place=places[index], cancel=cancels[index]).code
            )

        threads = [threading.Thread(target=make, args=(index,)) for index in (0, 1)]
        for thread in threads:
            thread.start()
        assert going.wait(10)
        for cancel in cancels:
            cancel.set()
        for thread in threads:
            thread.join(10)
        assert closed.wait(10)
        assert codes == ["call.transport"] * 2


def test_an_array_keeps_the_bounds_of_a_request(tmp_path: Path) -> None:
    with served(doubling, tmp_path) as (server, call):
        size = len(b'{"jsonrpc":"2.0","method":"double","params":{"n":1},"id":1}')
        got = together(call, [1, 2, 3, 4, 5], max_request_bytes=2 * size + 10)
        assert bodies(got) == [2, 4, 6, 8, 10]
        assert all(len(request.body) <= 2 * size + 10 for request in server.requests)


def test_answers_too_large_together_are_fetched_singly(tmp_path: Path) -> None:
    with served(doubling, tmp_path) as (server, call):
        assert bodies(together(call, [1, 2, 3, 4], max_response_bytes=100)) == [2, 4, 6, 8]
        assert sorted(sent(server)[1:]) == [1, 2, 3, 4]
