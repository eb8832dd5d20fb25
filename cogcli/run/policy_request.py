"""The policy flags of a run, which `run.started` records (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.run_start import RecordedStart
from cogcli.declarations.value_types import Json


class PolicyRequest(NamedTuple):
    """The values of `--pack`, `--intent`, `--user`, `--safety-mode` and `--budget`. All are empty for the default
    policy.
    """

    pack: str = ""
    """`id@version`, optionally with `#sha256:...`."""
    intent: str = ""
    user: str = ""
    safety_mode: str = ""
    budget: Mapping[str, int] = {}

    @classmethod
    def recorded(cls, start: RecordedStart) -> PolicyRequest | None:
        """Return the policy request in the first event of a run, or None for the default policy."""
        return cls(**start.policy.json) if start.policy and start.policy.json else None

    def to_payload(self) -> Json:
        """Return the `policy` member of `run.started`, which contains only the values that are set."""
        given = {**self._asdict(), "budget": dict(self.budget)}
        return {name: value for name, value in given.items() if value}
