"""The files of an episode, the grammars of all names that become part of a path, and the closed vocabularies of its
documents, in the order of the shared format (docs/reference/episode.md#shared-format)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, get_args

from cogcli.base.lazy_pattern import lazy_pattern
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.options import TRACE_ID
from cogcli.declarations.value_types import Json, Outcome, StepKind, StepStatus

EVENTS: Final = "events.jsonl"
LEARN: Final = "learn.jsonl"
STATE: Final = "state.json"
SUMMARY: Final = "summary.json"
MANIFEST: Final = "manifest.json"
CONTEXT: Final = "context.json"
DECISION: Final = "decision.json"
TORN: Final = "events.torn"
BLOBS: Final = "blobs"
BALLAST: Final = ".ballast"
"""Space reserved while a run is alive; not a part of the episode."""
CHECKPOINT: Final = "checkpoint.jsonl"
"""The events for which the writer of the log vouches. No manifest names it, since it differs from user to user."""
WAYPOINT: Final = "waypoint.json"
"""A cache for a resume. No manifest names it: it is removed before the episode is sealed."""

FILES: Final = (EVENTS, LEARN, STATE, SUMMARY, MANIFEST, CONTEXT, DECISION, TORN)
"""The files of an episode, without its blobs."""

OPEN_LINKS: Final = {"events": EVENTS, "learn": LEARN}
TERMINAL_LINKS: Final = {**OPEN_LINKS, "summary": SUMMARY, "manifest": MANIFEST}

# -- vocabularies ------------------------------------------------------------------------------------------------------

VERSION: Final = "1.0"
SCHEMA_VERSION: Final = "1.0.0"
SUMMARY_SCHEMA: Final = "summary/1"
STEP_KINDS: Final[tuple[str, ...]] = get_args(StepKind)
STEP_STATUSES: Final[tuple[str, ...]] = get_args(StepStatus)
OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
EXCERPT: Final = 200
"""Characters of JSON in the excerpt of an input or output."""

# -- names -------------------------------------------------------------------------------------------------------------

_ULID = "[0-7][0-9A-HJKMNP-TV-Z]{25}"
# Ours are upper case; those of other tools are lower case and not ULIDs. So no two ids differ by case alone.
_EPISODE_ID = lazy_pattern(
    rf"ep_(?:{_ULID}|(?!{_ULID.lower()}$)[a-z0-9][a-z0-9_-]*(?:\.[a-z0-9_-]+)*)"
)
_OWN_ID = lazy_pattern(rf"ep_{_ULID}")
_BLOB = lazy_pattern(r"[0-9a-f]{64}")
_DIGEST = lazy_pattern(r"sha256:[0-9a-f]{64}")
EVENT_ID: Final = lazy_pattern(rf"ev_{_ULID}")
TIMESTAMP: Final = lazy_pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
MAX_ID: Final = 64


def is_episode_id(text: str) -> bool:
    """Return whether a string may name an episode's directory, of cogcli or of another tool."""
    return len(text) <= MAX_ID and _EPISODE_ID.fullmatch(text) is not None


def is_own_id(text: str) -> bool:
    """Return whether a string is an episode id of cogcli: `ep_` and a ULID."""
    return _OWN_ID.fullmatch(text) is not None


def is_renamed(name: str, episode_id: object) -> bool:
    """Return whether the folder's name is the id of another episode than the log's. Any other name is allowed."""
    return type(episode_id) is str and name != episode_id and is_episode_id(name)


def is_trace_id(text: str) -> bool:
    """Return whether a string is a trace id."""
    return TRACE_ID.accepts(text)


def is_digest(value: object) -> bool:
    """Return whether a value is `sha256:` and 64 hex digits."""
    return type(value) is str and _DIGEST.fullmatch(value) is not None


def is_blob_name(name: str) -> bool:
    """Return whether a file name is the name of a blob."""
    return _BLOB.fullmatch(name) is not None


def kind_of(name: str) -> str:
    """Return the kind of a file for a manifest: its stem, or `blob`."""
    return "blob" if name.startswith(f"{BLOBS}/") else name.partition(".")[0]


FindingSeverity = Literal["error", "warning", "info"]


class Finding(NamedTuple):
    """One result of a check of an episode. `line` starts at 1; 0 means the whole file."""

    code: str
    severity: FindingSeverity
    file: str
    line: int
    message: str
    expected: str = ""
    """The expected content, in one line. Empty if it is not known."""
    found: str = ""
    """The found content, with `expected`."""

    def to_payload(self) -> Json:
        """Return the finding as JSON, with `expected` and `found` only if they are known."""
        payload = self._asdict()
        return (
            payload
            if self.expected or self.found
            else {name: payload[name] for name in self._fields[:-2]}
        )


def error_finding(
    code: str, file: str, line: int, message: str, *, expected: str = "", found: str = ""
) -> Finding:
    """Return a finding of severity error. A file name, which any user may have chosen, is truncated to 200
    characters.
    """
    return Finding(code, "error", file[:200], line, message, expected, found)


def describe_content(digest: str, size: int | None) -> str:
    """Return size and hash of a file for a finding; `digest` is plain hex, or empty if it is not known."""
    return ", ".join(
        filter(None, ("" if size is None else f"{size:,} bytes", digest and f"sha256 {digest}"))
    )


FindingSink = Callable[[str], None]
"""Takes the messages about repairs by a projection."""


def ignore_message(message: str) -> None:
    """Ignore a message. This is the sink of callers without a use for messages."""
