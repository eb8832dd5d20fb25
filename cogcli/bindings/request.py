"""From a step's input to a service's payload: request templates, compiled once per run
(docs/reference/binding.md#request)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from cogcli.core.errors import RequestMappingError
from cogcli.core.jsonvalue import deep_copy
from cogcli.core.refs import MISSING
from cogcli.mapping.namespaces import walk
from cogcli.specs.template import LITERAL, TemplateSlot, is_literal, parse_template

Template = Callable[[dict[str, Any]], Any]
"""Gives the value for an input, or MISSING where an optional input is absent."""
TemplatePath = tuple[str | int, ...]
"""Where in the binding's file a template stands, for those who have to mend it."""


def compile_template(request: Any, at: TemplatePath = ("request",)) -> Template:
    """A template for a request as written, `at` its place in the binding. Every value is expanded once; keys never
    are."""
    if isinstance(request, str):
        parts = parse_template(request)
        if len(parts) == 1 and isinstance(parts[0], TemplateSlot) and parts[0].whole:
            path = parts[0].path
            return lambda given: _whole(path, given, at)
        if all(isinstance(part, str) for part in parts):
            text = "".join(part for part in parts if isinstance(part, str))
            return lambda given: text
        return lambda given: "".join([p if isinstance(p, str) else _embedded(p, given, at) for p in parts])
    if is_literal(request):
        literal = request[LITERAL]
        return lambda given: deep_copy(literal)
    if isinstance(request, dict):
        members = {key: compile_template(member, (*at, key)) for key, member in request.items()}
        return lambda given: {
            key: value for key, member in members.items() if (value := member(given)) is not MISSING
        }
    if isinstance(request, list):
        items = [compile_template(item, (*at, index)) for index, item in enumerate(request)]
        return lambda given: [value for item in items if (value := item(given)) is not MISSING]
    return lambda given: request


def _whole(path: tuple[str, ...], given: dict[str, Any], at: TemplatePath) -> Any:
    """The typed value; an input that was not given drops its key, a path that ends inside one is an error."""
    head = path[0]
    if head not in given:
        return MISSING
    value = walk(given[head], path[1:])
    if value is MISSING:
        raise _missing(path, at, "inside a value that was given")
    return deep_copy(value)


def _embedded(slot: TemplateSlot, given: dict[str, Any], at: TemplatePath) -> str:
    value = walk(given, slot.path)
    if value is MISSING:
        if slot.otherwise is None:
            where = "inside a text; write `${input.x:-…}` to say what stands there instead"
            raise _missing(slot.path, at, where)
        return slot.otherwise
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _missing(path: tuple[str, ...], at: TemplatePath, where: str) -> RequestMappingError:
    text = f"`input.{'.'.join(path)}` is missing {where}"
    error = RequestMappingError("request.missing", text, left=False)
    error.place = at
    return error
