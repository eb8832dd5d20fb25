"""Text as characters, lines and headings: cleaning, sections, language."""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import cache
from typing import Any, Literal

from cogcli.sdk import Refused

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)
_BLANKS = re.compile(r"[^\S\n]+")
_MANY_LINES = re.compile(r"\n{3,}")
_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"NFC": "NFC", "NFKC": "NFKC"}
_UNDERLINE = re.compile(r"(={3,}|-{3,})[ \t]*")
_WORDS = re.compile(r" {0,3}(?![-*+>|=])\S.*[^\W_]")
"""The line of a paragraph: no item, quotation or row, and something to read."""
_DEBIAN = re.compile(
    r"([a-z0-9][a-z0-9+.-]{1,100} \([^\s()]{1,100}\)(?: [\w.+-]{1,50}){1,5}); urgency="
)
_CLAUSE = re.compile(r" {0,8}(\d{1,3})[.)][ \t]+(\S.*)")
_NAMED = re.compile(r"[^.]{2,60}\.(?=\s)")
_MAX_TITLE = 80
_MAX_MARKS = 30
_LANGUAGE_SAMPLE = 10_000
_LANGUAGE_LETTERS = 20
_LANGUAGE_LIKELY = 0.15
_VARIETIES = {"nn": "no", "ary": "ar", "arz": "ar", "wuu": "zh", "yue": "zh"}
_loading = threading.Lock()


def normalize(text: str, form: str = "NFC", keep_lines: bool = True) -> dict[str, object]:
    """Return the text without invisible characters and with plain white space: one blank, at most
    one empty line.

    `removed` counts the control, bidi, zero-width and surplus combining characters that were
    removed.
    """
    if form not in _FORMS:
        raise Refused("bad-data", f"form must be {' or '.join(_FORMS)}, found {form!r}")
    visible, removed = _UNSEEN.subn("", _LINE_ENDS.sub("\n", text))
    limited = visible if visible.isascii() else _limit_marks(visible)
    removed += len(visible) - len(limited)
    spaced = _BLANKS.sub(" ", unicodedata.normalize(_FORMS[form], limited))
    lines = [line.strip() for line in spaced.split("\n")]
    result = (
        _MANY_LINES.sub("\n\n", "\n".join(lines)) if keep_lines else " ".join(filter(None, lines))
    )
    result = result.strip()
    return {"text": result, "removed": removed, "changed": result != text}


def _limit_marks(text: str) -> str:
    """Return the text with at most `_MAX_MARKS` combining characters in a row."""
    # UAX #15 "stream-safe": ordering an endless run of marks costs quadratic time, and no script needs one.
    characters: list[str] = []
    run_length = 0
    for char in text:
        run_length = run_length + 1 if unicodedata.combining(char) else 0
        if run_length <= _MAX_MARKS:
            characters.append(char)
    return "".join(characters)


def split_sections(text: str, max_level: int = 6, numbered: bool = False) -> dict[str, object]:
    """Return the text cut at its headings, in order.

    Headings are those of Markdown outside of fenced code (`#` to `max_level` marks, or a line
    underlined with `===` or `---`), or the entries of a Debian changelog. With `numbered` a text
    without headings is cut at its numbered clauses (`1. `, `2. `...), counting up from 0 or 1. Text
    before the first heading is a section of level 0 without title. `measures` counts sections and
    headings.
    """
    lines_with_headings = (
        _changelog_lines(text)
        if _DEBIAN.match(text.lstrip())
        else _lines_with_headings(text, max_level)
    )
    if numbered and not any(level for level, _, _ in lines_with_headings):
        lines_with_headings = _clause_lines(text)
    bodies: list[tuple[int, str, list[str]]] = [(0, "", [])]
    for level, title, line in lines_with_headings:
        if level:
            bodies.append((level, title, [line] if line else []))
        else:
            bodies[-1][2].append(line)
    sections = [
        _build_section(level, title, body) for level, title, body in bodies if level or any(body)
    ]
    levels = [level for level, _, _ in bodies if level]
    measures = {
        "sections": len(sections),
        "headings": len(levels),
        "deepest_heading": max(levels, default=0),
    }
    return {
        "sections": sections,
        "titles": [title for _, title, _ in bodies[1:]],
        "measures": measures,
    }


def _build_section(level: int, title: str, body: list[str]) -> dict[str, object]:
    words = sum(len(line.split()) for line in body)
    return {"level": level, "title": title, "text": "\n".join(body).strip("\n"), "words": words}


