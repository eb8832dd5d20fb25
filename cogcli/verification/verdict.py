"""The results of verification: checks with reasons, and the place in a reply that a failed check is about."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from cogcli.core.jsonvalue import kind_of
from cogcli.core.redact import Redactor
from cogcli.verification.output_diff import ABSENT, OutputDifference

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_ONE_LINE: Final = 100
_MAX_LENGTH: Final = 300


class Frame(NamedTuple):
    """One line of a reply, and the range in it that a check is about; columns are 1-based."""

    line: int
    text: str
    column: int
    width: int


class Check(NamedTuple):
    """One check. `detail`: what was found; `frame`: its place in the reply."""

    name: str
    passed: bool
    detail: str = ""
    frame: Frame | None = None

    def to_payload(self) -> dict[str, Any]:
        """The check as a JSON object."""
        told: dict[str, Any] = {"name": self.name, "passed": self.passed, "detail": self.detail}
        if self.frame:
            told["frame"] = self.frame._asdict()
        return told


class Verdict(NamedTuple):
    """The result of one scenario or rule. `reason` is empty if it passed; `code` is that of a failed call."""

    id: str
    status: str
    checks: tuple[Check, ...] = ()
    reason: str = ""
    subject: str = ""
    code: str = ""
    outputs: dict[str, Any] | None = None
    ms: int | None = None
    curl: str = ""
    episode: str = ""
    file: str = ""

    def to_payload(self) -> dict[str, Any]:
        """The verdict as a JSON object."""
        return {
            "id": self.id,
            "passed": None if self.status == SKIPPED else self.status == PASSED,
            "status": self.status,
            "subject": self.subject,
            "checks": [check.to_payload() for check in self.checks],
            "outputs": self.outputs,
            "reason": self.reason,
            "code": self.code,
            "ms": self.ms,
            "curl": self.curl,
            "episode": self.episode,
            "file": self.file,
        }


def find_in_json(value: Any, place: str) -> Frame | None:
    """The place of a slash path in a JSON value as shown, on one line if it is short; None for a missing path."""
    parts = place.split("/") if place else []
    value = Redactor().mask(value)
    marked, found = _mark_at(value, parts)
    if found is ABSENT:
        return None
    whole = json.dumps(value, ensure_ascii=False)
    indent = None if len(whole) <= _ONE_LINE else 2
    at = json.dumps(marked, ensure_ascii=False, indent=indent).find(json.dumps(_MARK))
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    own = json.dumps(found, ensure_ascii=False, indent=indent).split("\n", 1)[0]
    return Frame(text.count("\n", 0, at) + 1, line, at - start + 1, max(1, len(own)))


_MARK: Final = "\x00here\x00"


def _mark_at(value: Any, parts: list[str]) -> tuple[Any, Any]:
    """The value with a mark at a path, and the value that was there."""
    if not parts:
        return _MARK, value
    key, rest = parts[0], parts[1:]
    if isinstance(value, dict) and key in value:
        inner, found = _mark_at(value[key], rest)
        return {**value, key: inner}, found
    if isinstance(value, list) and key.isdigit() and int(key) < len(value):
        inner, found = _mark_at(value[int(key)], rest)
        return [*value[: int(key)], inner, *value[int(key) + 1 :]], found
    return value, ABSENT


def join_differences(differences: list[OutputDifference], match: str) -> str:
    """Differences in one line: `- "errors": []   + "errors": null`."""
    parts = []
    for path, expected, found in differences[:3]:
        if match == "shape" and expected is not ABSENT and found is not ABSENT:
            parts.append(f"{path}: expected {kind_of(expected)}, found {kind_of(found)}")
            continue
        key = path.rpartition(".")[2]
        parts += [
            f'{sign} "{path}": {short(Redactor().mask({key: value})[key])}'
            for sign, value in (("-", expected), ("+", found))
            if value is not ABSENT
        ]
    if len(differences) > 3:
        parts.append(f"and {len(differences) - 3} more")
    return "   ".join(parts)


def short(value: Any, limit: int = _MAX_LENGTH) -> str:
    """A JSON value as text of at most `limit` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
