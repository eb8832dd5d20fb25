"""The refusal of a Python function behind a service (docs/reference/sdk.md#refused)."""

from __future__ import annotations

from typing import Literal

Reason = Literal["bad-data", "too-large", "unsupported", "no-evidence", "needs-model"]


class Refused(Exception):
    """A function refuses its input, with a reason.

    The input may be invalid, too large, of an unknown kind or empty, or it may need a language
    model. A retry cannot help: a run reports `call.rejected`, which is neither repeated nor tried
    with another binding.
    """

    def __init__(self, reason: Reason, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.hint = hint