def _lines_with_headings(text: str, max_level: int) -> list[tuple[int, str, str]]:
    """Return (heading level or 0, heading title, rest of the line) of each line."""
    result: list[tuple[int, str, str]] = []
    lines, fence = text.splitlines(), ""
    for number, line in enumerate(lines):
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        level, title = (0, "") if fence else _parse_heading(line)
        if not fence and _UNDERLINE.fullmatch(line) and _may_be_underlined(lines, number - 1):
            level, title = "=-".index(line[0]) + 1, lines[number - 1].strip()
            if level <= max_level:
                result.pop()
        result.append((level, title, "") if 0 < level <= max_level else (0, "", line))
    return result


def _may_be_underlined(lines: list[str], number: int) -> bool:
    """Return whether a line is a paragraph of one line, which an underline makes a heading."""
    line_before = lines[number - 1].strip() if number > 0 else ""
    return (
        number >= 0
        and not line_before
        and bool(_WORDS.match(lines[number]))
        and not _parse_heading(lines[number])[0]
    )


def _changelog_lines(text: str) -> list[tuple[int, str, str]]:
    """Return the lines of a Debian changelog in the same form; lines with `#` are no headings
    there.
    """
    matches = [(line, _DEBIAN.match(line)) for line in text.splitlines()]
    return [(1, entry[1], "") if entry else (0, "", line) for line, entry in matches]


def _clause_lines(text: str) -> list[tuple[int, str, str]]:
    """Return the lines with numbered clauses as headings of level 1, as in `_lines_with_headings`. The title is the
    number with a short first sentence, or with a short separate line.
    """
    result: list[tuple[int, str, str]] = []
    lines, expected_numbers = text.splitlines(), {0, 1}
    for number, line in enumerate(lines):
        match = _CLAUSE.match(line)
        if not match or int(match[1]) not in expected_numbers:
            result.append((0, "", line))
            continue
        expected_numbers = {int(match[1]) + 1}
        is_single_line = (
            len(match[2]) <= _MAX_TITLE and not "".join(lines[number + 1 : number + 2]).strip()
        )
        title = (_NAMED.match(match[2]) or [match[2] if is_single_line else ""])[0]
        result.append((1, f"{match[1]}. {title}".strip(), match[2][len(title) :].strip()))
    return result


def _parse_heading(line: str) -> tuple[int, str]:
    """Return the level and title of a Markdown heading with `#`; 0 and empty for another line."""
    stripped = line.strip()
    title = stripped.lstrip("#")
    level = len(stripped) - len(title)
    if not 1 <= level <= 6 or (title and not title[0].isspace()):
        return 0, ""
    title = title.strip()
    unclosed = title.rstrip("#")
    return level, title if unclosed and not unclosed[-1].isspace() else unclosed.rstrip()


def detect_language(text: str, max_candidates: int = 3) -> dict[str, object]:
    """Return the most likely language as an ISO 639-1 code, `und` if the text has no letters or
    none is likely.

    Only the first 10,000 characters are read, and the same text always gives the same result.
    `reliable` requires 20 letters and a confidence of 0.8.
    """
    sample = text[:_LANGUAGE_SAMPLE]
    letters = sum(map(str.isalpha, sample))
    ranked = _rank_languages(sample) if letters else []
    if ranked and ranked[0][1] < _LANGUAGE_LIKELY:
        ranked = []
    candidates = [
        {"language": code, "confidence": share} for code, share in ranked[:max_candidates]
    ]
    language, confidence = ranked[0] if ranked else ("und", 0.0)
    reliable = confidence >= 0.8 and letters >= _LANGUAGE_LETTERS
    return {
        "language": language,
        "confidence": confidence,
        "reliable": reliable,
        "candidates": candidates,
    }


def _rank_languages(sample: str) -> list[tuple[str, float]]:
    shares: dict[str, float] = {}
    with _loading:
        identifier = _load_model()
    for label, share in identifier.rank(sample.encode("utf-8", "replace")):
        code = _VARIETIES.get(label, label)
        shares[code] = shares.get(code, 0.0) + share
    likely = [
        (code, round(min(share, 1.0), 4)) for code, share in shares.items() if share >= 0.0001
    ]
    return sorted(likely, key=lambda pair: (-pair[1], pair[0]))


@cache
def _load_model() -> Any:
    """Return the language model, loaded once, for the languages with two-letter codes and their
    varieties.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(
        [code for code in identifier.labels if len(code) == 2 or code in _VARIETIES]
    )
    return identifier
