"""Checks of a request and its reply (docs/reference/protocols.md#scenarios)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from cogcli.base.json_pointer import NOWHERE, find_at, with_value_at
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import Redactor
from cogcli.base.schema.validator import errors
from cogcli.declarations.value_types import Json
from cogcli.protocols.exchange import ObservedExchange

_ONE_LINE: Final = 100


class Frame(NamedTuple):
    """One line of a reply, and the range that a check marks in it. Columns are 1-based."""

    line: int
    text: str
    column: int
    width: int


class Check(NamedTuple):
    """One check. `detail` describes the finding, and `frame` is its place in the reply or in the file. `code` is the
    error code of a result that this check fails.
    """

    name: str
    passed: bool
    detail: str = ""
    frame: Frame | None = None
    code: str = "verify.failed"

    @property
    def reason(self) -> str:
        """Return why a result fails because of this check."""
        return ": ".join(part for part in (self.name, self.detail) if part)

    def to_payload(self) -> Json:
        """Return the check as a JSON object."""
        payload: Json = {"name": self.name, "passed": self.passed, "detail": self.detail}
        if self.frame:
            payload["frame"] = self.frame._asdict()
        return payload


class NotRunnable(Exception):
    """A case cannot be run, for this reason.

    `skipped`: it counts as skipped, because this machine lacks a requirement. `check` is the failed
    check, if there is one."""

    def __init__(
        self, reason: str, code: str = "", *, skipped: bool = False, check: Check | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.skipped = skipped
        self.check = check


Judge = Callable[[ObservedExchange], list[Check]]
"""A function that returns the checks of one exchange."""


def schema_check(name: str, schema: object, value: object) -> Check:
    """Return the check of a value against its schema, with the place of the first breach."""
    wrong = errors(schema, value)
    if not wrong:
        return Check(name, True)
    place, message = wrong[0]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    said = f"{place.replace('/', '.')}: {message}{more}" if place else f"{message}{more}"
    return Check(name, False, said, find_in_json(value, place))


def find_in_json(value: object, place: str) -> Frame | None:
    """Return the place of a slash path in a displayed JSON value; None for a missing path."""
    parts = tuple(place.split("/")) if place else ()
    value = Redactor().mask(value)
    found = find_at(value, parts)
    if found is NOWHERE:
        return None
    marked = with_value_at(value, parts, _MARK)
    whole = json.dumps(value, ensure_ascii=False)
    indent = None if len(whole) <= _ONE_LINE else 2
    at = json.dumps(marked, ensure_ascii=False, indent=indent).find(json.dumps(_MARK))
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    own = json.dumps(found, ensure_ascii=False, indent=indent).split("\n", 1)[0]
    return Frame(text.count("\n", 0, at) + 1, line, at - start + 1, max(1, len(own)))


_MARK: Final = "\x00here\x00"
