"""Token counts, model name and finish reason of a reply (docs/reference/protocols.md#record).

A count that is not a whole number from 0 to 2^53 is refused, with a notice in the attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cogcli.base.jsonvalue import MAX_INTEGER, kind_of
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.terminal_text import visible
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.declarations.value_types import Json
from cogcli.protocols.invoker import CallMeta

_LONGEST_NAME: Final = 128
_MAX_NOTICES: Final = 8
_LONGEST_KEY: Final = 40


class ReplyChoice(Record):
    """One of the answers of a reply."""

    finish_reason: str | None = None


class ReportedReply(ReplyChoice):
    """The members at the top of a reply that are about its model."""

    choices: list[ReplyChoice]
    model: str | None = None
    usage: Json | None = None


class ModelUsage(NamedTuple):
    """The usage that a reply reports at the top of its body. A member is None if it is absent or
    malformed."""

    usage: dict[str, int] | None = None
    model: str | None = None
    finish_reason: str | None = None
    refused: tuple[str, ...] = ()
    """A notice per refused count."""

    @staticmethod
    def add_tokens(
        usage: Mapping[str, int] | None, tokens_in: int, tokens_out: int
    ) -> dict[str, int]:
        """Return a usage with these tokens added, under the names that it has already."""
        total = dict(usage or {})
        name_in = "prompt_tokens" if "prompt_tokens" in total else "input_tokens"
        name_out = "completion_tokens" if "completion_tokens" in total else "output_tokens"
        for name, tokens in ((name_in, tokens_in), (name_out, tokens_out)):
            total[name] = min(total.get(name, 0) + tokens, MAX_INTEGER)
        return total

    def add_to(self, meta: CallMeta) -> CallMeta:
        """Return the record of a call with these values added. Notices about refused counts are last."""
        return meta._replace(
            usage=self.usage,
            model=self.model,
            finish_reason=self.finish_reason,
            notices=[*(meta.notices or ()), *self.refused] or None,
        )


def usage_of(body: object, usage: Json | None = None) -> ModelUsage:
    """Return the usage of a reply. It never raises: the service writes these members in any form.

    `usage` is a usage object from outside the body; if it has a valid count, that of the body is
    ignored."""
    reply = read_record(ReportedReply, body)
    counts, refused = _token_counts(usage)
    if counts is None:
        counts, more = _token_counts(reply.usage)
        refused = (*refused, *more)
    reason = reply.choices[0].finish_reason if reply.choices else reply.finish_reason
    return ModelUsage(counts, _model_name(reply.model), _model_name(reason), refused[:_MAX_NOTICES])


def _token_counts(usage: Json | None) -> tuple[dict[str, int] | None, tuple[str, ...]]:
    """Return the valid `*_tokens` counts of a usage object, None without any, and a notice per
    invalid one. Null means absent."""
    if usage is None:
        return None, ()
    counts: dict[str, int] = {}
    refused = []
    for key, value in usage.items():
        if not key.endswith("_tokens") or value is None:
            continue
        if type(value) is int and 0 <= value <= MAX_INTEGER:
            counts[key] = value
        else:
            what = "out of range" if type(value) is int else f"{kind_of(value)}, no whole number"
            # Half a secret could not be masked.
            shown = (
                visible(key) if len(key) <= _LONGEST_KEY else f"a name of {len(key):,} characters"
            )
            refused.append(f"usage: `{shown}` is not counted: {what}")
    return counts or None, tuple(refused)


def _model_name(value: str | None) -> str | None:
    return value if value and len(value) <= _LONGEST_NAME else None
