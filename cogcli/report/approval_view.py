"""The view of a request for approval that every screen shows: the action, its recipients and amounts, the rule, who may
answer, until when, and the commands that answer (docs/reference/execution.md#approvals). Pure.

1. Every argument is shown in full. Only a long text that is none of the deciding arguments is cut, and the cut is
   counted.
2. Deciding arguments come first: recipients, amounts, masked secrets, and what the rule of a pack read.
3. Values are those of the log, where secrets are masked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from shlex import quote
from typing import Final

from cogcli.base.canonical import text_from
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.redact import MASK
from cogcli.base.terminal_text import visible_block
from cogcli.declarations.envelope import Event
from cogcli.declarations.governance_events import Approval, ApprovalRequested
from cogcli.declarations.reading import read_record
from cogcli.declarations.value_types import Json
from cogcli.episode.history import SIGN_FLAG
from cogcli.report.humanize import seconds_of

LONGEST: Final = 400
"""Characters of a text that is shown in full; of a longer one that decides nothing this many are shown."""
_MOST_ARGUMENTS: Final = 10_000
"""Leaves of an input that are listed one by one; the rest of a larger one follows as one text."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_RECIPIENTS: Final = frozenset(
    """
    to cc bcc recipient recipients email emails mail address addresses phone account accounts iban bic user users
    customer customers payee beneficiary channel channels destination target targets host hosts url uri path file
    files repo repository branch database table key owner member members group role order invoice
    """.split()
)
_AMOUNTS: Final = frozenset(
    """
    amount amounts total price sum cost quantity qty count number currency value balance fee rate limit percent
    discount refund units hours days
    """.split()
)


class Argument(NamedTuple):
    """One leaf of the input of a call: its path with dots, and its value."""

    name: str
    value: object
    decides: bool
    """Whether it is a recipient, an amount, a masked secret, or was read by the rule."""

    @property
    def text(self) -> str:
        """The whole value as text."""
        return text_from(self.value)

    def screen_text(self, *, in_full: bool) -> str:
        """Return the value for a screen. Unless `in_full`, a long text that decides nothing is cut."""
        text = visible_block(self.text)
        if in_full or self.decides or len(text) <= LONGEST:
            return text
        return f"{text[:LONGEST]}… ({len(text)} characters)"


class ApprovalView(NamedTuple):
    """One request for approval, as every screen shows it."""

    approval_id: str
    episode_id: str
    skill: str
    step: str
    action: str
    """The capability; for an escalation of an agent its gate."""
    binding: str
    kind: str
    gate: str
    rule: str
    reason: str
    roles: tuple[str, ...]
    allow_self: bool
    proposed_by: str
    requested_at: str
    expires_at: str
    expired: bool
    arguments: tuple[Argument, ...]
    """The deciding ones first."""
    input: Json
    again: str = ""
    """Global flags of the commands that answer, with a space before them."""
    signed: bool = False
    """Whether only a signed answer counts."""
    answer: str = ""
    """The answer and its approver, for a request that is no longer open."""

    @property
    def approve_command(self) -> str:
        """The command that approves."""
        return self._command_line("approve")

    @property
    def reject_command(self) -> str:
        """The command that rejects."""
        return self._command_line("reject")

    def _command_line(self, verb: str) -> str:
        by = f" --by $USER:{quote(self.roles[0])}" if self.roles else ""
        sign = SIGN_FLAG if self.signed else ""
        return f"cogcli approvals {verb} {quote(self.approval_id)}{by}{sign}{self.again}"

    def rows(self, *, in_full: bool = False, with_answers: bool = True) -> list[tuple[str, str]]:
        """Return the names and texts to show, in order. Control characters in data are visible. With `with_answers`,
        the answering commands are included.
        """
        rows = [("action", " · ".join(filter(None, (self.action, self.step, self.binding))))]
        # With a prefix, so that no argument looks like one of the rows below.
        rows += [
            (f"input.{each.name}", each.screen_text(in_full=in_full)) for each in self.arguments
        ]
        is_late = self.expired and not self.answer
        until = f"{self.expires_at}, expired" if is_late else self.expires_at
        rows += [
            ("rule", self.rule),
            ("gate", self.gate),
            ("because", self.reason),
            ("roles", self._answering_roles()),
            ("signed", "only a signed answer counts" if self.signed else ""),
            ("expires", until),
            ("request", self.approval_id),
            ("run", " · ".join(filter(None, (self.episode_id, self.skill)))),
        ]
        if self.answer:
            rows.append(("answered", self.answer))
        elif with_answers:
            rows += [("approve", self.approve_command), ("reject", self.reject_command)]
        return [(visible_block(name), visible_block(text)) for name, text in rows if text]

    def _answering_roles(self) -> str:
        roles = ", ".join(self.roles)
        if not roles:
            return ""
        return roles if self.allow_self else f"{roles}; not the person who asked"

    @property
    def line(self) -> str:
        """The request on one line, with every deciding argument in full."""
        pairs = (f"{each.name}={each.text}" for each in self.arguments if each.decides)
        words = [self.action, *pairs, self.gate, ", ".join(self.roles)]
        return "  ".join(word for word in words if word)

    def to_payload(self) -> Json:
        """Return the object of `--json`."""
        return {
            "approval_id": self.approval_id,
            "episode_id": self.episode_id,
            "skill": self.skill,
            "step": self.step,
            "action": self.action,
            "binding": self.binding,
            "kind": self.kind,
            "rule": self.rule,
            "gate": self.gate,
            "reason": self.reason,
            "roles": list(self.roles),
            "signed": self.signed,
            "allow_self": self.allow_self,
            "proposed_by": self.proposed_by,
            "requested_at": self.requested_at,
            "expires_at": self.expires_at,
            "expired": self.expired,
            "arguments": [
                {"name": each.name, "value": each.value, "decides": each.decides}
                for each in self.arguments
            ],
            "input": self.input,
            "commands": {"approve": self.approve_command, "reject": self.reject_command},
        }


