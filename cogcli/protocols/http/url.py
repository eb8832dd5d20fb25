"""URLs of HTTP calls (docs/reference/protocols.md#openapi): values are percent-encoded whole, and no value leads out
of the base path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

import orjson

from cogcli.core.errors import RequestMappingError
from cogcli.core.jsonvalue import NotJson, kind_of, to_plain_json
from cogcli.specs.operation_path import fill_path

_DOTS: Final = (".", "..")
_KEPT: Final = "/:@!$&'()*+,;=%{}"
"""Characters of a path in a spec file that are not encoded; braces are replaced afterwards."""


def url_of(base: str, path: str, values: dict[str, str], query: Iterable[tuple[str, str]] = ()) -> str:
    """The URL of an operation: `path` below `base`, each `{name}` replaced by its encoded value.

    Raises RequestMappingError `request.value` for a path that leads out of `base`.
    """
    parts = urlsplit(base)
    below = fill_path(quote(path, safe=_KEPT), values)
    if "{" in below or any(unquote(segment) in _DOTS for segment in below.split("/")):
        raise unfit(f"`{path}` does not stay below the service's address")
    whole = quote(parts.path, safe=_KEPT).rstrip("/") + below
    # The values of `query` are encoded already: a comma between two of them stays a comma.
    pairs = [f"{quote(name, safe='')}={value}" for name, value in query]
    query_text = "&".join(filter(None, (quote(parts.query, safe=f"{_KEPT}?"), *pairs)))
    return f"{parts.scheme}://{parts.netloc}{whole}{f'?{query_text}' if query_text else ''}"


def path_value(value: Any, name: str) -> str:
    """One path value, encoded. Raises RequestMappingError for an empty one or dots alone: that is another path."""
    items = value if isinstance(value, list) else [value]
    text = ",".join(encode(item, name) for item in items)
    if not text or unquote(text) in _DOTS:
        shown = f"`{value}`" if text else "empty"
        raise unfit(f"path value `{name}` is {shown}, which would be another path")
    return text


def encode(value: Any, name: str) -> str:
    """One scalar, percent-encoded whole, slashes too."""
    try:
        return quote(scalar(value, name), safe="")
    except UnicodeEncodeError as error:
        raise unfit(f"`{name}` holds a lone surrogate") from error


def scalar(value: Any, name: str) -> str:
    """A scalar as text for paths, queries and headers. Raises RequestMappingError `request.value`."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else json_bytes(value, name).decode()
    raise unfit(f"`{name}` is {kind_of(value)}, expected text, a number or a boolean")


def unfit(text: str) -> RequestMappingError:
    """The error of a value that its location in the request cannot hold."""
    return RequestMappingError("request.value", text, left=False)


def json_bytes(value: Any, name: str) -> bytes:
    """A JSON value as bytes. Raises RequestMappingError `request.value` for a value that JSON cannot hold."""
    try:
        return orjson.dumps(to_plain_json(value))
    except NotJson as error:
        raise unfit(f"{name} is no JSON: {error}") from error
