"""Guardrails: text that is refused, or that needs a person's decision (docs/reference/pack.md#guardrails). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final
from unicodedata import category, normalize

from cogcli.base.schema.patterns import refusal
from cogcli.base.schema.validator import fits
from cogcli.declarations.pack_spec import Guardrail
from cogcli.declarations.run_start import LATEST_EDITION

_BLANK: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
"""Characters without a picture that are neither formats nor controls: fillers, inherent vowels, the grapheme joiner."""
_SELECTORS: Final = (("\u180b", "\u180f"), ("\ufe00", "\ufe0f"), ("\U000e0100", "\U000e01ef"))
"""The ranges of variation selectors."""


def find_guardrails_for_text(
    guardrails: Iterable[Guardrail], text: str, edition: int = LATEST_EDITION
) -> list[Guardrail]:
    """Return the guardrails that a string triggers, in declared order, by the checks of an edition.

    A pattern that cannot be evaluated triggers its guardrail.
    """
    if edition < LATEST_EDITION:
        return [each for each in guardrails if _is_triggered(each, each.phrases, text)]
    return [each for each in guardrails if _is_triggered_by_form(each, text)]


def _is_triggered_by_form(guardrail: Guardrail, text: str) -> bool:
    """Return whether one of the forms of a text triggers a guardrail."""
    phrases = [form for phrase in guardrail.phrases for form in _list_forms(phrase)]
    return any(_is_triggered(guardrail, phrases, form) for form in _list_forms(text))


def _list_forms(text: str) -> tuple[str, ...]:
    """Return a text as written, in NFKC without invisible characters, and that without its case as well."""
    plain = _remove_disguise(text)
    return tuple(dict.fromkeys((text, plain, _remove_disguise(plain.casefold()))))


def _remove_disguise(text: str) -> str:
    return _remove_invisible(normalize("NFKC", _remove_invisible(text)))


def _remove_invisible(text: str) -> str:
    return text if text.isascii() else "".join(c for c in text if not _is_invisible(c))


def _is_invisible(character: str) -> bool:
    return (
        category(character) == "Cf"
        or character in _BLANK
        or any(first <= character <= last for first, last in _SELECTORS)
    )


def find_guardrails_for_value(guardrails: Sequence[Guardrail], value: object) -> list[Guardrail]:
    """Return the guardrails that a text, a number or a key in a JSON value triggers, in declared order."""
    found = [
        each for text in find_texts(value) for each in find_guardrails_for_text(guardrails, text)
    ]
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


def _is_triggered(guardrail: Guardrail, phrases: Iterable[str], text: str) -> bool:
    if _may_match(guardrail.pattern, text):
        return True
    folded = text.casefold()
    return any(has_phrase(folded, phrase) for phrase in phrases)


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


def has_phrase(folded_text: str, phrase: str) -> bool:
    """Return whether a case-folded text contains a phrase as whole words."""
    return _phrase_pattern(phrase.casefold()).search(folded_text) is not None


@lru_cache(maxsize=4096)
def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")
