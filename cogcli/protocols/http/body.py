"""The bytes of a request body, by its media type (docs/reference/protocols.md#openapi)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from mimetypes import guess_type

from cogcli.base.api_documents.openapi import Body, PartEncoding
from cogcli.base.http import FormPart, StreamedBody, form_bytes, multipart_body
from cogcli.base.jsonvalue import items_of, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json
from cogcli.protocols.http.open_files import OpenFile, OpenFiles
from cogcli.protocols.http.url import json_bytes, scalar, unsendable_value_error

_THE_BODY = "the body"
_NO_ENCODING = PartEncoding()


class EncodedBody(NamedTuple):
    """The bytes of a body, and the value of its Content-Type."""

    data: bytes | StreamedBody
    content_type: str


def encode_body(declared: Body, value: object, files: OpenFiles) -> EncodedBody:
    """Return a body in its declared form. `files` opens its files and keeps them open for sending. Raise
    RequestMappingError `request.value` for a value that does not fit the form, and the errors of `OpenFiles.open`.
    """
    if declared.kind == "bytes":
        return _encode_file(declared, files.open(value, _THE_BODY))
    if declared.kind == "json":
        return EncodedBody(json_bytes(value, _THE_BODY), declared.media_type)
    if declared.kind == "text":
        return EncodedBody(
            _text_bytes(scalar(value, _THE_BODY), _THE_BODY), _with_charset(declared)
        )
    if not isinstance(value, dict):
        raise unsendable_value_error(f"the body is {kind_of(value)}, a form is an object")
    if declared.kind == "multipart":
        return _encode_multipart(declared, value, files)
    return _encode_form(declared, value)


def _with_charset(declared: Body) -> str:
    has_parameters = ";" in declared.media_type
    return declared.media_type if has_parameters else f"{declared.media_type}; charset=utf-8"


def _text_bytes(value: str, name: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise unsendable_value_error(f"{name} holds a lone surrogate") from error


def _encode_form(declared: Body, value: Json) -> EncodedBody:
    fields: dict[str, list[str]] = {}
    for name, member in value.items():
        for key, text in _form_pairs(name, member, declared.encodings.get(name, _NO_ENCODING)):
            _text_bytes(text, f"`{name}`")
            fields.setdefault(key, []).append(text)
    return EncodedBody(form_bytes(fields), declared.media_type)


def _form_pairs(name: str, value: object, how: PartEncoding) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one member of a form. A list yields a pair for each item, null yields none."""
    if value is None:
        return
    if how.style == "deepObject" and isinstance(value, dict | list):
        yield from _deep_pairs(name, value)
    elif isinstance(value, list) and not how.explode:
        yield name, ",".join(_member_text(item, name) for item in value)
    else:
        for item in items_of(value):
            yield name, _member_text(item, name)


def _deep_pairs(name: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a nested value: `name[key]` for each member of an object."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _deep_pairs(f"{name}[{key}]", item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _deep_pairs(f"{name}[{index}]", item)
    elif value is not None:
        yield name, scalar(value, name)


def _member_text(value: object, name: str) -> str:
    """Return one value of a form: a scalar as text, everything else as JSON."""
    if isinstance(value, dict | list):
        return json_bytes(value, f"`{name}`").decode()
    return "" if value is None else scalar(value, name)


def _encode_file(declared: Body, file: OpenFile) -> EncodedBody:
    """Return a body that is one file. A range of media types becomes the type for the file's name."""
    media_type = declared.media_type
    if "*" in media_type:
        media_type = guess_type(file.pinned.name)[0] or "application/octet-stream"
    return EncodedBody(StreamedBody(file.chunks(), file.pinned.size), media_type)


def _encode_multipart(declared: Body, value: Json, files: OpenFiles) -> EncodedBody:
    parts, contents = [], []
    for name, member in value.items():
        media_type = declared.encodings.get(name, _NO_ENCODING).content_type
        for item in items_of(member):
            if item is None:
                continue
            if name in declared.files:
                file = files.open(item, f"`{name}`")
                parts.append(FormPart(name, file.content, media_type, file.pinned.name))
                contents.append(file.pinned.sha256.encode())
                continue
            is_json = isinstance(item, dict | list)
            own_type = media_type or ("application/json" if is_json else "")
            data = _text_bytes(_member_text(item, name), f"`{name}`")
            parts.append(FormPart(name, data, own_type))
            contents.append(data)
    # The same body on each attempt: its boundary follows from its content.
    boundary = hashlib.sha256(b"\0".join(contents)).hexdigest()[:32]
    body = multipart_body(parts, boundary)
    content_type = f"{declared.media_type}; boundary={boundary}"
    return EncodedBody(body if declared.files else b"".join(body), content_type)
