"""The parts of a compiled context: blocks, omissions, redactions, gates (docs/reference/pack.md#compiler)."""

from __future__ import annotations

from typing import Final

from cogcli.base.canonical import digest
from cogcli.base.named_tuple import NamedTuple
from cogcli.declarations.value_types import Json


class ContextBlock(NamedTuple):
    """A text in the context. If `treatment` is `data_only`, it is untrusted and no instruction."""

    block_id: str
    bucket: str
    content: str
    priority: int
    tokens: int
    provenance_refs: tuple[str, ...] = ()
    trust: str = "authoritative"
    treatment: str = "instruction"
    cuttable: bool = False
    truncated: bool = False
    in_focus: bool = True
    """Whether the attention of the turn includes it."""

    def to_payload(self) -> Json:
        """Return the block as JSON, with the hash of its content."""
        members = {**self._asdict(), "provenance_refs": list(self.provenance_refs)}
        del members["cuttable"], members["in_focus"]
        return {**members, "content_hash": digest(self.content.encode())}


STATE: Final = "state"
"""The bucket in omissions for the agent's own state in a prompt: profile, reasoning, results, notices."""


REQUEST: Final = "request"
"""The bucket in omissions for attachments that a prompt does not name."""


class Omission(NamedTuple):
    """Content that the context omits or shortens, and the reason: a block, a line of the agent's state, a deferred
    attachment, or summarized messages.
    """

    block_id: str
    bucket: str
    priority: int
    tokens: int
    reason: str


class Redaction(NamedTuple):
    """A redacted capability, and the check that it failed."""

    capability: str
    check: str
    reason: str
    rule_id: str = ""

    def to_payload(self) -> Json:
        """Return the redaction as JSON; without a rule it has no `rule_id`."""
        members = self._asdict()
        if not self.rule_id:
            del members["rule_id"]
        return members


class EvidenceGate(NamedTuple):
    """The status of a required piece of evidence: satisfied, missing, stale, conflict, expired or low_trust."""

    name: str
    status: str
    refs: tuple[str, ...] = ()

    def to_payload(self) -> Json:
        """Return the gate as JSON."""
        return {"name": self.name, "status": self.status, "refs": list(self.refs)}
