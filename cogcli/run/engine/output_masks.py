"""The obligation `mask:PATH`: a value of an output is replaced before anything else sees it
(docs/reference/pack.md#obligations). Pure.

The output was checked by its contract before. State, facts, events and later steps get the mask. A resumed or replayed
run gets it, too: its log holds nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from cogcli.base.calls import Answer
from cogcli.base.errors import (
    RejectedError,
    ResponseMappingError,
    RuntimeErrorBase,
    ServerFaultError,
)
from cogcli.base.redact import MASK
from cogcli.declarations.call_records import AttemptMade
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json

_REPLY: Final = ("reply", "printed", "stderr", "notices")
"""The members of an attempt that may quote the service's answer."""


def mask_answer(answer: Answer, masks: Sequence[str]) -> Answer:
    """Return an answer with masked values, and without the reply of the service in its record."""
    if not masks:
        return answer
    output: object = answer.output
    for path in masks:
        output = mask_value(output, tuple(path.split(".")))
    kept = output if isinstance(output, dict) else {}
    return answer._replace(output=kept, record=_without_reply(answer.record))


def mask_value(value: object, path: tuple[str, ...]) -> object:
    """Return a copy of a value in which the part at a path is masked.

    A name applies to each item of a list. An absent part stays absent. If the path continues below a value that is no
    object, that value is masked as a whole.
    """
    if not path:
        return MASK
    first, *rest = path
    if isinstance(value, dict):
        below = {first: mask_value(value[first], tuple(rest))} if first in value else {}
        return {**value, **below}
    if isinstance(value, list):
        if not first.isdecimal():
            return [mask_value(item, path) for item in value]
        place = int(first)
        return [
            mask_value(item, tuple(rest)) if number == place else item
            for number, item in enumerate(value)
        ]
    return value if value is None else MASK


def withhold_reply(error: RuntimeErrorBase, masks: Sequence[str]) -> None:
    """Remove the service's reply from the error of a call whose output would be masked."""
    if not masks:
        return
    quotes = _quotes_service(error)
    error.record = _without_reply(error.record)
    error.reply = ""
    if isinstance(error, ResponseMappingError):
        _replace_text(
            error, "the answer does not fit; it is not quoted, as a rule masks a part of it"
        )
    elif quotes:
        _replace_text(error, "the service refused the call; a rule masks a part of what it says")


def _quotes_service(error: RuntimeErrorBase) -> bool:
    """Return whether the message may quote a reply. One that comes from a log has its reply masked, and no quote."""
    if not isinstance(error, (RejectedError, ServerFaultError)):
        return False
    reply = read_record(AttemptMade, dict(error.record or {})).reply
    return reply is not None and reply.get("body") != MASK


def _replace_text(error: RuntimeErrorBase, text: str) -> None:
    error.message = text
    error.args = (text,)
    error.hint = error.reason = ""


def _without_reply(record: Mapping[str, object] | None) -> Json | None:
    if record is None:
        return None
    kept = {name: value for name, value in record.items() if name not in _REPLY}
    reply = read_record(AttemptMade, dict(record)).reply
    if reply is not None and "body" in reply:
        kept["reply"] = {**reply, "body": MASK}
    return kept
