"""Numbers that states give to persons, told by their form and their check digit.

A form that other numbers have, too, counts only behind a word that says what it is.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from cogcli.sdk import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class NationalId(NamedTuple):
    """Where a number stands, and the country that gives it."""

    start: int
    end: int
    country: str


class _Rule(NamedTuple):
    country: str
    pattern: str
    is_valid: Callable[[str], bool]
    cue: re.Pattern[str] | None = None
    """The words behind which alone the form counts."""


def luhn(digits: str) -> bool:
    """Whether the last digit is the check digit of ISO/IEC 7812."""
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(value - 9 * (value > 9) for value in doubled) % 10 == 0


def _weighted(digits: str, weights: tuple[int, ...]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _is_date(year: int, month: int, day: int) -> bool:
    try:
        return bool(date(year, month, day))
    except ValueError:
        return False


def _any_century(yy: str, mm: str, dd: str) -> bool:
    return any(_is_date(century + int(yy), int(mm), int(dd)) for century in (1900, 2000))


def _spain(text: str) -> bool:
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def _italy(text: str) -> bool:
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    values = [int(char) if char.isdigit() else ord(char) - 65 for char in text]
    total = sum(odd[value] if place % 2 == 0 else value for place, value in enumerate(values[:15]))
    return total % 26 == values[15]


def _france(text: str) -> bool:
    return 1 <= int(text[3:5]) <= 12 and 97 - int(text[:13]) % 97 == int(text[13:])


def _germany(text: str) -> bool:
    product = 10
    for digit in text[:10]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    counts = sorted(text[:10].count(digit) for digit in set(text[:10]))
    return text[0] != "0" and counts[-1] in (2, 3) and (11 - product) % 10 == int(text[10])


def _switzerland(text: str) -> bool:
    return (10 - _weighted(text[:12], (1, 3) * 6) % 10) % 10 == int(text[12])


def _brazil(text: str) -> bool:
    def check(length: int) -> int:
        return _weighted(text[:length], tuple(range(length + 1, 1, -1))) * 10 % 11 % 10

    return len(set(text)) > 1 and check(9) == int(text[9]) and check(10) == int(text[10])


def _finland(text: str) -> bool:
    number = int(text[:6] + text[7:10])
    return (
        _any_century(text[4:6], text[2:4], text[:2])
        and "0123456789ABCDEFHJKLMNPRSTUVWXY"[number % 31] == text[10]
    )


def _sweden(text: str) -> bool:
    return _any_century(text[-10:-8], text[-8:-6], text[-6:-4]) and luhn(text[-10:])


def _belgium(text: str) -> bool:
    return any(97 - int(lead + text[:9]) % 97 == int(text[9:]) for lead in ("", "2"))


def _norway(text: str) -> bool:
    first = (11 - _weighted(text, (3, 7, 6, 1, 8, 9, 4, 5, 2)) % 11) % 11
    second = (11 - _weighted(text, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11) % 11
    return _any_century(text[4:6], text[2:4], text[:2]) and [first, second] == [int(text[9]), int(text[10])]


def _denmark(text: str) -> bool:
    return _any_century(text[4:6], text[2:4], text[:2])


def _poland(text: str) -> bool:
    month = int(text[2:4]) % 20
    return 1 <= month <= 12 and -_weighted(text[:10], (1, 3, 7, 9) * 3) % 10 == int(text[10])


def _netherlands(text: str) -> bool:
    return text.strip("0") != "" and (_weighted(text[:8], (9, 8, 7, 6, 5, 4, 3, 2)) - int(text[8])) % 11 == 0


def _health_service(text: str) -> bool:
    check = (11 - _weighted(text[:9], (10, 9, 8, 7, 6, 5, 4, 3, 2)) % 11) % 11
    return check == int(text[9])


def _india(text: str) -> bool:
    # Verhoeff: the dihedral group of ten, digits moved by their place.
    def times(a: int, b: int) -> int:
        turned = a + b if a < 5 else a - b
        return turned % 5 + 5 * ((a < 5) != (b < 5))

    moves = [
        "0123456789",
        "1576283094",
        "5803796142",
        "8916043527",
        "9453126870",
        "4286573901",
        "2793806415",
        "7046913258",
    ]
    check = 0
    for place, digit in enumerate(reversed(text)):
        check = times(check, int(moves[place % 8][int(digit)]))
    return check == 0


def _china(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    born = _is_date(int(text[6:10]), int(text[10:12]), int(text[12:14]))
    return born and "10X98765432"[_weighted(text[:17], weights) % 11] == text[17]


def _turkey(text: str) -> bool:
    odd, even = sum(map(int, text[0:9:2])), sum(map(int, text[1:8:2]))
    return (odd * 7 - even) % 10 == int(text[9]) and sum(map(int, text[:10])) % 10 == int(text[10])


def _romania(text: str) -> bool:
    check = _weighted(text[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return _any_century(text[1:3], text[3:5], text[5:7]) and (1 if check == 10 else check) == int(text[12])


def _portugal(text: str) -> bool:
    check = 11 - _weighted(text[:8], (9, 8, 7, 6, 5, 4, 3, 2)) % 11
    return (0 if check > 9 else check) == int(text[8])


def _czechia(text: str) -> bool:
    return 1 <= int(text[2:4]) % 50 % 20 <= 12 and int(text) % 11 == 0


def _korea(text: str) -> bool:
    weights = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
    return _any_century(text[:2], text[2:4], text[4:6]) and (
        11 - _weighted(text[:12], weights) % 11
    ) % 10 == int(text[12])


def _no_check(text: str) -> bool:
    return True


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
    _Rule("US", r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", _no_check),
    _Rule(
        "GB",
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]",
        _no_check,
    ),
    _Rule("ES", r"(?:\d{8}|[XYZ]-?\d{7})-?[A-HJ-NP-TV-Z]", _spain),
    _Rule("IT", r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", _italy),
    _Rule("FR", r"[12] ?\d\d ?\d\d ?\d\d ?\d{3} ?\d{3} ?\d\d", _france),
    _Rule("CH", r"756\.?\d{4}\.?\d{4}\.?\d\d", _switzerland),
    _Rule("BR", r"\d{3}\.\d{3}\.\d{3}-\d\d", _brazil),
    _Rule("BR", r"\d{11}", _brazil, _CUE),
    _Rule("FI", r"[0-3]\d[01]\d\d\d[-+A]\d{3}[0-9A-Y]", _finland),
    _Rule("SE", r"(?:19|20)?\d\d[01]\d[0-3]\d[-+]\d{4}", _sweden),
    _Rule("SE", r"(?:19|20)?\d\d[01]\d[0-3]\d\d{4}", _sweden, _CUE),
    _Rule("BE", r"\d\d\.[01]\d\.[0-3]\d-\d{3}\.\d\d", _belgium),
    _Rule("NO", r"[0-3]\d[01]\d\d\d ?\d{5}", _norway),
    _Rule("DK", r"[0-3]\d[01]\d\d\d-?\d{4}", _denmark, _CUE),
    _Rule("CA", r"\d{3}([ -]?)\d{3}\1\d{3}", luhn, _CUE),
    _Rule("IN", r"(?<!\d )[2-9]\d{3} \d{4} \d{4}(?! \d)", _india),
    _Rule("IN", r"[2-9]\d{11}", _india, _CUE),
    _Rule("CN", r"[1-8]\d{5}(?:19|20)\d{9}[\dX]", _china),
    _Rule("KR", r"\d\d[01]\d[0-3]\d-[1-8]\d{6}", _korea),
    _Rule("CZ", r"\d\d[0-8]\d[0-3]\d/\d{4}", _czechia),
    _Rule("PL", r"\d{11}", _poland, _CUE),
    _Rule("DE", r"\d{2} ?\d{3} ?\d{3} ?\d{3}", _germany, _CUE),
    _Rule("TR", r"[1-9]\d{10}", _turkey, _CUE),
    _Rule("NL", r"\d{9}|\d{4}\.\d\d\.\d{3}", _netherlands, _CUE),
    _Rule("PT", r"[1235689]\d{2} ?\d{3} ?\d{3}", _portugal, _CUE),
    _Rule("GB", r"\d{3}[ -]?\d{3}[ -]?\d{4}", _health_service, _CUE),
    _Rule("RO", r"[1-8]\d{12}", _romania, _CUE),
    _Rule("US", r"(?!000|666|9)\d{3}([ -]?)(?!00)\d\d\1(?!0000)\d{4}", _no_check, _US_CUE),
)
_CUE_SPAN = 40
_MAX_CUES = 5_000
_MAX_MATCHES = 10_000
_COMPILED: dict[str, re.Pattern[str]] = {}


def bounded_matches(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Every match. Raises Refused where there are more than can be checked in a second."""
    for count, match in enumerate(pattern.finditer(text)):
        if count == _MAX_MATCHES:
            raise Refused("too-large", f"more than {_MAX_MATCHES:,} places look like personal data")
        yield match


