"""The keys and hashes that the caller of `verify` trusts."""

from __future__ import annotations

from typing import Final

from cogcli.base.named_tuple import NamedTuple


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


NO_TRUST: Final = TrustAnchors()
