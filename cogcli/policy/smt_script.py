"""A problem for a solver as SMT-LIB text: terms, constants and requirements (docs/adr/0038-proofs.md). Pure.

A term is a text. What follows from constants is simplified at once, so that most conditions stay short.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from cogcli.declarations.value_types import Number

TRUE: Final = "true"
FALSE: Final = "false"
EXACT: Final = "exact"
"""The constant under which arithmetic means arithmetic of real numbers, and not any function of its operands."""
_LONG: Final = 40
"""Terms of more characters get a name, so that none is written twice."""


def all_of(*terms: str) -> str:
    """Return the conjunction of terms."""
    return _join_terms("and", terms, neutral=TRUE, decisive=FALSE)


def any_of(*terms: str) -> str:
    """Return the disjunction of terms."""
    return _join_terms("or", terms, neutral=FALSE, decisive=TRUE)


def _join_terms(operator: str, terms: tuple[str, ...], *, neutral: str, decisive: str) -> str:
    distinct = [term for term in dict.fromkeys(terms) if term != neutral]
    if decisive in distinct:
        return decisive
    if len(distinct) < 2:
        return distinct[0] if distinct else neutral
    return f"({operator} {' '.join(distinct)})"


def negated(term: str) -> str:
    """Return the negation of a term."""
    if term in (TRUE, FALSE):
        return FALSE if term == TRUE else TRUE
    return term[5:-1] if term.startswith("(not ") else f"(not {term})"


def implies(condition: str, term: str) -> str:
    """Return the term `condition implies term`."""
    return any_of(negated(condition), term)


def either(condition: str, term: str, other: str) -> str:
    """Return a term with the value of `term` if the condition is true, and of `other` otherwise."""
    if condition == TRUE or term == other:
        return term
    if condition == FALSE:
        return other
    if term in (TRUE, condition):
        return any_of(condition, other)
    if term in (FALSE, negated(condition)):
        return all_of(negated(condition), other)
    if other in (TRUE, FALSE):
        return implies(condition, term) if other == TRUE else all_of(condition, term)
    return f"(ite {condition} {term} {other})"


def equals(term: str, other: str) -> str:
    """Return the term that two terms are equal."""
    return TRUE if term == other else f"(= {term} {other})"


def number_term(value: Number) -> str:
    """Return a number in its decimal notation. Limits add up decimal numbers, and rules compare binary ones. Both have
    the same order as the notation.
    """
    exact = Fraction(repr(value))
    size = f"{abs(exact.numerator)}.0"
    size = size if exact.denominator == 1 else f"(/ {size} {exact.denominator}.0)"
    return f"(- {size})" if exact < 0 else size


class SmtScript:
    """The constants, named terms and requirements of a problem, in the order in which they are needed."""

    def __init__(self) -> None:
        self._lines = [f"(declare-const {EXACT} Bool)"]
        self._named: dict[str, str] = {}
        self._count = 0

    @property
    def text(self) -> str:
        """The whole problem."""
        return "\n".join(self._lines)

    def declare(self, sort: str) -> str:
        """Declare a constant without a value, and return its name, which begins as the sort does."""
        name = self._next_name(sort[0].lower())
        self._lines.append(f"(declare-const {name} {sort})")
        return name

    def shorten(self, term: str) -> str:
        """Return a name for a long condition, and a short condition itself."""
        if len(term) <= _LONG:
            return term
        if term not in self._named:
            self._named[term] = name = self._next_name("c")
            self._lines.append(f"(define-fun {name} () Bool {term})")
        return self._named[term]

    def require(self, term: str) -> None:
        """Assert that a term is true."""
        self._lines.append(f"(assert {term})")

    def ask(self, term: str) -> str:
        """Return a new constant that implies a term. Checking under this constant requires the term to be true."""
        name = self.declare("Bool")
        self.require(implies(name, term))
        return name

    def _next_name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"
