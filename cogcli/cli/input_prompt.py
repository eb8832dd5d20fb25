"""The forms that services ask a person to fill in the middle of a call: shown, and prompted for at the terminal
(docs/reference/execution.md#input).

The pause is on disk before the prompt, and the answer is an ordinary `resume`: closing the terminal loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from cogcli.base.errors import UsageError
from cogcli.base.terminal_text import visible
from cogcli.cli.approval_screen import input_lines
from cogcli.cli.context import CommandContext
from cogcli.cli.prompt import ask, ask_text, read_line
from cogcli.declarations.governance_events import InputField, InputForm, InputRequested
from cogcli.declarations.value_types import Json
from cogcli.run.form_answers import FormAnswer, fit_answer

_TRUE: Final = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


def report_inputs(
    context: CommandContext, requests: tuple[InputRequested, ...], *, writes_to_stderr: bool
) -> None:
    """Add the open requests for input to the envelope, and with `writes_to_stderr` print them, unless `-q`."""
    context.own["input_requests"] = [each.json for each in requests]
    if not writes_to_stderr or context.screen.quiet:
        return
    for each in requests:
        for line in input_lines(context, each):
            context.screen.notify_line(line)


def prompt_answer(
    context: CommandContext,
    asked: InputRequested,
    *,
    undecided: str = "later",
    read: Callable[[], str] = read_line,
) -> FormAnswer | None:
    """Prompt for the answer to a request, and return it. Return None for the word `undecided`, its first letter or the
    end of input.

    `read` returns the lines that are typed. Ctrl-C raises KeyboardInterrupt.
    """
    for line in input_lines(context, asked):
        context.screen.notify_line(line)
    begin = "[y] done" if asked.forms[0].url else "[y] answer"
    question = f"Answer the service?  {begin}  [n] decline  [{undecided[0]}] {undecided} "
    while True:
        word = ask(context, question, read)
        if word == "n":
            return FormAnswer(asked.step_id, None)
        if word is None or word in (undecided, undecided[0]):
            return None
        if word != "y":
            continue
        content = _prompt_forms(context, asked, read)
        if content is None:
            return None
        try:
            fit_answer(asked.forms, content)
        except UsageError as error:
            context.screen.notify_line([(f"  {error.message}", "warning")])
        else:
            return FormAnswer(asked.step_id, content)


def _prompt_forms(
    context: CommandContext, asked: InputRequested, read: Callable[[], str]
) -> Json | None:
    """Return the values of all forms as `--answer` takes them; None at the end of input."""
    found: Json = {}
    for form in asked.forms:
        values = _prompt_form(context, form, read)
        if values is None:
            return None
        found[form.name] = values
    return found if len(asked.forms) > 1 else found[asked.forms[0].name]


def _prompt_form(context: CommandContext, form: InputForm, read: Callable[[], str]) -> Json | None:
    values: Json = {}
    for field in form.fields:
        text = ask_text(context, visible(f"  {field.name} ({field.type_text})"), read)
        if text is None:
            return None
        if text:
            values[field.name] = parse_field(field, text)
    return values


def parse_field(field: InputField, text: str) -> object:
    """Return the value written in a typed line. An invalid line is returned as text, which the check of the form then
    rejects.
    """
    kind = field.accepts.get("type")
    if kind == "boolean":
        return _TRUE.get(text.lower(), text)
    if kind == "array":
        return [part.strip() for part in text.split(",")]
    if kind == "string" or text in field.choices:
        return text
    try:
        return orjson.loads(text)
    except ValueError:
        return text
