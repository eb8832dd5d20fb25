"""The consequences of changes in an accepted project: the new actions that a changed declaration
allows (docs/reference/service.md#trust)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from cogcli.app.settings.trust_declarations import DeclarationKey, texts_in
from cogcli.app.settings.trust_pack_consequences import (
    LimitEntry,
    RuleEntry,
    find_weaker_limit,
    find_weaker_rule,
    position_in,
)
from cogcli.base.files import UnreadableFile, read_regular
from cogcli.base.named_tuple import NamedTuple
from cogcli.base.source_lines import hide_secrets
from cogcli.base.yaml.limits import DOCUMENT
from cogcli.base.yaml.reader import parse
from cogcli.declarations.capability_spec import GATES, STRICTNESS, TRUST_RANKS
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.specs.layers import builtin_root

_USER: Final = re.compile(r"://[^/?#\s\"'@]*@")
_LONGEST_LINE: Final = 400

_ISOLATIONS: Final = ("thread", "process", "sandbox")
"""The isolations of functions, the weakest first."""
MISSING: Final = object()
"""The value of a declaration that no file contains."""


class Consequence(NamedTuple):
    """A consequence of a change, such as a new action that it allows, and its severity.

    0: a protection is lost. 1: something new is reached or started. 2: another target is called or selected. 3: a
    setting. 4: anything else.
    """

    severity: int
    text: str


_LOST_GUARDS: Final = frozenset(
    (
        "safety",
        "rule",
        "limit",
        "guardrail",
        "gate",
        "base",
        "effect",
        "repeat",
        "isolation",
        "plain",
        "network",
    )
)
_REACHES: Final = frozenset(
    ("host", "pack hosts", "variable", "program", "environment", "directory", "module", "document")
)


def _severity_of(key: tuple[str, str]) -> int:
    """Return the severity of a changed declaration, as in `Consequence`.

    A skill may name hosts in any string, and a project may have many `x-` settings. Their severities
    are low, so that they do not hide other changes."""
    kind, subject = key
    if kind in _LOST_GUARDS or (kind == "setting" and "@" in subject):
        return 0
    if kind in _REACHES:
        return 2 if subject.startswith("skill ") else 1
    if kind == "setting":
        return 4 if subject.startswith("x-") else 3
    return 2


def mask_line(text: str) -> str:
    """Return a string without credentials, truncated to one line."""
    return _USER.sub("://***@", hide_secrets(text[: 10 * _LONGEST_LINE]))[:_LONGEST_LINE]


def find_consequences(key: DeclarationKey, old: Any, new: Any) -> Iterator[Consequence]:
    """Yield the consequences of a changed declaration. `old` or `new` may be MISSING."""
    severity = _severity_of(key)
    for text in _find_new_actions(key, old, new):
        yield Consequence(severity, mask_line(text))


class _Change(NamedTuple):
    """A declaration that changed.

    `before` or `after` is None if the declaration is missing or null. `was_declared` is whether it
    existed before."""

    kind: str
    subject: str
    before: Any
    after: Any
    was_declared: bool


def _find_new_actions(key: DeclarationKey, before: Any, after: Any) -> Iterator[str]:
    """Yield the new actions that a changed declaration allows."""
    kind, subject = key
    if kind == "safety":
        return _find_weaker_safety(subject, before, after)
    old = None if before is MISSING else before
    new = None if after is MISSING else after
    return _COMPARISONS[kind](_Change(kind, subject, old, new, before is not MISSING))


def _find_added_members(change: _Change) -> Iterator[str]:
    for each in sorted((change.after or set()) - (change.before or set())):
        yield f"{change.subject}: {_NEW[change.kind]} {each}"


def _find_lost_guards(change: _Change) -> Iterator[str]:
    if change.before is not None and change.before != change.after:
        how = "is gone" if change.after is None else "has changed"
        yield f"{change.subject}: {_GONE[change.kind]} {how}"


def _find_replacement(change: _Change) -> Iterator[str]:
    if change.after is not None and change.before != change.after:
        yield _describe_change(
            _REPLACED[change.kind].format(change.subject), change.before, change.after
        )


def _compare_rules(change: _Change) -> Iterator[str]:
    old, new = (read_record(RuleEntry, each) for each in (change.before, change.after))
    return find_weaker_rule(change.subject, old, new)


def _compare_limits(change: _Change) -> Iterator[str]:
    old, new = (read_record(LimitEntry, each) for each in (change.before, change.after))
    return find_weaker_limit(change.subject, old, new)


def _find_new_pack_hosts(change: _Change) -> Iterator[str]:
    before, after = change.before, change.after
    if before is not None and after is None:
        yield f"{change.subject}: calls may reach any host"
    elif before is not None and after - before:
        yield f"{change.subject}: calls may reach {', '.join(sorted(after - before))}"


def _find_denied_effect(change: _Change) -> Iterator[str]:
    if change.was_declared and change.before is not False and change.after is False:
        yield f"capability {change.subject} now declares no side effects"


def _find_allowed_repeat(change: _Change) -> Iterator[str]:
    if change.was_declared and change.after and not change.before:
        yield f"capability {change.subject} may now be called again after a failure"


def _find_weaker_isolation(change: _Change) -> Iterator[str]:
    before, after = (str(value or "process") for value in (change.before, change.after))
    is_named = change.was_declared or change.after
    if is_named and position_in(_ISOLATIONS, after) < position_in(_ISOLATIONS, before):
        yield f"{change.subject}: isolation {after}, was {before}"


def _find_changed_environment(change: _Change) -> Iterator[str]:
    name = change.subject.rpartition(" ")[2]
    if change.after is not None and change.before != change.after:
        before = _format_setting(name, change.before) if change.was_declared else None
        yield _describe_change(change.subject, before, _format_setting(name, change.after))


def _find_opened_network(change: _Change) -> Iterator[str]:
    if change.after and not change.before:
        yield f"{change.subject}: may reach private addresses"


def _find_changed_setting(change: _Change) -> Iterator[str]:
    if change.before != change.after:
        before, after = (
            _format_setting(change.subject, change.before),
            _format_setting(change.subject, change.after),
        )
        yield _describe_change(change.subject, before, after)


_NEW: Final = {
    "host": "new host",
    "plain": "calls without encryption",
    "variable": "new variable or secret",
    "permission": "may now call",
    "calls": "now calls",
}
_GONE: Final = {
    "guardrail": "the guardrail",
    "gate": "the gate",
    "base": "its base, with the safety that it gave,",
}
_REPLACED: Final = {
    "program": "{}: new program",
    "directory": "{}: starts in",
    "module": "{}: new module",
    "document": "{}: new document",
    "call": "{} calls",
    "operation": "{} is",
    "choice": "capability {} is called through",
    "override": "capability {} is always called through",
}


_COMPARISONS: Final[dict[str, Callable[[_Change], Iterator[str]]]] = {
    **dict.fromkeys(_NEW, _find_added_members),
    **dict.fromkeys(_GONE, _find_lost_guards),
    **dict.fromkeys(_REPLACED, _find_replacement),
    "rule": _compare_rules,
    "limit": _compare_limits,
    "pack hosts": _find_new_pack_hosts,
    "effect": _find_denied_effect,
    "repeat": _find_allowed_repeat,
    "isolation": _find_weaker_isolation,
    "environment": _find_changed_environment,
    "network": _find_opened_network,
    "setting": _find_changed_setting,
}
"""The function that finds the new actions, by kind of declaration, except `safety`."""


def _describe_change(subject: str, old: Any, new: Any) -> str:
    """Describe a new value, and the old one if it is known."""
    return f"{subject} {new}" if old is None else f"{subject} {new}, was {old}"


def _format_setting(key: str, value: Any) -> str | None:
    """Return a setting as text, masked if it may contain a secret."""
    if value is None:
        return "not set"
    return mask_line(f"{key.rpartition('.')[2]} = {value}").partition(" = ")[2]


class SafetyBlock(Record):
    """The safety block in the file of a capability."""

    trust_level: object = None
    requires_confirmation: bool | None = None
    reversible: bool | None = None
    mandatory_pre_gates: list[object]
    mandatory_post_gates: list[object]
    allowed_targets: list[object]
    scope_constraints: list[object]

    @property
    def trust_name(self) -> str:
        """Return the trust level that a call requires."""
        return str(self.trust_level or "sandbox")


class GateEntry(Record):
    """A gate of a safety block."""

    capability: object = None
    on_fail: object = None

    @property
    def rank(self) -> int:
        """The strictness of the gate's `on_fail`; a higher rank is stricter."""
        return position_in(STRICTNESS, str(self.on_fail or "block"))


