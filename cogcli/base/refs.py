"""The grammar of references, shared by the static checks and the mapping (docs/reference/execution.md#reading)."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple

MAX_SEGMENTS: Final = 16
"""Segments after the namespace."""
READABLE: Final = ("inputs", "vars", "outputs", "frame", "working", "output", "extensions")
WRITABLE: Final = ("vars", "outputs", "working", "output", "extensions")
READ_ONLY: Final = ("inputs", "frame", "trace")
WORKING_SLOTS: Final = (
    "artifacts", "entities", "options", "criteria", "evidence", "risks",
    "hypotheses", "uncertainties", "intermediate_decisions", "messages",
)  # fmt: skip
OUTPUT_FIELDS: Final = ("result", "result_type", "summary", "status_reason")
FRAME_FIELDS: Final = (
    "goal",
    "context",
    "constraints",
    "success_criteria",
    "assumptions",
    "priority",
)

MISSING: Final = object()
"""The result of a look-up without a value. A present null is a value."""

_SEGMENT: Final = r"[A-Za-z0-9_][A-Za-z0-9_-]*"
_PATH = lazy_pattern(rf"{_SEGMENT}(?:\.{_SEGMENT})*")
_REFERENCE = lazy_pattern(rf"(?:{'|'.join(READABLE)})(?:\.{_SEGMENT}){{1,{MAX_SEGMENTS}}}")


class Reference(NamedTuple):
    """A parsed reference: `inputs.items.0` is namespace `inputs`, segments `("items", "0")`."""

    text: str
    namespace: str
    segments: tuple[str, ...]


@lru_cache(maxsize=4096)
def parse(text: str) -> Reference | None:
    """Return the reference written in a string; None if the string is a literal."""
    if not _REFERENCE.fullmatch(text):
        return None
    namespace, *segments = text.split(".")
    return Reference(text, namespace, tuple(segments))


def parse_loop(text: str, names: frozenset[str]) -> Reference | None:
    """Return a loop name, alone or with a path, as a reference whose namespace is that name; else
    None.
    """
    head, *segments = text.split(".")
    if head not in names or len(segments) > MAX_SEGMENTS or not _PATH.fullmatch(text):
        return None
    return Reference(text, head, tuple(segments))


class Target(NamedTuple):
    """A parsed target. `path` is one flat key under vars and outputs, otherwise a path of segments."""

    text: str
    namespace: str
    path: tuple[str, ...]


@lru_cache(maxsize=4096)
def parse_target(text: str) -> Target | None:
    """Return the target written in a string; None if it is not a valid target."""
    namespace, dot, rest = text.partition(".")
    if namespace not in WRITABLE or not dot or not _PATH.fullmatch(rest):
        return None
    segments = tuple(rest.split("."))
    if len(segments) > MAX_SEGMENTS:
        return None
    return Target(text, namespace, (rest,) if namespace in ("vars", "outputs") else segments)


def overlap(a: Target, b: Target) -> bool:
    """Return whether two targets are the same place, or one contains the other."""
    if a.namespace != b.namespace:
        return False
    shorter = min(len(a.path), len(b.path))
    return a.path[:shorter] == b.path[:shorter]
