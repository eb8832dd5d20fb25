"""Claims looked up in sources, and citations of sources."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, NamedTuple

from cogcli.official.number_subjects import numbers_about, numbers_by_clause, subject_words
from cogcli.official.passages import MAX_CHARACTERS, id_of, passages, text_of
from cogcli.official.sentences import WORD, claims_of, content_words, stemmer
from cogcli.sdk import Refused

_MAX_SOURCES = 200
_MAX_EVIDENCE = 5
# So much of a claim's words a passage must have to speak of the same.
_SAME = 0.75
_NEGATIONS = frozenset(
    "no not never none nobody nothing neither nor without cannot fails failed denied refused rejected".split()
)
# Side by side, two sentences that name different things would say of one what stands of the other.
_REFERRING = re.compile(
    r"\W{0,5}(?:it|its|he|his|him|she|her|they|their|this|these|that|those|there|both)\b", re.I
)
_CSL_TYPES = frozenset(
    """article article-journal article-magazine article-newspaper bill book broadcast chapter dataset document entry
    hearing interview legal_case legislation manuscript map motion_picture pamphlet paper-conference patent performance
    personal_communication post post-weblog report review software song speech standard thesis treaty webpage""".split()
)


class _PassageMatch(NamedTuple):
    """The similarity of a passage to a claim. It supports the claim if no word is missing and the negation is equal."""

    score: float
    source: str
    quote: str
    start: int
    end: int
    missing: tuple[str, ...]
    contradicts: bool


def verify_claim(claim: str, sources: list[Any]) -> dict[str, object]:
    """Return whether one passage of a source supports a claim: all its numbers and names, most
    words, equal negation.

    A number that a clause states about another subject does not count. `evidence` quotes the
    nearest passages, with source and place. Raise Refused for a claim without words.
    """
    claim_to_match = _Claim(claim)
    if not sources:
        return _build_answer([], "There are no sources.")
    texts = [
        (text_of(source), id_of(source, position)) for position, source in enumerate(sources, 1)
    ]
    if len(sources) > _MAX_SOURCES or sum(len(text) for text, _ in texts) > MAX_CHARACTERS:
        raise Refused(
            "too-large", f"more than {_MAX_SOURCES} sources or {MAX_CHARACTERS:,} characters"
        )
    matches = [
        match for text, source in texts for match in claim_to_match.find_matches(text, source)
    ]
    best = sorted(
        matches, key=lambda match: (bool(match.missing), match.contradicts, -match.score)
    )[:_MAX_EVIDENCE]
    return _build_answer(best, claim_to_match.rationale(best))


def _build_answer(matches: list[_PassageMatch], rationale: str) -> dict[str, object]:
    verified = bool(matches) and not matches[0].missing and not matches[0].contradicts
    shown = [match for match in matches if not verified or not (match.missing or match.contradicts)]
    evidence = [
        {
            "source": match.source,
            "quote": match.quote,
            "start": match.start,
            "end": match.end,
            "score": round(match.score, 3),
        }
        | {"supports": not match.missing and not match.contradicts}
        for match in shown
    ]
    return {
        "verified": verified,
        "evidence": evidence,
        "rationale": rationale,
        "method": "rules:passages",
    }


class _Claim:
    """The words, numbers, names and negation of a claim, to compare with passages."""

    def __init__(self, claim: str) -> None:
        self._stem = stemmer()
        self.exact = list(dict.fromkeys(claims_of(claim)))
        names = {part for one in self.exact for part in _folded_tokens(one)}
        self.words = {self._stem(word) for word in content_words(claim) if word not in names}
        said = frozenset(subject_words(claim, self._stem))
        # Each part of `Orca costs 40 and Lynx 55` has its own number.
        self._folded_tokens = {**numbers_by_clause(claim, self._stem), said: set(self.exact)}
        self.negated = _is_negated(claim)
        if not self.words and not self.exact:
            raise Refused("bad-data", "the claim has no words to look up")

    def find_matches(self, text: str, source: str) -> list[_PassageMatch]:
        """Return the passages about the subject of the claim.

        These are sentences, and if no sentence has all exact parts, also pairs whose second
        sentence refers to the first.
        """
        parts = passages(text)
        spans = [(part.start, part.end) for part in parts]
        pairs = [(a.start, b.end) for a, b in pairwise(parts) if _REFERRING.match(b.text)]
        matches = [match for span in spans if (match := self._match_passage(text, source, *span))]
        if not any(not match.missing for match in matches):
            matches += [
                match for span in pairs if (match := self._match_passage(text, source, *span))
            ]
        return matches

    def _match_passage(self, text: str, source: str, start: int, end: int) -> _PassageMatch | None:
        quote = text[start:end]
        words = {self._stem(word) for word in content_words(quote)}
        score = len(self.words & words) / len(self.words) if self.words else 1.0
        if score < _SAME:
            return None
        unstated = self._unstated_numbers(quote)
        names = {token.casefold() for token in WORD.findall(quote)}
        is_found = [
            _without_separators(one) not in unstated
            if one[0].isdigit()
            else names >= {*_folded_tokens(one)}
            for one in self.exact
        ]
        missing = tuple(
            one for one, is_there in zip(self.exact, is_found, strict=True) if not is_there
        )
        return _PassageMatch(
            score, source, quote, start, end, missing, _is_negated(quote) is not self.negated
        )

    def _unstated_numbers(self, quote: str) -> set[str]:
        """Return the numbers of the claim that a passage does not state about the same subject."""
        unstated: set[str] = set()
        for subject, numbers in self._folded_tokens.items():
            found_numbers = map(_without_separators, numbers_about(subject, quote, self._stem))
            unstated |= {*map(_without_separators, numbers)}.difference(found_numbers)
        return unstated

    def rationale(self, matches: list[_PassageMatch]) -> str:
        """Return one sentence why the best matches support the claim or not."""
        if not matches:
            return "No passage speaks of it."
        match = matches[0]
        if match.missing:
            return f"The nearest passage, in {match.source}, does not have: {', '.join(match.missing):.200}."
        if match.contradicts:
            return f"The nearest passage, in {match.source}, differs in a negation."
        return f"A passage in {match.source} has its numbers, its names and {match.score:.0%} of its words."


def _without_separators(number: str) -> str:
    return number.replace(",", "")


def _folded_tokens(name: str) -> list[str]:
    return [token.casefold() for token in WORD.findall(name)]


def _is_negated(text: str) -> bool:
    words: list[str] = [word.replace("’", "'") for word in re.findall(r"[\w'’]+", text.lower())]
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words) % 2 == 1


def make_citation(
    source: dict[str, Any], excerpt: str | None = None, locator: str | None = None
) -> dict[str, object]:
    """Return a citation as CSL-JSON from the members of a source, without additions.

    With an excerpt, `custom` gives its place in the source's text. Raise Refused for a source
    without title, address and id, and for an excerpt that the text does not contain.
    """
    title, url, own_id = (
        _first_member(source, *names)
        for names in (("title", "name"), ("url", "URL", "link"), ("id", "source_id", "source_ref"))
    )
    doi = _first_member(source, "doi", "DOI")
    if not (title or url or own_id or doi):
        raise Refused("no-evidence", "the source has no title, address or id to cite it by")
    container = _first_member(
        source, "container-title", "container", "journal", "publication", "site_name"
    )
    citation: dict[str, object] = {
        "id": own_id or doi or url or title,
        "type": _citation_type(source, url, container),
        "title": title,
        "author": _parse_authors(source.get("authors", source.get("author"))),
        "issued": _date_parts(
            _first_member(source, "issued", "date", "published", "published_at", "year")
        ),
        "container-title": container,
        "publisher": _first_member(source, "publisher"),
        "URL": url,
        "DOI": doi,
        "locator": locator,
    }
    citation = {key: value for key, value in citation.items() if value}
    if excerpt:
        text = text_of({key: source.get(key) for key in ("text", "content", "body")})
        citation["custom"] = _locate_excerpt(excerpt, text)
    return {"citation": citation}


def _first_member(source: dict[str, Any], *names: str) -> str:
    values = (
        source[name] for name in names if isinstance(source.get(name), str | int) and source[name]
    )
    return str(next(values, "")).strip()


def _citation_type(source: dict[str, Any], url: str, container: str) -> str:
    stated = _first_member(source, "type", "kind")
    if stated in _CSL_TYPES:
        return stated
    return "article" if container else "webpage" if url else "document"


def _parse_authors(value: object) -> list[dict[str, str]]:
    names = re.split(r"\s*(?:;|\band\b|&)\s*", value) if isinstance(value, str) else value
    return (
        [author for name in names if (author := _parse_author(name))]
        if isinstance(names, list)
        else []
    )


def _parse_author(name: object) -> dict[str, str]:
    if isinstance(name, dict):
        parts = ("family", "given", "literal")
        members = {key: str(name[key]) for key in parts if isinstance(name.get(key), str)}
        return members or _parse_author(name.get("name"))
    if not isinstance(name, str) or not name.strip():
        return {}
    family, comma, given = name.partition(",")
    # Which word of `Ana Maria Ruiz Holm` is the family name nobody can tell.
    literal = {"literal": name.strip()}
    return (
        {"family": family.strip(), "given": given.strip()} if comma and given.strip() else literal
    )


def _date_parts(stated: str) -> dict[str, object] | None:
    match = re.match(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?!\d)", stated)
    if match:
        return {"date-parts": [[int(part) for part in match.groups() if part]]}
    return {"raw": stated} if stated else None


def _locate_excerpt(excerpt: str, text: str) -> dict[str, object]:
    if not text:
        return {"excerpt": excerpt}
    start = text.find(excerpt)
    if start < 0:
        raise Refused(
            "bad-data", "the excerpt does not stand in the source's text, character by character"
        )
    return {"excerpt": excerpt, "start": start, "end": start + len(excerpt)}
