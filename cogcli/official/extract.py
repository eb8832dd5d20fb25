"""Things named in a text that a pattern can tell for certain: addresses, links, dates, amounts, versions.

Every pattern is anchored at the start of its run and bounded in length, so that no text costs more than linear
time.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_MONTH = rf"(?:{'|'.join(_MONTHS)}|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.?"
_YEAR = r"(?:1[5-9]|20|21)\d\d(?!\d)"
_DAY = r"[0-3]?\d(?:st|nd|rd|th)?"
_AMOUNT = r"\d{1,15}+(?:,\d{3}){0,4}+(?:\.\d{1,4}+)?+(?![,.]?\d)(?:\s?(?:thousand|million|billion|bn|k|m)\b)?"
_CODES = "USD|EUR|GBP|JPY|CHF|CAD|AUD|SEK|NOK|DKK|PLN|INR|CNY"

# Order decides where two kinds claim the same characters from the same start: the earlier one wins.
_PATTERNS = {
    "url": r"(?<!\w)(?:https?://|www\.)[^\s<>\"'`{}|\\^]{1,2048}",
    "email": r"(?<![\w.%+-])[A-Za-z0-9_%+-][A-Za-z0-9._%+-]{0,63}+"
    r"@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])",
    "date": rf"(?<![\w/.-])(?:{_YEAR}-[01]\d-[0-3]\d(?![\w-])"
    rf"|(?i:{_DAY}\s(?:of\s)?{_MONTH},?\s{_YEAR}|{_MONTH}\s{_DAY},?\s{_YEAR}))",
    "money": rf"(?<![\w.,])(?:[A-Z]{{0,3}}[$€£¥]|(?:{_CODES})\s)\s?{_AMOUNT}"
    rf"|(?<![\w.,$€£¥]){_AMOUNT}\s?(?:€|(?:{_CODES}|dollars|euros|pounds)\b)",
    "percent": r"(?<![\w.,])[-+−]?\d{1,9}(?:[.,]\d{1,6})?\s?(?:%|percent\b|per cent\b)",
    "version": r"(?<![\w.,-])v?\d{1,5}\.\d{1,5}\.\d{1,5}(?:-[0-9A-Za-z.]{1,32})?(?![\w-])(?!\.\d)",
}


def find_entities(text: str, kinds: list[str] | None = None, max_entities: int = 1000) -> dict[str, object]:
    """The e-mail addresses, links, dates, sums of money, percentages and versions of a text, in order.

    Each has `type`, `value`, `start` and `end` in characters; a date that the calendar knows also has `iso`.
    `counts` tells how many there are of each kind, before `max_entities` cuts the list.
    """
    unknown = [kind for kind in kinds or () if kind not in _PATTERNS]
    if unknown:
        raise ValueError(f"unknown kind {unknown[0]!r}; known are {', '.join(_PATTERNS)}")
    wanted = tuple(kind for kind in _PATTERNS if not kinds or kind in kinds)
    found = list(_apart(sorted(_spans(text, wanted)), text))
    counts = {kind: sum(1 for entity in found if entity["type"] == kind) for kind in wanted}
    kept = list(islice(found, max_entities))
    return {"entities": kept, "counts": counts, "truncated": len(kept) < len(found)}


@cache
def _compiled(kind: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[kind])


def _spans(text: str, kinds: tuple[str, ...]) -> Iterator[tuple[int, int, int, str]]:
    """(start, rank of the kind, end, kind) of every match."""
    for rank, kind in enumerate(kinds):
        for match in _compiled(kind).finditer(text):
            value = _trimmed(match[0]) if kind == "url" else match[0]
            yield match.start(), rank, match.start() + len(value), kind


def _trimmed(url: str) -> str:
    # Punctuation after a link belongs to the sentence; a closing bracket too, unless the link has one to close.
    return url.rstrip(".,;:!?*_~" + ("" if "(" in url else ")") + ("" if "[" in url else "]"))


def _apart(spans: list[tuple[int, int, int, str]], text: str) -> Iterator[dict[str, object]]:
    """Matches that overlap no earlier one, as entities."""
    reached = 0
    for start, _, end, kind in spans:
        if start < reached:
            continue
        reached = end
        value = text[start:end]
        entity: dict[str, object] = {"type": kind, "value": value, "start": start, "end": end}
        iso = _iso(value) if kind == "date" else None
        yield entity | {"iso": iso} if iso else entity


def _iso(value: str) -> str | None:
    numbers = [int(number) for number in re.findall(r"\d+", value)]
    word = re.search(r"[A-Za-z]{3}", value)
    try:
        if word is None:
            return date(*numbers).isoformat()
        month = next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(word[0].lower()))
        return date(numbers[1], month, numbers[0]).isoformat()
    except ValueError:
        return None
