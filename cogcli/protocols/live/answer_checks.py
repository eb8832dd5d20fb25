"""Checks of a binding's outputs beyond the capability's contract: quotes must occur in the input,
choices must be among the options (docs/reference/binding.md#checks)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from cogcli.base.errors import ResponseMappingError
from cogcli.base.jsonvalue import equal, inner_values, list_of, preview, walk_values
from cogcli.base.refs import MISSING
from cogcli.declarations.binding_spec import BindingCheck
from cogcli.declarations.value_types import Json
from cogcli.protocols.live.request import compile_template

_EACH: Final = "*"
_BLANKS: Final = re.compile(r"\s+")


def check_answer(checks: Sequence[BindingCheck], output: Json, given: Json) -> None:
    """Raise ResponseMappingError `response.type` at the first value that a check refuses."""
    for number, check in enumerate(checks):
        expected = compile_template(check.value, ("checks", number, "value"))(given)
        found = _values_at(output, check.path.split("."))
        if check.op == "one_of":
            options = list_of(expected)
            wrong = None if expected is MISSING else _first_outside(found, options)
            reason = "is none of those given"
        else:
            texts = [_normalize_text(text) for text in _iterate_texts(expected)]
            wrong = next((each for each in found if not _occurs_in(each, texts)), None)
            reason = "does not stand in the input"
        if wrong is not None:
            error = ResponseMappingError(
                "response.type", f"output `{check.path}`: {preview(wrong)} {reason}", left=True
            )
            error.place = ("checks", number)
            raise error


def _first_outside(found: Iterator[object], options: list[object]) -> object:
    return next(
        (each for each in found if not any(equal(each, option) for option in options)), None
    )


def _values_at(value: object, path: list[str]) -> Iterator[object]:
    """Yield the values at a path; `*` means every element or member. Absent and null ones are left
    out."""
    if not path:
        if value is not None:
            yield value
    elif path[0] == _EACH:
        for item in inner_values(value):
            yield from _values_at(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _values_at(value[path[0]], path[1:])


def _iterate_texts(value: object) -> Iterator[str]:
    """Yield every string in a value, and numbers as text."""
    for part in walk_values(value):
        if part is not MISSING and part is not None and not isinstance(part, dict | list):
            yield str(part)


def _occurs_in(found: object, texts: list[str]) -> bool:
    """Return whether a string occurs in any of these texts, ignoring blanks and case. True for an empty string."""
    return isinstance(found, str) and any(_normalize_text(found) in text for text in texts)


def _normalize_text(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()
