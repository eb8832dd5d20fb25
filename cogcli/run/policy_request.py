"""The policy flags of a run, which `run.started` records (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.run_start import LATEST_EDITION, RecordedStart
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
    edition: int = LATEST_EDITION
    """The edition of the checks. A resumed or replayed run keeps its own."""

    @classmethod
    def recorded(cls, start: RecordedStart) -> PolicyRequest | None:
        """Return the policy request in the first event of a run, or None for the default policy."""
        if not start.policy or not start.policy.json:
            return None
        return cls(**{"edition": start.policy.edition, **start.policy.json})

    @property
    def flags(self) -> Json:
        """The values of the flags, by the name of the option."""
        return {name: value for name, value in self._asdict().items() if name != "edition"}

    def to_payload(self) -> Json:
        """Return the `policy` member of `run.started`, which contains only the values that are set."""
        edition = self.edition if self.pack else 0
        given = {**self._asdict(), "budget": dict(self.budget), "edition": edition}
        return {name: value for name, value in given.items() if value}
