"""The keys and hashes that the caller of `verify` trusts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.episode.layout import FindingSeverity
from cogcli.policy.approvals import SignedAnswer


class SignatureVerdict(NamedTuple):
    """The result of checking the signature of a person's answer: a finding's code, severity and message."""

    code: str
    severity: FindingSeverity
    message: str


JudgeAnswer = Callable[[SignedAnswer, str], SignatureVerdict]
"""Judges the signature of an answer as of the time of the answer."""


class TrustAnchors(NamedTuple):
    """The keys and hashes that the caller trusts."""

    key: str | None = None
    """The `key_id` that must have signed."""
    head: str | None = None
    """The hash that the log must have ended with."""
    owner: bytes | None = None
    """The user's key."""
    own_keys: frozenset[str] = frozenset()
    """Further keys whose signatures count: those that the user signs with."""
    signature: bool = False
    """Whether one of these keys must have signed all of the episode."""
    judge_answer: JudgeAnswer | None = None
    """Judges signed answers of people. None if they are not checked."""


NO_TRUST: Final = TrustAnchors()
