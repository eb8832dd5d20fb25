"""Searches a text for secrets in any encoded form (docs/reference/episode.md#secret-forms).

1. Encodings that change every character (base64, base32, hex, reversed) are enumerated once per set
of secrets, and one automaton searches a text for all of them.

2. Escapes may replace any character of a secret, so they cannot be enumerated. They are decoded in
the text, which is then searched again. Line breaks that wrap a value are handled the same way.

3. Case is ignored: forms and texts are folded.

Time is linear in the length of any text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from cogcli.base.named_tuple import NamedTuple
from cogcli.base.secret_parts import find_parts

MASK: Final = "[masked]"
MIN_LENGTH: Final = 8
"""Shorter values and forms would hit plain words."""
_MAX_DECODED: Final = 4
"""The maximum number of times that escapes are decoded, since an escaped text may be escaped again."""
_DECODABLE: Final = re.compile(r"[%&\\\n]")
_LATIN_BYTE: Final = 0xDC00
_HEX: Final = "[0-9A-Fa-f]"
_BYTES: Final = "(?:PC[CDcd]X|PC[Ee]XPC[89ABab]X|PC[Ff][0-7]PC[89ABab]XPC[89ABab]X)PC[89ABab]X|PCXX"
"""One character as bytes of UTF-8, else one byte. `PC` begins each byte."""
_ESCAPES: Final = {
    "%": _BYTES.replace("PC", "%").replace("X", _HEX),
    "\\": "|".join(
        (
            _BYTES.replace("PC", r"\\x").replace("X", _HEX),
            r"\\u[Dd][89ABab]XX\\u[Dd][C-Fc-f]XX|\\uXXXX|\\u\{X{1,6}\}|\\UX{8}".replace("X", _HEX),
            r"\\[abfnrtv!-/:-@\[-`{-~]",
        )
    ),
    "&": r"&#[0-9]{1,8};?|&#[Xx][0-9A-Fa-f]{1,8};?|&[A-Za-z][A-Za-z0-9]{1,31};?",
}
"""By the sign that begins them: escapes of URLs, of programs and of HTML."""
_ESCAPE_OF: Final = {sign: re.compile(pattern) for sign, pattern in _ESCAPES.items()}
_SIGN_OF: Final = {sign: re.compile(re.escape(sign)) for sign in _ESCAPES}
_SHORT_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}
_MAX_KEPT: Final = 4096
_LAST_CHARACTER: Final = 0x10FFFF
_SAMPLE: Final = 8
"""Characters of a sample: few texts have one by chance."""
_STEPS: Final = range(4, 33)
"""The possible distances between samples. Smaller ones cost as much as the automaton, larger ones need much memory."""
_LONG: Final = 10_000
"""Characters of a text for which the samples of the forms are worth their memory."""


class Change(NamedTuple):
    """A place where a view differs from its source: `start` to `end` becomes `length` characters."""

    start: int
    end: int
    length: int


class SecretSearch:
    """Finds every form of a set of secret values and of their parts."""

    def __init__(self, values: frozenset[str]) -> None:
        known = values.union(*map(find_parts, values))
        self.numbers: frozenset[str] = frozenset(filter(str.isdecimal, known))
        """The secrets that a JSON number may be."""
        self._forms = {form for value in known for form in find_forms(value)}
        self._find = _build_automaton(self._forms)
        self._samples: Samples | None = None
        """Built when a long text is first searched."""

    def is_in(self, text: str) -> bool:
        """Return whether the text contains a form of a secret."""
        if self._has_form(text.casefold()):
            return True
        if _DECODABLE.search(text) is None:
            return False
        return any(self._has_form(view.text.casefold()) for view in _list_views(text))

    def _has_form(self, folded: str) -> bool:
        """Return whether a case-folded text contains one of the forms."""
        if len(folded) >= _LONG:
            if self._samples is None:
                self._samples = Samples(self._forms)
            if self._samples.rule_out(folded):
                return False
        return next(self._find(folded), None) is not None

    def mask(self, text: str) -> str:
        """Return the text with every form of a secret masked; the same string if it contains no secret."""
        if not self.is_in(text):
            return text
        spans: list[tuple[int, int]] = []
        for view in (_View(text, None), *_list_views(text)):
            folded = view.fold()
            for last, length in self._find(folded.text):
                spans.append(folded.span_in_source(last + 1 - length, last + 1))
        return _mask_spans(text, spans)


@lru_cache(maxsize=8)
def search_for(values: frozenset[str]) -> SecretSearch:
    """Return the search for these values. Redactors that know the same values share it."""
    return SecretSearch(values)


def _mask_spans(text: str, spans: list[tuple[int, int]]) -> str:
    """Return the text with these spans masked. One mask replaces spans that overlap or touch."""
    parts: list[str] = []
    done = 0
    covered = -1
    for start, end in sorted(spans):
        if start > covered:
            parts += [text[done:start], MASK]
        covered = done = max(end, covered)
    return "".join([*parts, text[done:]])


# -- views of a text --------------------------------------------------------------------------------------------------


class _View:
    """A string that was rewritten from another string, with the origin of each part."""

    def __init__(
        self, text: str, source: _View | None, changes: Callable[[], Iterable[Change]] = lambda: ()
    ) -> None:
        self.text = text
        self._source = source
        self._changes = changes
        self._places: tuple[list[int], list[Change]] | None = None

    def fold(self) -> _View:
        """Return this view with case folded."""
        text = self.text.casefold()
        if len(text) == len(self.text):
            return _View(text, self)
        return _View(text, self, lambda: _find_foldings(self.text))

    def decode(self, signs: Iterable[str]) -> _View:
        """Return this view with one level of the escapes decoded that begin with these signs."""
        return _View(
            _decode_escapes(self.text, signs), self, lambda: _find_escapes(self.text, signs)
        )

    def unwrap(self) -> _View:
        """Return this view with its lines joined, without the white space at their ends."""
        return _View(
            "".join(map(str.strip, self.text.split("\n"))), self, lambda: _find_wrappings(self.text)
        )

    def span_in_source(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text that corresponds to a span of this view."""
        view: _View = self
        while view._source is not None:
            first, last = view._source_span(start), view._source_span(end - 1)
            start, end = first[0], last[1]
            view = view._source
        return start, end

    def _source_span(self, position: int) -> tuple[int, int]:
        """Return the span of source characters that were decoded to the character at a position."""
        if self._places is None:
            self._places = _place_changes(self._changes())
        starts, changes = self._places
        index = bisect_right(starts, position) - 1
        if index < 0:
            return position, position + 1
        change, after = changes[index], position - starts[index]
        if after < change.length:
            return change.start, change.end
        place = change.end + after - change.length
        return place, place + 1


