"""The reply to a failed call as one line of text: status, size and its beginning
(docs/reference/command-line.md#errors)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from cogcli.core.canonical import compact
from cogcli.core.terminal_text import visible

if TYPE_CHECKING:
    from cogcli.protocols.secrets import Secrets

_LONGEST: Final = 120
_MASKED_LENGTH: Final = 64 * 1024
"""Characters. Longer replies are not excerpted: masking a part could leave half a secret."""


def reply_line(record: Mapping[str, Any] | None, secrets: Secrets) -> str:
    """The reply in an attempt's record (`CallMeta.to_payload`), masked; empty where there was none."""
    reply = (record or {}).get("reply")
    if record is None or not isinstance(reply, Mapping):
        return ""
    status, size = record.get("status_code"), record.get("response_bytes")
    head = ", ".join(
        [*([f"HTTP {status}"] if status else []), *([f"{size:,} bytes"] if size is not None else [])]
    )
    return "  ".join(filter(None, [head, _beginning(reply.get("body"), secrets)]))


def _beginning(body: Any, secrets: Secrets) -> str:
    if body in (None, "", {}):
        return ""
    text = body if isinstance(body, str) else compact(secrets.mask_value(body)).decode()
    if len(text) > _MASKED_LENGTH:
        return ""
    line = visible(" ".join(secrets.mask_text(text).split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
