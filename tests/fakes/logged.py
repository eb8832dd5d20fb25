"""Events as a log holds them, a second apart."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cogcli.declarations.envelope import Event
from cogcli.episode.layout import Finding

STAMP = "2026-11-20T22:58:0{}.000000Z"
NOW = STAMP.format(9)


def event(second: int, type: str, phase: str, payload: dict[str, Any], **more: Any) -> Event:
    """An event of the root run, so many seconds after the minute."""
    base = Event(second, f"ev_{second}", STAMP.format(second), "ep_01M7XJXW876C0000000000000A", "run_root",
                 "7f3a91c2" * 4, phase, type, payload)  # fmt: skip
    return base._replace(**more)


def is_clean(findings: Iterable[Finding]) -> bool:
    """Whether nothing was altered."""
    return all(finding.severity != "error" for finding in findings)