def _place_changes(changes: Iterable[Change]) -> tuple[list[int], list[Change]]:
    """Return the beginning of each change in the rewritten text, and the changes."""
    starts: list[int] = []
    kept: list[Change] = []
    shift = 0
    for change in changes:
        starts.append(change.start + shift)
        kept.append(change)
        shift += change.length - (change.end - change.start)
    return starts, kept


def _list_views(text: str) -> Iterator[_View]:
    """Yield the rewritten forms of a string in which an escaped or wrapped secret becomes visible."""
    first = _View(text, None)
    if "\n" in text:
        yield first.unwrap()
    prefixes = [prefix for prefix in _ESCAPES if prefix in text]
    if prefixes:
        yield from _list_decoded_views(first, tuple(_ESCAPES))
    if len(prefixes) > 1:
        # A prefix can be a character of the secret: in a URL `\%6E` is a backslash and an `n`.
        # So the escapes of each kind are decoded alone, too.
        for prefix in prefixes:
            yield from _list_decoded_views(first, (prefix,))


def _list_decoded_views(view: _View, prefixes: Iterable[str]) -> Iterator[_View]:
    """Yield the views with the escapes of these prefixes decoded once, twice and so on."""
    for _ in range(_MAX_DECODED):
        decoded = view.decode(prefixes)
        if decoded.text == view.text:
            return
        yield decoded
        if "\n" in decoded.text:
            yield decoded.unwrap()
        view = decoded


def _find_foldings(text: str) -> Iterator[Change]:
    """Yield each character whose folded form has another length."""
    for place, character in enumerate(text):
        length = len(character.casefold())
        if length != 1:
            yield Change(place, place + 1, length)


