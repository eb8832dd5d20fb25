"""What the flags of a run say of its policy, as `run.started` records it (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class PolicyRequest(NamedTuple):
    """What `--pack`, `--intent`, `--user`, `--safety-mode` and `--budget` say; all empty for the default policy."""

    pack: str = ""
    """`id@version`, perhaps with `#sha256:...`."""
    intent: str = ""
    user: str = ""
    safety_mode: str = ""
    budget: Mapping[str, int] = {}

    @classmethod
    def recorded(cls, started: Mapping[str, Any]) -> PolicyRequest | None:
        """What the payload of `run.started` says; None for the default policy."""
        given = started.get("policy")
        return cls(**given) if given else None

    def to_payload(self) -> dict[str, Any]:
        """The `policy` of `run.started`: what was given."""
        given = {**self._asdict(), "budget": dict(self.budget)}
        return {name: value for name, value in given.items() if value}
