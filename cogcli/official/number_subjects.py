"""Whether a number of a passage is said of what a claim speaks of, or of another thing beside it."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple

from cogcli.official.sentences import NUMBER, WORD, content_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Set

_CUT = re.compile(
    r"[;:!?]|\.(?=\s)|,(?!\d)|\s[-–—]\s|\b(?:and|or|but|while|whereas|though|although|yet)\b", re.I
)
_RUN = re.compile(r"\s*|,?\s*(?:and|or|&)\s*", re.I)
"""What joins two names to one subject: `Ana Holm`, `Orca and Lynx`."""
_ASIDE = frozenset(
    "about according after against at before beside besides by during except for from in like near of on over since "
    "than to under unlike until versus via with without".split()
)
"""A name behind one of these is no subject where there is another."""
_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_LETTER = re.compile(r"(?<=[^\W\d] )[A-HJ-Z]\b")
"""A letter that names: `option B`."""
_NO_NAMES = _ASIDE | _MONTHS
_ARTICLES = frozenset("a an the its their his her our".split())


class _Mention(NamedTuple):
    """A name, or several that are joined, by the stems of its words."""

    words: frozenset[str]
    start: int
    is_aside: bool


class _Clause(NamedTuple):
    """A clause with its first word, all of them, the names in it with their words, and those of the last subject before
    it."""

    start: int
    end: int
    first: str
    words: frozenset[str]
    mentions: list[_Mention]
    named: frozenset[str]
    before: frozenset[str]

    @property
    def goes_on(self) -> bool:
        """Whether it has no subject of its own."""
        return all(one.is_aside for one in self.mentions)


def words_said(text: str, stem: Callable[[str], str]) -> list[str]:
    """Return the stems of the words that say something by themselves, then the letters that name."""
    return [
        *map(stem, content_words(text)),
        *(letter.casefold() for letter in _LETTER.findall(text)),
    ]


def parts_of(claim: str, stem: Callable[[str], str]) -> dict[frozenset[str], set[str]]:
    """Return the numbers of those clauses of a claim that name what they speak of, by the clause's `words_said`."""
    parts: dict[frozenset[str], set[str]] = {}
    for clause in _clauses(claim, list(_mentions(claim, stem)), stem):
        if not clause.goes_on:
            parts.setdefault(clause.words, set()).update(
                NUMBER.findall(claim, clause.start, clause.end)
            )
    return parts


def numbers_said_of(claim: Set[str], passage: str, stem: Callable[[str], str]) -> Iterator[str]:
    """Yield the numbers of a passage that count for a claim, by its `words_said`: not one whose clause has another
    subject while what the claim speaks of stands elsewhere in the passage."""
    if "respectively" in passage.lower() and stem("respectively") not in claim:
        return
    mentions = list(_mentions(passage, stem))
    names = _names(mentions)
    clauses = list(_clauses(passage, mentions, stem))
    known = claim & {word for clause in clauses for word in clause.words}
    for clause in clauses:
        free = [one for one in clause.mentions if not one.is_aside] or clause.mentions
        starts = [one.start for one in free]
        for number in NUMBER.finditer(passage, clause.start, clause.end):
            subject = free[max(0, bisect_left(starts, number.start()) - 1)].words if free else None
            if subject is None:
                other = _is_of_other(clause, claim, known, names)
            else:
                other = _is_of_named(subject, clause, claim, known)
            if not other:
                yield number[0]


def _is_of_named(subject: Set[str], clause: _Clause, claim: Set[str], known: Set[str]) -> bool:
    """Return whether a clause says a number of this subject, and not of the claim's."""
    if subject <= claim:
        return False
    lacking = known - subject - (clause.before if clause.goes_on else frozenset())
    return any(word not in clause.words or word in clause.named for word in lacking)


def _is_of_other(clause: _Clause, claim: Set[str], known: Set[str], names: Set[str]) -> bool:
    """Return whether a clause without a name begins with another thing than the claim, or goes on about another."""
    lacking = known - clause.before - clause.words
    if clause.first and clause.first not in claim:
        return bool(lacking)
    return not clause.before <= claim and bool(lacking & names)


def _mentions(passage: str, stem: Callable[[str], str]) -> Iterator[_Mention]:
    """Yield the names of a passage, joined ones as one."""
    tokens = list(WORD.finditer(passage))
    letters = {letter.start() for letter in _LETTER.finditer(passage)}
    words: set[str] = set()
    first = end = 0
    for position, token in enumerate(tokens):
        found = (
            {token[0].casefold()}
            if token.start() in letters
            else {*map(stem, content_words(token[0]))}
        )
        if not token[0][:1].isupper() or not found or token[0].casefold() in _NO_NAMES:
            continue
        if words and not _RUN.fullmatch(passage, end, token.start()):
            yield _Mention(frozenset(words), tokens[first].start(), _is_aside(tokens, first))
            words = set()
        first = first if words else position
        words |= found
        end = token.end()
    if words:
        yield _Mention(frozenset(words), tokens[first].start(), _is_aside(tokens, first))


def _is_aside(tokens: list[re.Match[str]], position: int) -> bool:
    """Return whether a preposition stands before a word, or before its article."""
    before = [token[0].casefold() for token in tokens[max(0, position - 2) : position]]
    if before and before[-1] in _ARTICLES:
        before.pop()
    return bool(before) and before[-1] in _ASIDE


def _names(mentions: list[_Mention]) -> frozenset[str]:
    return frozenset(word for one in mentions for word in one.words)


def _clauses(
    passage: str, mentions: list[_Mention], stem: Callable[[str], str]
) -> Iterator[_Clause]:
    before = frozenset[str]()
    starts = [one.start for one in mentions]
    for start, end in _spans(passage):
        inside = mentions[bisect_left(starts, start) : bisect_left(starts, end)]
        words = words_said(passage[start:end], stem)
        yield _Clause(
            start, end, (words or [""])[0], frozenset(words), inside, _names(inside), before
        )
        before = next((one.words for one in reversed(inside) if not one.is_aside), before)


def _spans(passage: str) -> Iterator[tuple[int, int]]:
    """Yield the clauses as (start, end); a part without a number belongs to the one behind it, but for the last."""
    start = looked = 0
    for cut in _CUT.finditer(passage):
        if NUMBER.search(passage, looked, cut.start()):
            yield start, cut.end()
            start = cut.end()
        looked = cut.end()
    yield start, len(passage)
