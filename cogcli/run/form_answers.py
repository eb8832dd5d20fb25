"""Answers of people to what services ask for in the middle of a call (docs/reference/execution.md#input).

All answers are checked before the first event is appended. Secrets in them are masked in the log, and stay whole in the
memory of this process, which sends them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cogcli.base.errors import UsageError
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.schema import validator
from cogcli.base.system import current_user
from cogcli.base.terminal_text import visible
from cogcli.declarations.envelope import Event, draft_of
from cogcli.declarations.governance_events import InputForm, InputGiven, InputRequested
from cogcli.declarations.value_types import Json
from cogcli.episode.history import input_flags
from cogcli.episode.journal import Journal
from cogcli.run.log_index import LogIndex


class FormAnswer(NamedTuple):
    """A person's answer to what a service asked for. A `step` of None means the only open request."""

    step: str | None
    content: Json | None
    """The values by field; with several forms the values by form. None declines."""


class CheckedAnswer(NamedTuple):
    """An answer that fits its forms, by the names of the forms."""

    asked: Event
    content: Json | None

    def record(self, journal: Journal, log: LogIndex, by: str) -> None:
        """Append the answer, synced, and index it with its secrets."""
        request, user = InputRequested.of(self.asked.payload), current_user()
        nothing: Json = {form.name: {} for form in request.forms}
        payload = InputGiven(
            input_id=request.input_id,
            step_id=request.step_id,
            action="decline" if self.content is None else "accept",
            answers=nothing if self.content is None else self.content,
            by=by,
            os_uid=user.uid,
            os_user=user.name or None,
        )
        draft = draft_of(
            payload,
            self.asked.run_id or "",
            step_id=request.step_id,
            speaker=f"human:{by}",
            caused_by=self.asked.id,
        )
        journal.append(draft, durable=True)
        log.index_input(payload.input_id, payload.action, payload.answers)


def match_inputs(
    log: LogIndex, answers: Iterable[FormAnswer], episode: str
) -> tuple[CheckedAnswer, ...]:
    """Return the answers with the requests that they are for.

    Raise UsageError `usage.value` for an answer that fits no form, or without a step while several requests are open;
    `step.unknown` for a step that asks for nothing; `usage.flag` for two answers to one request.
    """
    waiting = {InputRequested.of(each.payload).step_id: each for each in log.open_inputs}
    found: dict[str, CheckedAnswer] = {}
    for answer in answers:
        step = answer.step
        if step is None and len(waiting) == 1:
            step = next(iter(waiting))
        if step is None or step not in waiting:
            raise _unmatched_error(step, waiting, episode)
        if step in found:
            raise UsageError(
                "usage.flag", f"`--answer` is given twice for `{step}`", hint="keep one answer"
            )
        asked = waiting[step]
        forms = InputRequested.of(asked.payload).forms
        content = None if answer.content is None else fit_answer(forms, answer.content)
        found[step] = CheckedAnswer(asked, content)
    return tuple(found.values())


def fit_answer(forms: Sequence[InputForm], content: Json) -> Json:
    """Return an answer by the names of the forms, with the defaults of missing fields. Raise UsageError if it does not
    fit.
    """
    by_form = {forms[0].name: content} if len(forms) == 1 else content
    if by_form.keys() != {form.name for form in forms}:
        names = ", ".join(f"`{visible(form.name)}`" for form in forms)
        raise UsageError(
            "usage.value",
            f"`--answer` is for {len(forms)} forms",
            expected=f"an object with {names}, each with the values of its fields",
        )
    return {form.name: _fit_form(form, by_form[form.name]) for form in forms}


def _fit_form(form: InputForm, content: object) -> Json:
    values = dict(content) if isinstance(content, dict) else {}
    defaults = {
        field.name: field.accepts["default"]
        for field in form.fields
        if field.name not in values and "default" in field.accepts
    }
    values |= defaults
    found = validator.errors(form.schema, values if isinstance(content, dict) else content)
    if found:
        place, message = found[0]
        raise UsageError(
            "usage.value",
            f"`--answer` does not fit what is asked: {visible(f'{place} {message}'.strip())}",
            expected=describe_fields(form),
        )
    return values


def describe_fields(form: InputForm) -> str:
    """Return the fields of a form in one line, such as `name: string, age?: integer`."""
    shown = (
        f"{field.name}{'' if field.required else '?'}: {field.type_text}" for field in form.fields
    )
    return visible(", ".join(shown)) or "an empty object: {}"


def _unmatched_error(step: str | None, waiting: dict[str, Event], episode: str) -> UsageError:
    """Return the error for an answer that names no request, or does not say which."""
    if step is None and waiting:
        error = UsageError(
            "usage.value",
            f"`--answer`: {len(waiting)} services ask, and one answer is not for all",
            expected="STEP=JSON for each",
            found=", ".join(list(waiting)[:20]),
        )
    else:
        what = "no service asks for input" if step is None else f"step `{step}` asks for no input"
        expected = f"one of: {', '.join(list(waiting)[:20]) or 'nothing'}"
        error = UsageError("step.unknown", what, expected=expected)
    flags = input_flags([InputRequested.of(each.payload) for each in waiting.values()])
    error.next = tuple(f"cogcli resume {episode} {each}" for each in flags)
    error.next = error.next or (f"cogcli trace {episode}",)
    return error
