"""What the settings say of a person who signs answers (docs/reference/execution.md#signed)."""

from __future__ import annotations

from cogcli.declarations.record import Record


class ApproverTable(Record):
    """The table of one person."""

    roles: list[str] = []
    keys: list[str] = []
    """Lines of `allowed_signers` without their principals: options, kind, key, comment."""
    revoked: list[str] = []
    """Revoked keys. No signature by one of them is valid, for any approver."""
