"""The executable examples of capabilities (docs/reference/capability.md#examples). Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import normpath
from typing import Any, Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.capability_spec import Capability
from cogcli.specs.template import has_only
from cogcli.specs.unchecked import object_at, objects_at, text_at, value_at

FILE: Final = "$file"
BASE64: Final = "base64"


class Example(NamedTuple):
    """An executable example of a capability. `{$file: NAME}` in it is replaced by the path of one of its `files`."""

    number: int
    inputs: Mapping[str, object]
    outputs: Mapping[str, object] | None
    match: str
    files: Mapping[str, object]
    own_folder: bool = False
    """Whether it declares its files. Then it is called in a folder with only these."""


def examples_of(capability: Capability) -> list[Example]:
    """Return the executable examples of a capability, in order. `validate` reports their faults."""
    found = []
    for index, entry in objects_at(capability.metadata, "examples"):
        inputs = entry.get("inputs", value_at(entry, "input"))
        if isinstance(inputs, dict):
            outputs = object_at(entry, "outputs") or None
            match = str(value_at(entry, "match") or "shape")
            files = object_at(entry, "files")
            found.append(Example(index + 1, inputs, outputs, match, files, "files" in entry))
    return found


def with_paths(value: object, path_of: Callable[[str], str]) -> Any:
    """Return a copy of a value in which the path of the file replaces each `{$file: NAME}`."""
    match value:
        case {"$file": str(name), **others} if not others:
            return path_of(name)
        case dict():
            return {key: with_paths(inner, path_of) for key, inner in value.items()}
        case list():
            return [with_paths(inner, path_of) for inner in value]
        case _:
            return value


def is_inside(name: str) -> bool:
    """Return whether a relative file name does not lead out of its folder."""
    path = normpath(name)
    return bool(name) and not path.startswith(("/", "..")) and "\\" not in name and "\0" not in name


def content_of(content: object) -> bytes | None:
    """Return the bytes of an example's file, declared as a string or as `{base64: TEXT}`. None for any other value."""
    if isinstance(content, str):
        return content.encode()
    encoded = text_at(content, BASE64) if has_only(content, BASE64) else None
    if encoded is None:
        return None
    from base64 import b64decode  # few examples have a file

    try:
        return b64decode("".join(encoded.split()), validate=True)
    except ValueError:
        return None
