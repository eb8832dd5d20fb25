"""The value of a reply's body that `response.*` paths read (docs/reference/protocols.md#replies)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from cogcli.base.errors import ResponseMappingError
from cogcli.base.jsonvalue import deep_copy
from cogcli.base.strict_json import InvalidJson, loads
from cogcli.base.terminal_text import visible
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

if TYPE_CHECKING:
    from cogcli.base.http import HttpReply
    from cogcli.protocols.secrets import Secrets

MAX_DEPTH: Final = 100
MAX_NODES: Final = 1_000_000
_SHOWN: Final = 80
_CHARSETS: Final = ("utf-8", "us-ascii", "iso-8859-1", "windows-1252", "utf-16")
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([A-Za-z0-9_.-]+)", re.IGNORECASE)
_FENCE: Final = "```"
_CONTENT_JSON: Final = re.compile(r"response\.choices\.(\d{1,4})\.message\.content_json(?:\..+)?")


def media_type(reply: HttpReply) -> str:
    """Return the media type without its parameters, in lower case."""
    return reply.header("content-type").partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Return whether a media type is JSON or empty."""
    return media in ("", "application/json", "application/json-rpc") or media.endswith("+json")


def parse_reply(data: bytes, cap: int) -> object:
    """Return the JSON value of a reply of at most `cap` bytes. Raise InvalidJson."""
    return loads(data, max_bytes=cap, max_depth=MAX_DEPTH, max_nodes=MAX_NODES)


def reply_record(reply: HttpReply, value: object, secrets: Secrets, *, is_value: bool) -> Json:
    """Return a reply for an attempt's record: its JSON value, else its text, else its bytes in
    base64.

    Secrets are masked before the encoding, since they could not be found in base64."""
    names = sorted({name.lower() for name, _ in reply.headers})
    body = {"body": value} if is_value else _text_or_base64(secrets.mask_bytes(reply.body))
    return {"media_type": media_type(reply), "headers": names, **body}


def _text_or_base64(data: bytes) -> dict[str, str]:
    try:
        return {"body": data.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(data).decode()}


def read_json(reply: HttpReply, cap: int) -> tuple[object, str]:
    """Return the JSON value of a reply and an empty text, or None and the reason."""
    media = media_type(reply)
    if not reply.body:
        return None, "an empty body"
    if not is_json(media):
        return None, f"a non-JSON body ({media[:_SHOWN]})"
    try:
        return parse_reply(reply.body, cap), ""
    except InvalidJson as error:
        return None, f"a body that is not JSON ({error})"


def json_body(reply: HttpReply, cap: int) -> object:
    """Return the value of a JSON reply, `{}` for an empty one. Raise ResponseMappingError
    `response.not-json`."""
    if not reply.body:
        return {}
    media = media_type(reply)
    if not is_json(media):
        raise not_json_error(f"non-JSON reply ({visible(media[:_SHOWN])})")
    try:
        return parse_reply(reply.body, cap)
    except InvalidJson as refused:
        raise not_json_error(f"the reply is not JSON: {refused}") from refused


def text_body(reply: HttpReply) -> Json:
    """Return `{text}`. Raise ResponseMappingError `response.not-json` for bytes that are not text."""
    named = _CHARSET.search(reply.header("content-type"))
    charset = named[1].lower() if named else "utf-8"
    if charset not in _CHARSETS:
        raise not_json_error(f"the reply's charset `{charset[:_SHOWN]}` is not read")
    try:
        return {"text": reply.body.decode(charset)}
    except UnicodeDecodeError as error:
        raise not_json_error(f"the reply is not {charset} text") from error


def raw_body(reply: HttpReply) -> Json:
    """Return `{body, content_type}`, or `{body_base64, content_type}` if the bytes are not UTF-8."""
    return {**_text_or_base64(reply.body), "content_type": reply.header("content-type")}


def add_content_json(body: object, response: Json, masked: Callable[[str], str]) -> object:
    """Return a body with `content_json` next to each `choices[i].message.content` whose JSON the response mapping
    reads.

    An existing `content_json` is kept, and `body` itself is not changed. Raise ResponseMappingError `response.missing`
    if the content is not JSON. The message contains the masked beginning of the content.
    """
    requested = content_indices(response)
    if requested:
        body = deep_copy(body)
    for index in requested:
        message = message_of(body, index)
        if message is None or "content_json" in message:
            continue
        text = read_record(ChatMessage, message).content
        if text is None:
            continue
        try:
            message["content_json"] = loads(
                _strip_fence(text), max_depth=MAX_DEPTH, max_nodes=MAX_NODES
            )
        except InvalidJson as refused:
            start = visible(masked(text)[:_SHOWN])
            message_text = f"`response.choices.{index}.message.content` holds no JSON: {start}"
            raise ResponseMappingError("response.missing", message_text, left=True) from refused
    return body


def content_indices(response: Json) -> list[int]:
    """Return the choices whose answer a response mapping reads as JSON, in order."""
    texts = (text for text in response.values() if isinstance(text, str))
    return sorted({int(match[1]) for text in texts if (match := _CONTENT_JSON.fullmatch(text))})


class ChatReply(Record):
    """A reply of a language model."""

    choices: list[object]


class ChatChoice(Record):
    """One of its answers."""

    message: Json | None = None


class ChatMessage(Record):
    """The message of an answer."""

    content: str | None = None


def message_of(body: object, index: int) -> Json | None:
    """Return the message of a choice in a body, None without one."""
    choices = read_record(ChatReply, body).choices
    return read_record(ChatChoice, choices[index]).message if index < len(choices) else None


def _strip_fence(text: str) -> str:
    """Return the text inside a single code fence, else the text itself."""
    inner = text.strip()
    first, line_end, rest = inner.partition("\n")
    fenced = first.startswith(_FENCE) and line_end and rest.endswith(_FENCE)
    return rest.removesuffix(_FENCE) if fenced and "`" not in first[len(_FENCE) :] else text


def not_json_error(text: str) -> ResponseMappingError:
    """Return the error of a reply that does not fit the binding's response mode."""
    return ResponseMappingError("response.not-json", text, left=True)
