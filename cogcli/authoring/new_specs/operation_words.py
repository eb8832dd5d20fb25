"""What people wrote about an operation in its document: descriptions, examples, media types. Schemas that are bundled
for checking have none of it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final, NamedTuple

from cogcli.base.api_documents.loader import resolve
from cogcli.base.api_documents.openapi import Entry
from cogcli.base.json_pointer import NOWHERE, DocumentFault
from cogcli.base.jsonvalue import list_of, object_of
from cogcli.base.terminal_text import visible
from cogcli.base.yaml.text_faults import UNSAFE
from cogcli.declarations.value_types import Json

LONGEST: Final = 300
_MOST_PARTS: Final = 200


class OperationWords(NamedTuple):
    """Texts by what they are about: `path.id`, `body.name`, `response.text`; examples by the same names, `body` for a
    whole one. `replies`: the media types of each declared status."""

    summary: str
    texts: dict[str, str]
    examples: Json
    replies: dict[str, list[str]]
    calls_back: bool


def operation_words(document: Json, entry: Entry) -> OperationWords:
    """The words about an entry of a document; what is malformed says nothing."""
    return _Reader(document).words(entry)


def one_line(text: Any, longest: int = LONGEST) -> str:
    """A text of others as one line in which nothing is hidden; empty for what is not text."""
    if not isinstance(text, str):
        return ""
    line = visible(" ".join(text[: 8 * longest].split()))
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def description_of(text: Any) -> str:
    """A text of others as one line that a spec can hold: without the characters that no spec may."""
    return one_line(UNSAFE.sub("", text.replace("\r", " "))) if isinstance(text, str) else ""


class _Reader:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._texts: dict[str, str] = {}
        self._examples: Json = {}
        self._replies: dict[str, list[str]] = {}

    def words(self, entry: Entry) -> OperationWords:
        item = self._resolved(object_of(self._document.get("paths")).get(entry.path))
        own = object_of(item.get(entry.method.lower()))
        for holder in (item, own):
            for parameter in map(self._resolved, list_of(holder.get("parameters"))):
                name = f"{parameter.get('in')}.{parameter.get('name')}"
                self._add(name, parameter, parameter.get("schema"))
        body = self._resolved(own.get("requestBody"))
        self._members("body", self._json(body), description_of(body.get("description")))
        for status, raw in object_of(own.get("responses")).items():
            reply = self._resolved(raw)
            self._replies[status.upper() if status != "default" else status] = [
                *object_of(reply.get("content"))
            ]
            if status.startswith("2"):
                self._members("response", self._json(reply))
        long, short = description_of(own.get("description")), description_of(own.get("summary"))
        said = long if len(long) < LONGEST else short
        return OperationWords(
            said or short or long or description_of(entry.title),
            self._texts,
            self._examples,
            self._replies,
            bool(own.get("callbacks")),
        )

    def _resolved(self, value: Any) -> Json:
        with suppress(DocumentFault):
            return resolve(self._document, value, ())[0]
        return {}

    def _json(self, holder: Json) -> Json:
        content = object_of(holder.get("content"))
        return self._resolved(next((content[name] for name in content if "json" in name), None))

    def _members(self, name: str, media: Json, said: str = "") -> None:
        """The words about a body or a reply, and about each property that it names at its top."""
        self._add(name, media, media.get("schema"), said)
        pending = [media.get("schema")]
        for _ in range(_MOST_PARTS):
            if not pending:
                break
            part = self._resolved(pending.pop(0))
            pending += list_of(part.get("allOf"))
            for key, schema in object_of(part.get("properties")).items():
                self._add(f"{name}.{key}", {}, schema)

    def _add(self, name: str, holder: Json, raw: Any, said: str = "") -> None:
        schema = self._resolved(raw)
        beside = object_of(raw).get("description")  # of 3.1, beside a reference
        texts = (holder.get("description"), beside, schema.get("description"), said)
        self._texts.setdefault(name, next(filter(None, map(description_of, texts)), ""))
        named = next(iter(object_of(holder.get("examples")).values()), None)
        of_schema = list_of(schema.get("examples"))
        found = (
            holder.get("example", NOWHERE),
            self._resolved(named).get("value", NOWHERE) if named is not None else NOWHERE,
            schema.get("example", NOWHERE),
            of_schema[0] if of_schema else NOWHERE,
        )
        example = next((each for each in found if each is not NOWHERE), NOWHERE)
        if example is not NOWHERE:
            self._examples.setdefault(name, example)
