"""A model whose answers are in a file (docs/reference/models.md#scripted)."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from typing import Annotated, Final

import orjson

from cogcli.agent.models.port import (
    FINISHES,
    KINDS,
    Delta,
    ModelError,
    ModelInfo,
    ModelReply,
    ModelRequest,
    TokenUsage,
    estimate_usage,
    finish_stream,
)
from cogcli.agent.models.settings import ModelContext, ModelSettings
from cogcli.base.calls import Cancellation
from cogcli.base.connections import GIVEN_UP
from cogcli.base.jsonvalue import MAX_INTEGER, NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.problems import ProblemsFound, sort_problems
from cogcli.base.yaml.reader import read_file
from cogcli.declarations.field import key
from cogcli.declarations.spec import Spec, SpecLimits
from cogcli.declarations.spec_types import FreeMembers, Words
from cogcli.declarations.value_types import Json
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import clean_value
from cogcli.specs.shape_check import check_shape
from cogcli.specs.shape_of_spec import shape_of_spec
from cogcli.specs.unchecked import objects_at

_PIECE: Final = re.compile(r"\s*\S+|\s+$")

Milliseconds = Annotated[int, SpecLimits(minimum=0, maximum=600_000)]
Tokens = Annotated[int, SpecLimits(minimum=0, maximum=MAX_INTEGER)]


class ScriptedCall(Spec):
    """A call that a reply asks for."""

    id: str = ""
    name: Words
    args: FreeMembers = NOTHING


class ScriptedUsage(Spec):
    """The tokens of a call."""

    tokens_in: Tokens
    tokens_out: Tokens


class ScriptedError(Spec):
    """The error with which a call fails."""

    kind: Annotated[str, SpecLimits(choices=tuple(KINDS))]
    message: Words | None = None
    retryable: bool | None = None
    retry_after: Annotated[float, SpecLimits(minimum=0, maximum=3600)] | None = None


class ScriptEntry(Spec):
    """The answer to a call. An empty `when` selects the call by its number."""

    when: Annotated[tuple[Words, ...], SpecLimits(minimum=1)] = ()
    times: Annotated[int, SpecLimits(minimum=1, maximum=1000)] = 1
    """The number of consecutive calls that it answers."""
    value: FreeMembers | None = key(default=None, name="json")
    written: str = key(default="", name="text")
    calls: Annotated[tuple[ScriptedCall, ...], SpecLimits(minimum=1)] = key(
        default=(), name="tool_calls"
    )
    finish: Annotated[str, SpecLimits(choices=FINISHES)] = ""
    usage: ScriptedUsage | None = None
    error: ScriptedError | None = None
    delay_ms: Milliseconds = 0
    pause_ms: Milliseconds = 0

    @property
    def text(self) -> str:
        """The text of the reply."""
        return self.written if self.value is None else orjson.dumps(self.value).decode()

    @property
    def tool_calls(self) -> tuple[Json, ...]:
        """The calls that the reply asks for, each with an id."""
        return tuple(
            {"id": call.id or f"call_{number}", "name": call.name, "args": call.args}
            for number, call in enumerate(self.calls, 1)
        )


class ScriptFile(Spec):
    """A script as its file declares it."""

    replies: Annotated[tuple[ScriptEntry, ...], SpecLimits(minimum=1)]


SCRIPT: Final = shape_of_spec(ScriptFile)


class Script(NamedTuple):
    """A script, with repeated entries for `times`."""

    shown: str
    by_words: tuple[ScriptEntry, ...]
    by_number: tuple[ScriptEntry, ...]

    def entry(self, number: int, request: ModelRequest) -> ScriptEntry:
        """Return the answer to call `number`, from 1: the first one whose words are all in the prompt, else the
        one with that number. Raise ModelError.
        """
        prompt = "\n".join(message["content"] for message in request.messages).casefold()
        for entry in self.by_words:
            if all(word.casefold() in prompt for word in entry.when):
                return entry
        if number <= len(self.by_number):
            return self.by_number[number - 1]
        text = f"{self.shown} has no reply for call {number}"
        raise ModelError("bad_request", text, hint="add a reply to the script, or `times` to one")


def open_adapter(settings: ModelSettings, context: ModelContext) -> ScriptedModel:
    """Return the model of a script file. Raise ProblemsFound with every fault and its place."""
    return ScriptedModel(read_script(settings.file, settings.name), settings, context)


def read_script(path: str, display_path: str) -> Script:
    """Return the script in a file. Raise ProblemsFound with every fault and its place."""
    _, parsed = read_file(path, file=display_path)
    report = ProblemReport(display_path, parsed.places, subject="script")
    if parsed.value is not None:
        check_shape(SCRIPT, parsed.value, report)
        _check_entries(parsed.value, report)
    if problems := sort_problems([*parsed.problems, *report.problems]):
        raise ProblemsFound(problems)
    entries = ScriptFile.of(clean_value(SCRIPT, parsed.value)).replies
    by_number = [entry for entry in entries if not entry.when for _ in range(entry.times)]
    return Script(display_path, tuple(entry for entry in entries if entry.when), tuple(by_number))


def _check_entries(raw: Json, report: ProblemReport) -> None:
    """Report entries that answer no call, or that answer one twice. The shape checks everything else."""
    for number, entry in objects_at(raw, "replies"):
        place = ("replies", number)
        if not entry.keys() & {"json", "text", "tool_calls", "error"}:
            hint = "give one of json, text, tool_calls, error"
            report.error("key.missing", place, f"`replies.{number}` answers nothing", hint=hint)
        for name, other, why in (
            ("text", "json", "is the text already"),
            ("times", "when", "answers each call whose prompt holds its words"),
        ):
            if name in entry and other in entry:
                message = f"`replies.{number}`: `{name}` beside `{other}`, which {why}"
                report.error(
                    "key.unknown", (*place, name), message, hint=f"remove {name}", key=True
                )


class ScriptedModel:
    """Answers by the number of the call and by words of the prompt. Equal requests get equal answers at equal
    numbers."""

    def __init__(self, script: Script, settings: ModelSettings, context: ModelContext) -> None:
        self._script = script
        self._settings = settings
        self._count = context.count
        self._lock = threading.Lock()
        self._calls = context.sent

    def describe(self) -> ModelInfo:
        tokens = self._settings.context_tokens
        return ModelInfo("scripted", self._settings.name, tokens, True, ("stream", "tools", "json"))

    def generate(self, request: ModelRequest, cancel: Cancellation) -> ModelReply:
        return finish_stream(self.stream(request, cancel))

    def stream(
        self, request: ModelRequest, cancel: Cancellation
    ) -> Generator[Delta, None, ModelReply]:
        with self._lock:
            self._calls += 1
            number = self._calls
        entry = self._script.entry(number, request)
        _sleep(entry.delay_ms, request.timeout_ms, cancel)
        for piece in _PIECE.findall(entry.text):
            yield Delta(piece)
            _sleep(entry.pause_ms, request.timeout_ms, cancel)
        if entry.error is not None:
            raise _error_from(entry, entry.error, number)
        return self._build_reply(entry, number, request)

    def _build_reply(self, entry: ScriptEntry, number: int, request: ModelRequest) -> ModelReply:
        usage = estimate_usage(self._count, request, entry.text, entry.tool_calls)
        if entry.usage:
            usage = TokenUsage(entry.usage.tokens_in, entry.usage.tokens_out)
        finish = entry.finish or ("tool_calls" if entry.tool_calls else "stop")
        return ModelReply(
            entry.text, entry.tool_calls, finish, usage, self._settings.name, f"script_{number}"
        )


def _error_from(entry: ScriptEntry, error: ScriptedError, number: int) -> ModelError:
    members = {"message": f"the script says so for call {number}", **error.json}
    return ModelError(members.pop("kind"), members.pop("message"), **members, partial=entry.text)


def _sleep(milliseconds: int, maximum: int, cancel: Cancellation) -> None:
    """Wait until the time or the request is over, or the call is canceled. Raise ModelError."""
    given_up = threading.Event()
    with cancel.on_cancel(given_up.set):
        if milliseconds:
            given_up.wait(min(milliseconds, maximum) / 1000)
    if cancel.is_set:
        raise ModelError("unreachable", GIVEN_UP, retryable=False)
    if milliseconds > maximum:
        raise ModelError("timeout", "no answer in time")
