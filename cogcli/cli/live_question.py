"""Questions that a service asks inside an open call, prompted for at the terminal (docs/reference/mcp.md#live).

1. The call waits meanwhile, on another thread. So a question has a thread of its own, and they are asked one by one.
2. A question that is over, by its time limit or a signal, stops its prompt: what is typed later is for the next.
3. Addresses are shown, and never opened.
"""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Final

from cogcli.base import threads
from cogcli.base.calls import NO_ANSWER, QuestionAnswer, ServerQuestion
from cogcli.cli.context import CommandContext
from cogcli.cli.display import Display
from cogcli.cli.input_prompt import prompt_answer
from cogcli.cli.prompt import read_line
from cogcli.declarations.governance_events import InputForm, InputRequested
from cogcli.run.form_answers import fit_answer

_POLL_SECONDS: Final = 0.1
_NAME: Final = "question"
_asking: Final = Lock()
"""Held by the question that is on the terminal."""


def take_question(
    context: CommandContext, display: Display, question: ServerQuestion
) -> Future[QuestionAnswer]:
    """Return the answer to a question of a service, for which a new thread prompts, below the run's display."""
    answer: Future[QuestionAnswer] = Future()
    try:
        threads.start(_prompt, context, display, question, answer, name="question")
    except threads.NoThread:
        answer.set_result(NO_ANSWER)
    return answer


def _prompt(
    context: CommandContext,
    display: Display,
    question: ServerQuestion,
    answer: Future[QuestionAnswer],
) -> None:
    given = NO_ANSWER
    try:
        with _asking:
            if not answer.done():
                display.interrupt()
                given = _ask(context, question, _line_reader(answer))
                if answer.done():
                    context.screen.notify("the service waits for no answer any more\n")
    finally:
        if answer.set_running_or_notify_cancel():
            answer.set_result(given)


def _ask(
    context: CommandContext, question: ServerQuestion, read: Callable[[], str]
) -> QuestionAnswer:
    """Return what the person answers. The end of input decides nothing."""
    asked, by = _request_from(question), context.user
    decided = prompt_answer(context, asked, undecided="cancel", read=read)
    if decided is None:
        return QuestionAnswer("cancel", by=by)
    if decided.content is None:
        return QuestionAnswer("decline", by=by)
    content = None if question.url else fit_answer(asked.forms, decided.content)[_NAME]
    return QuestionAnswer("accept", content, by=by)


def _request_from(question: ServerQuestion) -> InputRequested:
    """Return a question as a request for input, which the screen shows."""
    form = InputForm(
        name=_NAME,
        message=question.message,
        fields=InputForm.fields_of_schema(question.schema),
        url=question.url or None,
    )
    return InputRequested(
        input_id="",
        step_id=question.step_id,
        capability=question.capability_id,
        binding="",
        service=question.service_id,
        attempt=1,
        forms=[form],
    )


def _line_reader(answer: Future[QuestionAnswer]) -> Callable[[], str]:
    """Return a function that reads the next typed line. Once the question is closed, it ends like the end of input."""

    def read() -> str:
        while not answer.done():
            # A terminal is readable once a whole line is typed.
            if select.select([sys.stdin], [], [], _POLL_SECONDS)[0]:
                return read_line()
        return ""

    return read