def find_national_ids(text: str) -> Iterator[NationalId]:
    """Every valid number, by rule; those of two rules may overlap."""
    cues = {cue: [match.end() for match in cue.finditer(text)] for cue in (_CUE, _US_CUE)}
    if sum(map(len, cues.values())) > _MAX_CUES:
        raise Refused("too-large", f"more than {_MAX_CUES:,} places speak of numbers of persons")
    for rule in _RULES:
        for start, end in _matches(rule, text, cues[rule.cue] if rule.cue else None):
            if rule.is_valid(
                re.sub(r"[^0-9A-Z]", "", text[start:end]) if rule.country != "FI" else text[start:end]
            ):
                yield NationalId(start, end, rule.country)


def _matches(rule: _Rule, text: str, cues: list[int] | None) -> Iterator[tuple[int, int]]:
    pattern = _COMPILED.get(rule.pattern)
    if pattern is None:
        pattern = _COMPILED[rule.pattern] = re.compile(rf"(?<![\w.+/-])(?:{rule.pattern})(?![\w-]|[.,/]\d)")
    if cues is None:
        yield from (match.span() for match in bounded_matches(pattern, text))
        return
    for cue in cues:
        match = pattern.search(text, cue, cue + _CUE_SPAN + 20)
        if match and match.start() <= cue + _CUE_SPAN:
            yield match.span()
