"""The meaning of changes in an accepted project: the new actions that a changed declaration allows
(docs/reference/service.md#trust)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from cogcli.app.settings.trust_declarations import DeclarationKey, texts_in
from cogcli.base.files import FileRefused, read_regular
from cogcli.base.jsonvalue import list_of
from cogcli.base.source_lines import hide_secrets
from cogcli.base.yaml.reader import DOCUMENT, parse
from cogcli.declarations.capability_spec import GATES, STRICTNESS, TRUST_RANKS
from cogcli.declarations.pack_spec import VERDICTS
from cogcli.declarations.reading import read_record
from cogcli.declarations.record import Record
from cogcli.specs.layers import builtin_root

_USER: Final = re.compile(r"://[^/?#\s\"'@]*@")
_LONGEST_LINE: Final = 400

_ISOLATIONS: Final = ("thread", "process", "sandbox")
"""The isolations of functions, the weakest first."""
MISSING: Final = object()
"""The value of a declaration that no file contains."""


class Meaning(NamedTuple):
    """An action that a change allows, and its severity.

    0: a guard is lost; 1: something new is reached or started; 2: something else is called or
    chosen; 3: a setting; 4: all else."""

    severity: int
    text: str


_LOST_GUARDS: Final = frozenset(
    (
        "safety",
        "rule",
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
    """Return the severity of a changed declaration, as in `Meaning`.

    A skill may name hosts in any text, and a project may have many `x-` settings. These must not
    hide other changes."""
    kind, subject = key
    if kind in _LOST_GUARDS or (kind == "setting" and "@" in subject):
        return 0
    if kind in _REACHES:
        return 2 if subject.startswith("skill ") else 1
    if kind == "setting":
        return 4 if subject.startswith("x-") else 3
    return 2


def mask_line(text: str) -> str:
    """Return a text without credentials, at most one line long."""
    return _USER.sub("://***@", hide_secrets(text[: 10 * _LONGEST_LINE]))[:_LONGEST_LINE]


def find_meanings(key: DeclarationKey, before: Any, after: Any) -> Iterator[Meaning]:
    """Yield the new actions that a changed declaration allows. `before` or `after` may be MISSING."""
    severity = _severity_of(key)
    for text in _find_new_actions(key, before, after):
        yield Meaning(severity, mask_line(text))


class _Change(NamedTuple):
    """A declaration that changed. `before` and `after` are None where it is absent, or declares null; `was_declared`
    distinguishes the two for `before`."""

    kind: str
    subject: str
    before: Any
    after: Any
    was_declared: bool


def _find_new_actions(key: DeclarationKey, before: Any, after: Any) -> Iterator[str]:
    """Yield the new actions that a changed declaration allows."""
    kind, subject = key
    if kind == "safety":
        return _weaker_safety(subject, before, after)
    old = None if before is MISSING else before
    new = None if after is MISSING else after
    return _COMPARISONS[kind](_Change(kind, subject, old, new, before is not MISSING))


def _added_members(change: _Change) -> Iterator[str]:
    for each in sorted((change.after or set()) - (change.before or set())):
        yield f"{change.subject}: {_NEW[change.kind]} {each}"


def _removed_or_changed(change: _Change) -> Iterator[str]:
    if change.before is not None and change.before != change.after:
        how = "is gone" if change.after is None else "has changed"
        yield f"{change.subject}: {_GONE[change.kind]} {how}"


def _replaced(change: _Change) -> Iterator[str]:
    if change.after is not None and change.before != change.after:
        yield _changed(_REPLACED[change.kind].format(change.subject), change.before, change.after)


def _weakened_rule(change: _Change) -> Iterator[str]:
    old, new = (read_record(RuleEntry, each) for each in (change.before, change.after))
    return _weaker_rule(change.subject, old, new)


def _more_pack_hosts(change: _Change) -> Iterator[str]:
    before, after = change.before, change.after
    if before is not None and after is None:
        yield f"{change.subject}: calls may reach any host"
    elif before is not None and after - before:
        yield f"{change.subject}: calls may reach {', '.join(sorted(after - before))}"


def _denied_effect(change: _Change) -> Iterator[str]:
    if change.was_declared and change.before is not False and change.after is False:
        yield f"capability {change.subject} now declares no side effects"


def _allowed_repeat(change: _Change) -> Iterator[str]:
    if change.was_declared and change.after and not change.before:
        yield f"capability {change.subject} may now be called again after a failure"


def _weaker_isolation(change: _Change) -> Iterator[str]:
    before, after = (str(value or "process") for value in (change.before, change.after))
    is_named = change.was_declared or change.after
    if is_named and _rank(_ISOLATIONS, after) < _rank(_ISOLATIONS, before):
        yield f"{change.subject}: isolation {after}, was {before}"


def _changed_environment(change: _Change) -> Iterator[str]:
    name = change.subject.rpartition(" ")[2]
    if change.after is not None and change.before != change.after:
        before = _shown(name, change.before) if change.was_declared else None
        yield _changed(change.subject, before, _shown(name, change.after))


def _opened_network(change: _Change) -> Iterator[str]:
    if change.after and not change.before:
        yield f"{change.subject}: may reach private addresses"


def _changed_setting(change: _Change) -> Iterator[str]:
    if change.before != change.after:
        before, after = _shown(change.subject, change.before), _shown(change.subject, change.after)
        yield _changed(change.subject, before, after)


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
    **dict.fromkeys(_NEW, _added_members),
    **dict.fromkeys(_GONE, _removed_or_changed),
    **dict.fromkeys(_REPLACED, _replaced),
    "rule": _weakened_rule,
    "pack hosts": _more_pack_hosts,
    "effect": _denied_effect,
    "repeat": _allowed_repeat,
    "isolation": _weaker_isolation,
    "environment": _changed_environment,
    "network": _opened_network,
    "setting": _changed_setting,
}
"""The function that finds the new actions, by kind of declaration, except `safety`."""


def _changed(what: str, before: Any, after: Any) -> str:
    return f"{what} {after}" if before is None else f"{what} {after}, was {before}"


def _shown(key: str, value: Any) -> str | None:
    """Return a setting as text, hidden if it could hold a secret."""
    if value is None:
        return "not set"
    return mask_line(f"{key.rpartition('.')[2]} = {value}").partition(" = ")[2]


class SafetyBlock(Record):
    """The safety block of a capability, as its file has it."""

    trust_level: object = None
    requires_confirmation: bool | None = None
    reversible: bool | None = None
    allowed_targets: list[object]
    scope_constraints: list[object]

    @property
    def trust_name(self) -> str:
        """The trust that a run needs."""
        return str(self.trust_level or "sandbox")


class GateEntry(Record):
    """A gate of a safety block."""

    capability: object = None
    on_fail: object = None

    @property
    def rank(self) -> int:
        """How strict its answer is."""
        return _rank(STRICTNESS, str(self.on_fail or "block"))


def _weaker_safety(id: str, before: object, after: object) -> Iterator[str]:
    """Yield the demands that the safety block of a capability drops. A shipped capability counts as
    the earlier one of a new override."""
    capability = f"capability {id}"
    old = read_record(SafetyBlock, _shipped_safety(id) if before is MISSING else before)
    if after is MISSING:
        after = _shipped_safety(id)
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
    yield from _dropped_demands(capability, old, new)
    for phase in GATES:
        gates = {str(gate.capability): gate for gate in _gates_in(new, phase)}
        for gate in _gates_in(old, phase):
            yield from _weaker_gate(capability, gate, gates.get(str(gate.capability)))
    yield from _wider_scope(capability, old, new)


def _dropped_demands(capability: str, old: SafetyBlock, new: SafetyBlock) -> Iterator[str]:
    if TRUST_RANKS.get(new.trust_name, 0) < TRUST_RANKS.get(old.trust_name, 0):
        yield f"{capability}: trust_level {new.trust_level or 'sandbox'}, was {old.trust_level}"
    if old.requires_confirmation is True and new.requires_confirmation is not True:
        yield f"{capability} no longer requires confirmation"
    if old.reversible is False and new.reversible is not False:
        yield f"{capability} no longer says that its effect cannot be undone"


def _wider_scope(capability: str, old: SafetyBlock, new: SafetyBlock) -> Iterator[str]:
    targets, were = texts_in(new.allowed_targets), texts_in(old.allowed_targets)
    if were and not targets:
        yield f"{capability} may reach any target"
    elif were and targets - were:
        yield f"{capability} may reach {', '.join(sorted(targets - were))}"
    for lost in sorted(texts_in(old.scope_constraints) - texts_in(new.scope_constraints)):
        yield f"{capability} loses the constraint {lost}"


def _gates_in(safety: SafetyBlock, phase: str) -> Iterator[GateEntry]:
    """Yield the gates of a phase; one may be written as a name."""
    for gate in list_of(safety.json.get(phase)):
        yield read_record(GateEntry, {"capability": gate} if isinstance(gate, str) else gate)


def _weaker_gate(capability: str, old: GateEntry, new: GateEntry | None) -> Iterator[str]:
    if new is None:
        yield f"{capability} loses the gate {old.capability}"
    elif new.rank < old.rank:
        says = f"says {new.on_fail}, was {old.on_fail or 'block'}"
        yield f"{capability}: gate {old.capability} {says}"
    elif old.json != new.json:
        yield f"{capability}: gate {old.capability} has changed"


class RuleEntry(Record):
    """A rule of a pack, as its file has it."""

    then: object = None
    mode: object = None
    applies_to: object = None

    @property
    def verdict(self) -> str:
        """The verdict of its `then`."""
        return str(read_record(RuleEffect, self.then).verdict)

    @property
    def condition(self) -> object:
        """Its `if`."""
        return self.json.get("if")


class RuleEffect(Record):
    """The `then` of a rule."""

    verdict: object = None


def _weaker_rule(rule: str, old: RuleEntry, new: RuleEntry) -> Iterator[str]:
    if not old.json:
        return
    was, verdict = old.verdict, new.verdict
    if not new.json:
        yield f"{rule} is gone, was {was}"
        return
    strictness = tuple(reversed(VERDICTS))
    if _rank(strictness, verdict) < _rank(strictness, was):
        yield f"{rule} says {verdict}, was {was}"
    if old.mode == "enforce" and new.mode != "enforce":
        yield f"{rule} is no longer enforced"
    if verdict == was and old.then != new.then:
        yield f"{rule} ({verdict}) has another gate, other limits or obligations"
    if (old.condition, old.applies_to) != (new.condition, new.applies_to):
        yield f"{rule} ({verdict}) has other conditions"


def _rank(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else -1


class ShippedCapability(Record):
    """A shipped capability that a project's own may replace."""

    safety: object = None


def _shipped_safety(id: str) -> object:
    """Return the safety block of a shipped capability that a project's own replaces."""
    path = os.path.join(builtin_root(), "capabilities", f"{os.path.basename(id)}.yaml")
    try:
        data = read_regular(path, limit=DOCUMENT.bytes)
    except FileRefused:
        return None
    return read_record(ShippedCapability, parse(data, file=path).value).safety
