"""Things named in a text: what a pattern can tell for certain (addresses, links, dates, amounts, versions), and names,
which are guessed by their capitals.

Every pattern is anchored at the start of its run and bounded in length, so that no text costs more than linear
time.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from cogcli.official.sentences import STOP_WORDS, require_size, split_sentences
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS = (
    "january february march april may june july august september october november december".split()
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
# What is capitalised for another reason than that it is a name.
_NO_NAMES = STOP_WORDS | frozenset(
    (
        *_MONTHS,
        *"monday tuesday wednesday thursday friday saturday sunday english german french spanish".split(),
        *"dear hello hi regards sincerely note please yes ok todo tbd yesterday today tomorrow".split(),
    )
)
_CAPITAL = re.compile(r"(?<![\w.@/#-])[^\W\d_a-z][\w'’-]{1,40}+(?:\.(?=\s))?")
_MAX_TEXT = 1_000_000
# A language that begins every noun with a capital tells nothing by one.
_MANY_CAPITALS = 0.2
KINDS = (*_PATTERNS, "name")


def find_entities(
    text: str, kinds: list[str] | None = None, max_entities: int = 1000
) -> dict[str, object]:
    """Return the e-mail addresses, links, dates, amounts of money, percentages, versions and names
    of a text.

    They are in text order; each has `type`, `value`, `start` and `end` in characters. A valid date
    also has `iso`, a name `guess: true`, because only its capitals suggest it. `counts` counts each
    kind before `max_entities` cuts the list.
    """
    unknown = [kind for kind in kinds or () if kind not in KINDS]
    if unknown:
        raise Refused("bad-data", f"unknown kind {unknown[0]!r:.40}; known are {', '.join(KINDS)}")
    require_size(text, _MAX_TEXT)
    kinds_to_find = tuple(kind for kind in KINDS if not kinds or kind in kinds)
    entities = list(_entities_without_overlaps(sorted(_find_spans(text, kinds_to_find)), text))
    counts = dict.fromkeys(kinds_to_find, 0)
    for entity in entities:
        counts[str(entity["type"])] += 1
    listed = list(islice(entities, max_entities))
    return {
        "entities": listed,
        "counts": counts,
        "truncated": len(listed) < len(entities),
        "method": "rules:patterns",
    }


@cache
def _compile_kind(kind: str) -> re.Pattern[str]:
    return re.compile(_PATTERNS[kind])


def _find_spans(text: str, kinds: tuple[str, ...]) -> Iterator[tuple[int, int, int, str]]:
    """Yield (start, rank of the kind, end, kind) of every match."""
    for rank, kind in enumerate(kinds):
        if kind == "name":
            yield from ((start, rank, end, kind) for start, end in _find_names(text))
            continue
        for match in _compile_kind(kind).finditer(text):
            value = _without_punctuation(match[0]) if kind == "url" else match[0]
            yield match.start(), rank, match.start() + len(value), kind


def _find_names(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of capitalized names. A single word that begins a sentence is not a name. Where capitals are
    frequent, a name needs several words and does not begin a sentence.
    """
    runs: list[tuple[int, int, int, bool]] = []
    word_count = 0
    for sentence in split_sentences(text):
        word_count += sentence.text.count(" ")
        last_end = -1
        for match in _CAPITAL.finditer(sentence.text):
            if match[0].rstrip(".").lower() in _NO_NAMES:
                continue
            start, end = match.start(), match.end() - (match[0][-1] == "." and len(match[0]) > 4)
            follows_run = runs and last_end >= 0 and sentence.text[last_end:start].strip(" ") == ""
            if follows_run and start - last_end <= 2:
                runs[-1] = (runs[-1][0], sentence.start + end, runs[-1][2] + 1, runs[-1][3])
            else:
                runs.append((sentence.start + start, sentence.start + end, 1, not start))
            last_end = end
    single_runs = [run for run in runs if run[2] == 1 and not run[3]]
    accepts_singles = len(single_runs) <= _MANY_CAPITALS * max(word_count, 1)
    for start, end, count, begins_sentence in runs:
        if (count > 1 and (accepts_singles or not begins_sentence)) or (
            accepts_singles and not begins_sentence
        ):
            yield start, end


def _without_punctuation(url: str) -> str:
    # Punctuation after a link belongs to the sentence; a closing bracket too, unless the link has one to close.
    return url.rstrip(".,;:!?*_~" + ("" if "(" in url else ")") + ("" if "[" in url else "]"))


def _entities_without_overlaps(
    spans: list[tuple[int, int, int, str]], text: str
) -> Iterator[dict[str, object]]:
    """Yield the spans as entities, without those that overlap an earlier one."""
    last_end = 0
    for start, _, end, kind in spans:
        if start < last_end:
            continue
        last_end = end
        value = text[start:end]
        entity: dict[str, object] = {"type": kind, "value": value, "start": start, "end": end}
        if kind == "name":
            entity["guess"] = True
        iso = _iso_date(value) if kind == "date" else None
        yield entity | {"iso": iso} if iso else entity


def _iso_date(value: str) -> str | None:
    numbers = [int(number) for number in re.findall(r"\d+", value)]
    word = re.search(r"[A-Za-z]{3}", value)
    try:
        if word is None:
            return date(*numbers).isoformat()
        month = next(i for i, name in enumerate(_MONTHS, 1) if name.startswith(word[0].lower()))
        return date(numbers[1], month, numbers[0]).isoformat()
    except ValueError:
        return None
