"""The texts about an operation in its document: descriptions, examples, media types.

Schemas that are bundled for checking contain none of them."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeVar

from cogcli.base.api_documents.openapi import Entry
from cogcli.base.api_documents.parts import resolve
from cogcli.base.json_pointer import NOWHERE, DocumentFault
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible
from cogcli.base.yaml.text_faults import UNSAFE
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json

LONGEST: Final = 300
_MAX_PARTS: Final = 200


class OperationDescriptions(NamedTuple):
    """The descriptions of an operation by subject (`path.id`, `body.name`, `response.text`), and
    examples by the same names.

    The example `body` is for the whole body. `replies` has the media types of each declared status.
    """

    summary: str
    texts: dict[str, str]
    examples: Json
    replies: dict[str, list[str]]
    calls_back: bool


def operation_words(document: Json, entry: Entry) -> OperationDescriptions:
    """Return the descriptions in an entry of a document. Malformed ones are ignored."""
    return _Reader(document).read_entry(entry)


def one_line(text: str, longest: int = LONGEST) -> str:
    """Return a foreign text as one line without invisible characters."""
    line = visible(" ".join(text[: 8 * longest].split()))
    return line if len(line) <= longest else f"{line[: longest - 1].rstrip()}…"


def description_of(text: str) -> str:
    """Return a foreign text as one line without characters that a spec must not contain."""
    return one_line(UNSAFE.sub("", text.replace("\r", " ")))


class SchemaDescriptions(Record):
    """The words and parts of a schema."""

    description: str
    properties: Json
    allOf: list[object]
    examples: list[object]
    example: object = NOWHERE


class ExampleDescriptions(Record):
    """A named example."""

    value: object = NOWHERE


class MediaDescriptions(Record):
    """The words of a parameter, or of a body in one media type."""

    description: str
    schema: object = None
    examples: Json
    example: object = NOWHERE


class BodyDescriptions(Record):
    """The words of a request body or of a reply."""

    description: str
    content: Json


class PathDescriptions(Record):
    """The parameters of a path, or of an operation."""

    parameters: list[object]


class EntryDescriptions(PathDescriptions):
    """The words and parts of an operation."""

    summary: str
    description: str
    requestBody: object = None
    responses: Json
    callbacks: object = None


class DocumentPaths(Record):
    """The paths of a document."""

    paths: Json


_Words = TypeVar("_Words", bound=Record)


def _has_json(holder: BodyDescriptions) -> bool:
    return any("json" in name for name in holder.content)


class _Reader:
    def __init__(self, document: Json) -> None:
        self._document = document
        self._texts: dict[str, str] = {}
        self._examples: Json = {}
        self._replies: dict[str, list[str]] = {}

    def read_entry(self, entry: Entry) -> OperationDescriptions:
        paths = read_record(DocumentPaths, self._document).paths
        item = self._read_record(PathDescriptions, paths.get(entry.path))
        own = read_record(EntryDescriptions, item.json.get(entry.method.lower()))
        for raw in (*item.parameters, *own.parameters):
            parameter = self._read_record(MediaDescriptions, raw)
            name = f"{parameter.json.get('in')}.{parameter.json.get('name')}"
            self._add_description(name, parameter, parameter.schema)
        body = self._read_record(BodyDescriptions, own.requestBody)
        media = self._json_media(body) if _has_json(body) else self._first_media(body)
        self._add_members("body", media, description_of(body.description))
        for status, raw in own.responses.items():
            reply = self._read_record(BodyDescriptions, raw)
            self._replies[status.upper() if status != "default" else status] = [*reply.content]
            if status.startswith("2"):
                self._add_members("response", self._json_media(reply))
        long, short = description_of(own.description), description_of(own.summary)
        given = long if len(long) < LONGEST else short
        return OperationDescriptions(
            given or short or long or description_of(entry.title),
            self._texts,
            self._examples,
            self._replies,
            bool(own.callbacks),
        )

    def _read_record(self, cls: type[_Words], value: object) -> _Words:
        """Return the record of a value or of the target of its reference; an empty record for
        anything else.
        """
        with suppress(DocumentFault):
            return read_record(cls, resolve(self._document, value, ())[0])
        return read_record(cls, {})

    def _first_media(self, holder: BodyDescriptions) -> MediaDescriptions:
        return self._read_record(MediaDescriptions, next(iter(holder.content.values()), None))

    def _json_media(self, holder: BodyDescriptions) -> MediaDescriptions:
        content = holder.content
        name = next((name for name in content if "json" in name), "")
        return self._read_record(MediaDescriptions, content.get(name))

    def _add_members(self, name: str, media: MediaDescriptions, description: str = "") -> None:
        """Add the descriptions of a body or a reply, and about each of its top-level properties."""
        self._add_description(name, media, media.schema, description)
        pending = [media.schema]
        for _ in range(_MAX_PARTS):
            if not pending:
                break
            part = self._read_record(SchemaDescriptions, pending.pop(0))
            pending += part.allOf
            for key, schema in part.properties.items():
                self._add_description(f"{name}.{key}", read_record(MediaDescriptions, {}), schema)

    def _add_description(
        self, name: str, holder: MediaDescriptions, raw: object, description: str = ""
    ) -> None:
        schema = self._read_record(SchemaDescriptions, raw)
        # OpenAPI 3.1 allows a description next to a reference.
        local_description = read_record(SchemaDescriptions, raw).description
        texts = (holder.description, local_description, schema.description, description)
        self._texts.setdefault(name, next(filter(None, map(description_of, texts)), ""))
        first_named = self._read_record(
            ExampleDescriptions, next(iter(holder.examples.values()), None)
        )
        candidates = (holder.example, first_named.value, schema.example, *schema.examples[:1])
        example = next((each for each in candidates if each is not NOWHERE), NOWHERE)
        if example is not NOWHERE:
            self._examples.setdefault(name, example)
