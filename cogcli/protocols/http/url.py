"""URLs of HTTP calls (docs/reference/protocols.md#openapi).

Values are percent-encoded whole, and no value leads out of the base path."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

import orjson

from cogcli.base.errors import RequestMappingError, ResponseMappingError
from cogcli.base.jsonvalue import NotJson, items_of, kind_of, to_plain_json
from cogcli.base.lazy_pattern import lazy_pattern

_DOTS: Final = (".", "..")
_KEPT: Final = "/:@!$&'()*+,;=%{}"
"""Characters of a path in a spec file that are not encoded. Braces are replaced later."""


def url_of(
    base: str, path: str, values: dict[str, str], query: Iterable[tuple[str, str]] = ()
) -> str:
    """Return the URL of an operation: `path` below `base`, with each `{name}` replaced by its
    encoded value.

    Raise RequestMappingError `request.value` for a path that leads out of `base`."""
    parts = urlsplit(base)
    below = fill_path(quote(path, safe=_KEPT), values)
    if "{" in below or any(unquote(segment) in _DOTS for segment in below.split("/")):
        raise unsendable_value_error(f"`{path}` does not stay below the service's address")
    whole = quote(parts.path, safe=_KEPT).rstrip("/") + below
    # The values of `query` are encoded already: a comma between two of them stays a comma.
    pairs = [f"{quote(name, safe='')}={value}" for name, value in query]
    query_text = "&".join(filter(None, (quote(parts.query, safe=f"{_KEPT}?"), *pairs)))
    return f"{parts.scheme}://{parts.netloc}{whole}{f'?{query_text}' if query_text else ''}"


def linked_url(base: str, url: str, link: str, secret_names: Collection[str]) -> str:
    """Return the URL of a link in a reply to a request of `url`. The parameters `secret_names` are
    left out: they are added on the wire.

    Raise ResponseMappingError `response.pages` for a link to another origin or out of the path of
    `base`: the content of a reply never decides where credentials go."""
    try:
        whole = urlsplit(urljoin(url, link))
        allowed = urlsplit(base)
        is_same = _origin_of_url(whole) == _origin_of_url(allowed) and "@" not in whole.netloc
    except ValueError:
        is_same = False
    inside = allowed.path.rstrip("/")
    is_below = is_same and (whole.path.startswith(f"{inside}/") or whole.path == inside)
    # A server may take an encoded slash, or a backslash, for a slash.
    segments = _SLASHES.split(unquote(whole.path)) if is_below else []
    if not is_below or not link.isprintable() or any(each in _DOTS for each in segments):
        text = f"the link to the next page leads out of {allowed.scheme}://{allowed.netloc}{inside}"
        raise ResponseMappingError("response.pages", text, left=True)
    query = quote(_drop_parameters(whole.query, secret_names), safe=f"{_KEPT}?")
    path = quote(whole.path, safe=_KEPT)
    return f"{allowed.scheme}://{allowed.netloc}{path}{f'?{query}' if query else ''}"


def _drop_parameters(query: str, names: Collection[str]) -> str:
    """Return a query without these parameters. The others are unchanged."""
    kept = []
    for pair in query.split("&"):
        name = unquote(pair.partition("=")[0])
        if pair and name not in names:
            kept.append(pair)
    return "&".join(kept)


_SLASHES: Final = lazy_pattern(r"[/\\]")


def _origin_of_url(parts: SplitResult) -> tuple[str, str, int | None]:
    """Return scheme, host and port. Raise ValueError for an invalid port."""
    scheme = parts.scheme.lower()
    return scheme, parts.hostname or "", parts.port or _PORTS.get(scheme)


_PORTS: Final = {"http": 80, "https": 443}


def path_value(value: object, name: str) -> str:
    """Return one encoded path value. Raise RequestMappingError for an empty one or only dots, which
    name another path."""
    text = ",".join(encode(item, name) for item in items_of(value))
    if not text or unquote(text) in _DOTS:
        shown = f"`{value}`" if text else "empty"
        raise unsendable_value_error(f"path value `{name}` is {shown}, which would be another path")
    return text


def encode(value: object, name: str) -> str:
    """Return one scalar, percent-encoded whole, including slashes."""
    try:
        return quote(scalar(value, name), safe="")
    except UnicodeEncodeError as error:
        raise unsendable_value_error(f"`{name}` holds a lone surrogate") from error


def scalar(value: object, name: str) -> str:
    """Return a scalar as text for paths, queries and headers. Raise RequestMappingError
    `request.value`."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return json_bytes(value, name).decode()
    raise unsendable_value_error(
        f"`{name}` is {kind_of(value)}, expected text, a number or a boolean"
    )


def unsendable_value_error(text: str) -> RequestMappingError:
    """Return the error for a value that its location in the request cannot represent."""
    return RequestMappingError("request.value", text, left=False)


def json_bytes(value: object, name: str) -> bytes:
    """Return a JSON value as bytes. Raise RequestMappingError `request.value` for a value that JSON cannot
    represent.
    """
    try:
        return orjson.dumps(to_plain_json(value))
    except NotJson as error:
        raise unsendable_value_error(f"{name} is not JSON: {error}") from error


_SEGMENT: Final = lazy_pattern(r"(?:[A-Za-z0-9._~-]|\{[A-Za-z_][A-Za-z0-9_-]*\})+")
_NAME: Final = lazy_pattern(r"\{([^{}]*)\}")
GRAMMAR: Final = (
    "segments of A-Z a-z 0-9 . _ ~ - or {name}, joined by slashes, none of them `.` or `..`"
)


def path_of(operation: str) -> str | None:
    """Return the path with a leading slash; None if the operation is not a path."""
    path = operation.removeprefix("/")
    segments = path.split("/") if path else []
    if not operation or any(
        not _SEGMENT.fullmatch(segment) or segment in (".", "..") for segment in segments
    ):
        return None
    return f"/{path}"


def names_in(path: str) -> tuple[str, ...]:
    """Return the names of `{name}` parts in a path, in order, without repeats."""
    return tuple(dict.fromkeys(_NAME.findall(path)))


def fill_path(path: str, values: dict[str, str]) -> str:
    """Return a path with each `{name}` replaced by its value. Names without a value are unchanged."""
    return _NAME.sub(lambda match: values.get(match[1], match[0]), path)
