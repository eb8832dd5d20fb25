"""Where something is said: claims looked up in sources, and citations of them."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, NamedTuple

from cogcli.official.number_subjects import numbers_said_of, parts_of, words_said
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


class _Found(NamedTuple):
    """How well a passage fits a claim; a passage without `missing` and with equal negation says it."""

    score: float
    source: str
    quote: str
    start: int
    end: int
    missing: tuple[str, ...]
    contradicts: bool


def verify_claim(claim: str, sources: list[Any]) -> dict[str, object]:
    """Return whether one passage of a source says a claim: all its numbers and names, most of its words, equal
    negation.

    A number that a clause says of another thing is none of the claim's. `evidence` quotes the passages nearest to it,
    with source and place. Raise Refused for a claim without words.
    """
    wanted = _Claim(claim)
    if not sources:
        return _verdict([], "There are no sources.")
    texts = [
        (text_of(source), id_of(source, position)) for position, source in enumerate(sources, 1)
    ]
    if len(sources) > _MAX_SOURCES or sum(len(text) for text, _ in texts) > MAX_CHARACTERS:
        raise Refused(
            "too-large", f"more than {_MAX_SOURCES} sources or {MAX_CHARACTERS:,} characters"
        )
    found = [fit for text, source in texts for fit in wanted.look_in(text, source)]
    best = sorted(found, key=lambda fit: (bool(fit.missing), fit.contradicts, -fit.score))[
        :_MAX_EVIDENCE
    ]
    return _verdict(best, wanted.rationale(best))


def _verdict(best: list[_Found], rationale: str) -> dict[str, object]:
    verified = bool(best) and not best[0].missing and not best[0].contradicts
    kept = [fit for fit in best if not verified or not (fit.missing or fit.contradicts)]
    evidence = [
        {
            "source": fit.source,
            "quote": fit.quote,
            "start": fit.start,
            "end": fit.end,
            "score": round(fit.score, 3),
        }
        | {"supports": not fit.missing and not fit.contradicts}
        for fit in kept
    ]
    return {
        "verified": verified,
        "evidence": evidence,
        "rationale": rationale,
        "method": "rules:passages",
    }


class _Claim:
    """What a passage must have to say a claim."""

    def __init__(self, claim: str) -> None:
        self._stem = stemmer()
        self.exact = list(dict.fromkeys(claims_of(claim)))
        names = {part for one in self.exact for part in _parts(one)}
        self.words = {self._stem(word) for word in content_words(claim) if word not in names}
        said = frozenset(words_said(claim, self._stem))
        # Each part of `Orca costs 40 and Lynx 55` has its own number.
        self._parts = {**parts_of(claim, self._stem), said: set(self.exact)}
        self.negated = _is_negated(claim)
        if not self.words and not self.exact:
            raise Refused("bad-data", "the claim has no words to look up")

    def look_in(self, text: str, source: str) -> list[_Found]:
        """Return the passages that speak of the same: sentences, and where needed one with the next that refers to
        it.
        """
        parts = passages(text)
        spans = [(part.start, part.end) for part in parts]
        pairs = [(a.start, b.end) for a, b in pairwise(parts) if _REFERRING.match(b.text)]
        found = [fit for span in spans if (fit := self._fit(text, source, *span))]
        if not any(not fit.missing for fit in found):
            found += [fit for span in pairs if (fit := self._fit(text, source, *span))]
        return found

    def _fit(self, text: str, source: str, start: int, end: int) -> _Found | None:
        quote = text[start:end]
        words = {self._stem(word) for word in content_words(quote)}
        score = len(self.words & words) / len(self.words) if self.words else 1.0
        if score < _SAME:
            return None
        unsaid = self._unsaid(quote)
        names = {token.casefold() for token in WORD.findall(quote)}
        held = [
            _plain_number(one) not in unsaid if one[0].isdigit() else names >= {*_parts(one)}
            for one in self.exact
        ]
        missing = tuple(one for one, there in zip(self.exact, held, strict=True) if not there)
        return _Found(
            score, source, quote, start, end, missing, _is_negated(quote) is not self.negated
        )

    def _unsaid(self, quote: str) -> set[str]:
        """Return the numbers of the claim that a passage does not say of what their part of the claim speaks of."""
        unsaid: set[str] = set()
        for said, stated in self._parts.items():
            found = map(_plain_number, numbers_said_of(said, quote, self._stem))
            unsaid |= {*map(_plain_number, stated)}.difference(found)
        return unsaid

    def rationale(self, best: list[_Found]) -> str:
        """Return why a claim is held to be said, or not."""
        if not best:
            return "No passage speaks of it."
        fit = best[0]
        if fit.missing:
            return f"The nearest passage, in {fit.source}, does not have: {', '.join(fit.missing):.200}."
        if fit.contradicts:
            return f"The nearest passage, in {fit.source}, differs in a negation."
        return f"A passage in {fit.source} has its numbers, its names and {fit.score:.0%} of its words."


def _plain_number(number: str) -> str:
    return number.replace(",", "")


def _parts(name: str) -> list[str]:
    return [token.casefold() for token in WORD.findall(name)]


def _is_negated(text: str) -> bool:
    words: list[str] = [word.replace("’", "'") for word in re.findall(r"[\w'’]+", text.lower())]
    return sum(word in _NEGATIONS or word.endswith("n't") for word in words) % 2 == 1


def make_citation(
    source: dict[str, Any], excerpt: str | None = None, locator: str | None = None
) -> dict[str, object]:
    """Return a citation as CSL-JSON of what the source says of itself; nothing is added that it does not say.

    With an excerpt its place in the source's text. Raise Refused for a source without title, address and id, and for
    an excerpt that does not stand in the text.
    """
    title, url, own_id = (
        _first(source, *names)
        for names in (("title", "name"), ("url", "URL", "link"), ("id", "source_id", "source_ref"))
    )
    doi = _first(source, "doi", "DOI")
    if not (title or url or own_id or doi):
        raise Refused("no-evidence", "the source has no title, address or id to cite it by")
    container = _first(
        source, "container-title", "container", "journal", "publication", "site_name"
    )
    citation: dict[str, object] = {
        "id": own_id or doi or url or title,
        "type": _type(source, url, container),
        "title": title,
        "author": _authors(source.get("authors", source.get("author"))),
        "issued": _issued(_first(source, "issued", "date", "published", "published_at", "year")),
        "container-title": container,
        "publisher": _first(source, "publisher"),
        "URL": url,
        "DOI": doi,
        "locator": locator,
    }
    citation = {key: value for key, value in citation.items() if value}
    if excerpt:
        text = text_of({key: source.get(key) for key in ("text", "content", "body")})
        citation["custom"] = _placed(excerpt, text)
    return {"citation": citation}


def _first(source: dict[str, Any], *names: str) -> str:
    found = (
        source[name] for name in names if isinstance(source.get(name), str | int) and source[name]
    )
    return str(next(found, "")).strip()


def _type(source: dict[str, Any], url: str, container: str) -> str:
    stated = _first(source, "type", "kind")
    if stated in _CSL_TYPES:
        return stated
    return "article" if container else "webpage" if url else "document"


def _authors(value: object) -> list[dict[str, str]]:
    names = re.split(r"\s*(?:;|\band\b|&)\s*", value) if isinstance(value, str) else value
    return (
        [author for name in names if (author := _author(name))] if isinstance(names, list) else []
    )


def _author(name: object) -> dict[str, str]:
    if isinstance(name, dict):
        parts = ("family", "given", "literal")
        known = {key: str(name[key]) for key in parts if isinstance(name.get(key), str)}
        return known or _author(name.get("name"))
    if not isinstance(name, str) or not name.strip():
        return {}
    family, comma, given = name.partition(",")
    # Which word of `Ana Maria Ruiz Holm` is the family name nobody can tell.
    whole = {"literal": name.strip()}
    return {"family": family.strip(), "given": given.strip()} if comma and given.strip() else whole


def _issued(stated: str) -> dict[str, object] | None:
    match = re.match(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?(?!\d)", stated)
    if match:
        return {"date-parts": [[int(part) for part in match.groups() if part]]}
    return {"raw": stated} if stated else None


def _placed(excerpt: str, text: str) -> dict[str, object]:
    if not text:
        return {"excerpt": excerpt}
    start = text.find(excerpt)
    if start < 0:
        raise Refused(
            "bad-data", "the excerpt does not stand in the source's text, character by character"
        )
    return {"excerpt": excerpt, "start": start, "end": start + len(excerpt)}
