"""The refusal of a Python function behind a service (docs/reference/sdk.md#refused)."""

from __future__ import annotations

from typing import Literal

Reason = Literal["bad-data", "too-large", "unsupported", "no-evidence", "needs-model"]


class Refused(Exception):
    """A function's answer that it does not do this, with the reason: the input is what it cannot take, too large, of a
    kind it does not know, holds nothing to go by, or asks for what only a language model can do. Asking again cannot
    help: a run makes it `call.rejected`, which is neither repeated nor tried with another binding."""

    def __init__(self, reason: Reason, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.hint = hint
