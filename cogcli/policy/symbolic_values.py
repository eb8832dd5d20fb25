"""Values that are not known: what a rule may read, and what an expression may give (docs/adr/0038-proofs.md). Pure.

A text is a number of the table of texts. Any number that the table lacks stands for a text that no rule mentions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from cogcli.base.jsonvalue import NOTHING
from cogcli.base.named_tuple import NamedTuple
from cogcli.policy.smt_script import (
    FALSE,
    TRUE,
    SmtScript,
    all_of,
    any_of,
    either,
    equals,
    implies,
    negated,
)

ABSENT_KIND: Final = "absent"
KINDS: Final = (ABSENT_KIND, "number", "text", "boolean", "list", "object", "null")
"""The kinds of values at a path, encoded as their position. Rules treat null as absent, limits on arguments do not."""
ROOTS: Final = frozenset("request user agent run call args inputs vars outputs state".split())
"""The parts of a rule's data that always exist. Any other part is a slot with its facts."""
_MEMBERS: Final[dict[str, dict[str, str]]] = {
    "request": {"message": "text", "channel": "text", "locale": "text", "params": "object"},
    "user": {"id": "text", "role": "text", "consent": "list"},
    "agent": {},
    "run": {"turn": "number", "now": "text"},
    "call": {"step": "text"},
}
"""The parts whose members are fixed, with the kinds of those members that differ from call to call."""


class KindCase(NamedTuple):
    """The condition under which a value is of a kind, and the term for it: a number, a text, a condition; of a list
    whether it has items."""

    condition: str
    term: str = ""


class SymbolicValue(NamedTuple):
    """The value of an expression: at most one of its kinds, or an error where `fails` is true."""

    kinds: Mapping[str, KindCase] = NOTHING
    fails: str = TRUE

    def case(self, kind: str) -> KindCase:
        """Return the case of a kind, with the condition `false` if the value is never of that kind."""
        return self.kinds.get(kind) or KindCase(FALSE, FALSE)


FAILURE: Final = SymbolicValue()
"""The value of an expression that never has one."""


def constant_value(kind: str, term: str = "") -> SymbolicValue:
    """Return a value that is always the same."""
    return SymbolicValue({kind: KindCase(TRUE, term)}, FALSE)


def condition_value(fails: str, holds: str) -> SymbolicValue:
    """Return a boolean that is known by a condition."""
    return SymbolicValue({"boolean": KindCase(negated(fails), holds)}, fails)


def choose_value(condition: str, value: SymbolicValue, other: SymbolicValue) -> SymbolicValue:
    """Return one of two values."""
    kinds = {}
    for kind in dict.fromkeys((*value.kinds, *other.kinds)):
        mine, theirs = value.case(kind), other.case(kind)
        term = mine.term if theirs.condition == FALSE else theirs.term
        if FALSE not in (mine.condition, theirs.condition):
            term = either(condition, mine.term, theirs.term)
        kinds[kind] = KindCase(either(condition, mine.condition, theirs.condition), term)
    return SymbolicValue(kinds, either(condition, value.fails, other.fails))


class Unknown(NamedTuple):
    """A value of any kind: the names of the constants for its kind and for its content."""

    kind: str
    number: str
    text: str
    boolean: str

    def is_kind(self, kind: str) -> str:
        """Return the condition that the value is of a kind."""
        return equals(self.kind, str(KINDS.index(kind)))

    @property
    def is_absent(self) -> str:
        """The condition that a rule finds nothing."""
        return any_of(self.is_kind(ABSENT_KIND), self.is_kind("null"))

    @property
    def value(self) -> SymbolicValue:
        """The value as a rule reads it."""
        terms = {
            "number": self.number,
            "text": self.text,
            "boolean": self.boolean,
            "list": self.boolean,
            "object": "",
        }
        kinds = {kind: KindCase(self.is_kind(kind), term) for kind, term in terms.items()}
        return SymbolicValue(kinds, self.is_absent)


class FactTable:
    """The paths that rules read, and the texts that they mention."""

    def __init__(self, script: SmtScript) -> None:
        self._script = script
        self._texts: dict[str, int] = {"": 0, "default": 1}
        self._facts: dict[str, Unknown] = {}

    @property
    def texts(self) -> Mapping[str, int]:
        """The numbers of texts."""
        return self._texts

    def text(self, value: str) -> str:
        """Return the term for a text."""
        return str(self._texts.setdefault(value, len(self._texts)))

    def fact(self, path: str) -> Unknown:
        """Return the value at a path of a rule's data."""
        if path not in self._facts:
            self._facts[path] = found = self.unknown(_kinds_at(path))
            self._require_structure(path, found)
        return self._facts[path]

    def unknown(self, kinds: Iterable[str]) -> Unknown:
        """Return a new value of one of these kinds."""
        script = self._script
        found = Unknown(*map(script.declare, ("Int", "Real", "Int", "Bool")))
        script.require(any_of(*map(found.is_kind, kinds)))
        script.require(f"(>= {found.text} 0)")
        return found

    def _require_structure(self, path: str, found: Unknown) -> None:
        """Require the structure of a call's data: a value with members is an object, and a user has a name."""
        if path == "user.id":
            self._script.require(negated(equals(found.text, self.text(""))))
        if path == "run.turn":
            self._script.require(all_of(f"(is_int {found.number})", f"(>= {found.number} 1.0)"))
        for other, known in self._facts.items():
            if path.startswith(f"{other}."):
                self._require_object_above(known, found)
            elif other.startswith(f"{path}."):
                self._require_object_above(found, known)

    def _require_object_above(self, above: Unknown, below: Unknown) -> None:
        holds = any_of(above.is_kind("object"), above.is_kind("list"))
        self._script.require(implies(negated(below.is_absent), holds))


def _kinds_at(path: str) -> tuple[str, ...]:
    """Return the kinds that a value at a path may have."""
    head, _, rest = path.partition(".")
    if not rest:
        return ("object",) if head in ROOTS else (ABSENT_KIND, *KINDS[1:6])
    members = _MEMBERS.get(head)
    if members is None:
        return KINDS if head == "args" and "." not in rest else KINDS[:6]
    name, _, below = rest.partition(".")
    kind = members.get(name, ABSENT_KIND)
    if below:
        return KINDS[:6] if kind in ("list", "object") else (ABSENT_KIND,)
    return (kind,)
