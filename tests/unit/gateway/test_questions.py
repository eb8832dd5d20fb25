"""A question of a server waits at one call, and is answered once."""

from __future__ import annotations

from cogcli.base.calls import NO_ANSWER, QuestionAnswer, ServerQuestion
from cogcli.gateway.calls import CallBook

FIRST = ServerQuestion("c1", "files", "Who are you?", {})
SECOND = FIRST._replace(message="Are you sure?")
ADA = QuestionAnswer("accept", {"name": "Ada"})


def test_a_question_without_a_client_that_asks_has_no_answer() -> None:
    book = CallBook()
    assert book.ask(FIRST).result(0) == NO_ANSWER
    ticket, _ = book.join("files__read", {}, None)
    ticket.on_begin("c1")
    assert book.ask(FIRST).result(0) == NO_ANSWER
    assert ticket.question is None


def test_a_late_answer_counts_for_no_other_question() -> None:
    book = CallBook()
    ticket, _ = book.join("files__read", {}, None)
    ticket.on_begin("c1")
    ticket.answerers = 2
    first = book.ask(FIRST)
    assert ticket.question is FIRST
    assert ticket.questioned.done()
    assert book.ask(SECOND).result(0) == NO_ANSWER
    ticket.close_question(FIRST, ADA)
    assert first.result(0) == ADA
    assert not ticket.questioned.done()
    second = book.ask(SECOND)
    ticket.close_question(FIRST, ADA)  # of a client that answers late
    assert not second.done()
    second.cancel()  # its time is over
    assert ticket.question is None
    ticket.close_question(SECOND, ADA)
    assert book.ask(FIRST).done() is False
