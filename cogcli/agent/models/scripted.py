"""A model that answers as a file says (docs/reference/models.md#scripted)."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from typing import Any, Final, NamedTuple

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
from cogcli.base.jsonvalue import MAX_INTEGER
from cogcli.base.problems import ProblemsFound, sort_problems
from cogcli.base.yaml.reader import read_file
from cogcli.specs.problem_report import ProblemReport
from cogcli.specs.shape import (
    Boolean,
    Data,
    ListOf,
    MapOf,
    NumberShape,
    Text,
    clean,
    record,
    required,
)
from cogcli.specs.shape_check import check_shape

_MILLISECONDS: Final = NumberShape(least=0, most=600_000, whole=True)
_TOKENS: Final = NumberShape(least=0, most=MAX_INTEGER, whole=True)
_CALL: Final = record(
    {"id": Text(), "name": required(Text(empty=False)), "args": MapOf(Data(), foreign=True)}
)
_ENTRY: Final = record(
    {
        "when": ListOf(Text(empty=False), least=1),
        "times": NumberShape(least=1, most=1000, whole=True),
        "json": MapOf(Data(), foreign=True),
        "text": Text(),
        "tool_calls": ListOf(_CALL, least=1),
        "finish": Text(choices=FINISHES),
        "usage": {"tokens_in": required(_TOKENS), "tokens_out": required(_TOKENS)},
        "error": {
            "kind": required(Text(choices=tuple(KINDS))),
            "message": Text(empty=False),
            "retryable": Boolean(),
            "retry_after": NumberShape(least=0, most=3600),
        },
        "delay_ms": _MILLISECONDS,
        "pause_ms": _MILLISECONDS,
    }
)
SCRIPT: Final = record({"replies": required(ListOf(_ENTRY, least=1))})
_PIECE: Final = re.compile(r"\s*\S+|\s+$")


class ScriptEntry(NamedTuple):
    """What is answered to one call. `when` empty: by the number of the call."""

    when: tuple[str, ...] = ()
    text: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish: str = ""
    usage: dict[str, int] | None = None
    error: dict[str, Any] | None = None
    delay_ms: int = 0
    pause_ms: int = 0


class Script(NamedTuple):
    """A script, entries with `times` repeated."""

    shown: str
    by_words: tuple[ScriptEntry, ...]
    by_number: tuple[ScriptEntry, ...]

    def entry(self, number: int, request: ModelRequest) -> ScriptEntry:
        """The answer to call `number`, from 1: the first whose words all stand in the prompt, else the one of that
        number. Raises ModelError."""
        prompt = "\n".join(message["content"] for message in request.messages).casefold()
        for entry in self.by_words:
            if all(word.casefold() in prompt for word in entry.when):
                return entry
        if number <= len(self.by_number):
            return self.by_number[number - 1]
        text = f"{self.shown} has no reply for call {number}"
        raise ModelError("bad_request", text, hint="add a reply to the script, or `times` to one")


def open_adapter(settings: ModelSettings, context: ModelContext) -> ScriptedModel:
    """The model of a script file. Raises ProblemsFound with every fault and its place."""
    return ScriptedModel(read_script(settings.file, settings.name), settings, context)


def read_script(path: str, shown: str) -> Script:
    """The script in a file. Raises ProblemsFound with every fault and its place."""
    _, parsed = read_file(path, file=shown)
    report = ProblemReport(shown, parsed.places, subject="script")
    if parsed.value is not None:
        check_shape(SCRIPT, parsed.value, report)
        _check_entries(parsed.value, report)
    if problems := sort_problems([*parsed.problems, *report.problems]):
        raise ProblemsFound(problems)
    entries = [_entry_from(raw) for raw in clean(SCRIPT, parsed.value)["replies"]]
    by_number = [entry for entry, times in entries if not entry.when for _ in range(times)]
    return Script(shown, tuple(entry for entry, _ in entries if entry.when), tuple(by_number))


def _check_entries(raw: dict[str, Any], report: ProblemReport) -> None:
    """Report entries that answer nothing, or twice; the rest is in the shape."""
    for number, entry in enumerate(raw["replies"] if isinstance(raw.get("replies"), list) else []):
        if not isinstance(entry, dict):
            continue
        place = ("replies", number)
        if not entry.keys() & {"json", "text", "tool_calls", "error"}:
            hint = "give one of json, text, tool_calls, error"
            report.error("key.missing", place, f"`replies.{number}` answers nothing", hint=hint)
        for key, other, why in (
            ("text", "json", "is the text already"),
            ("times", "when", "answers each call whose prompt holds its words"),
        ):
            if key in entry and other in entry:
                message = f"`replies.{number}`: `{key}` beside `{other}`, which {why}"
                report.error("key.unknown", (*place, key), message, hint=f"remove {key}", key=True)


def _entry_from(raw: dict[str, Any]) -> tuple[ScriptEntry, int]:
    """A checked entry, and how many calls in a row it answers."""
    members = {**raw, "when": tuple(raw.get("when") or ())}
    times = members.pop("times", 1)
    if "json" in members:
        members["text"] = orjson.dumps(members.pop("json")).decode()
    calls = enumerate(members.get("tool_calls") or (), 1)
    members["tool_calls"] = tuple(
        {
            "id": call.get("id") or f"call_{number}",
            "name": call["name"],
            "args": call.get("args") or {},
        }
        for number, call in calls
    )
    return ScriptEntry(**members), times


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
        _wait(entry.delay_ms, request.timeout_ms, cancel)
        for piece in _PIECE.findall(entry.text):
            yield Delta(piece)
            _wait(entry.pause_ms, request.timeout_ms, cancel)
        if entry.error is not None:
            raise _error_from(entry, number)
        return self._reply(entry, number, request)

    def _reply(self, entry: ScriptEntry, number: int, request: ModelRequest) -> ModelReply:
        usage = estimate_usage(self._count, request, entry.text, entry.tool_calls)
        if entry.usage:
            usage = TokenUsage(entry.usage["tokens_in"], entry.usage["tokens_out"])
        finish = entry.finish or ("tool_calls" if entry.tool_calls else "stop")
        return ModelReply(
            entry.text, entry.tool_calls, finish, usage, self._settings.name, f"script_{number}"
        )


def _error_from(entry: ScriptEntry, number: int) -> ModelError:
    members = {"message": f"the script says so for call {number}", **(entry.error or {})}
    return ModelError(members.pop("kind"), members.pop("message"), **members, partial=entry.text)


def _wait(milliseconds: int, most: int, cancel: Cancellation) -> None:
    """Wait, at most until nobody waits any more or the time of the request is over. Raises ModelError."""
    given_up = threading.Event()
    with cancel.on_cancel(given_up.set):
        if milliseconds:
            given_up.wait(min(milliseconds, most) / 1000)
    if cancel.is_set:
        raise ModelError("unreachable", GIVEN_UP, retryable=False)
    if milliseconds > most:
        raise ModelError("timeout", "no answer in time")
