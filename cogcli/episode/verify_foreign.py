"""What can be said of an episode whose log is another tool's: only the seed's fields are held to something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from cogcli.core.files import FileRefused
from cogcli.core.strict_json import JsonRefused
from cogcli.episode.blobs import parsed
from cogcli.episode.document import STATE_KEYS
from cogcli.episode.findings import Finding
from cogcli.episode.folder import Folder
from cogcli.episode.layout import EVENTS, STATE, is_link
from cogcli.episode.vocabulary import OUTCOMES
from cogcli.events.envelope import Event

_LIMIT: Final = 1 << 28
_REQUIRED: Final = STATE_KEYS[:-1]


def foreign_findings(folder: Folder, files: dict[str, int], evidence: Event | None) -> Iterator[Finding]:
    """The seed's promises about `state.json`: its fields, its links, and the last evidence of a terminal run."""
    yield Finding("chain.unchained", "info", EVENTS, 1, "another tool's log: its lines are not chained")
    if STATE not in files:
        return
    try:
        state = parsed(folder.read(STATE, limit=_LIMIT))
    except (FileRefused, JsonRefused) as error:
        yield _error("state.syntax", getattr(error, "line", 0) or 1, error.message)
        return
    if type(state) is not dict:
        yield _error("state.syntax", 1, "is no object")
        return
    missing = [key for key in _REQUIRED if key not in state]
    if missing:
        yield _error("state.fields", 1, f"lacks {', '.join(missing)}")
    yield from _outcome(state.get("outcomes"), evidence)
    links = state.get("links")
    for key, value in links.items() if type(links) is dict else ():
        if not is_link(value):
            yield _error("link.unsafe", 1, f"link `{key:.40}` is no file of the episode: {value!r:.80}")


def _outcome(outcomes: Any, evidence: Event | None) -> Iterator[Finding]:
    if type(outcomes) is not dict or outcomes.get("status") not in OUTCOMES:
        yield _error("state.fields", 1, "its outcome is none")
        return
    payload = evidence.payload if evidence and type(evidence.payload) is dict else {}
    told = payload.get("outcomes")
    if type(told) is dict and orjson.dumps(told) != orjson.dumps(outcomes):
        yield _error("state.evidence", 1, "its outcomes are not those of the last run.state_projection")


def _error(code: str, line: int, message: str) -> Finding:
    return Finding(code, "error", STATE, line, message)
