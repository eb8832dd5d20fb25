"""Numbers that states give to persons, recognized by their form and check digit."""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from cogcli.official.findings import TextSpan
from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator


_BLANKS = str.maketrans("", "", " -")


class _Rule(NamedTuple):
    """A number of one country. `check` is its module of python-stdnum; without one its form is
    enough.
    """

    country: str
    check: str
    pattern: str
    cue: re.Pattern[str] | None = None
    """The words behind which alone the form counts."""

    def is_valid(self, number: str) -> bool:
        """Return whether a text of this form is a valid number."""
        digits = number.translate(_BLANKS) if self.check == "luhn" else number.replace(" ", "")
        return not self.check or bool(import_module(f"stdnum.{self.check}").is_valid(digits))


_CUE = re.compile(
    r"\b(?:ssn|social security|national (?:id|insurance|identity)|id(?:entity)? (?:card|no\b|number|code)"
    r"|personal (?:id|number|code)|tax(?:payer)? (?:id|number|no\b)|steuer-?(?:id|ident|nummer)|idnr|tin\b|bsn"
    r"|burgerservice|pesel|nhs|s\.?i\.?n\b|social insurance|cpf|aadhaar|dni|nif\b|nie\b|citizen|personnummer"
    r"|personnr|cpr|fødselsnummer|t\.?c\.? ?kimlik|tckn|cnp\b|contribuinte)",
    re.I,
)
_US_CUE = re.compile(r"\b(?:ssn|itin|social[ -]security|(?:w-?[29]|1099)\b)", re.I)
# Those of one form stand side by side: the first that is valid tells the country.
_RULES = (
    _Rule("US", "us.ssn", r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}"),
    _Rule(
        "GB",
        "",
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]",
    ),
    _Rule("ES", "es.dni", r"\d{8}-?[A-HJ-NP-TV-Z]"),
    _Rule("ES", "es.nie", r"[XYZ]-?\d{7}-?[A-HJ-NP-TV-Z]"),
    _Rule("IT", "it.codicefiscale", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]"),
    _Rule("FR", "fr.nir", r"[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d"),
    _Rule("CH", "ch.ssn", r"756\.?\d{4}\.?\d{4}\.?\d\d"),
    _Rule("BR", "br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d"),
    _Rule("BR", "br.cpf", r"\d{11}", _CUE),
    _Rule("FI", "fi.hetu", r"[0-3]\d[01]\d\d\d[-+A]\d{3}[0-9A-Y]"),
    _Rule("SE", "se.personnummer", r"(?:19|20)?\d\d[01]\d[0-3]\d[-+]\d{4}"),
    _Rule("SE", "se.personnummer", r"(?:19|20)?\d\d[01]\d[0-3]\d\d{4}", _CUE),
    _Rule("BE", "be.nn", r"\d\d\.[01]\d\.[0-3]\d-\d{3}\.\d\d"),
    _Rule("NO", "no.fodselsnummer", r"[0-3]\d[01]\d\d\d ?\d{5}"),
    _Rule("DK", "dk.cpr", r"[0-3]\d[01]\d\d\d-?\d{4}", _CUE),
    _Rule("CA", "luhn", r"\d{3}([ -]?)\d{3}\1\d{3}", _CUE),
    _Rule("IN", "in_.aadhaar", r"(?<!\d )[2-9]\d{3} \d{4} \d{4}(?! \d)"),
    _Rule("IN", "in_.aadhaar", r"[2-9]\d{11}", _CUE),
    _Rule("CN", "cn.ric", r"[1-8]\d{5}(?:19|20)\d{9}[\dX]"),
    _Rule("KR", "kr.rrn", r"\d\d[01]\d[0-3]\d-[1-8]\d{6}"),
    _Rule("CZ", "cz.rc", r"\d\d[0-8]\d[0-3]\d/\d{4}"),
    _Rule("PL", "pl.pesel", r"\d{11}", _CUE),
    _Rule("DE", "de.idnr", r"\d{2} ?\d{3} ?\d{3} ?\d{3}", _CUE),
    _Rule("TR", "tr.tckimlik", r"[1-9]\d{10}", _CUE),
    _Rule("NL", "nl.bsn", r"\d{9}|\d{4}\.\d\d\.\d{3}", _CUE),
    _Rule("PT", "pt.nif", r"[1235689]\d{2} ?\d{3} ?\d{3}", _CUE),
    _Rule("GB", "gb.nhs", r"\d{3}[ -]?\d{3}[ -]?\d{4}", _CUE),
    _Rule("RO", "ro.cnp", r"[1-8]\d{12}", _CUE),
    _Rule("US", "us.ssn", r"(?!000|666|9)\d{3}([ -]?)(?!00)\d\d\1(?!0000)\d{4}", _US_CUE),
)
_CUE_SPAN = 40
_MAX_CUES = 5_000
_MAX_MATCHES = 10_000


@cache
def _compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.+/-])(?:{pattern})(?![\w-]|[.,/]\d)")


def bounded_matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield every match. Raise Refused if there are more than can be checked in a second."""
    for count, match in enumerate(pattern.finditer(text)):
        if count == _MAX_MATCHES:
            raise Refused("too-large", f"more than {_MAX_MATCHES:,} places look like personal data")
        yield match


def find_national_ids(text: str) -> Iterator[TextSpan]:
    """Yield every valid number, by rule. Numbers of two rules may overlap."""
    cues = {cue: [match.end() for match in cue.finditer(text)] for cue in (_CUE, _US_CUE)}
    if sum(map(len, cues.values())) > _MAX_CUES:
        raise Refused("too-large", f"more than {_MAX_CUES:,} places speak of numbers of persons")
    for rule in _RULES:
        for start, end in _find_matches(rule, text, cues[rule.cue] if rule.cue else None):
            if rule.is_valid(text[start:end]):
                yield TextSpan(start, end, "national_id", rule.country)


def _find_matches(rule: _Rule, text: str, cues: list[int] | None) -> Iterator[tuple[int, int]]:
    pattern = _compile_pattern(rule.pattern)
    if cues is None:
        yield from (match.span() for match in bounded_matches(pattern, text))
        return
    for cue in cues:
        match = pattern.search(text, cue, cue + _CUE_SPAN + 20)
        if match and match.start() <= cue + _CUE_SPAN:
            yield match.span()