def view_request(
    event: Event, *, episode_id: str = "", skill: str = "", now: str = "", global_flags: str = ""
) -> ApprovalView:
    """Return the view of an `approval.requested` event. `global_flags` are added to the commands in
    it.
    """
    request = read_record(ApprovalRequested, event.payload)
    name = episode_id or event.episode_id
    return _build_view(request, event.timestamp, name, skill, now, global_flags)


def view_payload(request: Approval, asked_at: str) -> ApprovalView:
    """Return the view of the payload of a request, on a screen that shows its episode and has no clock."""
    return _build_view(request, asked_at, "", "", "", "")


def _build_view(
    request: Approval, asked_at: str, episode_id: str, skill: str, now: str, global_flags: str
) -> ApprovalView:
    inputs = request.input if isinstance(request.input, dict) else {}
    until, current = seconds_of(request.expires_at or ""), seconds_of(now)
    return ApprovalView(
        approval_id=request.approval_id,
        episode_id=episode_id,
        skill=skill,
        step=request.step_id or "",
        action=request.capability or request.gate or "a decision",
        binding=request.binding or "",
        kind=request.kind or "confirmation",
        gate=request.gate or "",
        rule=request.rule or "",
        reason=request.reason or "",
        roles=tuple(request.approver_roles or ()),
        allow_self=request.allow_self is not False,
        proposed_by=request.proposed_by or "",
        requested_at=asked_at,
        expires_at=request.expires_at or "",
        expired=until is not None and current is not None and until <= current,
        arguments=_list_arguments(inputs, frozenset(request.decides_on or ())),
        input=inputs,
        again=global_flags,
        signed=bool(request.signed),
    )


def _list_arguments(inputs: Json, deciding_paths: frozenset[str]) -> tuple[Argument, ...]:
    """Return the leaves of an input, the deciding ones first, otherwise in the order of the input."""
    arguments: list[Argument] = []
    for path, value in _iterate_leaves(inputs, ()):
        if len(arguments) == _MOST_ARGUMENTS:
            arguments.append(Argument("all", inputs, decides=False))
            break
        arguments.append(Argument(".".join(path), value, _is_deciding(path, value, deciding_paths)))
    return tuple(sorted(arguments, key=lambda each: not each.decides))


def _iterate_leaves(
    value: object, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield each member without members, as (path, value). A list of plain values is one leaf."""
    if isinstance(value, Mapping) and value:
        for name, member in value.items():
            yield from _iterate_leaves(member, (*path, str(name)))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for number, member in enumerate(value):
            yield from _iterate_leaves(member, (*path, str(number)))
    else:
        yield path, value


def _is_deciding(path: tuple[str, ...], value: object, deciding_paths: frozenset[str]) -> bool:
    if value == MASK or any(
        ".".join(path[:size]) in deciding_paths for size in range(1, len(path) + 1)
    ):
        return True
    words = {word.lower() for name in path for word in _WORDS.findall(name)}
    if words & _RECIPIENTS:
        return True
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or bool(words & _AMOUNTS)
