"""Guardrails: text that is refused or needs a person (docs/reference/pack.md#guardrails). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from cogcli.base.schema.patterns import refusal
from cogcli.base.schema.validator import fits
from cogcli.declarations.pack_spec import Guardrail


def matching(guardrails: Iterable[Guardrail], text: str) -> list[Guardrail]:
    """The guardrails that a text meets, in their order; a pattern is met unless it was run and found nothing."""
    folded = text.casefold()
    return [each for each in guardrails if _meets(each, text, folded)]


def _meets(guardrail: Guardrail, text: str, folded: str) -> bool:
    return _may_match(guardrail.pattern, text) or any(
        has_phrase(folded, phrase) for phrase in guardrail.phrases
    )


def _may_match(pattern: str, text: str) -> bool:
    """Whether a pattern matches, or cannot be run in this text: too long a text must not be a way around it."""
    return bool(pattern) and (
        bool(refusal(pattern)) or not fits({"not": {"pattern": pattern}}, text)
    )


def has_match(pattern: str, text: str) -> bool:
    """Whether a pattern matches somewhere in a text, found in linear time; a pattern that cannot be run does not."""
    return not refusal(pattern) and fits({"pattern": pattern}, text)


def has_phrase(folded: str, phrase: str) -> bool:
    """Whether a case-folded text holds a phrase as whole words."""
    return _phrase(phrase.casefold()).search(folded) is not None


@lru_cache(maxsize=4096)
def _phrase(phrase: str) -> re.Pattern[str]:
    words = r"\s+".join(map(re.escape, phrase.split()))
    return re.compile(rf"(?<!\w){words}(?!\w)")
