"""Guardrails: text that is refused, or that needs a person's decision (docs/reference/pack.md#guardrails). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from cogcli.base.schema.patterns import refusal
from cogcli.base.schema.validator import fits
from cogcli.declarations.pack_spec import Guardrail


def find_triggered(guardrails: Iterable[Guardrail], text: str) -> list[Guardrail]:
    """Return the guardrails that a string triggers, in declared order.

    A pattern that cannot be evaluated triggers its guardrail.
    """
    folded = text.casefold()
    return [each for each in guardrails if _is_triggered(each, text, folded)]


def find_triggered_by(guardrails: Sequence[Guardrail], value: object) -> list[Guardrail]:
    """Return the guardrails that a text, a number or a key in a JSON value triggers, in declared order."""
    found = [each for text in find_texts(value) for each in find_triggered(guardrails, text)]
    return [each for each in guardrails if each in found]


def find_texts(value: object) -> Iterator[str]:
    """Yield the texts, the numbers as texts, and the keys in a JSON value, in order."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            yield str(value)
        case Mapping():
            yield from map(str, value)
            for member in value.values():
                yield from find_texts(member)
        case list() | tuple():
            for item in value:
                yield from find_texts(item)


def _is_triggered(guardrail: Guardrail, text: str, folded: str) -> bool:
    return _may_match(guardrail.pattern, text) or any(
        has_phrase(folded, phrase) for phrase in guardrail.phrases
    )


def _may_match(pattern: str, text: str) -> bool:
    """Return whether a pattern matches this string or cannot be evaluated on it.

    A string that is too long to be matched does not evade the guardrail.
    """
    return bool(pattern) and (
        bool(refusal(pattern)) or not fits({"not": {"pattern": pattern}}, text)
    )


def has_match(pattern: str, text: str) -> bool:
    """Return whether a pattern matches anywhere in a string, in linear time.

    A pattern that cannot be evaluated does not match.
    """
    return not refusal(pattern) and fits({"pattern": pattern}, text)


def has_phrase(folded: str, phrase: str) -> bool:
    """Return whether a case-folded text contains a phrase as whole words."""
    return _phrase_pattern(phrase.casefold()).search(folded) is not None


@lru_cache(maxsize=4096)
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")
