"""Scenarios: one call of a binding, its input and its expected outputs
(docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn

from cogcli.base.errors import UsageError
from cogcli.base.jsonvalue import kind_of
from cogcli.base.problems import suggestion
from cogcli.base.strict_json import JsonRefused, loads
from cogcli.specs.fields import value_from

MATCHES: Final = ("exact", "subset", "shape")
SPEC: Final = "spec"
"""The type of the mock server by the service's own document."""
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
_LARGEST: Final = 1024 * 1024


class CannedReply(NamedTuple):
    """One of a mock server's fixed replies. A text body is sent as it is, everything else as JSON; None is empty."""

    status: int = 200
    headers: Mapping[str, str] = {}
    body: Any = None
    delay_ms: int = 0


class MockServer(NamedTuple):
    """The mock server of the service; port 0 is any free one."""

    type: str = SPEC
    host: str = LOOPBACK[0]
    port: int = 0
    replies: tuple[CannedReply, ...] = ()


class Scenario(NamedTuple):
    """A scenario as declared in its file. `mock_server` None: by the service's document, or the live service."""

    id: str
    capability_id: str
    binding_id: str
    input: dict[str, Any]
    expected_output: dict[str, Any]
    file: str
    """The path shown to users."""
    expected_service_id: str | None = None
    trace_id: str | None = None
    match: str = "exact"
    mock_server: MockServer | None = None


def files_in(directory: str) -> list[str]:
    """The scenario files of a directory, by name; none where there is no directory."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        os.path.join(directory, name) for name in names if name.endswith(".json") and name[0] != "."
    ]


def read_scenario(path: str, shown: str, types: Iterable[str]) -> Scenario:
    """The scenario in a file. `types`: the known types of mock servers. Raises UsageError for any fault."""
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        message = f"scenario `{shown}` cannot be read: {error.strerror or error}"
        raise UsageError(
            "input.file", message, hint="see the list: cogcli openapi verify-bindings"
        ) from error
    try:
        raw = loads(data, max_bytes=_LARGEST)
    except JsonRefused as error:
        raise UsageError(
            "input.json",
            f"scenario `{shown}`: {error.message}",
            file=shown,
            line=error.line,
            column=error.column,
        ) from error
    return _ScenarioReader(shown, data).scenario(raw, types)


class _ScenarioReader:
    """Reads the members of one file, with the position of each in its errors."""

    def __init__(self, shown: str, data: bytes) -> None:
        self._shown = shown
        self._text = data.decode("utf-8-sig")

    def scenario(self, raw: Any, types: Iterable[str]) -> Scenario:
        given = self._members(raw, "", _SCENARIO)
        mock = given.get("mock_server")
        server = None if mock is None else self._mock(mock, types)
        scenario = value_from(Scenario, given, file=self._shown, mock_server=server)
        self._one_of("match", scenario.match, MATCHES)
        return scenario

    def _mock(self, raw: Any, types: Iterable[str]) -> MockServer:
        given = self._members(raw, "mock_server.", _MOCK)
        replies = tuple(self._reply(reply, n) for n, reply in enumerate(given.get("replies") or ()))
        mock = value_from(MockServer, given, replies=replies)
        self._one_of("mock_server.type", mock.type, (SPEC, *types))
        if mock.host not in LOOPBACK and not mock.host.startswith("127."):
            self._refuse(
                "input.enum",
                "mock_server.host",
                f"found `{mock.host}`, expected a loopback address",
            )
        self._within("mock_server.port", mock.port, 0, 65535)
        return mock

    def _reply(self, raw: Any, number: int) -> CannedReply:
        place = f"mock_server.replies.{number}."
        reply = value_from(CannedReply, self._members(raw, place, _REPLY))
        self._within(f"{place}status", reply.status, 200, 599)
        self._within(f"{place}delay_ms", reply.delay_ms, 0, 60_000)
        for name, value in reply.headers.items():
            if not isinstance(value, str) or not (name + value).isprintable() or not name.isascii():
                self._refuse("input.type", f"{place}headers.{name}", "expected printable text")
        return reply

    def _members(self, raw: Any, place: str, kinds: Mapping[str, str]) -> dict[str, Any]:
        """The members of an object, each of its kind; those in `_REQUIRED` are needed, null is absent."""
        if not isinstance(raw, dict):
            self._refuse("input.type", place.rstrip("."), f"found {kind_of(raw)}, expected object")
        given = {name: value for name, value in raw.items() if value is not None}
        self._require_names(raw, given, place, kinds)
        for name, value in given.items():
            fault = _kind_fault(value, kinds[name])
            if fault:
                self._refuse("input.type", f"{place}{name}", fault)
        return given

    def _require_names(
        self, raw: Iterable[str], given: Collection[str], place: str, kinds: Mapping[str, str]
    ) -> None:
        for name in raw:
            if name not in kinds:
                hint = suggestion(name, kinds)
                self._refuse("input.unknown", f"{place}{name}", "no such field", hint)
        for name in kinds:
            if name in _REQUIRED and name not in given:
                self._refuse("input.missing", f"{place}{name}", "required, not given")

    def _within(self, place: str, number: int, least: int, most: int) -> None:
        if not least <= number <= most:
            self._refuse("input.type", place, f"found {number}, expected {least} to {most}")

    def _one_of(self, place: str, word: str, words: Iterable[str]) -> None:
        if word not in words:
            said = f"found `{word}`, expected one of {', '.join(words)}"
            self._refuse("input.enum", place, said, suggestion(word, list(words)))

    def _refuse(self, code: str, place: str, said: str, hint: str = "") -> NoReturn:
        at = self._text.find(f'"{place.rpartition(".")[2]}"')
        line = column = 0  # without an occurrence of the key
        if at >= 0:
            line, column = self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)
        message = f"scenario `{self._shown}`: {place and f'`{place}`: '}{said}"
        raise UsageError(code, message, hint=hint, file=self._shown, line=line, column=column)


def _kind_fault(value: Any, wanted: str) -> str:
    """Why a value is not of a kind; empty if it is. A number must be whole, a text must not be empty."""
    if wanted == "any":
        return ""
    if kind_of(value) != wanted or (wanted == "number" and type(value) is not int):
        return f"found {kind_of(value)}, expected {wanted}"
    return "found empty text, expected a name" if value == "" else ""


_SCENARIO: Final = {
    "id": "text",
    "capability_id": "text",
    "binding_id": "text",
    "input": "object",
    "expected_output": "object",
    "expected_service_id": "text",
    "trace_id": "text",
    "match": "text",
    "mock_server": "object",
}
_REQUIRED: Final = frozenset(("id", "capability_id", "binding_id", "input", "expected_output"))
_MOCK: Final = {"type": "text", "host": "text", "port": "number", "replies": "list"}
_REPLY: Final = {"status": "number", "headers": "object", "body": "any", "delay_ms": "number"}
