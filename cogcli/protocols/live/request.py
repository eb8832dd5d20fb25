"""From a step's input to a service's payload: request templates, compiled once per run
(docs/reference/binding.md#request)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import orjson

from cogcli.base.errors import RequestMappingError
from cogcli.base.jsonvalue import deep_copy
from cogcli.base.refs import MISSING
from cogcli.declarations.value_types import Json
from cogcli.specs.template import (
    AS,
    DATA,
    EACH,
    FILE,
    LITERAL,
    TemplateSlot,
    is_data,
    is_file,
    is_literal,
    parse_template,
)
from cogcli.state.namespaces import walk

Template = Callable[[Json], Any]
"""Gives the value for an input, or MISSING where an optional input is absent."""
TemplatePath = tuple[str | int, ...]
"""Where in the binding's file a template stands, for those who have to mend it."""
ReadFile = Callable[[str, str], Any]
"""Gives what is sent of the file at a path in one of the forms of `as`. Raises RuntimeErrorBase."""
BEFORE: Final = "<data>\n"
AFTER: Final = "\n</data>"


class Surroundings(NamedTuple):
    """What templates read beside the input: the variables of the service, and files."""

    values: Mapping[str, str] | None = None
    """None where there is no service: `service.x` is a text as any other."""
    read_file: ReadFile | None = None
    path_keys: Collection[str] = ()
    """The keys of the request whose texts become part of a path: there a part that is missing gives another path, so
    that it is an error."""


NO_SURROUNDINGS: Final = Surroundings()


def compile_template(
    request: Any, at: TemplatePath = ("request",), around: Surroundings = NO_SURROUNDINGS
) -> Template:
    """A template for a request as written, `at` its place in the binding. Every value is expanded once; keys never
    are."""
    if isinstance(request, str):
        return _compile_text(request, at, around)
    if is_literal(request):
        literal = request[LITERAL]
        return lambda given: deep_copy(literal)
    if is_data(request):
        value = compile_template(request[DATA], (*at, DATA), around)
        return lambda given: as_data(value(given))
    if is_file(request):
        path = compile_template(request[FILE], (*at, FILE), around)
        return lambda given: _file(path(given), str(request.get(AS)), at, around)
    if isinstance(request, dict):
        members = {
            key: compile_template(member, (*at, key), around) for key, member in request.items()
        }
        return lambda given: {
            key: value for key, member in members.items() if (value := member(given)) is not MISSING
        }
    if isinstance(request, list):
        items = [compile_template(item, (*at, index), around) for index, item in enumerate(request)]
        return lambda given: [value for item in items if (value := item(given)) is not MISSING]
    return lambda given: request


def as_data(value: Any) -> Any:
    """A value as a text that a language model is to take for data: its JSON between two lines that it cannot hold, as
    `<` inside is written as an escape."""
    if value is MISSING:
        return MISSING
    return BEFORE + orjson.dumps(value).decode().replace("<", "\\u003c") + AFTER


def _compile_text(text: str, at: TemplatePath, around: Surroundings) -> Template:
    parts = parse_template(text)
    first = parts[0] if parts else ""
    if len(parts) == 1 and isinstance(first, TemplateSlot) and first.whole:
        if first.of_service and around.values is not None:
            return lambda given: _variable(first, at, around)
        return lambda given: _whole(first.path, given, at)
    if all(isinstance(part, str) for part in parts):
        plain = "".join(part for part in parts if isinstance(part, str))
        return lambda given: plain
    return lambda given: "".join(
        [p if isinstance(p, str) else _embedded(p, given, at, around) for p in parts]
    )


def _is_in_path(at: TemplatePath, around: Surroundings) -> bool:
    return len(at) > 1 and at[1] in around.path_keys


def _whole(path: tuple[str, ...], given: Json, at: TemplatePath) -> Any:
    """The typed value; an input that was not given drops its key, a path that ends inside one is an error."""
    head = path[0]
    if head not in given:
        return MISSING
    value = _reached(given[head], path[1:])
    if value is MISSING:
        raise _missing(path, at, "inside a value that was given")
    return deep_copy(value)


def _reached(value: Any, path: tuple[str, ...]) -> Any:
    """The value at a path, or MISSING; of `*` a list of what each element has there, a text standing for itself."""
    if EACH not in path:
        return walk(value, path)
    star = path.index(EACH)
    listed = walk(value, path[:star])
    if not isinstance(listed, list):
        return MISSING
    found = [each if isinstance(each, str) else _reached(each, path[star + 1 :]) for each in listed]
    return MISSING if any(each is MISSING for each in found) else found


def _embedded(slot: TemplateSlot, given: Json, at: TemplatePath, around: Surroundings) -> str:
    """The value inside a text; an input that was not given leaves nothing there, but in a path."""
    if slot.of_service:
        return _variable(slot, at, around)
    value = _reached(given, slot.path)
    if value is MISSING:
        if slot.otherwise is not None:
            return slot.otherwise
        if slot.path[0] in given:
            where = "inside a text; write `${input.x:-…}` to say what stands there instead"
            raise _missing(slot.path, at, where)
        if _is_in_path(at, around):
            where = (
                "inside a text that becomes part of a path: without it that would be another path"
            )
            raise _missing(slot.path, at, where)
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _variable(slot: TemplateSlot, at: TemplatePath, around: Surroundings) -> str:
    value = (around.values or {}).get(slot.path[0])
    if value is None:
        text = f"`service.{slot.path[0]}` has no value"
        error = RequestMappingError(
            "request.missing", text, hint="set the variable of the service", left=False
        )
        error.place = at
        raise error
    return value


def _file(path: Any, form: str, at: TemplatePath, around: Surroundings) -> Any:
    if path is MISSING:
        return MISSING
    try:
        if not isinstance(path, str) or around.read_file is None:
            raise RequestMappingError(
                "request.value", "a file is named by the text of its path", left=False
            )
        return around.read_file(path, form)
    except RequestMappingError as error:
        error.place = at
        raise


def _missing(path: tuple[str, ...], at: TemplatePath, where: str) -> RequestMappingError:
    text = f"`input.{'.'.join(path)}` is missing {where}"
    error = RequestMappingError("request.missing", text, left=False)
    error.place = at
    return error
