"""The names of upstream tools: for clients, and as capabilities (docs/reference/gateway.md#names)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

LONGEST: Final = 60
"""The most characters of a name. Hosts add a prefix, and refuse names of more than 64."""
_PREFIX: Final = "mcp"
_SEPARATOR: Final = "__"
_DIGEST: Final = 8
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")
_OTHER_OF_ID: Final = re.compile(r"[^a-z0-9]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SEGMENT: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_LONGEST_SEGMENT: Final = 56


def client_name(server: str, tool: str) -> str:
    """Return the name of a tool in a client's list: `server__tool`. The name depends only on its two parts. If it is
    too long, has invalid characters or is ambiguous, it ends with a digest of both parts.
    """
    name = f"{_OTHER.sub('_', server)}{_SEPARATOR}{_OTHER.sub('_', tool)}"
    is_plain = name == f"{server}{_SEPARATOR}{tool}" and len(name) <= LONGEST
    # The first separator of a plain name ends the server, so that no other pair has the name.
    if is_plain and _SEPARATOR not in server and not server.endswith("_"):
        return name
    return f"{name[: LONGEST - _DIGEST - 1]}-{_digest_parts(server, tool)}"


def capability_ids(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return the capability id of each tool of a server: `mcp.SERVER.TOOL`, in lower case.

    Tools whose names differ in nothing else get a digest, all of them: none may take the place of another.
    """
    names = list(dict.fromkeys(tools))
    plain = {name: _id_segment(name) for name in names}
    shared = Counter(plain.values())
    segment = _id_segment(server)
    if segment != server:  # two servers never share a segment
        segment = f"{segment}-{_digest_parts(server)}"
    return {
        name: f"{_PREFIX}.{segment}.{word if shared[word] == 1 else f'{word}-{_digest_parts(server, name)}'}"
        for name, word in plain.items()
    }


def _id_segment(name: str) -> str:
    """Return a name as a segment of an id. A long name is cut, and ends with a digest."""
    if len(name) <= _LONGEST_SEGMENT and _SEGMENT.fullmatch(name):
        return name
    word = _OTHER_OF_ID.sub("_", _HUMP.sub("_", name).lower()).strip("_")
    if word and len(word) <= _LONGEST_SEGMENT:
        return word
    cut = word[: _LONGEST_SEGMENT - _DIGEST - 1].strip("_") or "tool"
    return f"{cut}-{_digest_parts(name)}"


def _digest_parts(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
