"""Whether a passage states a number about the subject of a claim, or about another subject."""

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
    """A name, or several joined names, by the stems of its words."""

    words: frozenset[str]
    start: int
    is_aside: bool


class _Clause(NamedTuple):
    """A clause with its first word, all words, its names, and the words of the last subject before
    it.
    """

    start: int
    end: int
    first: str
    words: frozenset[str]
    mentions: list[_Mention]
    named: frozenset[str]
    before: frozenset[str]

    @property
    def lacks_subject(self) -> bool:
        """Whether the clause has no subject and so continues the clause before."""
        return all(one.is_aside for one in self.mentions)


def subject_words(text: str, stem_of_word: Callable[[str], str]) -> list[str]:
    """Return the stems of the content words, then the letters that name something, as in `option
    B`.
    """
    return [
        *map(stem_of_word, content_words(text)),
        *(letter.casefold() for letter in _LETTER.findall(text)),
    ]


def numbers_by_clause(claim: str, stem: Callable[[str], str]) -> dict[frozenset[str], set[str]]:
    """Return the numbers of the clauses of a claim that name a subject, by the clause's
    `subject_words`.
    """
    parts: dict[frozenset[str], set[str]] = {}
    for clause in _split_clauses(claim, list(_find_mentions(claim, stem)), stem):
        if not clause.lacks_subject:
            parts.setdefault(clause.words, set()).update(
                NUMBER.findall(claim, clause.start, clause.end)
            )
    return parts


def numbers_about(claim: Set[str], passage: str, stem: Callable[[str], str]) -> Iterator[str]:
    """Yield the numbers of a passage that may be about the claim with these `subject_words`.

    A number is left out if its clause has another subject while the passage names the claim's
    subject elsewhere.
    """
    if "respectively" in passage.lower() and stem("respectively") not in claim:
        return
    mentions = list(_find_mentions(passage, stem))
    names = _words_of_names(mentions)
    clauses = list(_split_clauses(passage, mentions, stem))
    shared_words = claim & {word for clause in clauses for word in clause.words}
    for clause in clauses:
        candidates = [one for one in clause.mentions if not one.is_aside] or clause.mentions
        starts = [one.start for one in candidates]
        for number in NUMBER.finditer(passage, clause.start, clause.end):
            subject = (
                candidates[max(0, bisect_left(starts, number.start()) - 1)].words
                if candidates
                else None
            )
            if subject is None:
                is_about_other = _continues_other_subject(clause, claim, shared_words, names)
            else:
                is_about_other = _has_named_subject(subject, clause, claim, shared_words)
            if not is_about_other:
                yield number[0]


def _has_named_subject(
    subject: Set[str], clause: _Clause, claim: Set[str], shared_words: Set[str]
) -> bool:
    """Return whether a number of a clause is about this subject instead of the claim's."""
    if subject <= claim:
        return False
    missing_words = (
        shared_words - subject - (clause.before if clause.lacks_subject else frozenset())
    )
    return any(word not in clause.words or word in clause.named for word in missing_words)


def _continues_other_subject(
    clause: _Clause, claim: Set[str], shared_words: Set[str], names: Set[str]
) -> bool:
    """Return whether a clause without a name begins with, or continues, another subject than the
    claim's.
    """
    missing_words = shared_words - clause.before - clause.words
    if clause.first and clause.first not in claim:
        return bool(missing_words)
    return not clause.before <= claim and bool(missing_words & names)


def _find_mentions(passage: str, stem: Callable[[str], str]) -> Iterator[_Mention]:
    """Yield the names of a passage. Adjacent names, or names joined by `and`, are one mention."""
    tokens = list(WORD.finditer(passage))
    letters = {letter.start() for letter in _LETTER.finditer(passage)}
    words: set[str] = set()
    first = end = 0
    for position, token in enumerate(tokens):
        stems_of_token = (
            {token[0].casefold()}
            if token.start() in letters
            else {*map(stem, content_words(token[0]))}
        )
        if not token[0][:1].isupper() or not stems_of_token or token[0].casefold() in _NO_NAMES:
            continue
        if words and not _RUN.fullmatch(passage, end, token.start()):
            yield _Mention(frozenset(words), tokens[first].start(), _is_aside(tokens, first))
            words = set()
        first = first if words else position
        words |= stems_of_token
        end = token.end()
    if words:
        yield _Mention(frozenset(words), tokens[first].start(), _is_aside(tokens, first))


def _is_aside(tokens: list[re.Match[str]], position: int) -> bool:
    """Return whether a preposition precedes a word, or the article before it."""
    preceding = [token[0].casefold() for token in tokens[max(0, position - 2) : position]]
    if preceding and preceding[-1] in _ARTICLES:
        preceding.pop()
    return bool(preceding) and preceding[-1] in _ASIDE


def _words_of_names(mentions: list[_Mention]) -> frozenset[str]:
    return frozenset(word for one in mentions for word in one.words)


def _split_clauses(
    passage: str, mentions: list[_Mention], stem: Callable[[str], str]
) -> Iterator[_Clause]:
    """Yield the clauses of a passage, each with its names and the preceding subject."""
    last_subject = frozenset[str]()
    starts = [one.start for one in mentions]
    for start, end in _clause_spans(passage):
        clause_mentions = mentions[bisect_left(starts, start) : bisect_left(starts, end)]
        clause_words = subject_words(passage[start:end], stem)
        yield _Clause(
            start,
            end,
            (clause_words or [""])[0],
            frozenset(clause_words),
            clause_mentions,
            _words_of_names(clause_mentions),
            last_subject,
        )
        last_subject = next(
            (one.words for one in reversed(clause_mentions) if not one.is_aside), last_subject
        )


def _clause_spans(passage: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each clause. A part without a number belongs to the clause after it,
    except the last.
    """
    start = last_cut = 0
    for cut in _CUT.finditer(passage):
        if NUMBER.search(passage, last_cut, cut.start()):
            yield start, cut.end()
            start = cut.end()
        last_cut = cut.end()
    yield start, len(passage)
