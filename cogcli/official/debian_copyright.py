"""Machine-readable copyright files of Debian (copyright-format 1.0), with their licences as SPDX expressions."""

from __future__ import annotations

import re

_FORMAT = re.compile(r"\s*Format(?:-Specification)?:[^\n]*(?:copyright-format|dep-?5)", re.I)
_FILES = re.compile(r"^Files:[ \t]*(.*(?:\n[ \t]+\S.*)*)", re.M | re.I)
_LICENCE = re.compile(r"^License:[ \t]*(\S[^\n]*)$", re.M | re.I)
_GNU = re.compile(r"(A?GPL|LGPL|GFDL)(-NIV)?-(\d)(?:\.(\d))?(?:\.0)?(\+)?", re.I)
_VERSIONED = re.compile(r"(BSD)-(\d)-clause|(Apache|Artistic|MPL|EPL)-(\d)(?:\.(\d))?", re.I)
_NAMES = {
    "expat": "MIT", "mit": "MIT", "isc": "ISC", "zlib": "Zlib", "artistic": "Artistic-1.0", "cc0": "CC0-1.0",
    "cc0-1.0": "CC0-1.0", "bsl-1.0": "BSL-1.0", "ofl-1.1": "OFL-1.1", "psf-2": "PSF-2.0", "x11": "X11",
    "fsfap": "FSFAP", "fsful": "FSFUL", "fsfullr": "FSFULLR", "curl": "curl", "bzip2-1.0.6": "bzip2-1.0.6",
    "unlicense": "Unlicense", "wtfpl": "WTFPL", "0bsd": "0BSD", "afl-2.1": "AFL-2.1", "beerware": "Beerware",
    "cc-by-4.0": "CC-BY-4.0", "cc-by-sa-3.0": "CC-BY-SA-3.0", "cc-by-sa-4.0": "CC-BY-SA-4.0",
}  # fmt: skip
"""SPDX identifiers of short names that follow no pattern."""


def read_licence_fields(text: str) -> list[tuple[str, str]]:
    """Return files and SPDX expression of each paragraph about files; empty for a text in another
    format.

    Names that SPDX does not know become `LicenseRef-...`, exceptions without an identifier
    `AdditionRef-...`.
    """
    if not _FORMAT.match(text):
        return []
    licences = []
    for paragraph in re.split(r"\n[ \t]*\n", text):
        files, licence = _FILES.search(paragraph), _LICENCE.search(paragraph)
        if files and licence:
            licences.append((" ".join(files[1].split()), _spdx_expression(licence[1])))
    return licences


def _spdx_expression(field: str) -> str:
    """Return the SPDX expression of a licence field. A comma before `and` or `or` groups all that
    precedes it.
    """
    parts = re.split(r",\s+(and|or)\s+", " ".join(field.split())[:500])
    groups = [_join_licences(part) for part in parts[::2]]
    expression = groups[0]
    for word, group in zip(parts[1::2], groups[1:], strict=True):
        expression = f"{_in_brackets_if_compound(expression)} {word.upper()} {_in_brackets_if_compound(group)}"
    return expression


def _in_brackets_if_compound(expression: str) -> str:
    return f"({expression})" if re.search(r" (?:OR|AND) ", expression) else expression


def _join_licences(licences: str) -> str:
    parts = re.split(r"\s+(and|or)\s+", licences, flags=re.I)
    return " ".join(
        part_text.upper() if number % 2 else _with_exception(part_text.strip(" ,"))
        for number, part_text in enumerate(parts)
    )


def _with_exception(name: str) -> str:
    licence, _, exception = name.partition(" with ")
    added = f" WITH AdditionRef-{_licence_reference(exception)}" if exception else ""
    return _licence_identifier(licence.strip()) + added


def _licence_identifier(name: str) -> str:
    if gnu := _GNU.fullmatch(name):
        kind, free, major, minor, later = gnu.groups()
        invariants = "-no-invariants" if free else ""
        return f"{kind.upper()}-{major}.{minor or 0}{invariants}-{'or-later' if later else 'only'}"
    if found := _VERSIONED.fullmatch(name):
        return (
            f"BSD-{found[2]}-Clause"
            if found[1]
            else f"{_capitalize_name(found[3])}-{found[4]}.{found[5] or 0}"
        )
    return _NAMES.get(name.lower()) or f"LicenseRef-{_licence_reference(name)}"


def _capitalize_name(word: str) -> str:
    return word.upper() if len(word) == 3 else word.capitalize()


def _licence_reference(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-")
