"""Finds the parts of a secret that are secrets themselves (docs/reference/episode.md#secret-parts)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from cogcli.base.jsonvalue import walk_values

MIN_PART: Final = 16
_MIN_DISTINCT: Final = 6
_MAX_NESTING: Final = 3
"""The depth to which a secret is decomposed: a PEM key inside a JSON secret inside a URL."""
_RANDOM_BELOW: Final = -1

_RUN: Final = re.compile(r"[A-Za-z0-9]+")
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")
_ARMOR: Final = "-----BEGIN "
_PEM_LINE: Final = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
_SETTING: Final = re.compile(r"[A-Za-z][A-Za-z0-9 _.\-]*=(.+)", re.DOTALL)
_BETWEEN_WORDS: Final = re.compile(r"[\s\"'`,;:=|&]+")
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-]{16,}={0,2}")
_JSON_IN_BASE64: Final = "eyJ"
"""The beginning of base64 of `{"`, as in the segments of a JSON Web Token, whose claims are not secret."""
_HOST: Final = re.compile(r"(?:[^@\s/]+@)?(?:[A-Za-z0-9_\-]+\.)+[A-Za-z]{2,}(?::[0-9]+)?")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]?[0-9:.+\-Z]*")

_PAIRS: Final = """
cfggcdfbfadhggbfahgheeddeb fddcfcbbfdafcbecaeeceaaada gcedgcbgeaffdchdafegebaada fddehecbgbbedcfdaeedecbaca
geghfffceacgfhefehhhdeegeb ecddefbbgaaeccfcaedeebaaca ebcbgbceeaaecedcafedeaaaaa fbbcfbabeabcccfbadcecaaaca
fegffefbbacggigebfggceadae caaacaaaaaaaaacaaacacaaaaa dbbbfbbaeaacbbbbabdccabaaa gcdehdcbhacgcdgdadffecbafa
gecdgcbbfabdecffacedebbaca gdfggehcfadddegdadghefcaca eeffceebebdgfhefahffgefdba gbddgcbdeabfccfeagefecbaea
aaaaaaaaaaabaaaaabcbeaaaaa gdfehdebgadefegeafggedcaea ecfdhdcfgadeddffddghfcdbea gdfehecfhaceedgecgffecdbfb
eeededcaeaaffgcfafffaaaaaa fbcbgbbaeaabbbdbabdcaababa ebbbebaceaabbddbaddbaaaaaa cbdbdcaadaabcabdabbeaaabba
cbcbdbbacaadddbeacedaabaaa caaaeaaacaaaaabaaaabaaaaaa
""".split()
"""The frequency of each pair of letters in English words and names of code: a row for the first letter, a character
for the second.
`e` is the frequency by chance. Each letter after it is twice as frequent, each before it half."""
_CHANCE: Final = ord("e")
_DIGITS, _MIXED, _HUMP = -1, -2, -2
"""The scores of two digits, of a letter next to a digit, and of a small letter before a capital one."""


def find_parts(secret: str) -> Iterator[str]:
    """Yield the parts of a secret that are secrets themselves, possibly with duplicates.

    The candidates are: path segments, user info and query values of a URL; lines of a PEM body;
    values of a JSON secret; values of `name=value` settings; words of all other strings (`Bearer
    TOKEN`, `name:password`, a line of a credentials file), segments between dots, and text encoded
    in base64. A part has at least 16 characters and looks random (`looks_random`).
    """
    yield from _find_parts(secret, _MAX_NESTING)


def _find_parts(text: str, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    candidates: list[str] = []
    if text[:1] in ("{", "["):
        candidates += _list_json_values(text)
    if _ARMOR in text:
        yield from _find_armored_lines(text)
    elif _URL.match(text):
        candidates += _list_url_parts(text)
    elif not candidates:
        candidates += [*_list_setting_values(text), *_list_words(text)]
    for candidate in candidates:
        is_address = _URL.match(candidate) is not None
        if looks_random(candidate) and not is_address:
            yield candidate
        if candidate != text:
            yield from _find_parts(candidate, depth - 1)


def _find_armored_lines(text: str) -> Iterator[str]:
    """Yield the random lines of a PEM body."""
    # Variables often hold the line ends as `\n` written out.
    lines = text.replace("\\r", "").replace("\\n", "\n").splitlines()
    for line in map(str.strip, lines):
        if _PEM_LINE.fullmatch(line) and looks_random(line):
            yield line


def _list_setting_values(text: str) -> list[str]:
    """Return the values of `name=value` settings."""
    settings = map(_SETTING.fullmatch, map(str.strip, re.split(r"[;&\s]", text)))
    return [found[1].strip("\"'") for found in settings if found]


def _list_words(text: str) -> list[str]:
    """Return the words of a string.

    For a single word, return the segments between its dots, and its text decoded from base64.
    """
    words = [word for word in _BETWEEN_WORDS.split(text) if len(word) >= MIN_PART]
    if words != [text]:
        return words
    segments = text.split(".") if "." in text else []
    decoded = _decode_text(text)
    return [
        *(each for each in segments if not each.startswith(_JSON_IN_BASE64)),
        *([decoded] if decoded else []),
    ]


def _decode_text(text: str) -> str:
    """Return the printable text encoded by base64; empty if the text is not printable."""
    import base64

    if not _BASE64.fullmatch(text):
        return ""
    standard = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    try:
        decoded = base64.b64decode(standard + "=" * (-len(standard) % 4)).decode()
    except ValueError:
        return ""
    return decoded if decoded.isprintable() else ""


def looks_random(text: str) -> bool:
    """Return whether a string looks randomly generated.

    Such a string has at least 16 characters without a space and at least 6 different ones. It is not
    a host, mail address or date. Its neighboring characters form pairs that are rare in words.
    """
    if len(text) < MIN_PART or len(set(text)) < _MIN_DISTINCT or any(map(str.isspace, text)):
        return False
    if _HOST.fullmatch(text) or _DATE.fullmatch(text):
        return False
    score = sum(_score_pair(*pair) for run in _RUN.findall(text) for pair in pairwise(run))
    return score < _RANDOM_BELOW


def _score_pair(first: str, second: str) -> int:
    """Return how much more likely two neighbors are in words than by chance, as a power of two."""
    if first.isdigit() or second.isdigit():
        return _DIGITS if first.isdigit() and second.isdigit() else _MIXED
    if first.islower() and second.isupper():
        return _HUMP
    row = _PAIRS[ord(first.lower()) - ord("a")]
    return ord(row[ord(second.lower()) - ord("a")]) - _CHANCE


def _list_json_values(text: str) -> list[str]:
    """Return the strings and whole numbers in a JSON text; empty if it is not JSON."""
    import json

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [str(value) for value in walk_values(whole) if type(value) in (str, int)]


def _list_url_parts(text: str) -> list[str]:
    """Return the secret parts of a URL, verbatim and decoded; never the host.

    They are user name, password, path segments, query values and fragment.
    """
    from urllib.parse import unquote, unquote_plus, urlsplit

    try:
        parts = urlsplit(text)
    except ValueError:
        return []
    user_info, _, _ = parts.netloc.rpartition("@")
    query = [pair.partition("=")[2] for pair in re.split("[&;]", parts.query)]
    raw = [*user_info.split(":", 1), user_info, *parts.path.split("/"), *query, parts.fragment]
    return [*raw, *map(unquote, raw), *map(unquote_plus, query)]
