"""What a binding demands of its outputs beside the capability's contract: that quotes stand in the input, and that
choices are among those given (docs/reference/binding.md#checks)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from cogcli.base.errors import ResponseMappingError
from cogcli.base.jsonvalue import equal, preview
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
        found = _found(output, check.path.split("."))
        if check.op == "one_of":
            options = expected if isinstance(expected, list) else []
            wrong = None if expected is MISSING else _first_outside(found, options)
            said = "is none of those given"
        else:
            texts = [_plain(text) for text in _texts(expected)]
            wrong = next((each for each in found if not _stands_in(each, texts)), None)
            said = "does not stand in the input"
        if wrong is not None:
            error = ResponseMappingError(
                "response.type", f"output `{check.path}`: {preview(wrong)} {said}", left=True
            )
            error.place = ("checks", number)
            raise error


def _first_outside(found: Iterator[Any], options: list[Any]) -> Any:
    return next(
        (each for each in found if not any(equal(each, option) for option in options)), None
    )


def _found(value: Any, path: list[str]) -> Iterator[Any]:
    """The values at a path, of `*` those of every element or member; absent and null ones are left out."""
    if not path:
        if value is not None:
            yield value
    elif path[0] == _EACH:
        for item in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        ):
            yield from _found(item, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _found(value[path[0]], path[1:])


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, those of numbers too."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif value is not MISSING and value is not None:
        yield value if isinstance(value, str) else str(value)


def _stands_in(found: Any, texts: list[str]) -> bool:
    """Whether a text stands in one of these, whatever its blanks and its case are; an empty one says nothing."""
    return isinstance(found, str) and any(_plain(found) in text for text in texts)


def _plain(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()
