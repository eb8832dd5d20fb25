"""The executable examples of capabilities (docs/reference/capability.md#examples). Pure."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from posixpath import normpath
from typing import Any, Final, NamedTuple

from cogcli.base.jsonvalue import list_of, object_of
from cogcli.declarations.capability_spec import Capability

FILE: Final = "$file"
BASE64: Final = "base64"


class Example(NamedTuple):
    """An executable example. `{$file: NAME}` in it is a path below a folder with its `files`."""

    number: int
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any] | None
    match: str
    files: Mapping[str, Any]
    own_folder: bool = False
    """Whether it declares its files. Then it is called in a folder with only these."""


def examples_of(capability: Capability) -> list[Example]:
    """Return the executable examples, in order. `validate` reports their faults."""
    found = []
    for number, entry in enumerate(map(object_of, list_of(capability.metadata.get("examples"))), 1):
        inputs = entry.get("inputs", entry.get("input"))
        if isinstance(inputs, dict):
            outputs = object_of(entry.get("outputs")) or None
            match = str(entry.get("match") or "shape")
            files = object_of(entry.get("files"))
            found.append(Example(number, inputs, outputs, match, files, "files" in entry))
    return found


def with_paths(value: Any, path_of: Callable[[str], str]) -> Any:
    """Return a value in which each `{$file: NAME}` is replaced by the path of that file."""
    if isinstance(value, dict):
        name = value.get(FILE)
        if len(value) == 1 and isinstance(name, str):
            return path_of(name)
        return {key: with_paths(inner, path_of) for key, inner in value.items()}
    return [with_paths(inner, path_of) for inner in value] if isinstance(value, list) else value


def is_inside(name: str) -> bool:
    """Return whether a relative file name stays inside its folder."""
    path = normpath(name)
    return bool(name) and not path.startswith(("/", "..")) and "\\" not in name and "\0" not in name


def content_of(content: Any) -> bytes | None:
    """Return the bytes of an example's file: a text, or the bytes of `{base64: TEXT}`. None for any other value."""
    if isinstance(content, str):
        return content.encode()
    encoded = object_of(content).get(BASE64)
    if not isinstance(encoded, str) or len(content) != 1:
        return None
    try:
        return b64decode("".join(encoded.split()), validate=True)
    except (binascii.Error, ValueError):
        return None