def _find_wrappings(text: str) -> Iterator[Change]:
    """Yield each line break with the white space around it, which a view drops."""
    place = left_out_from = 0
    for line in text.split("\n"):
        kept = line.strip()
        begins = place + (len(line) - len(line.lstrip()))
        if kept:
            if begins > left_out_from:
                yield Change(left_out_from, begins, 0)
            left_out_from = begins + len(kept)
        place += len(line) + 1
    if len(text) > left_out_from:
        yield Change(left_out_from, len(text), 0)


def _find_escapes(text: str, signs: Iterable[str]) -> Iterator[Change]:
    """Yield each escape in the text that begins with one of these signs."""
    for match in _match_escapes(text, signs):
        yield Change(match.start(), match.end(), len(_decoded[match[0]]))


def _match_escapes(text: str, signs: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the match of each escape in the text that begins with one of these signs, in order."""
    # `re` finds one character in a tenth of the time that it needs for one of several.
    places = [match.start() for sign in signs for match in _SIGN_OF[sign].finditer(text)]
    done = 0
    for place in sorted(places):
        match = _ESCAPE_OF[text[place]].match(text, place) if place >= done else None
        if match is not None:
            done = match.end()
            yield match


def _decode_escapes(text: str, signs: Iterable[str]) -> str:
    """Return the text with the escapes decoded that begin with one of these signs."""
    parts: list[str] = []
    done = 0
    for match in _match_escapes(text, signs):
        parts += (text[done : match.start()], _decoded[match[0]])
        done = match.end()
    return "".join((*parts, text[done:])) if parts else text


class _EscapeCache(dict[str, str]):
    """A cache of the text that each escape represents. An invalid escape represents itself."""

    def __missing__(self, escape: str) -> str:
        if len(self) >= _MAX_KEPT:
            self.clear()
        found = self[escape] = _decode_escape(escape)
        return found


_decoded: Final = _EscapeCache()


def _decode_escape(escape: str) -> str:
    head = escape[:2]
    if head[0] == "&":
        import html

        return html.unescape(escape)
    if head[0] == "%":
        return _decode_bytes(bytes.fromhex(escape.replace("%", "")))
    if head == "\\x":
        return _decode_bytes(bytes.fromhex(escape.replace("\\x", "")))
    if len(escape) == 2:
        return _SHORT_ESCAPES.get(escape[1], escape[1])
    if len(escape) == 12:
        pair = int(escape[2:6], 16), int(escape[8:], 16)
        return chr(0x10000 + ((pair[0] - 0xD800) << 10) + pair[1] - 0xDC00)
    code = int(escape[2:].strip("{}"), 16)
    return chr(code) if code <= _LAST_CHARACTER else escape


def _decode_bytes(data: bytes) -> str:
    """Return bytes decoded as UTF-8; bytes that are not UTF-8 are decoded as Latin-1."""
    text = data.decode("utf-8", "surrogateescape")
    return "".join(
        chr(ord(each) - _LATIN_BYTE) if 0xDC80 <= ord(each) <= 0xDCFF else each for each in text
    )


# -- forms of a value -------------------------------------------------------------------------------------------------


def find_forms(value: str) -> set[str]:
    """Return the folded forms of a value to search for. Forms under 8 characters are excluded."""
    import unicodedata

    texts = {value, _decode_fully(value), "".join(map(str.strip, value.split("\n")))}
    if not value.isascii():
        texts |= {unicodedata.normalize("NFC", value), unicodedata.normalize("NFD", value)}
        # Folding does not join `ı` and its capital, `I`.
        texts |= {value.upper(), value.lower(), value.swapcase(), value.title()}
        # UTF-8 read as Latin-1, as headers are.
        texts.add(value.encode("utf-8", "surrogatepass").decode("latin-1"))
    texts |= {"+".join(re.split(r"\s", text)) for text in texts}
    texts |= {text[::-1] for text in texts}
    texts.add("\0".join(value))  # UTF-16 read as bytes
    raw = value.encode("utf-8", "surrogatepass")
    texts.add(raw.hex())
    texts |= _encode_base32(raw)
    once = _encode_base64(raw)
    texts |= once
    for inner in once:
        texts |= _encode_base64(inner.encode())
    return {folded for text in texts if len(folded := text.casefold()) >= MIN_LENGTH}


def _decode_fully(text: str) -> str:
    """Return a string with its escapes decoded as often as in a searched text."""
    for _ in range(_MAX_DECODED):
        text = _decode_escapes(text, _ESCAPES)
    return text


def _encode_base64(raw: bytes) -> set[str]:
    """Return the encodings of a value, with and without padding.

    They include the characters that stay the same if the value is inside a longer one.
    """
    import base64

    found: set[str] = set()
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        whole = encode(raw).decode()
        found |= {whole, whole.rstrip("=")}
        found |= set(_encode_inside(encode, raw, bits=6, offsets=3))
    return found


def _encode_base32(raw: bytes) -> set[str]:
    """Return the encodings of a value, with and without padding.

    They include the characters that stay the same if the value is inside a longer one.
    """
    import base64

    whole = base64.b32encode(raw).decode()
    return {whole, whole.rstrip("="), *_encode_inside(base64.b32encode, raw, bits=5, offsets=5)}


def _encode_inside(
    encode: Callable[[bytes], bytes], raw: bytes, *, bits: int, offsets: int
) -> Iterator[str]:
    """Yield, for each position in the encoded data, the characters that depend only on the value."""
    for shift in range(offsets):
        text = encode(b"\0" * shift + raw).decode()
        first = (shift * 8 + bits - 1) // bits
        last = (shift + len(raw)) * 8 // bits
        yield text[first:last]


# -- the automaton ----------------------------------------------------------------------------------------------------


class Samples:
    """A fast test that rules out most long texts in a quarter of the automaton's time.

    A text is compared at every `step` characters only. Each form is so long that one of its first samples is at such a
    position, wherever the form begins.
    """

    def __init__(self, forms: set[str]) -> None:
        shortest = min(map(len, forms), default=0)
        self._step = min(shortest - _SAMPLE + 1, _STEPS[-1])
        self._samples: set[str] = set()
        if self._step in _STEPS:
            starts = range(self._step)
            self._samples = {form[at : at + _SAMPLE] for form in forms for at in starts}

    def rule_out(self, text: str) -> bool:
        """Return True if the text certainly contains no form. Return False if it may contain one, or if a form is too
        short.
        """
        if not self._samples:
            return False
        places = range(0, len(text), self._step)
        return self._samples.isdisjoint([text[at : at + _SAMPLE] for at in places])


_Find = Callable[[str], Iterator[tuple[int, int]]]
"""Gives every form in a text, overlapping ones too: the position of its last character, and its length."""


def _build_automaton(forms: set[str]) -> _Find:
    """Return a function that finds all forms in a string."""
    try:
        import ahocorasick
    except ImportError:
        return _search_without_library(forms)
    automaton = ahocorasick.Automaton(ahocorasick.STORE_LENGTH)
    for form in forms:
        automaton.add_word(form)
    automaton.make_automaton()
    find: _Find = automaton.iter
    return find


def _search_without_library(forms: set[str]) -> _Find:
    """Return the same function without the library.

    A pattern finds the first characters of all forms, then whole forms are compared.
    """
    by_head: dict[str, list[str]] = {}
    for form in forms:
        by_head.setdefault(form[:MIN_LENGTH], []).append(form)
    heads = re.compile(f"(?=({_join_in_trie(sorted(by_head))}))")

    def find(text: str) -> Iterator[tuple[int, int]]:
        for match in heads.finditer(text):
            for form in by_head[match[1]]:
                if text.startswith(form, match.start()):
                    yield match.start() + len(form) - 1, len(form)

    return find


def _join_in_trie(alternatives: list[str]) -> str:
    """Return a pattern for any of these words, with common prefixes written once.

    The words are sorted and have the same length.
    """
    if not alternatives[0]:
        return ""
    below: dict[str, list[str]] = {}
    for word in alternatives:
        below.setdefault(word[0], []).append(word[1:])
    branches = [re.escape(first) + _join_in_trie(rest) for first, rest in below.items()]
    return branches[0] if len(branches) == 1 else f"(?:{'|'.join(branches)})"
