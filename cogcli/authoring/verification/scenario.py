"""Scenarios: one call of a binding, its input and its expected outputs
(docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NoReturn

from cogcli.base.errors import UsageError
from cogcli.base.jsonvalue import kind_of
from cogcli.base.problems import suggestion
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.declarations.scenario_spec import (
    BY_DOCUMENT,
    LOOPBACK,
    CannedReply,
    MockServer,
    Scenario,
)
from cogcli.declarations.spec import Spec
from cogcli.declarations.value_types import Json
from cogcli.specs.shape import KIND, NumberShape, RecordKey, Text
from cogcli.specs.shape_of_spec import shape_of_spec

_LARGEST: Final = 1024 * 1024


def files_in(directory: str) -> list[str]:
    """Return the sorted scenario files of a directory; empty if it does not exist."""
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [
        os.path.join(directory, name) for name in names if name.endswith(".json") and name[0] != "."
    ]


def read_scenario(path: str, display_path: str, types: Iterable[str]) -> Scenario:
    """Return the scenario in a file. `types` are the known types of mock servers. Raise UsageError
    for any fault.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        message = f"scenario `{display_path}` cannot be read: {error.strerror or error}"
        raise UsageError(
            "input.file", message, hint="see the list: cogcli openapi verify-bindings"
        ) from error
    try:
        raw = loads(data, max_bytes=_LARGEST)
    except InvalidJson as error:
        raise UsageError(
            "input.json",
            f"scenario `{display_path}`: {error.message}",
            file=display_path,
            line=error.line,
            column=error.column,
        ) from error
    return _ScenarioReader(display_path, data).scenario(raw, types)


class _ScenarioReader:
    """A reader of one file that adds positions to errors."""

    def __init__(self, display_path: str, data: bytes) -> None:
        self._shown = display_path
        self._text = data.decode("utf-8-sig")

    def scenario(self, raw: object, types: Iterable[str]) -> Scenario:
        given = self._checked_members(raw, "", Scenario)
        if "mock_server" in given:
            self._check_mock(given["mock_server"], types)
        self._check_limits(given, "", Scenario)
        return Scenario.of(given, file=self._shown)

    def _check_mock(self, raw: object, types: Iterable[str]) -> None:
        given = self._checked_members(raw, "mock_server.", MockServer)
        for number, reply in enumerate(given.get("replies", ())):
            self._check_reply(reply, number)
        mock = MockServer.of(given)
        self._check_choice("mock_server.type", mock.type, (BY_DOCUMENT, *types))
        if mock.host not in LOOPBACK and not mock.host.startswith("127."):
            self._raise_fault(
                "input.enum",
                "mock_server.host",
                f"found `{mock.host}`, expected a loopback address",
            )
        self._check_limits(given, "mock_server.", MockServer)

    def _check_reply(self, raw: object, number: int) -> None:
        place = f"mock_server.replies.{number}."
        given = self._checked_members(raw, place, CannedReply)
        self._check_limits(given, place, CannedReply)
        for name, value in CannedReply.of(given).headers.items():
            if not isinstance(value, str) or not (name + value).isprintable() or not name.isascii():
                self._raise_fault("input.type", f"{place}headers.{name}", "expected printable text")

    def _checked_members(self, raw: object, place: str, cls: type[Spec]) -> Json:
        """Return the members of an object after checking their kinds. A null member is treated as
        absent.
        """
        if not isinstance(raw, dict):
            self._raise_fault(
                "input.type", place.rstrip("."), f"found {kind_of(raw)}, expected object"
            )
        given = {name: value for name, value in raw.items() if value is not None}
        keys = shape_of_spec(cls).keys
        self._check_member_names(raw, given, place, keys)
        for name, value in given.items():
            fault = _kind_fault(value, KIND.get(type(keys[name].shape), "any"))
            if fault:
                self._raise_fault("input.type", f"{place}{name}", fault)
        return given

    def _check_member_names(
        self,
        found_names: Iterable[str],
        members: Collection[str],
        place: str,
        keys: Mapping[str, RecordKey],
    ) -> None:
        for name in found_names:
            if name not in keys:
                hint = suggestion(name, keys)
                self._raise_fault("input.unknown", f"{place}{name}", "no such field", hint)
        for name, key in keys.items():
            if key.required and name not in members:
                self._raise_fault("input.missing", f"{place}{name}", "required, not given")

    def _check_limits(self, members: Json, place: str, cls: type[Spec]) -> None:
        """Raise UsageError for a number out of its range, or a word that is not one of the choices."""
        for name, key in shape_of_spec(cls).keys.items():
            if name not in members:
                continue
            if isinstance(key.shape, NumberShape):
                self._check_bounds(f"{place}{name}", members[name], key.shape)
            elif isinstance(key.shape, Text) and key.shape.choices:
                self._check_choice(f"{place}{name}", members[name], key.shape.choices)

    def _check_bounds(self, place: str, number: int, bounds: NumberShape) -> None:
        minimum, maximum = bounds.minimum, bounds.maximum
        if (minimum is not None and number < minimum) or (maximum is not None and number > maximum):
            self._raise_fault(
                "input.type", place, f"found {number}, expected {minimum} to {maximum}"
            )

    def _check_choice(self, place: str, word: str, choices: Iterable[str]) -> None:
        if word not in choices:
            text = f"found `{word}`, expected one of {', '.join(choices)}"
            self._raise_fault("input.enum", place, text, suggestion(word, list(choices)))

    def _raise_fault(self, code: str, place: str, text: str, hint: str = "") -> NoReturn:
        at = self._text.find(f'"{place.rpartition(".")[2]}"')
        line = column = 0  # the key does not occur
        if at >= 0:
            line, column = self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)
        message = f"scenario `{self._shown}`: {place and f'`{place}`: '}{text}"
        raise UsageError(code, message, hint=hint, file=self._shown, line=line, column=column)


def _kind_fault(value: object, expected: str) -> str:
    """Return why a value is not of a kind; empty if it is. A number must be whole, a string must not
    be empty."""
    if expected == "any":
        return ""
    if kind_of(value) != expected or (expected == "number" and type(value) is not int):
        return f"found {kind_of(value)}, expected {expected}"
    return "found empty text, expected a name" if value == "" else ""
