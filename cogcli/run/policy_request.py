"""What the flags of a run say of its policy, as `run.started` records it (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from cogcli.declarations.run_start import RecordedStart


class PolicyRequest(NamedTuple):
    """What `--pack`, `--intent`, `--user`, `--safety-mode` and `--budget` say; all empty for the default policy."""

    pack: str = ""
    """`id@version`, perhaps with `#sha256:...`."""
    intent: str = ""
    user: str = ""
    safety_mode: str = ""
    budget: Mapping[str, int] = {}

    @classmethod
    def recorded(cls, start: RecordedStart) -> PolicyRequest | None:
        """What the first event of a run records; None for the default policy."""
        return cls(**start.policy.json) if start.policy and start.policy.json else None

    def to_payload(self) -> dict[str, Any]:
        """The `policy` of `run.started`: what was given."""
        given = {**self._asdict(), "budget": dict(self.budget)}
        return {name: value for name, value in given.items() if value}
