"""References of API documents: they resolve, and those to other files become references inside one
document (docs/reference/service.md#documents).

The content of another file stands below `x-files`, by its path relative to the document.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Final
from urllib.parse import unquote

from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.json_pointer import (
    NOWHERE,
    DocumentFault,
    Pointer,
    find_at,
    parse_reference,
    pointer_of,
    pointer_text,
)
from cogcli.base.jsonvalue import Json, object_of
from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.problems import suggest_path

MAX_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of all files of a document."""
FILES: Final = "x-files"
MAX_FILES: Final = 500
_ELSEWHERE: Final = lazy_pattern(rb"""\$ref["']?\s*:\s*(?:"([^"#\\]+)|'([^'#]+)|([^"'#\s,}]+))""")
DATA_KEYS: Final = frozenset(("example", "examples", "default", "const", "enum"))
"""Keys whose values are data without references, except where free names are keys."""
NAMING_KEYS: Final = frozenset(
    (
        "properties", "patternProperties", "dependentSchemas", "$defs", "definitions", "schemas", "parameters",
        "responses", "headers", "requestBodies", "securitySchemes", "links", "callbacks", "pathItems", "paths",
        "content", "encoding", "variables", "contentDescriptors", "errors", "tags", "additionalOperations", FILES,
    )
)  # fmt: skip
"""Keys whose values are mappings with free names as keys."""
Parse = Callable[[bytes, str], Json]
"""A function that returns the mapping in the bytes of a file with this name."""


def check_references(document: Json) -> None:
    """Raise DocumentFault `wire.document` for the first `$ref` that leads outside or does not
    resolve.
    """
    targets = {holder["$ref"] for holder in _find_references(document)}
    if all(map(_make_resolver(document), targets)):
        return
    # The place of the fault is only needed now: a place for each value takes most of the time.
    for place, target in _iterate_references(document, ()):
        where = f"`{pointer_text(place)}`"
        if not target.startswith("#/"):
            hint = "bundle the document into one file"
            text = f"{where}: `$ref` to `{target}`, expected `#/...`"
            raise DocumentFault("wire.document", text, hint, pointer=(*place, "$ref"))
        if find_at(document, parse_reference(target)) is NOWHERE:
            text = f"{where}: `$ref` to `{target}`, which is not there"
            *above, name = parse_reference(target)
            siblings = find_at(document, tuple(above))
            before = f"{pointer_text(tuple(above))}/"
            near = suggest_path(name, siblings, prefix=before) if isinstance(siblings, dict) else ""
            hint = near or f"add `{name}` under `{pointer_text(tuple(above))}`"
            raise DocumentFault("wire.document", text, hint, pointer=(*place, "$ref"))


def _make_resolver(document: Json) -> Callable[[str], bool]:
    return lambda target: (
        target.startswith("#/") and find_at(document, parse_reference(target)) is not NOWHERE
    )


def _find_references(document: Json) -> Iterator[Json]:
    """Yield every mapping with a `$ref` that is a reference, in unspecified order."""
    pending: list[tuple[object, bool]] = [(document, False)]
    while pending:
        value, is_naming = pending.pop()
        if isinstance(value, list):
            pending += [(item, False) for item in value]
        elif isinstance(value, dict):
            if not is_naming and isinstance(value.get("$ref"), str):
                yield value
            pending += [
                (member, not is_naming and key in NAMING_KEYS)
                for key, member in value.items()
                if member.__class__ in (dict, list) and (is_naming or _may_refer(key))
            ]


def _may_refer(key: str) -> bool:
    return key not in DATA_KEYS and (key == FILES or not key.startswith("x-"))


def _iterate_references(
    value: object, place: Pointer, *, is_naming: bool = False
) -> Iterator[tuple[Pointer, str]]:
    """Yield every reference with its place. `is_naming`: the keys of `value` are arbitrary names."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _iterate_references(item, (*place, str(index)))
    elif isinstance(value, dict):
        for key, member in value.items():
            if is_naming:
                yield from _iterate_references(member, (*place, key))
            elif key == "$ref" and isinstance(member, str):
                yield place, member
            elif _may_refer(key):
                yield from _iterate_references(member, (*place, key), is_naming=key in NAMING_KEYS)


def find_document_files(path: str, root: str) -> list[str]:
    """Return the real paths of the files below `root` that a document refers to, directly or
    indirectly, at most 500. Files that cannot be read have no references.

    They are found by their text alone, so that this is quick. Only these files are read.
    """
    found = [os.path.realpath(path)]
    for file in found:
        for match in _ELSEWHERE.finditer(_bytes_of(file)):
            name = next(filter(None, match.groups())).decode(errors="replace")
            with suppress(DocumentFault):
                other = _other_file(name, file, root)
                if other is not None and other not in found and len(found) <= MAX_FILES:
                    found.append(other)
    return found[1:]


def _bytes_of(path: str) -> bytes:
    try:
        return read_regular(path, limit=MAX_BYTES)
    except UnreadableFile:
        return b""


def merge_files(
    document: Json, path: str, root: str, parse: Parse, allowed: Collection[str]
) -> list[str]:
    """Add the files that a document refers to, directly or indirectly, and return their real paths.

    References to them are rewritten. They are those that are `allowed`, which `find_document_files` has
    found, and have at most 64 MiB together. Raise DocumentFault `wire.document`.
    """
    main = os.path.realpath(path)
    names = {main: ""}
    pending = [(document, main)]
    added: Json = {}
    room = MAX_BYTES
    while pending:
        value, file = pending.pop()
        for holder in list(_find_references(value)):
            name, _, pointer = holder["$ref"].partition("#")
            other = _other_file(name, file, root) if name else file
            if other is None:
                continue
            if other not in names:
                _require_known_file(other, name, allowed)
                names[other] = os.path.relpath(other, os.path.dirname(main)).replace(os.sep, "/")
                data = _read_referenced_file(other, name, room)
                room -= len(data)
                added[names[other]] = parse(data, names[other])
                pending.append((added[names[other]], other))
            if names[other] or name:
                prefix = pointer_of((FILES, names[other])) if names[other] else ""
                holder["$ref"] = f"#{prefix}{pointer}"
    if added:
        document[FILES] = {**object_of(document.get(FILES)), **added}
    return [file for file in names if file != main]


def _require_known_file(file: str, name: str, allowed_files: Collection[str]) -> None:
    if file not in allowed_files:
        text = f"`$ref` to `{name}`: more than {MAX_FILES} files, or not written plainly"
        raise DocumentFault("wire.document", text, "bundle the document into one file")


def _other_file(name: str, file: str, root: str) -> str | None:
    """Return the real path of the file that a reference names; None for an address.

    Raise DocumentFault for a file outside of the root.
    """
    if "://" in name or "\0" in name:
        return None
    found = os.path.realpath(os.path.join(os.path.dirname(file), unquote(name)))
    if not found.startswith(os.path.realpath(root).rstrip(os.sep) + os.sep):
        text = f"`$ref` to `{name}`, which is outside the folder of the document"
        raise DocumentFault("wire.document", text, "copy it next to the document")
    return found


def _read_referenced_file(path: str, name: str, limit: int) -> bytes:
    try:
        return read_regular(path, limit=max(limit, 0))
    except UnreadableFile as refused:
        text = f"`$ref` to `{name}`: the file {refused.message}"
        raise DocumentFault("wire.document", text) from refused