def _find_weaker_safety(id: str, before: object, after: object) -> Iterator[str]:
    """Yield the requirements that the safety block of a capability no longer has.

    If a new capability overrides a shipped one, its block is compared with the shipped one."""
    capability = f"capability {id}"
    old = read_record(SafetyBlock, _read_shipped_safety(id) if before is MISSING else before)
    if after is MISSING:
        after = _read_shipped_safety(id)
        if old.json and not after:
            yield f"{capability} is gone, with its safety block"
            return
    new = read_record(SafetyBlock, after)
    if not old.json:
        return
    if not new.json:
        had = ", ".join(sorted(map(str, old.json)))
        yield f"{capability} has no safety block any more: it had {had}"
        return
    yield from _find_dropped_requirements(capability, old, new)
    for phase in GATES:
        gates = {str(gate.capability): gate for gate in _read_gates(new, phase)}
        for gate in _read_gates(old, phase):
            yield from _find_weaker_gate(capability, gate, gates.get(str(gate.capability)))
    yield from _find_wider_scope(capability, old, new)


def _find_dropped_requirements(
    capability: str, old: SafetyBlock, new: SafetyBlock
) -> Iterator[str]:
    if TRUST_RANKS.get(new.trust_name, 0) < TRUST_RANKS.get(old.trust_name, 0):
        yield f"{capability}: trust_level {new.trust_level or 'sandbox'}, was {old.trust_level}"
    if old.requires_confirmation is True and new.requires_confirmation is not True:
        yield f"{capability} no longer requires confirmation"
    if old.reversible is False and new.reversible is not False:
        yield f"{capability} no longer says that its effect cannot be undone"


