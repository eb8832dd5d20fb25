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
    """Return the text without unseen characters and with plain white space: one space, at most one empty line.

    `removed` counts the control, bidi, zero-width and surplus combining characters taken out.
    """
    if form not in _FORMS:
        raise Refused("bad-data", f"form must be {' or '.join(_FORMS)}, found {form!r}")
    visible, removed = _UNSEEN.subn("", _LINE_ENDS.sub("\n", text))
    marked = visible if visible.isascii() else _limit_marks(visible)
    removed += len(visible) - len(marked)
    spaced = _BLANKS.sub(" ", unicodedata.normalize(_FORMS[form], marked))
    lines = [line.strip() for line in spaced.split("\n")]
    clean = (
        _MANY_LINES.sub("\n\n", "\n".join(lines)) if keep_lines else " ".join(filter(None, lines))
    )
    clean = clean.strip()
    return {"text": clean, "removed": removed, "changed": clean != text}


def _limit_marks(text: str) -> str:
    # UAX #15 "stream-safe": ordering an endless run of marks costs quadratic time, and no script needs one.
    kept: list[str] = []
    run = 0
    for char in text:
        run = run + 1 if unicodedata.combining(char) else 0
        if run <= _MAX_MARKS:
            kept.append(char)
    return "".join(kept)


def split_sections(text: str, max_level: int = 6, numbered: bool = False) -> dict[str, object]:
    """Return the text cut at its headings, in order: those of Markdown, not inside fenced code (`#` to `max_level`
    marks, or a line of its own that is underlined with `===` or `---`), or the entries of a Debian changelog.

    With `numbered` a text without any is cut at its numbered clauses (`1. `, `2. `...), as far as they count up from 0
    or 1. Text before the first heading is a section of level 0 without a title. `measures` counts what was found.
    """
    marked = _entries(text) if _DEBIAN.match(text.lstrip()) else _marked_lines(text, max_level)
    if numbered and not any(level for level, _, _ in marked):
        marked = _clauses(text)
    bodies: list[tuple[int, str, list[str]]] = [(0, "", [])]
    for level, title, line in marked:
        if level:
            bodies.append((level, title, [line] if line else []))
        else:
            bodies[-1][2].append(line)
    sections = [_section(level, title, body) for level, title, body in bodies if level or any(body)]
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


def _section(level: int, title: str, body: list[str]) -> dict[str, object]:
    words = sum(len(line.split()) for line in body)
    return {"level": level, "title": title, "text": "\n".join(body).strip("\n"), "words": words}


def _marked_lines(text: str, max_level: int) -> list[tuple[int, str, str]]:
    """(heading level or 0, heading title, what else there is of the line) of each line."""
    marked: list[tuple[int, str, str]] = []
    lines, fence = text.splitlines(), ""
    for number, line in enumerate(lines):
        mark = line.strip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        level, title = (0, "") if fence else _heading(line)
        if not fence and _UNDERLINE.fullmatch(line) and _stands_alone(lines, number - 1):
            level, title = "=-".index(line[0]) + 1, lines[number - 1].strip()
            if level <= max_level:
                marked.pop()
        marked.append((level, title, "") if 0 < level <= max_level else (0, "", line))
    return marked


def _stands_alone(lines: list[str], number: int) -> bool:
    """Return whether the line is one that an underline makes a heading of: a paragraph of one line, that is nothing
    else.
    """
    before = lines[number - 1].strip() if number > 0 else ""
    return (
        number >= 0
        and not before
        and bool(_WORDS.match(lines[number]))
        and not _heading(lines[number])[0]
    )


def _entries(text: str) -> list[tuple[int, str, str]]:
    """Return the same for a Debian changelog, whose lines with `#` are comments."""
    found = [(line, _DEBIAN.match(line)) for line in text.splitlines()]
    return [(1, entry[1], "") if entry else (0, "", line) for line, entry in found]


def _clauses(text: str) -> list[tuple[int, str, str]]:
    """Return the same for numbered clauses. The title of one is its number, with what follows as far as that is a
    title: it ends with a full stop before the line does, or is a short line of its own.
    """
    marked: list[tuple[int, str, str]] = []
    lines, awaited = text.splitlines(), {0, 1}
    for number, line in enumerate(lines):
        found = _CLAUSE.match(line)
        if not found or int(found[1]) not in awaited:
            marked.append((0, "", line))
            continue
        awaited = {int(found[1]) + 1}
        alone = len(found[2]) <= _MAX_TITLE and not "".join(lines[number + 1 : number + 2]).strip()
        named = (_NAMED.match(found[2]) or [found[2] if alone else ""])[0]
        marked.append((1, f"{found[1]}. {named}".strip(), found[2][len(named) :].strip()))
    return marked


def _heading(line: str) -> tuple[int, str]:
    bare = line.strip()
    title = bare.lstrip("#")
    level = len(bare) - len(title)
    if not 1 <= level <= 6 or (title and not title[0].isspace()):
        return 0, ""
    title = title.strip()
    unclosed = title.rstrip("#")
    return level, title if unclosed and not unclosed[-1].isspace() else unclosed.rstrip()


def detect_language(text: str, max_candidates: int = 3) -> dict[str, object]:
    """Return the likeliest language as an ISO 639-1 code, `und` when the text has no letters to judge by, or none
    is likely.

    Reads the first 10,000 characters; the same text always gives the same answer. `reliable` needs 20 letters
    and a confidence of 0.8.
    """
    sample = text[:_LANGUAGE_SAMPLE]
    letters = sum(map(str.isalpha, sample))
    ranked = _languages(sample) if letters else []
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


def _languages(sample: str) -> list[tuple[str, float]]:
    shares: dict[str, float] = {}
    with _loading:
        identifier = _identifier()
    for label, share in identifier.rank(sample.encode("utf-8", "replace")):
        code = _VARIETIES.get(label, label)
        shares[code] = shares.get(code, 0.0) + share
    likely = [
        (code, round(min(share, 1.0), 4)) for code, share in shares.items() if share >= 0.0001
    ]
    return sorted(likely, key=lambda pair: (-pair[1], pair[0]))


@cache
def _identifier() -> Any:
    """Return the model, read once. It is asked for the languages that have a code of two letters, and their
    varieties.
    """
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(
        [code for code in identifier.labels if len(code) == 2 or code in _VARIETIES]
    )
    return identifier
