"""Masking the payload of an event, as its line in the log has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from cogcli.core.redact import Redactor

_KEYED_BY_SPEC_IDS: Final = ("pins", "selection")


def mask_payload(payload: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """The payload without secrets; the same object where there are none.

    Members whose keys are ids of specs lose known secret values alone: a skill `vault.secret` is pinned by a digest.
    """
    masked: dict[str, Any] = redactor.mask(payload)
    if masked is payload:
        return payload
    for name in _KEYED_BY_SPEC_IDS:
        if name in payload:
            masked[name] = redactor.mask_known(payload[name])
    options = payload.get("options")
    if isinstance(options, dict) and "binds" in options:
        masked["options"] = {**masked["options"], "binds": redactor.mask_known(options["binds"])}
    return masked