def _find_wider_scope(capability: str, old: SafetyBlock, new: SafetyBlock) -> Iterator[str]:
    targets, were = texts_in(new.allowed_targets), texts_in(old.allowed_targets)
    if were and not targets:
        yield f"{capability} may reach any target"
    elif were and targets - were:
        yield f"{capability} may reach {', '.join(sorted(targets - were))}"
    for lost in sorted(texts_in(old.scope_constraints) - texts_in(new.scope_constraints)):
        yield f"{capability} loses the constraint {lost}"


def _read_gates(safety: SafetyBlock, phase: str) -> Iterator[GateEntry]:
    """Yield the gates of a phase. A gate may be only a name."""
    for gate in getattr(safety, phase):
        yield read_record(GateEntry, {"capability": gate} if isinstance(gate, str) else gate)


def _find_weaker_gate(capability: str, old: GateEntry, new: GateEntry | None) -> Iterator[str]:
    if new is None:
        yield f"{capability} loses the gate {old.capability}"
    elif new.rank < old.rank:
        says = f"says {new.on_fail}, was {old.on_fail or 'block'}"
        yield f"{capability}: gate {old.capability} {says}"
    elif old.json != new.json:
        yield f"{capability}: gate {old.capability} has changed"


class ShippedCapability(Record):
    """A shipped capability that a project may override."""

    safety: object = None


def _read_shipped_safety(id: str) -> object:
    """Return the safety block of the shipped capability with this id."""
    path = os.path.join(builtin_root(), "capabilities", f"{os.path.basename(id)}.yaml")
    try:
        data = read_regular(path, limit=DOCUMENT.bytes)
    except UnreadableFile:
        return None
    return read_record(ShippedCapability, parse(data, file=path).value).safety
