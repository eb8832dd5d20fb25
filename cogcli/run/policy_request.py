"""The policy flags of a run, which `run.started` records (docs/reference/pack.md#governed-calls)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.run_start import LATEST_EDITION, RecordedStart
from cogcli.declarations.value_types import Json


class PolicyRequest(NamedTuple):
    """The values of `--pack`, `--intent`, `--user`, `--safety-mode`, `--budget`, `--with-pack` and `--shadow`.

    All are empty for the default policy.
    """

    pack: str = ""
    """`id@version`, optionally with `#sha256:...`."""
    intent: str = ""
    user: str = ""
    safety_mode: str = ""
    budget: Mapping[str, int] = {}
    with_packs: Sequence[str] = ()
    """References of further packs."""
    shadow: bool = False
    """Whether no rule of the pack is enforced."""
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
        given = {**self._asdict(), "with_packs": list(self.with_packs)}
        return {name: value for name, value in given.items() if name != "edition"}

    def to_payload(self) -> Json:
        """Return the `policy` member of `run.started`, which contains only the values that are set."""
        edition = self.edition if self.pack else 0
        lists = {"budget": dict(self.budget), "with_packs": list(self.with_packs)}
        given = {**self._asdict(), **lists, "edition": edition}
        return {name: value for name, value in given.items() if value}
