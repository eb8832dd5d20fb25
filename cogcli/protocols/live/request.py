"""Request templates, which turn a step's input into a service's payload, compiled once per run
(docs/reference/binding.md#request)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import orjson

from cogcli.base.canonical import text_from
from cogcli.base.errors import RequestMappingError
from cogcli.base.jsonvalue import copy_writable, deep_copy
from cogcli.base.named_tuple import NamedTuple
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
    slots_of,
)
from cogcli.state.namespaces import walk

Template = Callable[[Json], Any]
"""A function that returns the value for an input, or MISSING if an optional input is absent."""
TemplatePath = tuple[str | int, ...]
"""The place of a template in the binding's file, for error messages."""
ReadFile = Callable[[str, str], object]
"""A function that returns the content of the file at a path in a form of `as`. It raises
RuntimeErrorBase."""
BEFORE: Final = "<data>\n"
AFTER: Final = "\n</data>"


class TemplateContext(NamedTuple):
    """The values that templates read besides the input: the variables of the service, and files."""

    values: Mapping[str, str] | None = None
    """The variables; None without a service: then `service.x` is ordinary text."""
    read_file: ReadFile | None = None
    path_keys: Collection[str] = ()
    """The keys of the request that become parts of the URL path. A missing part would change the
    path, so that it is an error."""


NO_SURROUNDINGS: Final = TemplateContext()


def compile_template(
    request: object, at: TemplatePath = ("request",), context: TemplateContext = NO_SURROUNDINGS
) -> Template:
    """Compile a written request to a template. `at` is its place in the binding.

    Each value is expanded once; keys are never expanded."""
    if isinstance(request, str):
        return _compile_text(request, at, context)
    if is_literal(request):
        literal = request[LITERAL]
        return lambda given: deep_copy(literal)
    if is_data(request):
        value = compile_template(request[DATA], (*at, DATA), context)
        return lambda given: as_data(value(given))
    if is_file(request):
        path = compile_template(request[FILE], (*at, FILE), context)
        return lambda given: _resolve_file(path(given), str(request.get(AS)), at, context)
    if isinstance(request, dict):
        return _compile_object(request, at, context)
    if isinstance(request, list):
        items = [
            compile_template(item, (*at, index), context) for index, item in enumerate(request)
        ]
        return lambda given: [value for item in items if (value := item(given)) is not MISSING]
    return lambda given: request


def _compile_object(request: Json, at: TemplatePath, context: TemplateContext) -> Template:
    members = {key: compile_template(each, (*at, key), context) for key, each in request.items()}
    return lambda given: {
        key: value for key, member in members.items() if (value := member(given)) is not MISSING
    }


def as_data(value: object) -> object:
    """Return a value as text that a language model reads as data: its JSON between two marker
    lines.

    The JSON cannot contain the markers, because it escapes `<`."""
    if value is MISSING:
        return MISSING
    return BEFORE + orjson.dumps(value).decode().replace("<", "\\u003c") + AFTER


def _compile_text(text: str, at: TemplatePath, context: TemplateContext) -> Template:
    parts, slots = parse_template(text), slots_of(text)
    if not slots:
        plain = "".join(literal for literal, _ in parts)
        return lambda given: plain
    if len(parts) == 1 and slots[0].is_whole_value:
        return _compile_slot(slots[0], at, context)
    return lambda given: "".join(
        [
            literal if slot is None else _text_value(slot, given, at, context)
            for literal, slot in parts
        ]
    )


def _compile_slot(slot: TemplateSlot, at: TemplatePath, context: TemplateContext) -> Template:
    """Return the template of a string that is a single slot: its value keeps its type."""
    if slot.of_service and context.values is not None:
        return lambda given: _resolve_variable(slot, at, context)
    return lambda given: _typed_value(slot.path, given, at)


def _is_in_path(at: TemplatePath, context: TemplateContext) -> bool:
    return len(at) > 1 and at[1] in context.path_keys


def _typed_value(path: tuple[str, ...], given: Json, at: TemplatePath) -> object:
    """Return the typed value, whose lists share their elements with the input. A missing input drops its key; a path
    that ends inside an input is an error."""
    head = path[0]
    if head not in given:
        return MISSING
    value = _value_at(given[head], path[1:])
    if value is MISSING:
        raise _missing_error(path, at, "inside a value that was given")
    return copy_writable(value)


def _value_at(value: object, path: tuple[str, ...]) -> object:
    """Return the value at a path, or MISSING. `*` returns a list of the values of each element; a
    text represents itself."""
    if EACH not in path:
        return walk(value, path)
    star = path.index(EACH)
    listed = walk(value, path[:star])
    if not isinstance(listed, list):
        return MISSING
    found = [
        each if isinstance(each, str) else _value_at(each, path[star + 1 :]) for each in listed
    ]
    return MISSING if any(each is MISSING for each in found) else found


def _text_value(slot: TemplateSlot, given: Json, at: TemplatePath, context: TemplateContext) -> str:
    """Return the value for a place inside a string. A missing input leaves it empty, except in a URL
    path."""
    if slot.of_service:
        return _resolve_variable(slot, at, context)
    value = _value_at(given, slot.path)
    if value is MISSING:
        if slot.default is not None:
            return slot.default
        if slot.path[0] in given:
            where = "inside a text; write `${input.x:-…}` to say what stands there instead"
            raise _missing_error(slot.path, at, where)
        if _is_in_path(at, context):
            where = (
                "inside a text that becomes part of a path: without it that would be another path"
            )
            raise _missing_error(slot.path, at, where)
        return ""
    return text_from(value)


def _resolve_variable(slot: TemplateSlot, at: TemplatePath, context: TemplateContext) -> str:
    value = (context.values or {}).get(slot.path[0])
    if value is None:
        text = f"`service.{slot.path[0]}` has no value"
        error = RequestMappingError(
            "request.missing", text, hint="set the variable of the service", left=False
        )
        error.place = at
        raise error
    return value


def _resolve_file(path: object, form: str, at: TemplatePath, context: TemplateContext) -> object:
    if path is MISSING:
        return MISSING
    try:
        if not isinstance(path, str) or context.read_file is None:
            raise RequestMappingError(
                "request.value", "a file is named by the text of its path", left=False
            )
        return context.read_file(path, form)
    except RequestMappingError as error:
        error.place = at
        raise


def _missing_error(path: tuple[str, ...], at: TemplatePath, where: str) -> RequestMappingError:
    text = f"`input.{'.'.join(path)}` is missing {where}"
    error = RequestMappingError("request.missing", text, left=False)
    error.place = at
    return error
